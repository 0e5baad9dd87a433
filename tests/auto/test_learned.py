"""Candidates with a learned metric or learned scales, against refits of everything."""

import json

import numpy as np
import pytest
from command_line import onefit
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

from onefit import AutoKernelRegressor, KernelRegressor, KernelSearchCV
from onefit.auto.learned import better_learned
from onefit.auto.prepared import PreparedRows
from onefit.auto.race import Raced, narrow
from onefit.plan import Deadline

GRID = [{"kernel": ["rbf"], "gamma": [0.02, 0.1], "lam": [1e-4, 1e-2, 1e-1]}]


def ridge_of_two_columns(n, d=8, noise=0.05, seed=0):
    """A target that depends on one direction of two of the columns."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d))
    return X, np.sin(2.0 * (X[:, 0] - X[:, 1])) + noise * random.normal(size=n)


def searched(X, y, cv=None, **params):
    cv = KFold(4, shuffle=True, random_state=0) if cv is None else cv
    search = KernelSearchCV(KernelRegressor(), GRID, cv=cv, aggregate="pooled")
    return search.fit(X, y, **params)


@pytest.fixture(scope="module")
def data():
    return ridge_of_two_columns(120)


@pytest.fixture(scope="module")
def plain(data):
    return searched(*data)


def test_the_better_one_is_learned_in_every_training_part(data, plain):
    X, y = data
    found, reason = better_learned(plain, PreparedRows(X, y), None, None)
    assert found.best_score_ > plain.best_score_ + 0.2
    assert "learned in each training part: R² 0." in reason
    refits = np.empty_like(y)
    for train, test in KFold(4, shuffle=True, random_state=0).split(X):
        model = clone(found.estimator).set_params(**clone(found.best_params_, safe=False))
        refits[test] = model.fit(X[train], y[train]).predict(X[test])
    assert found.heldout_.predictions == pytest.approx(refits, abs=1e-7)
    share = np.sum((refits - y) ** 2) / np.sum((y - y.mean()) ** 2)
    assert found.best_score_ == pytest.approx(1 - share)
    X_new, y_new = ridge_of_two_columns(500, seed=1)
    assert found.score(X_new, y_new) == pytest.approx(found.best_score_, abs=0.1)


def test_what_does_not_help_is_not_taken():
    """Of noise nothing can be learned; the winner stays, and the reason has both scores."""
    X, y = ridge_of_two_columns(80, noise=100.0)
    plain = searched(X, y)
    found, reason = better_learned(plain, PreparedRows(X, y), None, None)
    learned = float(reason.split("R² ")[1].split(",")[0])
    assert (found is plain) == (learned <= plain.best_score_)
    line = np.linspace(-1, 1, 80)[:, None]  # one column, of which an analytic kernel knows more
    smooth = KernelSearchCV(
        KernelRegressor(gamma=1.0), {"lam": [1e-12]}, cv=plain.cv, aggregate="pooled"
    ).fit(line, line[:, 0] ** 2)
    found, reason = better_learned(smooth, PreparedRows(line, line[:, 0] ** 2), None, None)
    assert found is smooth
    assert "did not help" in reason


def test_a_race_on_a_sample_leaves_one_candidate(data):
    X, y = ridge_of_two_columns(400)
    search = searched(X, y)
    sample = PreparedRows(X, y).take(np.arange(0, 400, 3))
    raced = Raced(sample, -np.inf)
    found, reason = better_learned(search, PreparedRows(X, y), raced, None)
    params = found.cv_results_["params"]
    assert len({repr({**one, "model__lam": 0}) for one in params}) == 1
    assert 2 <= len(params) <= 6
    assert found.best_score_ > search.best_score_
    assert found.n_splits_ == 4
    assert "learned in each training part" in reason
    # a sample on which other candidates were far better
    found, reason = better_learned(search, PreparedRows(X, y), Raced(sample, np.inf), None)
    assert found is search
    assert "did not help on a sample of 134 rows" in reason


def test_the_race_of_kernels_gives_its_sample_and_best_score(data):
    X, y = data
    search = KernelSearchCV(KernelRegressor(), GRID, cv=KFold(4, shuffle=True, random_state=0))
    search.set_params(aggregate="pooled")
    _, _, raced = narrow(search, PreparedRows(X, y), afforded_seconds=0.0, sample_rows=50)
    assert raced.sample.n == 50
    again = clone(search).fit(raced.sample.X, raced.sample.y)
    assert raced.best == pytest.approx(again.best_score_)


def test_weights_and_groups(data):
    X, y = data
    groups, weight = np.arange(120) % 10, np.where(np.arange(120) % 3, 1.0, 2.0)
    given = {"groups": groups, "sample_weight": weight}
    plain = searched(X, y, GroupKFold(5), **given)
    found, _ = better_learned(plain, PreparedRows(X, y, given), None, None)
    assert found is not plain
    assert found.n_splits_ == 5
    refits = np.empty_like(y)
    for train, test in GroupKFold(5).split(X, y, groups):
        model = clone(found.estimator).set_params(**clone(found.best_params_, safe=False))
        model.fit(X[train], y[train], model__sample_weight=weight[train])
        refits[test] = model.predict(X[test])
    assert found.heldout_.predictions == pytest.approx(refits, abs=1e-7)


def test_reasons_for_learning_nothing(data, plain):
    X, y = data
    deadline = Deadline(60.0)
    assert "time is limited" in better_learned(plain, PreparedRows(X, y), None, deadline)[1]
    sparse = PreparedRows(csr_array(X), y)
    assert "the rows are sparse" in better_learned(plain, sparse, None, None)[1]
    wide = PreparedRows(np.hstack([X] * 40), y)
    assert "320 columns" in better_learned(plain, wide, None, None)[1]


@pytest.mark.slow
def test_select_on_many_rows():
    """One fold of refits, the fitted pipeline, and what else reads the winner."""
    X, y = ridge_of_two_columns(1600, noise=0.3)
    auto = AutoKernelRegressor().fit(X, y)
    assert list(auto.pipeline_.named_steps) == ["prepare", "rows", "model"]
    assert auto.search_.best_params_["rows"] is not None
    assert any("learned in each training part" in one for one in auto.reasons_)
    X_new, y_new = ridge_of_two_columns(1000, noise=0.3, seed=1)
    assert auto.score(X_new, y_new) == pytest.approx(auto.best_score_, abs=0.02)
    assert auto.unfamiliar(np.vstack([X_new[:1], 50 + X_new[:1]])).novelty[1] > 1
    assert auto.relevance().order[:2].tolist() in ([0, 1], [1, 0])
    with pytest.raises(ValueError, match="name kernels"):
        auto.compare_criteria("gcv")


def test_intervals_and_saved_models_learn_again(monkeypatch, tmp_path):
    """Intervals hold new targets, and a saved pipeline has all steps."""
    skops_io = pytest.importorskip("skops.io")
    assert skops_io is not None
    from onefit.cli.model import load_model, save_model

    monkeypatch.setattr("onefit.auto.planning.MAX_DEFAULT_ROWS", 100)
    X, y = ridge_of_two_columns(300)
    auto = AutoKernelRegressor(cv=3, stack=False).fit(X[:150], y[:150])
    assert list(auto.pipeline_.named_steps) == ["prepare", "rows", "model"]
    found = auto.predict_interval(X[150:])
    inside = (found.lower <= y[150:]) & (y[150:] <= found.upper)
    assert 0.8 < inside.mean() < 1.0
    save_model(auto, tmp_path / "model.skops", "y")
    model = load_model(tmp_path / "model.skops")
    expected = auto.predict(X[150:])
    np.testing.assert_allclose(model.pipeline.predict(X[150:]), expected, rtol=1e-9)
    rows = model.preparer.read(X[150:])
    np.testing.assert_allclose(model.estimator.predict(model.encode(rows)), expected, rtol=1e-9)
    again = model.interval(rows, 0.1)
    np.testing.assert_allclose(again.lower, found.lower, rtol=1e-6)
    np.testing.assert_allclose(again.upper, found.upper, rtol=1e-6)


def test_the_command_line_shows_them(monkeypatch, tmp_path):
    pytest.importorskip("rich")
    monkeypatch.setattr("onefit.auto.planning.MAX_DEFAULT_ROWS", 100)
    X, y = ridge_of_two_columns(120, d=4)
    table = np.column_stack([X, y])
    np.savetxt(tmp_path / "rows.csv", table, delimiter=",", header="a,b,c,d,y", comments="")
    files = ("--report", tmp_path / "report.html", "--model", tmp_path / "model.skops")
    select = ("select", tmp_path / "rows.csv", "--target", "y", "--cv", 3, "--no-stack")
    done = onefit(*select, *files)
    assert done.exit_code == 0, done.stderr
    assert "learned in each training part" in " ".join(done.stdout.split())
    found = json.loads(onefit(*select, "--format", "json").stdout)
    assert {"gamma", "lam", "rows"} <= set(found["best"]["params"])
    done = onefit("predict", tmp_path / "model.skops", tmp_path / "rows.csv")
    assert done.stdout.startswith("prediction,lower,upper,novelty,unfamiliar\n"), done.stderr
