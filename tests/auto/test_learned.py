"""Candidates with a learned metric or learned scales, against refits of everything."""

import re
from time import monotonic

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit

from onefit import AutoKernelRegressor, KernelRegressor, KernelSearchCV
from onefit.auto.learned import learned_grid, learned_search
from onefit.auto.prepared import PreparedRows
from onefit.auto.run import Selection
from onefit.cli.model import load_model, save_model
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


def left_to_learn(plain, X, y, params=None, deadline=None):
    """A selection whose search is done, after its learned candidates were tried."""
    data = PreparedRows(X, y, params or {})
    found = Selection(plain, data, "regression", True, [], [], [], deadline, learning=True)
    found.learn()
    return found


def test_the_better_one_is_learned_in_every_training_part(data, plain):
    X, y = data
    selection = left_to_learn(plain, X, y)
    found, (reason,) = selection.search, selection.reasons
    assert selection.searches == [found, plain]
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
    """Of one column an analytic kernel knows more; the winner stays, and the reason says so."""
    line = np.linspace(-1, 1, 80)[:, None]
    cv = KFold(4, shuffle=True, random_state=0)
    smooth = KernelSearchCV(KernelRegressor(gamma=1.0), {"lam": [1e-12]}, cv=cv, aggregate="pooled")
    selection = left_to_learn(smooth.fit(line, line[:, 0] ** 2), line, line[:, 0] ** 2)
    assert selection.search is smooth
    assert selection.searches[0] is smooth
    assert "did not give a better model" in selection.reasons[0]


def test_weights_and_groups(data):
    X, y = data
    groups, weight = np.arange(120) % 10, np.where(np.arange(120) % 3, 1.0, 2.0)
    given = {"groups": groups, "sample_weight": weight}
    plain = searched(X, y, GroupKFold(5), **given)
    found = left_to_learn(plain, X, y, given).search
    assert found is not plain
    assert found.n_splits_ == 5
    refits = np.empty_like(y)
    for train, test in GroupKFold(5).split(X, y, groups):
        model = clone(found.estimator).set_params(**clone(found.best_params_, safe=False))
        model.fit(X[train], y[train], model__sample_weight=weight[train])
        refits[test] = model.predict(X[test])
    assert found.heldout_.predictions == pytest.approx(refits, abs=1e-7)


def test_nothing_is_learned_beyond_a_time_limit(data, plain):
    # the search on the rows as they are may have taken longer than is left
    begun = "their search did not end in time|it would take"
    for left, why in ((0.0, "no time is left"), (0.2, begun)):
        deadline = Deadline(1.0, begun=monotonic() - 60.0 + left)
        selection = left_to_learn(plain, *data, deadline=deadline)
        assert selection.searches == [plain]
        assert re.search(why, selection.reasons[0])


def test_reasons_for_learning_nothing(data, plain):
    X, y = data
    assert "the rows are sparse" in left_to_learn(plain, csr_array(X), y).reasons[0]
    assert "320 columns" in left_to_learn(plain, np.hstack([X] * 40), y).reasons[0]


@pytest.mark.parametrize("directions", [1, 8])
def test_with_outliers_the_mean_absolute_error_decides(directions):
    """A learned winner stays where only its metric explains the target."""
    random = np.random.default_rng(3)
    X = random.normal(size=(150, 8))
    weight = np.ones(8) if directions == 8 else np.r_[2.0, -2.0, np.zeros(6)]
    y = np.sin(X @ weight / (1 if directions == 1 else 8)) + 0.05 * random.normal(size=150)
    y[random.choice(150, 6, replace=False)] += 3.0 * random.choice([-1.0, 1.0], 6)
    plain, data = searched(X, y), PreparedRows(X, y)
    found = learned_search(plain, data, learned_grid())
    selection = Selection(plain, data, "regression", True, [], [], [])
    selection.searches, selection.search = [found, plain], found
    selection.resist_outliers(plain)
    errors = [np.abs(y - one.heldout_.predictions).mean() for one in (found, selection.search)]
    assert len(selection.searches) == 3
    assert selection.search is selection.searches[0]
    if selection.search is found:
        assert "what was learned stays" in selection.reasons[0]
        assert np.abs(y - plain.heldout_.predictions).mean() > errors[0]
    else:
        assert "Huber's loss joined" in selection.reasons[0]
        assert errors[1] < errors[0]
    assert (selection.search is found) == (directions == 1)


def test_splits_that_cannot_be_averaged_leave_the_best_candidate(data):
    auto = AutoKernelRegressor(cv=TimeSeriesSplit(3)).fit(*data)
    assert "the splits do not test every row once" in auto.reasons_[-1]
    assert auto.search_ is auto.searches_[0]
    assert auto.best_score_ == max(one.best_score_ for one in auto.searches_)
    assert "rows" in auto.pipeline_.named_steps


@pytest.fixture(scope="module")
def chosen():
    X, y = ridge_of_two_columns(1600, noise=0.3)
    return AutoKernelRegressor(stack=False).fit(X, y)


@pytest.mark.slow
def test_select_on_many_rows(chosen, tmp_path):
    """The fitted pipeline, and whatever else reads the winner."""
    assert list(chosen.pipeline_.named_steps) == ["prepare", "rows", "model"]
    assert any("learned in each training part" in one for one in chosen.reasons_)
    X, y = ridge_of_two_columns(1000, noise=0.3, seed=1)
    assert chosen.score(X, y) == pytest.approx(chosen.best_score_, abs=0.02)
    assert chosen.unfamiliar(np.vstack([X[:1], 50 + X[:1]])).novelty[1] > 1
    found = chosen.predict_interval(X, alpha=0.1)
    assert np.mean((found.lower <= y) & (y <= found.upper)) == pytest.approx(0.9, abs=0.03)
    assert found.prediction == pytest.approx(chosen.predict(X), abs=1e-9)
    save_model(chosen, tmp_path / "model.skops", "target")
    again = load_model(tmp_path / "model.skops").pipeline
    assert again.predict(pd.DataFrame(X)) == pytest.approx(chosen.predict(X), abs=1e-12)
    chosen.report(tmp_path / "report.html")
    assert "GradientMetric" in (tmp_path / "report.html").read_text()


@pytest.mark.slow
def test_columns_that_matter(chosen):
    assert set(chosen.relevance().order[:2]) == {0, 1}
    with pytest.raises(ValueError, match="name kernels"):
        chosen.compare_criteria("gcv")
