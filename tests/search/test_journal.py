"""Journals: what is finished stays finished, whatever kills the search."""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

import onefit
from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit._describe import describe
from onefit.features import Nystrom
from onefit.heldout import Block, Influence, Prepared
from onefit.journal import JournalError
from onefit.kernels import Gaussian, Polynomial
from onefit.linalg import LinAlgError
from onefit.losses import Huber
from onefit.scoring import one_standard_error
from onefit.search import Interval, workers

X, y = make_friedman1(40, random_state=0)
Z, labels = make_classification(60, random_state=0)
GRID = {"gamma": [0.1, 1.0, 2.0], "lam": [1e-3, 1e-1], "fit_intercept": [True, False]}
#: of so many the plan makes an eigendecomposition, of the few of the grid a factor each
MANY_LAMS = [1e-3, 1e-1, *(2.0**-k for k in range(1, 14))]


def make(path=None, **options):
    return KernelSearchCV(KernelRegressor(), GRID, **{"cv": 3, "journal": path} | options)


def count(path) -> int:
    """Entries in a journal, one for each machine."""
    return len(list(path.glob("*.entry")))


def check_same(one, other) -> None:
    assert list(one.cv_results_) == list(other.cv_results_)
    for name, values in other.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(one.cv_results_[name], values)
    np.testing.assert_array_equal(one.heldout_.values, other.heldout_.values)
    assert one.best_params_ == other.best_params_


def check_close(one, other) -> None:
    """The same up to rounding: starting points differ, and methods may."""
    assert list(one.cv_results_) == list(other.cv_results_)
    for name, values in other.cv_results_.items():
        if "_test_" in name and "rank" not in name:
            np.testing.assert_allclose(one.cv_results_[name], values, rtol=1e-5, atol=1e-7)
    for name in ("params", "exact", "reason"):
        assert list(one.cv_results_[name]) == list(other.cv_results_[name])
    assert one.best_params_ == other.best_params_


@pytest.fixture
def ran(monkeypatch):
    """What is worked on: gamma, intercept and lam."""
    found = []
    run_job = workers.run_job

    def note(task, job, *rest):
        for one in job.models:
            gamma = getattr(job.kernel, "gamma", None)
            found.extend((gamma, one.estimator.fit_intercept, lam) for lam in one.lams)
        return run_job(task, job, *rest)

    monkeypatch.setattr(workers, "run_job", note)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "eigen", "scoring": ["r2", "neg_max_error"], "refit": "r2"},
        {"method": "race"},
        {"aggregate": "pooled"},
    ],
)
def test_a_finished_search_is_read_not_run(tmp_path, ran, options):
    path = tmp_path / "journal"
    first = make(path, **options).fit(X, y)
    assert ran
    ran.clear()
    check_same(make(path, **options).fit(X, y), first)
    assert ran == []
    check_same(first, make(**options).fit(X, y))


class Calling:
    """A callback that is called after so many kernels."""

    def __init__(self, after: int) -> None:
        self.left = after

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, **_):
        pass

    def on_fit_task_end(self, estimator, context, **_):
        if context.task_name == "kernel":
            self.left -= 1
            if self.left == 0:
                self.called()

    def teardown(self, estimator, context):
        pass


class Interrupting(Calling):
    def called(self):
        raise KeyboardInterrupt


def test_an_interrupted_search_goes_on(tmp_path, ran):
    path = tmp_path / "journal"
    search = make(path).set_callbacks(Interrupting(2))
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert not hasattr(search, "cv_results_")
    assert count(path) == 4
    done = list(ran)
    ran.clear()
    search = make(path).fit(X, y)
    assert len(ran) == 4
    assert not set(ran) & set(done)
    check_same(search, make().fit(X, y))


def test_another_choice_of_the_plan_loses_nothing(tmp_path, ran):
    """Of many lams the plan decomposes, of few it factors; known values are used in both cases."""
    path = tmp_path / "journal"
    first = make(path).set_params(param_grid=GRID | {"lam": MANY_LAMS}).fit(X, y)
    assert set(first.cv_results_["method"]) == {"eigen"}
    fresh = make().fit(X, y)
    assert set(fresh.cv_results_["method"]) == {"block"}
    ran.clear()
    found = make(path).fit(X, y)
    assert ran == []
    assert set(found.cv_results_["method"]) == {"eigen"}
    score = "mean_test_score"
    np.testing.assert_allclose(found.cv_results_[score], fresh.cv_results_[score], rtol=1e-6)


