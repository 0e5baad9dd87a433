"""Intervals for new groups and for later rows: by refits, by simulation, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from onefit import KernelRegressor, KernelSearchCV, predict_interval, select
from onefit.features import Nystrom
from onefit.losses import Huber

random = np.random.default_rng(0)
X = random.uniform(-2, 2, size=(60, 2))
#: twelve groups of unequal sizes
groups = np.repeat(np.arange(12), [1, 9, 2, 8, 3, 7, 4, 6, 5, 5, 1, 9])[random.permutation(60)]
y = np.sin(2 * X[:, 0]) + 0.1 * random.normal(size=60) + random.normal(size=12)[groups]
X_new = random.uniform(-2, 2, size=(5, 2))
MACHINES = [
    KernelRegressor(gamma=0.5, lam=1e-2),
    KernelRegressor(loss=Huber(0.3), gamma=0.5, lam=1e-2),
    KernelRegressor(gamma=0.5, lam=1e-2, approximation=Nystrom(keep_landmarks=True)),
]


def pairs_by_refits(machine, splits, weight=None):
    """Row, absolute residual and predictions of X_new for every tested row of every split."""
    found = []
    for train, test in splits:
        s = None if weight is None else weight[train]
        fitted = clone(machine).fit(X[train], y[train], sample_weight=s)
        left, new = np.abs(y[test] - fitted.predict(X[test])), fitted.predict(X_new)
        found += [(i, r, new) for i, r in zip(test, left, strict=True)]
    rows, residuals, centres = zip(*found, strict=True)
    return np.array(rows), np.array(residuals), np.array(centres)


def end(values, weights, alpha):
    """The smallest value up to which the weights reach (1 - alpha)(sum + 1)."""
    enough = (1 - alpha) * (weights.sum() + 1) - 1e-9
    return min(v for v in values if weights[values <= v].sum() >= enough)


def by_hand(rows, residuals, centres, weights, alpha):
    columns = centres.T
    low = [-end(residuals - c, weights, alpha) for c in columns]
    return np.array(low), np.array([end(residuals + c, weights, alpha) for c in columns])


@pytest.mark.parametrize("machine", MACHINES, ids=repr)
def test_groups_are_the_units(machine):
    """After a grouped search: machines without whole groups, each group of weight one."""
    if machine.approximation:
        machine = clone(machine).set_params(approximation__n_components=500)
    grid = {"lam": [machine.lam]}
    search = KernelSearchCV(machine, grid, cv=GroupKFold(4)).fit(X, y, groups=groups)
    found = predict_interval(search, X, y, X_new, alpha=0.2)
    whole = clone(machine).set_params(approximation=None)
    rows, residuals, centres = pairs_by_refits(whole, GroupKFold(4).split(X, y, groups))
    weights = 1.0 / np.bincount(groups)[groups[rows]]
    low, high = by_hand(rows, residuals, centres, weights, 0.2)
    np.testing.assert_allclose(found.lower, low, atol=1e-4)
    np.testing.assert_allclose(found.upper, high, atol=1e-4)
    assert (found.method, found.unit, found.units) == ("cv+", "groups", pytest.approx(12))


def test_groups_without_a_search():
    machine = MACHINES[0]
    splits = list(GroupKFold(4, shuffle=True, random_state=3).split(X, y, groups))
    found = predict_interval(
        machine, X, y, X_new, alpha=0.2, cv=4, random_state=3, groups=[f"g{i}" for i in groups]
    )
    # names of groups may sort in another order, which the shuffle depends on
    names = np.unique([f"g{i}" for i in groups], return_inverse=True)[1]
    splits = GroupKFold(4, shuffle=True, random_state=3).split(X, y, names)
    rows, residuals, centres = pairs_by_refits(machine, splits)
    low, high = by_hand(rows, residuals, centres, 1.0 / np.bincount(groups)[groups[rows]], 0.2)
    np.testing.assert_allclose([found.lower, found.upper], [low, high], atol=1e-6)
    one_out = predict_interval(machine, X, y, X_new, alpha=0.2, method="jackknife+", groups=groups)
    rows, residuals, centres = pairs_by_refits(machine, LeaveOneGroupOut().split(X, y, groups))
    low, high = by_hand(rows, residuals, centres, 1.0 / np.bincount(groups)[groups[rows]], 0.2)
    np.testing.assert_allclose([one_out.lower, one_out.upper], [low, high], atol=1e-6)


def test_weights_within_groups():
    """Shares of a group's one; a group without weight counts for nothing."""
    weight = np.random.default_rng(1).uniform(0.2, 3.0, size=60)
    weight[groups == 3] = 0.0
    kept = weight > 0
    found = predict_interval(
        MACHINES[0], X, y, X_new, alpha=0.2, cv=GroupKFold(4), sample_weight=weight, groups=groups
    )
    splits = [
        (train[kept[train]], test[kept[test]]) for train, test in GroupKFold(4).split(X, y, groups)
    ]
    rows, residuals, centres = pairs_by_refits(MACHINES[0], splits, weight)
    shares = weight[rows] / np.bincount(groups, weights=weight)[groups[rows]]
    low, high = by_hand(rows, residuals, centres, shares, 0.2)
    np.testing.assert_allclose([found.lower, found.upper], [low, high], atol=1e-6)
    assert found.units == pytest.approx(11)


