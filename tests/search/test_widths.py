"""Widths that a loss takes from the targets ("mad") are those of each training part alone.

GridSearchCV with the same estimator is the oracle: it never shows held-out targets to a fit.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, RepeatedKFold, TimeSeriesSplit
from sklearn.preprocessing import StandardScaler

from onefit import KernelGradientSearchCV, KernelRegressor, KernelSearchCV, predict_interval
from onefit.criteria import InfluenceLoo, KernelStability
from onefit.diagnostics import cv_loo_stability, influence
from onefit.features import Fourier
from onefit.losses import EpsilonInsensitive, Huber, Quantile
from onefit.search import Interval

N = 60
HUBER, TUBE, QUANTILE = (
    {"loss": "huber"},
    {"loss": EpsilonInsensitive(epsilon=0.3)},
    {"loss": Quantile(0.8)},
)
WEIGHTS = np.random.default_rng(2).uniform(0.2, 3.0, N) * (np.arange(N) % 6 > 0)


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    rows = np.random.default_rng(0).permutation(y.size)[:N]
    return StandardScaler().fit_transform(X[rows]), y[rows] / y.std()


def spoilt():
    """All outliers in the last fifth of the rows, which one fold of five holds out."""
    X, y = diabetes()
    y[-N // 5 :] += 8.0 * np.random.default_rng(1).normal(size=N // 5)
    return X, y


def searched(machine, data, cv, method, weights=None, error="neg_mean_absolute_error"):
    """Our search and scikit-learn's, and the split scores of both, (splits, candidates)."""
    X, y = data
    params = {} if weights is None else {"sample_weight": weights}
    grid = {"lam": [1e-3, 1e-1]}
    kept = {"method": method}
    ours = KernelSearchCV(machine, grid, cv=cv, scoring=error, **kept).fit(X, y, **params)
    theirs = GridSearchCV(machine, grid, cv=cv, scoring=error, refit=False).fit(X, y, **params)
    columns = [f"split{k}_test_score" for k in range(theirs.n_splits_)]
    return ours, *([one.cv_results_[name] for name in columns] for one in (ours, theirs))


def assert_exact_is_equal(machine, data, cv, method, weights=None):
    search, ours, theirs = searched(machine, data, cv, method, weights)
    exact = np.array([search.heldout(i).exact for i in range(2)]).T
    np.testing.assert_allclose(np.array(ours)[exact], np.array(theirs)[exact], atol=2e-6)
    if method != "limit":
        assert exact.all()


METHODS = ["limit", "exact", "refit", "iterative", "auto", "race"]
CASES = [(method, HUBER, data) for method in METHODS for data in (diabetes, spoilt)]
CASES += [(method, loss, spoilt) for method in METHODS[:4] for loss in (TUBE, QUANTILE)]


@pytest.mark.parametrize(
    ("method", "loss", "data"), CASES, ids=lambda one: getattr(one, "__name__", None)
)
def test_exact_means_equal_to_grid_search(method, loss, data):
    machine = KernelRegressor(gamma=0.05, **loss)
    if method != "race":
        return assert_exact_is_equal(machine, data(), KFold(5), method)
    search, ours, theirs = searched(machine, data(), KFold(5), method)
    best = search.best_index_
    assert np.mean(ours, axis=0)[best] == pytest.approx(np.mean(theirs, axis=0)[best], abs=2e-6)


@pytest.mark.parametrize(
    ("options", "cv", "weights"),
    [
        ({"fit_intercept": False}, KFold(5), None),
        ({"scaling": "total", "lam": 1.0}, KFold(5), None),
        ({"scaling": "total"}, KFold(7), WEIGHTS),
        ({"fit_intercept": False}, TimeSeriesSplit(4), WEIGHTS),
        ({}, RepeatedKFold(n_splits=4, n_repeats=2, random_state=0), WEIGHTS),
        ({}, LeaveOneOut(), None),
    ],
    ids=["no intercept", "total", "total, weights", "time", "repeated, weights", "one row"],
)
@pytest.mark.parametrize("loss", [HUBER, QUANTILE], ids=lambda one: str(one["loss"]))
def test_intercepts_scalings_weights_and_splits(loss, options, cv, weights):
    machine = KernelRegressor(gamma=0.05, **loss, **options)
    assert_exact_is_equal(machine, spoilt(), cv, "exact", weights)


def test_several_levels_have_a_width_for_each_split():
    machine = KernelRegressor(loss=Quantile((0.2, 0.7)), gamma=0.05)
    search, ours, theirs = searched(machine, spoilt(), KFold(5), "exact", error=None)
    assert np.array([search.heldout(i).exact for i in range(2)]).all()
    np.testing.assert_allclose(ours, theirs, atol=2e-6)


