"""JMLR 5.2 as one call: what it finds, and that it beats least squares where Table 1 says so."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import median_abs_deviation
from sklearn.datasets import make_friedman1

from onefit import KernelRegressor
from onefit.criteria import InfluenceLoo
from onefit.grids import default_grid
from onefit.robust import mad, robust_select

GRID = {"gamma": [0.05, 0.2, 1.0, 4.0], "lam": [1e-2, 1e-3, 1e-4, 1e-5]}


def toy(seed=0, outliers=0, n=50):
    """The paper's toy example (6.1): a sine with noise, some targets far off."""
    random = np.random.default_rng(seed)
    X = random.uniform(2, 11, size=(n, 1))
    y = np.sin(X[:, 0]) + 0.2 * random.normal(size=n)
    y[:outliers] += 5.0 * random.uniform(1, 2, outliers)
    return X, y


def test_mad():
    r = np.random.default_rng(0).normal(3.0, 2.0, size=1001)
    assert mad(r) == pytest.approx(median_abs_deviation(r, scale="normal"))


def test_weighted_mad():
    random = np.random.default_rng(0)
    for n in (7, 8):
        r, counts = random.normal(size=n), random.integers(0, 4, size=n)
        expected = mad(np.repeat(r, counts))
        assert mad(r, counts) == pytest.approx(expected)
        assert mad(r, 0.1 * counts) == pytest.approx(expected)


@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_weights_count_rows(scaling):
    """In fits, criterion and scale; a row of weight zero is not there."""
    X, y = toy(outliers=3)
    base = KernelRegressor(scaling=scaling)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=50)
    weight[[5, 20]] = 0.0
    kept = np.flatnonzero(weight)
    found = robust_select(X, y, base, GRID, sample_weight=weight)
    alone = robust_select(X[kept], y[kept], base, GRID, sample_weight=weight[kept])
    np.testing.assert_allclose(found.results["criterion"], alone.results["criterion"], rtol=1e-6)
    assert found.sigma_err == pytest.approx(alone.sigma_err)
    for i in (0, 20, found.best_index):
        params = found.results["params"][i]
        problem = base.set_params(**params)._prepare(X, y, weight)
        expected = InfluenceLoo(loss="absolute").at(problem, params["lam"])
        assert found.results["criterion"][i] == pytest.approx(expected, rel=1e-7)
    winner = base.set_params(**found.params).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(found.estimator.predict(X), winner.predict(X), rtol=1e-7)
    least = found.results["params"][found.least_squares_index]
    fitted = KernelRegressor(scaling=scaling, **least).fit(X, y, sample_weight=weight)
    assert found.sigma_err == pytest.approx(mad(y - fitted.predict(X), weight))


def test_the_five_steps():
    """Every number of the table, from the plain functions."""
    X, y = toy(outliers=3)
    found = robust_select(X, y, KernelRegressor(fit_intercept=False), GRID)
    table = found.results
    assert len(table["params"]) == 4 * 16
    for i, params in enumerate(table["params"]):
        problem = KernelRegressor(fit_intercept=False).set_params(**params)._prepare(X, y, None)
        expected = InfluenceLoo(loss="absolute").at(problem, params["lam"])
        assert table["criterion"][i] == pytest.approx(expected, rel=1e-7)
    assert found.best_index == table["criterion"].argmin()
    assert found.least_squares_index == table["criterion"][:16].argmin()
    least = table["params"][found.least_squares_index]
    assert least["loss"] == "squared"
    fitted = KernelRegressor(fit_intercept=False, **least).fit(X, y)
    assert found.sigma_err == pytest.approx(mad(y - fitted.predict(X)))
    np.testing.assert_allclose(
        np.unique(table["threshold"]), [*(found.sigma_err * np.arange(1, 4)), np.inf]
    )
    assert found.params == table["params"][found.best_index]
    winner = KernelRegressor(fit_intercept=False).set_params(**found.params).fit(X, y)
    np.testing.assert_allclose(found.estimator.predict(X), winner.predict(X))