def test_workers_write_through_one_hand(tmp_path):
    path = tmp_path / "journal"
    with joblib.parallel_config("loky", n_jobs=2):
        make(path).fit(X, y)
    assert count(path) == 6


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"cv": 4}, "splits was 3 splits"),
        ({"cv": KFold(3, shuffle=True, random_state=0)}, "splits was 3 splits"),
        ({"method": "block"}, "method was 'auto', is 'block'"),
        ({"scoring": "neg_max_error"}, "scoring was None, is 'neg_max_error'"),
        ({"aggregate": "median"}, "aggregate was mean, is median"),
        ({"estimator": KernelRegressor("huber")}, "estimator.loss was Squared({}), is Huber("),
        ({"estimator": KernelRegressor(Huber(2.0))}, "is Huber({threshold=2.0})"),
        (
            {"estimator": KernelRegressor(kernel=Polynomial(degree=4))},
            "is Polynomial({gamma=None, coef0=1.0, degree=4})",
        ),
        ({"estimator": KernelRegressor(approximation=Nystrom(20))}, "n_components=20"),
    ],
)
def test_other_settings_are_refused_and_named(tmp_path, ran, change, named):
    path = tmp_path / "journal"
    make(path).fit(X, y)
    ran.clear()
    with pytest.raises(JournalError, match="made from other data or settings") as caught:
        make(path).set_params(**change).fit(X, y)
    assert named in str(caught.value)
    assert ran == []
    assert count(path) == 6


def test_settings_of_the_same_meaning_continue(tmp_path, ran):
    path = tmp_path / "journal"
    named = KernelRegressor("huber").set_params(loss__threshold=0.5)
    make(path).set_params(estimator=named).fit(X, y)
    ran.clear()
    make(path).set_params(estimator=KernelRegressor(Huber(0.5), Gaussian())).fit(X, y)
    assert ran == []
    assert count(path) == 6


def test_other_data_are_refused_and_named(tmp_path):
    path = tmp_path / "journal"
    make(path).fit(X, y)
    other = X.copy()
    other[7, 3] = np.nextafter(other[7, 3], 1)
    with pytest.raises(JournalError, match=r": X was float64 array of shape \(40, 10\)") as caught:
        make(path).fit(other, y)
    assert "; " not in str(caught.value)  # nothing but X differs
    with pytest.raises(JournalError, match=r": y was"):
        make(path).fit(X, y[::-1])
    with pytest.raises(JournalError, match="sample_weight was None"):
        make(path).fit(X, y, sample_weight=np.arange(1, 41))


def test_settings_that_do_not_matter_do_not_matter(tmp_path, ran):
    path = tmp_path / "journal"
    make(path).fit(X, y)
    ran.clear()
    make(path, n_jobs=1, refit=one_standard_error, verbose=0).fit(X.tolist(), y.tolist())
    assert ran == []


def test_a_classifier_with_text_labels(tmp_path, ran):
    path = tmp_path / "journal"
    words = np.array(["no", "yes"], dtype=object)[labels]
    options = {"cv": 3, "journal": path}
    first = KernelSearchCV(KernelClassifier(), {"lam": [1e-2, 1.0]}, **options).fit(Z, words)
    ran.clear()
    again = KernelSearchCV(KernelClassifier(), {"lam": [1e-2, 1.0]}, **options).fit(Z, words)
    check_same(again, first)
    assert ran == []


def test_descriptions_are_the_same_in_another_process():
    def function(a, b):
        return a @ b.T

    described = describe({"kernel": function, "object": object(), "n": np.float64(0.1)})
    assert "0x" not in described
    assert "n=0.1" in described
    assert describe(X) != describe(X + 1e-12)
    assert describe(X) != describe(X.astype(np.float32))
    assert describe(sparse.csr_matrix(X)) == describe(sparse.csc_matrix(X))
    source = "lambda a, b={'b', 'c', 'd'}: [c for c in a if c in {'e', 'f', 'g'}]"
    program = f"from onefit._describe import describe; print(describe({source}))"
    said = subprocess.check_output(
        [sys.executable, "-c", program], env=_environment("."), text=True
    )
    assert said.strip() == describe(eval(source, {"__name__": "__main__"}))