@pytest.mark.parametrize("machine", MACHINES[:2], ids=repr)
def test_forward_residuals(machine):
    """After a search in the order of time: around the model of all rows."""
    cv = TimeSeriesSplit(4)
    search = KernelSearchCV(machine, {"lam": [machine.lam]}, cv=cv).fit(X, y)
    found = predict_interval(search, X, y, X_new, alpha=0.2)
    _, residuals, _ = pairs_by_refits(machine, cv.split(X))
    reach = np.sort(residuals)[int(np.ceil(0.8 * (residuals.size + 1))) - 1]
    centre = clone(machine).fit(X, y).predict(X_new)
    np.testing.assert_allclose(found.prediction, centre, atol=1e-6)
    np.testing.assert_allclose(found.lower, centre - reach, atol=1e-5)
    np.testing.assert_allclose(found.upper, centre + reach, atol=1e-5)
    assert (found.method, found.units) == ("forward", 48)
    with pytest.raises(ValueError, match="go forward in time"):
        predict_interval(search, X, y, X_new, method="jackknife+")


@pytest.mark.parametrize(
    "cv", [RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), ShuffleSplit(4, random_state=0)]
)
def test_rows_that_several_splits_test_share_their_weight(cv):
    search = KernelSearchCV(MACHINES[0], {"lam": [1e-2]}, cv=cv).fit(X, y)
    found = predict_interval(search, X, y, X_new, alpha=0.2)
    rows, residuals, centres = pairs_by_refits(MACHINES[0], cv.split(X))
    weights = 1.0 / np.bincount(rows, minlength=60)[rows]
    low, high = by_hand(rows, residuals, centres, weights, 0.2)
    np.testing.assert_allclose([found.lower, found.upper], [low, high], atol=1e-6)


def grouped_data(draw, count, size):
    """Groups that have their own level, and their own place in X."""
    names = np.repeat(np.arange(count), size)
    Z = draw.normal(size=(count, 2))[names] + 0.1 * draw.normal(size=(count * size, 2))
    return Z, Z[:, 0] + draw.normal(size=count)[names] + 0.1 * draw.normal(size=names.size), names


def test_coverage_of_new_groups():
    """Each new group counts once; rows as units cover a fraction of them only."""
    draw = np.random.default_rng(3)
    means = []
    for _ in range(40):
        Z, target, names = grouped_data(draw, 29, 4)
        cv = GroupKFold(5, shuffle=True, random_state=0)
        grid = {"gamma": [0.3, 3.0], "lam": [1e-3, 1e-1]}
        search = KernelSearchCV(KernelRegressor(), grid, cv=cv).fit(Z, target, groups=names)
        Z_new, new, _ = grouped_data(draw, 40, 1)
        found = predict_interval(search, Z, target, Z_new, alpha=0.1)
        means.append(np.mean((found.lower <= new) & (new <= found.upper)))
    error = np.std(means, ddof=1) / np.sqrt(len(means))
    assert error < 0.02
    assert np.mean(means) > 0.9 - 2 * error


def test_splits_that_ignore_groups_leave_rows_as_units():
    with pytest.warns(UserWarning, match="groups parameter is ignored"):
        search = KernelSearchCV(MACHINES[0], {"lam": [1e-2]}, cv=KFold(3)).fit(X, y, groups=groups)
    found = predict_interval(search, X, y, X_new, alpha=0.2)
    assert (found.unit, found.units) == ("rows", 60)


def grouped_search():
    return KernelSearchCV(MACHINES[0], {"lam": [1e-2]}, cv=GroupKFold(4)).fit(X, y, groups=groups)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0.05}, "12 groups allow: use alpha of at least 0.077, or more groups"),
        ({"cv": KFold(4)}, "trains on rows of a group that it tests"),
        ({"cv": 13}, "at most the number of groups .12."),
        ({"groups": groups[:7]}, "one for each row"),
        ({"X": X[:50], "y": y[:50]}, "was fitted to 60 rows, but predict_interval got 50"),
    ],
)
def test_what_cannot_be_said_is_refused(options, message):
    options = {"estimator": grouped_search(), "X": X, "y": y, "X_new": X_new} | options
    with pytest.raises(ValueError, match=message):
        predict_interval(**options)


def test_the_level_of_the_message_is_enough():
    found = predict_interval(grouped_search(), X, y, X_new, alpha=0.077)
    assert (found.lower < found.upper).all()


def test_outliers_do_not_lose_the_groups():
    """The searches that follow on outliers are over the same splits, of the same groups."""
    draw = np.random.default_rng(4)
    Z, target, names = grouped_data(draw, 20, 4)
    target[draw.choice(80, 6, replace=False)] += 100.0
    found = select(Z, target, groups=names, kernels="rbf", cv=4)
    assert any("outliers" in one for one in found.reasons_)
    interval = found.predict_interval(Z[:3])
    assert (interval.unit, interval.units) == ("groups", pytest.approx(20))
    rows = found.pipeline_.named_steps["prepare"].transform(Z)
    again = predict_interval(found.search_, rows, target, rows[:3])
    np.testing.assert_allclose(again.upper, interval.upper)