@pytest.mark.parametrize("method", ["limit", "exact"])
@pytest.mark.parametrize("loss", [HUBER, QUANTILE], ids=lambda one: str(one["loss"]))
def test_features(loss, method):
    """Of fixed frequencies, so that both searches have the same ones."""
    features = {"approximation": Fourier(40), "random_state": 0}
    machine = KernelRegressor(gamma=0.05, **loss, **features)
    assert_exact_is_equal(machine, spoilt(), KFold(5), method)


def test_held_out_targets_change_nothing():
    """Values of a fold stay, up to rounding, whatever its targets are."""
    X, y = diabetes()
    other = y.copy()
    other[:12] = 1e3
    grid, kept = {"lam": [1e-2]}, {"method": "refit"}
    for loss in (HUBER, TUBE, QUANTILE):
        machine = KernelRegressor(gamma=0.05, **loss)
        values = [
            KernelSearchCV(machine, grid, cv=KFold(5), **kept).fit(X, t).heldout(0).by_fold[0]
            for t in (y, other)
        ]
        np.testing.assert_allclose(*values, rtol=1e-12)


@pytest.mark.parametrize("loss", [HUBER, QUANTILE], ids=lambda one: str(one["loss"]))
def test_the_criterion_loo_is_that_of_honest_fits(loss):
    X, y = (one[:20] for one in diabetes())
    machine = KernelRegressor(gamma=0.05, lam=1e-2, **loss)
    search = KernelSearchCV(machine, {"lam": [1e-2]}, cv=4, criterion="loo").fit(X, y)
    u = [machine.fit(X[a], y[a]).predict(X[b])[0] for a, b in LeaveOneOut().split(X)]
    r = y - u
    expected = np.maximum(0.8 * r, -0.2 * r) if loss is QUANTILE else np.abs(r)
    assert search.cv_results_["criterion"][0] == pytest.approx(expected.mean(), abs=1e-6)


@pytest.mark.parametrize("loss", [HUBER, QUANTILE], ids=lambda one: str(one["loss"]))
def test_kernel_stability_by_gradient(loss):
    X, y = diabetes()
    ranges = {"gamma": Interval(0.02, 0.2), "lam": Interval(1e-2, 1e-1)}
    options = {"cv": 3, "criterion": KernelStability(1.0)}
    search = KernelGradientSearchCV(KernelRegressor(**loss), ranges, **options).fit(X, y)
    assert all(one.last <= one.first for one in search.descents_)


def test_the_influence_series_refuses_a_width_that_changes_with_the_split():
    X, y = diabetes()
    machine, fixed = KernelRegressor(loss="huber"), KernelRegressor(loss=Huber(0.4))
    for options in ({"method": "influence"}, {"criterion": "influence_loo"}):
        with pytest.raises(ValueError, match=r"takes its width from the targets trained on"):
            KernelSearchCV(machine, {"lam": [1e-2]}, **options).fit(X, y)
        KernelSearchCV(fixed, {"lam": [1e-2]}, **options).fit(X, y)
    with pytest.raises(ValueError, match=r"takes its width from the targets trained on"):
        cv_loo_stability(machine, X, y, order=InfluenceLoo().order)
    assert cv_loo_stability(machine, X, y) > 0.0
    # the influence of a row on one fit, whose width counts as given
    threshold = machine.fit(X, y).threshold_
    given = KernelRegressor(loss=Huber(threshold))
    np.testing.assert_allclose(influence(machine, X, y), influence(given, X, y))


def test_intervals_are_of_honest_fits():
    """The jackknife+ of a machine with default width, against leave-one-out fits."""
    X, y = (one[:24] for one in diabetes())
    machine, new = KernelRegressor(loss="huber", gamma=0.05, lam=1e-2), diabetes()[0][24:29]
    found = predict_interval(machine, X, y, new, alpha=0.2, method="jackknife+")
    fits = [clone(machine).fit(X[a], y[a]) for a, _ in LeaveOneOut().split(X)]
    r = np.array([abs(y[i] - fit.predict(X[[i]])[0]) for i, fit in enumerate(fits)])
    at = np.array([fit.predict(new) for fit in fits])
    k = int(np.ceil(0.8 * 25))
    expected = np.sort(at + r[:, None], axis=0)[k - 1], np.sort(at - r[:, None], axis=0)[24 - k]
    np.testing.assert_allclose([found.upper, found.lower], expected, atol=1e-6)