class Holder:
    """An object that says nothing of what it holds."""

    def __init__(self, value) -> None:
        self.value = value

    def kernel(self, a, b):
        return a @ b.T + self.value


@dataclass
class Weighted:
    """An object whose words for itself leave digits out."""

    weights: Any


class Silent(Holder):
    """An object whose words for itself leave out what it holds."""

    def __repr__(self) -> str:
        return "Silent()"


def defined(source, **names):
    """A function of a module of its own, with other values under the names that it uses."""
    exec(f"def function(y, u):\n    return {source}", names)
    return names["function"]


def step(source, **names):
    """A step of a pipeline whose class has other code; scikit-learn wraps its method."""
    kind = type("Step", (StandardScaler,), {"transform": defined(source, **names)})
    return kind()


def power(exponent):
    return lambda a, b: (a @ b.T) ** exponent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda a, b: a @ b.T, lambda a, b: a @ b.T + 1),
        (lambda a, b: a.sum(b), lambda a, b: a.min(b)),
        (lambda: [i + 1 for i in "a"], lambda: [i + 2 for i in "a"]),
        (lambda a, b=1: a, lambda a, b=2: a),
        (power(2), power(3)),
        (functools.partial(power, 2), functools.partial(power, 3)),
        (functools.partial(power(2), 1), functools.partial(power(3), 1)),
        (Weighted(X), Weighted(X + 1e-12)),
        (Holder(1), Holder(2)),
        (Holder(X), Holder(X + 1e-12)),
        (Holder(1).kernel, Holder(2).kernel),
        ([Holder(1)], [Holder(2)]),
        (Silent(1), Silent(2)),
        (make_scorer(defined("0.0")), make_scorer(defined("1.0"))),
        (defined("y ** power", power=2), defined("y ** power", power=3)),
        (defined("[y[i] for i in rows]", rows=[1]), defined("[y[i] for i in rows]", rows=[2])),
        (defined("inner(y)", inner=defined("y")), defined("inner(y)", inner=defined("u"))),
        (step("u"), step("2 * u")),
        (step("u * factor", factor=2), step("u * factor", factor=3)),
        (
            onefit.kernels.WeightedSum((onefit.kernels.CallableKernel(power(2)),), (1.0,)),
            onefit.kernels.WeightedSum((onefit.kernels.CallableKernel(power(3)),), (1.0,)),
        ),
    ],
)
def test_different_values_are_described_differently(one, other):
    assert describe(one) != describe(other)
    assert describe(one) == describe(one)


def test_a_value_inside_itself_is_described():
    holder = Holder(1)
    holder.value = [holder]
    assert describe(holder).endswith("...]}")


# --- other grids


def wanted(grid) -> set:
    search = KernelSearchCV(KernelRegressor(), grid, refit=False)
    return {
        (one.get("gamma"), one.get("fit_intercept", True), one["lam"])
        for one in onefit.search.grid.candidates(search.estimator, grid)
    }


@pytest.mark.parametrize("method", ["block", "auto"])
@pytest.mark.parametrize(
    "change",
    [
        {"gamma": [0.5, 0.1, 1.0, 2.0]},
        {"gamma": [2.0]},
        {"lam": [1e-1, 1e-3]},
        {"lam": [1e-1]},
        {"lam": [1e-4, 1e-3, 1e-2, 1e-1, 1.0]},
        {"lam": [1e-3, 1e-3, 1.0]},
        {"fit_intercept": [False]},
        {"gamma": [0.1, 4.0], "lam": [1e-2, 1e-3]},
        {"scaling": ["mean"]},
    ],
    ids=str,
)
def test_other_grids_continue_a_journal(tmp_path, ran, method, change):
    path = tmp_path / "journal"
    make(path, method=method).fit(X, y)
    ran.clear()
    other = make(path, method=method).set_params(param_grid=GRID | change).fit(X, y)
    assert set(ran) == wanted(GRID | change) - wanted(GRID)
    assert len(ran) == len(set(ran))
    ran.clear()
    check_same(make(path, method=method).set_params(param_grid=GRID | change).fit(X, y), other)
    assert ran == []
    check_close(other, make(method=method).set_params(param_grid=GRID | change).fit(X, y))
    ran.clear()
    make(path, method=method).fit(X, y)
    assert ran == []