def test_outliers_are_seen_and_clean_data_left_alone():
    X, y = toy(outliers=4)
    found = robust_select(X, y, param_grid=GRID)
    assert found.params["loss"] == "huber"
    assert found.sigma_err < 0.6  # the scale of the noise, not of the outliers
    X, y = toy()
    clean = robust_select(X, y, param_grid=GRID)
    criterion, threshold = clean.results["criterion"], clean.results["threshold"]
    best_of = [criterion[threshold == value].min() for value in np.unique(threshold)]
    assert max(best_of) / min(best_of) < 1.1  # figure 5a: it does not matter


def errors(make, outliers, seeds):
    """Mean squared errors on clean test points: least squares by C_IF^5, and the procedure."""
    pairs = []
    for seed in seeds:
        X, y, X_test, y_test = make(seed, outliers)
        found = robust_select(X, y, param_grid=GRID | {"gamma": [0.1, 0.5, 2.0]})
        plain = KernelRegressor(**found.results["params"][found.least_squares_index]).fit(X, y)
        pairs.append([np.mean((m.predict(X_test) - y_test) ** 2) for m in (plain, found.estimator)])
    return np.mean(pairs, axis=0)


def friedman(seed, outliers):
    """Friedman 1 as in the paper: 100 noisy rows to train on, 200 clean ones to test."""
    X, y = make_friedman1(100, n_features=5, noise=1.0, random_state=seed)
    X_test, y_test = make_friedman1(200, n_features=5, noise=0.0, random_state=1000 + seed)
    y[:outliers] += 30.0
    return X, y, X_test, y_test


def test_beats_least_squares_on_contaminated_data():
    least, robust = errors(friedman, 10, range(3))
    assert robust < 0.5 * least
    least, robust = errors(friedman, 0, range(3))
    assert robust < 1.2 * least


@pytest.mark.slow
def test_table_1_with_the_default_grid():
    """20 replicates of Friedman 1, clean and with ten outliers, as in Table 1."""
    ratios = {}
    for outliers in (0, 10):
        pairs = []
        for seed in range(20):
            X, y, X_test, y_test = friedman(seed, outliers)
            found = robust_select(X, y)
            plain = KernelRegressor(**found.results["params"][found.least_squares_index])
            plain.fit(X, y)
            pairs.append(
                [np.mean((m.predict(X_test) - y_test) ** 2) for m in (plain, found.estimator)]
            )
        least, robust = np.mean(pairs, axis=0)
        ratios[outliers] = robust / least
    assert ratios[0] < 1.1
    assert ratios[10] < 0.5


def test_default_grid_is_the_papers():
    X, y = toy(n=30)
    found = robust_select(X, y, multiples=[2.0])
    (grid,) = default_grid(X)
    assert len(found.results["params"]) == 2 * len(grid["gamma"]) * len(grid["lam"])


def test_half_of_the_residuals_equal():
    X, y = np.arange(12.0)[:, None], np.zeros(12)
    with pytest.warns(UserWarning, match="only the squared loss was tried"):
        found = robust_select(X, y, param_grid={"lam": [0.1]})
    assert found.sigma_err == 0.0
    assert found.params["loss"] == "squared"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"param_grid": {"loss__threshold": [1.0]}},
            "names 'loss__threshold', which robust_select chooses",
        ),
        ({"param_grid": [{"lam": [1.0], "loss": ["huber"]}]}, "names 'loss'"),
        ({"param_grid": {"gama": [1.0]}}, "did you mean 'gamma'"),
        ({"multiples": [0.0]}, "multiples must be a positive"),
        ({"order": 0}, "whole number"),
        ({"param_grid": {"gamma": [1e9], "lam": [1.0]}}, "near the identity"),
    ],
)
def test_bad_input(options, message):
    X, y = toy()
    with pytest.raises((ValueError, FloatingPointError), match=message):
        robust_select(X, y, **options)


def test_several_targets_are_refused():
    X, y = toy()
    with pytest.raises(ValueError, match="2 columns; robust_select takes one target"):
        robust_select(X, np.column_stack([y, y]), param_grid=GRID)
