"""Memory, plan, journal, callbacks and interruption of searches over pipelines."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.config import config_context
from onefit.journal import JournalError
from onefit.search.pipeline_rows import set_up_pipeline

rng = np.random.default_rng(0)
N = 60
X = rng.normal(size=(N, 4)) * [1, 3, 9, 27]
Y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=N)
LAMS = np.logspace(-4, 0, 7)
GRID = {"kernelregressor__gamma": [0.05, "scale"], "kernelregressor__lam": LAMS}


class Counting(StandardScaler):
    """Counts its fits, and may interrupt one."""

    fits, stop = 0, 99

    def fit(self, X, y=None, sample_weight=None):
        Counting.fits += 1
        if Counting.fits == Counting.stop:
            raise KeyboardInterrupt
        return super().fit(X, y, sample_weight)


@pytest.fixture
def model():
    Counting.fits, Counting.stop = 0, 99
    return make_pipeline(Counting(), KernelRegressor())


def test_too_little_memory_is_refused_before_any_step_is_fitted(model):
    search = KernelSearchCV(model, GRID, cv=3)
    need = max(one.nbytes for one in set_up_pipeline(search, X, Y, {}).works.values())
    with config_context(memory_bytes=need - 1):
        with pytest.raises(MemoryError, match=r"n=60 rows needs .* are available; "):
            search.fit(X, Y)
        assert Counting.fits == 0
        assert str(search.explain(X, Y)).startswith("A fit will refuse this plan")
    with config_context(memory_bytes=need):
        search.set_params(refit=False).fit(X, Y)
    assert Counting.fits == 3


@pytest.mark.parametrize("loss", ["squared", "smoothed_hinge"])
def test_the_memory_is_what_a_search_takes(loss):
    n = 700
    rows = rng.normal(size=(n, 4))
    two = (rows[:, 0] + rng.normal(size=n) > 0).astype(int)
    model = make_pipeline(StandardScaler(), KernelClassifier(loss))
    grid = {"kernelclassifier__gamma": [0.1, 1.0], "kernelclassifier__lam": LAMS}
    search = KernelSearchCV(model, grid, cv=5, refit=False)
    (estimate,) = set_up_pipeline(search, rows, two, {}).works.values()
    tracemalloc.start()
    search.fit(rows, two)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 0.5 * estimate.nbytes < peak < 1.25 * estimate.nbytes


def test_workers_count_for_the_memory(model):
    alone, two = (
        max(
            one.nbytes
            for one in set_up_pipeline(
                KernelSearchCV(model, GRID, n_jobs=n), X, Y, {}
            ).works.values()
        )
        for n in (1, 2)
    )
    assert two == pytest.approx(2 * alone, rel=0.2)


def test_plan_has_time_and_memory(model):
    splits = ShuffleSplit(4, test_size=0.2, random_state=0)
    text = str(KernelSearchCV(model, GRID, cv=splits).explain(X, Y))
    assert "14 candidates, 4 splits" in text
    assert "8 kernel matrices" in text
    assert "GridSearchCV: 56 fits" in text
    assert "expected to take" in text
    assert Counting.fits == 0


def test_an_interrupted_search_changes_nothing_and_resumes(model, tmp_path):
    search = KernelSearchCV(model, GRID, cv=4, journal=tmp_path / "journal")
    Counting.stop = 3
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, Y)
    assert not hasattr(search, "cv_results_")
    Counting.fits, Counting.stop = 0, 99
    search.fit(X, Y)
    assert Counting.fits == 2 + 1  # two splits were finished; and the winner
    expected = KernelSearchCV(model, GRID, cv=4).fit(X, Y)
    name = "mean_test_score"
    np.testing.assert_array_equal(search.cv_results_[name], expected.cv_results_[name])


def test_other_data_are_not_resumed(model, tmp_path):
    search = KernelSearchCV(model, GRID, cv=4, journal=tmp_path / "journal").fit(X, Y)
    with pytest.raises(Exception, match="journal"):
        search.fit(X[:50], Y[:50])


class Recorder:
    def __init__(self):
        self.seen = []

    def setup(self, *_, **__):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context, **_):
        self.seen.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, **_):
        self.seen.append(("end", context.task_name))


def test_callbacks_hear_of_every_split(model):
    pytest.importorskip("sklearn.callback")
    one = Recorder()
    KernelSearchCV(model, GRID, cv=4).set_callbacks(one).fit(X, Y)
    assert one.seen.count(("begin", "split")) == one.seen.count(("end", "split")) == 4


def test_progress_is_printed(model, capsys):
    KernelSearchCV(model, GRID, cv=4, verbose=2).fit(X, Y)
    shown = capsys.readouterr().out
    assert "14 candidates" in shown
    assert "[4/4] setting 0, split" in shown


def test_many_rows_are_searched_in_another_process(model):
    few = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    expected = KernelSearchCV(model, GRID, cv=few, refit=False).fit(X, Y)
    before = Counting.fits
    assert before == 2
    more = np.resize(X, (3001, X.shape[1])), np.resize(Y, 3001)  # of which the splits take few
    found = KernelSearchCV(model, GRID, cv=few, refit=False).fit(*more)
    assert Counting.fits == before  # not in this one
    name = "mean_test_score"
    np.testing.assert_array_equal(found.cv_results_[name], expected.cv_results_[name])


def test_a_journal_knows_what_frozen_steps_were_fitted_to(tmp_path):
    """They are not fitted again, and have the same parameters."""
    one, other = (
        make_pipeline(FrozenEstimator(PCA(1).fit(X[:, columns])), KernelRegressor())
        for columns in ([0, 1, 2, 3], [3, 2, 1, 0])
    )
    KernelSearchCV(one, GRID, cv=3, journal=tmp_path / "journal").fit(X, Y)
    again = KernelSearchCV(other, GRID, cv=3, journal=tmp_path / "journal").fit(X, Y)
    assert again.best_score_ == KernelSearchCV(other, GRID, cv=3).fit(X, Y).best_score_


def test_a_journal_knows_the_names_of_the_columns(tmp_path):
    """Steps may select columns by name."""
    first = make_column_transformer(("passthrough", ["a"]))
    model = make_pipeline(first, KernelRegressor())
    one, other = (pd.DataFrame(X[:, :2], columns=names) for names in (["a", "b"], ["b", "a"]))
    search = KernelSearchCV(model, GRID, cv=3, journal=tmp_path / "journal").fit(one, Y)
    with pytest.raises(JournalError, match="columns was"):
        search.fit(other, Y)