def test_a_grid_that_grows_again_and_again(tmp_path, ran):
    path = tmp_path / "journal"
    grid = GRID | {"lam": []}
    for lam in (1e-2, 1.0, 1e-4, 1e-1):
        ran.clear()
        grid["lam"] = [*grid["lam"], lam]
        found = make(path, method="block").set_params(param_grid=grid).fit(X, y)
        assert {one[2] for one in ran} == {lam}
        check_close(found, make(method="block").set_params(param_grid=grid).fit(X, y))


@pytest.mark.parametrize("lams", [[1e-1], [1.0, 1e-3]])
def test_some_lams_of_a_criterion_are_read(tmp_path, ran, lams):
    path, grid = tmp_path / "journal", GRID | {"lam": [1e-3, 1e-1, 1.0]}
    make(path, criterion="gcv").set_params(param_grid=grid).fit(X, y)
    ran.clear()
    found = make(path, criterion="gcv").set_params(param_grid=GRID | {"lam": lams}).fit(X, y)
    assert ran == []
    alone = make(criterion="gcv").set_params(param_grid=GRID | {"lam": lams}).fit(X, y)
    check_close(found, alone)
    np.testing.assert_allclose(found.cv_results_["criterion"], alone.cv_results_["criterion"])


@pytest.mark.parametrize(
    ("lams", "more", "method"),
    [([1e-3, 1e-1], MANY_LAMS, "block"), (MANY_LAMS, [1e-3, 5.0], "eigen")],
    ids=["block", "eigen"],
)
def test_more_lams_go_on_with_the_method_that_began(tmp_path, ran, lams, more, method):
    path = tmp_path / "journal"
    before, grid = GRID | {"lam": lams}, GRID | {"lam": more}
    make(path).set_params(param_grid=before).fit(X, y)
    alone = make().set_params(param_grid=grid).fit(X, y)
    assert set(alone.cv_results_["method"]) == {"block", "eigen"} - {method}
    ran.clear()
    found = make(path).set_params(param_grid=grid).fit(X, y)
    assert set(found.cv_results_["method"]) == {method}
    assert set(ran) == wanted(grid) - wanted(before)
    check_close(found, make(method=method).set_params(param_grid=grid).fit(X, y))
    ran.clear()
    check_same(make(path).set_params(param_grid=grid).fit(X, y), found)
    assert ran == []


def test_lams_by_a_direct_method_and_an_iteration_are_not_mixed(tmp_path, ran, monkeypatch):
    """The plan iterates from 4000 rows on, which take too long here."""
    path = tmp_path / "journal"
    make(path).fit(X, y)
    monkeypatch.setattr("onefit.plan.choice.MIN_ITERATED_ROWS", 0)
    monkeypatch.setattr("onefit.plan.choice.AUTO_METHODS", {True: ("iterative",), False: ()})
    ran.clear()
    grid = GRID | {"lam": [1e-3, 1e-1, 1.0]}
    found = make(path).set_params(param_grid=grid).fit(X, y)
    assert set(found.cv_results_["method"]) == {"iterative"}
    assert set(ran) == wanted(grid)
    ran.clear()
    check_same(make(path).set_params(param_grid=grid).fit(X, y), found)
    assert ran == []


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": "gcv"},
        {"aggregate": "pooled"},
        {"n_jobs": 2},
        {"method": "eigen"},
        {"method": "exact"},
        {"method": Influence(order=2)},
    ],
    ids=str,
)
def test_every_search_continues_with_more_lams(tmp_path, ran, options):
    path = tmp_path / "journal"
    make(path, **options).fit(X, y)
    ran.clear()
    grid = GRID | {"lam": [1e-4, 1e-3, 1e-1, 1.0]}
    found = make(path, **options).set_params(param_grid=grid).fit(X, y)
    assert not set(ran) & wanted(GRID)
    check_close(found, make(**options).set_params(param_grid=grid).fit(X, y))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_intervals_beside_lists_continue(tmp_path, n_jobs):
    path = tmp_path / "journal"
    options = {"cv": 3, "n_jobs": n_jobs}
    some, more = (
        [
            {"gamma": gammas, "lam": Interval(1e-4, 1.0, points)},
            {"gamma": [1.0], "fit_intercept": [False], "lam": lams},
        ]
        for gammas, points, lams in (([0.1], 4, [1e-2]), ([0.1, 0.2], 7, [1e-3, 1e-2, 1e-1]))
    )
    KernelSearchCV(KernelRegressor(), some, journal=path, **options).fit(X, y)
    found = KernelSearchCV(KernelRegressor(), more, journal=path, **options).fit(X, y)
    check_close(found, KernelSearchCV(KernelRegressor(), more, **options).fit(X, y))


class Choosy(Block):
    """A method that fails where all lams are small."""

    name = "choosy"

    def prepare(self, problem, folds):
        return _Choosy(super().prepare(problem, folds))

    def __repr__(self):
        return "Choosy()"


@dataclass
class _Choosy(Prepared):
    block: Prepared

    def predict(self, lams):
        if max(lams) < 1e-2:
            raise LinAlgError("all too small")
        return self.block.predict(lams)


def test_new_lams_that_all_fail(tmp_path):
    path = tmp_path / "journal"
    options = {"method": Choosy(), "aggregate": "pooled"}
    first = make(path, **options).fit(X, y)
    more = make(path, **options).set_params(param_grid=GRID | {"lam": [1e-3, 1e-1, 1e-4]})
    with pytest.warns(UserWarning, match="6 of 18 candidates have no score"):
        more.fit(X, y)
    lams = more.cv_results_["param_lam"]
    assert set(more.cv_results_["reason"][lams == 1e-4]) == {"all too small"}
    for name in ("split0_test_score", "pooled_test_score"):
        assert np.isnan(more.cv_results_[name][lams == 1e-4]).all()
        np.testing.assert_array_equal(more.cv_results_[name][lams != 1e-4], first.cv_results_[name])


def test_functions_without_a_name_are_told_apart(tmp_path):
    path = tmp_path / "journal"
    one, two, three = (lambda a, b, p=p: (a @ b.T + 1.0) ** p for p in (1, 2, 3))
    for kernels in ([one, two], [three, two, one], [two]):
        grid = {"kernel": kernels, "lam": [1e-2, 1.0]}
        found, expected = (
            KernelSearchCV(KernelRegressor(), grid, cv=3, journal=journal).fit(X, y)
            for journal in (path, None)
        )
        np.testing.assert_array_equal(
            found.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
        )


# --- places that will not do


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("", "journal='' is not a path; name a folder"),
        ("a\0b", "is not a path"),
        (3, "journal=3 is not a path"),
        (b"journal", "is not a path"),
        ("no/journal", "there is no folder 'no'; create it"),
        (os.devnull, "is a file, but a journal is a folder; name a new one"),
        ("n" * 300, "cannot be used (File name too long); name another folder"),
    ],
)
def test_places_where_no_journal_can_be(tmp_path, ran, monkeypatch, name, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(JournalError) as caught:
        make(name).fit(X, y)
    assert words in str(caught.value)
    assert ran == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_not_a_journal(tmp_path, ran):
    path = tmp_path / "letter"
    path.write_text("dear aunt")
    with pytest.raises(JournalError, match="is a file, but a journal is a folder"):
        make(path).fit(X, y)
    assert path.read_text() == "dear aunt"
    assert ran == []


def test_a_folder_of_other_files_is_not_a_journal(tmp_path, ran):
    (tmp_path / "letter").write_text("dear aunt")
    with pytest.raises(JournalError, match=r"not a journal: it is a folder without journal\.json"):
        make(tmp_path).fit(X, y)
    assert [one.name for one in tmp_path.iterdir()] == ["letter"]
    assert ran == []


def test_an_empty_folder_is_a_new_journal(tmp_path):
    make(tmp_path).fit(X, y)
    assert count(tmp_path) == 6


def test_journals_of_another_version_are_refused(tmp_path):
    path = tmp_path / "journal"
    make(path).fit(X, y)
    about = json.loads((path / "journal.json").read_text())
    (path / "journal.json").write_text(json.dumps(about | {"onefit": "99.1"}))
    with pytest.raises(JournalError, match="another version of onefit") as caught:
        make(path).fit(X, y)
    assert f"(99.1), this is {onefit.__version__}" in str(caught.value)


@pytest.fixture
def unfinished(tmp_path):
    """A journal of two of three kernels."""
    path = tmp_path / "journal"
    make(path).set_params(param_grid=GRID | {"gamma": [0.1, 1.0]}).fit(X, y)
    assert count(path) == 4
    return path


@contextmanager
def read_only(folder):
    """A folder that this process cannot write, even if root runs it."""
    root = os.geteuid() == 0
    for one in folder.iterdir():
        one.chmod(0o444)
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no such permissions there")
def test_a_folder_that_cannot_be_written(ran):
    with tempfile.TemporaryDirectory() as name:  # those of pytest are open to nobody else
        folder = Path(name)
        some = GRID | {"gamma": [0.1, 1.0]}
        make(folder).set_params(param_grid=some).fit(X, y)
        ran.clear()
        with read_only(folder):
            make(folder).set_params(param_grid=some).fit(X, y)  # is read
            with pytest.raises(
                JournalError, match=r"cannot be written \(Permission denied\); make"
            ):
                make(folder).fit(X, y)
            with pytest.raises(JournalError, match="Nothing in it was changed"):
                make(folder / "new").fit(X, y)
        assert ran == []  # refused before any work
        assert count(folder) == 4


class Limiting(Calling):
    """A callback that lets no file grow beyond some bytes, as a full disk would."""

    def called(self):
        import resource

        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, self.limits[1]))  # no signal in Python


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system has no such limit")
def test_a_full_disk_loses_nothing_that_was_written(tmp_path, ran):
    import resource

    path, full = tmp_path / "journal", Limiting(2)
    try:
        with pytest.raises(JournalError, match=r"cannot be written .*free disk space") as caught:
            make(path).set_callbacks(full).fit(X, y)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, full.limits)
    assert "It still holds 4 entries" in str(caught.value)
    assert count(path) == 4
    assert {one.suffix for one in path.iterdir()} == {".json", ".entry"}  # no half of a file
    ran.clear()
    found = make(path).fit(X, y)
    assert len(ran) == 4
    check_same(found, make().fit(X, y))


# --- several processes


def test_searches_side_by_side_in_one_journal(tmp_path, ran):
    """Two processes write the same entries at once; a third search reads them."""
    (tmp_path / "test_journal_program.py").write_text(SEARCH)
    path = tmp_path / "journal"
    command = [sys.executable, "-c", PROGRAM, str(path)]
    both = [
        subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, env=_environment(tmp_path)
        )
        for _ in range(2)
    ]
    assert [one.wait(timeout=120) for one in both] == [0, 0]
    program: dict[str, Any] = {}
    exec(SEARCH, program)
    found = program["search"](path).fit(program["X"], program["y"])
    assert ran == []
    check_same(found, program["search"](None).fit(program["X"], program["y"]))
    assert count(path) == 40


def test_an_entry_that_another_search_set_aside_meanwhile(unfinished, ran):
    class Removing(Calling):
        def called(self):
            for one in unfinished.glob("*.entry"):
                one.unlink()

    grid = GRID | {"gamma": [0.1]}
    search = make(unfinished).set_params(param_grid=[grid, GRID | {"gamma": [1.0]}])
    ran.clear()
    with pytest.warns(UserWarning, match="it is gone"):
        search.set_callbacks(Removing(1)).fit(X, y)
    assert {one[0] for one in ran} == {1.0}
    check_same(search, make().set_params(param_grid=search.param_grid).fit(X, y))


# --- damage


def small(path=None, gammas=(0.1, 1.0, 2.0)):
    grid = GRID | {"gamma": list(gammas)}
    return KernelSearchCV(KernelRegressor(), grid, cv=2, method="block", journal=path, refit=False)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A search of the first 30 rows, and a journal of two of its three kernels."""
    path = tmp_path_factory.mktemp("whole") / "journal"
    small(path, gammas=(0.1, 1.0)).fit(X[:30], y[:30])
    return small().fit(X[:30], y[:30]), path


@pytest.fixture
def shelf():
    """A folder in memory, if the system has one: files are not awaited on a disk there."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def try_damaged(shelf, journal, name: str, data: bytes, expected, ran) -> None:
    """A search with one damaged file: that entry is computed again, or the journal refused."""
    path = shelf / "j"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(journal, path)
    (path / name).write_bytes(data)
    ran.clear()
    if name == "journal.json":
        try:
            with pytest.raises(JournalError, match=r"damaged|other data or settings|version"):
                small(path).fit(X[:30], y[:30])
        finally:
            assert (path / name).read_bytes() == data
            assert ran == []
        return
    with pytest.warns(UserWarning, match=f"entry {name} is damaged") as said:
        found = small(path).fit(X[:30], y[:30])
    assert len(said) == 1
    assert len(ran) == 4 + 2  # a kernel of four machines' lams was not done, one entry is damaged
    check_same(found, expected)
    assert (path / f"{name}.damaged").read_bytes() == data
    assert count(path) == 6
    ran.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_same(small(path).fit(X[:30], y[:30]), expected)  # once is enough
    assert ran == []


def flipped(data: bytes, bit: int) -> bytes:
    byte, place = divmod(bit, 8)
    return data[:byte] + bytes([data[byte] ^ 1 << place]) + data[byte + 1 :]


def some_file(journal, draw, kind: str) -> tuple[str, bytes]:
    names = sorted(one.name for one in journal.glob(kind))
    name = draw.choice(names)
    return name, (journal / name).read_bytes()


@pytest.mark.parametrize("times", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["*.entry", "journal.json"])
def test_flipped_bits(shelf, whole, ran, kind, times):
    expected, journal = whole
    draw = random.Random(0)
    for _ in range(times):
        name, data = some_file(journal, draw, kind)
        damaged = flipped(data, draw.randrange(8 * len(data)))
        if kind == "journal.json" and _same_json(damaged, data):
            continue  # white space
        try_damaged(shelf, journal, name, damaged, expected, ran)


def _same_json(one: bytes, other: bytes) -> bool:
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize("kind", ["*.entry", "journal.json"])
def test_truncations(shelf, whole, ran, kind):
    expected, journal = whole
    name, data = some_file(journal, random.Random(1), kind)
    for size in range(0, len(data), len(data) // 10):
        try_damaged(shelf, journal, name, data[:size], expected, ran)


def test_overwritten_stretches(shelf, whole, ran):
    expected, journal = whole
    draw = random.Random(1)
    for _ in range(10):
        name, data = some_file(journal, draw, "*.entry")
        size = draw.randrange(1, len(data))
        start = draw.randrange(len(data) - size)
        new = data[:start] + draw.randbytes(size) + data[start + size :]
        try_damaged(shelf, journal, name, new, expected, ran)


def test_what_was_damaged_is_named(unfinished):
    (unfinished / "journal.json").write_text("[]")
    with pytest.raises(JournalError, match=r"is damaged: journal.json cannot be read") as caught:
        make(unfinished).fit(X, y)
    assert "nothing in it was changed" in str(caught.value)


def test_entries_of_another_search_are_not_taken(unfinished, tmp_path, ran):
    """Neither under their own names, nor under those of this search."""
    other = tmp_path / "other"
    make(other).set_params(param_grid=GRID | {"gamma": [0.1, 1.0]}).fit(X + 1.0, y)
    entries, others = (sorted(one.glob("*.entry")) for one in (unfinished, other))
    assert not {one.name for one in entries} & {one.name for one in others}
    shutil.copyfile(others[0], entries[0])
    shutil.copyfile(others[1], unfinished / others[1].name)
    ran.clear()
    with pytest.warns(UserWarning, match=f"entry {entries[0].name} is damaged"):
        found = make(unfinished).fit(X, y)
    assert len(ran) == 4 + 2
    check_same(found, make().fit(X, y))


def test_nothing_is_unpickled(unfinished, ran):
    """An entry with a right checksum, of a class that is not the package's."""
    from onefit.journal import Journal

    about = json.loads((unfinished / "journal.json").read_text())
    book = Journal(unfinished, about)
    book.write("key", [Weighted(X)])
    (found,) = book.read("key", (__name__,))
    np.testing.assert_array_equal(found[0].weights, X)
    with pytest.warns(UserWarning, match="Weighted is not a dataclass that may be in it"):
        assert book.read("key") == []
    for value in (np.array([book]), {1, 2}, object()):
        with pytest.raises(TypeError, match="cannot be kept in a journal"):
            book.write("key", value)


# --- kills


PROGRAM = """
import sys, time
from test_journal_program import search, X, y
from onefit.search import workers

run_job = workers.run_job

def slowly(task, job, *rest):
    print("begin", job.kernel.gamma, flush=True)
    found = run_job(task, job, *rest)
    time.sleep(0.01)
    return found

class Telling:
    def setup(self, estimator, context): pass
    def teardown(self, estimator, context): pass
    def on_fit_task_begin(self, estimator, context, **_): pass
    def on_fit_task_end(self, estimator, context, **_):
        if context.task_name == "kernel":
            print("end", context.task_id, flush=True)

workers.run_job = slowly
search(sys.argv[1]).set_callbacks(Telling()).fit(X, y)
"""
SEARCH = """
import numpy as np
from sklearn.datasets import make_friedman1
from onefit import KernelRegressor, KernelSearchCV

X, y = make_friedman1(60, random_state=0)
GRID = {"gamma": np.logspace(-3, 1, 40), "lam": np.logspace(-5, 0, 5)}

def search(path):
    return KernelSearchCV(KernelRegressor(), GRID, cv=3, method="block", journal=path)
"""


def run_and_kill(folder, path, delay: float) -> list[str]:
    """Run the program, kill it (signal 9) some time after its first line, and return its output."""
    command = [sys.executable, "-c", PROGRAM, str(path)]
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, text=True, env=_environment(folder)
    ) as child:
        assert child.stdout is not None
        said = [child.stdout.readline()]
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        said += child.stdout.readlines()
    return [line.strip() for line in said if line.endswith("\n")]


def _environment(folder) -> dict[str, str]:
    source = Path(onefit.__file__).parents[1]
    return os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{source}"}


def check_kills(folder, ran, kills: int, seed: int) -> None:
    (folder / "test_journal_program.py").write_text(SEARCH)
    path = folder / "journal"
    delays = random.Random(seed)
    program: dict[str, Any] = {}
    exec(SEARCH, program)
    gammas = program["GRID"]["gamma"].tolist()
    finished: set[float] = set()
    counts = [0]
    for _ in range(kills):
        said = run_and_kill(folder, path, delays.uniform(0.0, 0.8 / kills))
        assert not begun(said) & finished  # nothing finished is done again
        finished |= {gammas[place] for place in ended(said)}
        counts.append(count(path))
        assert counts[-1] >= max(len(finished), counts[-2])  # what was reported is kept
    assert any(0 < one < 40 for one in counts)
    resumed = program["search"](path).fit(program["X"], program["y"])
    rest = {gamma for gamma, _, _ in ran}
    assert len(rest) == 40 - counts[-1]
    assert not rest & finished
    check_same(resumed, program["search"](None).fit(program["X"], program["y"]))


def begun(said: list[str]) -> set[float]:
    return {float(line.split()[1]) for line in said if line.startswith("begin")}


def ended(said: list[str]) -> set[int]:
    return {int(line.split()[1]) for line in said if line.startswith("end")}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no signal 9")
def test_killed_at_random_moments(tmp_path, ran):
    check_kills(tmp_path, ran, kills=3, seed=0)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no signal 9")
@pytest.mark.parametrize("seed", range(1, 4))
def test_killed_at_many_random_moments(tmp_path, ran, seed):
    check_kills(tmp_path, ran, kills=15, seed=seed)
