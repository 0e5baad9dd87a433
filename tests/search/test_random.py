"""Settings drawn at random, against scikit-learn's own sampler."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import loguniform, uniform
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import ParameterGrid, ParameterSampler, cross_val_score

from onefit import KernelRegressor, KernelSearchCV
from onefit.search import Interval
from onefit.search.grid import settings

X, y = make_friedman1(40, random_state=0)
DRAWN = {"gamma": loguniform(1e-2, 1.0), "lam": loguniform(1e-5, 1e-1)}


def make(grid, **options):
    return KernelSearchCV(KernelRegressor(), grid, **{"cv": 3} | options)


def test_the_candidates_are_those_of_scikit_learn():
    grid = [DRAWN, {"kernel": ["linear"], "lam": [0.1, 1.0]}]
    found = make(grid, n_iter=9, random_state=3).fit(X, y).cv_results_["params"]
    assert found == list(ParameterSampler(grid, 9, random_state=3))
    assert len({one.get("kernel") for one in found}) == 2


def test_scores_of_drawn_settings_are_those_of_kernel_ridge():
    machine = KernelRegressor(fit_intercept=False, scaling="total")
    table = KernelSearchCV(machine, DRAWN, n_iter=6, random_state=0).fit(X, y).cv_results_
    for params, score in zip(table["params"], table["mean_test_score"], strict=True):
        ridge = KernelRidge(kernel="rbf", gamma=params["gamma"], alpha=params["lam"])
        assert score == pytest.approx(cross_val_score(ridge, X, y).mean(), rel=1e-7)


def test_reproducible_with_a_random_state():
    first, second, other = (
        make(DRAWN, n_iter=5, random_state=seed).fit(X, y) for seed in (0, 0, 1)
    )
    assert first.cv_results_["params"] == second.cv_results_["params"]
    assert first.best_score_ == second.best_score_
    assert first.cv_results_["params"] != other.cv_results_["params"]


def test_lists_are_drawn_without_replacement():
    grid = {"gamma": [0.1, 0.2, 0.3], "lam": [1e-3, 1e-2]}
    found = make(grid, n_iter=4, random_state=0).fit(X, y).cv_results_["params"]
    assert len(found) == 4
    everything = list(ParameterGrid(grid))
    assert all(one in everything for one in found)
    assert all(found.count(one) == 1 for one in found)
    whole = make(grid, n_iter=100, random_state=0).fit(X, y).cv_results_["params"]
    assert len(whole) == 6
    assert all(one in whole for one in everything)


def test_an_interval_is_searched_in_every_setting_drawn():
    grid = {"gamma": DRAWN["gamma"], "lam": Interval(1e-5, 1e-1, points=5)}
    found = make(grid, n_iter=3, random_state=0).fit(X, y)
    params = found.cv_results_["params"]
    assert len({one["gamma"] for one in params}) == 3
    assert len(params) > 15
    scores = found.cv_results_["mean_test_score"]
    assert found.best_score_ == scores.max() > scores[:15].max()


def test_a_distribution_needs_n_iter():
    with pytest.raises(ValueError, match=r"distribution for 'gamma'.*n_iter"):
        make(DRAWN).fit(X, y)


@pytest.mark.parametrize("n_iter", [0, -1, 2.5, True, "3"])
def test_bad_n_iter(n_iter):
    with pytest.raises(ValueError, match="n_iter must be a whole number of at least 1"):
        make(DRAWN, n_iter=n_iter).fit(X, y)


def test_a_drawn_lam_must_be_positive():
    with pytest.raises(ValueError, match="lam must be a positive"):
        make({"lam": uniform(-2, 1)}, n_iter=2, random_state=0).fit(X, y)


def test_names_are_checked():
    with pytest.raises(ValueError, match="did you mean 'gamma'"):
        make({"gama": uniform(0, 1)}, n_iter=2).fit(X, y)


@pytest.mark.parametrize("grid", [5, [5], {"kernel": "rbf"}, {"gamma": 1.0}])
@pytest.mark.parametrize("n_iter", [None, 2])
def test_what_is_no_grid_is_refused(grid, n_iter):
    with pytest.raises((TypeError, ValueError)):
        settings(grid, n_iter, 0)
    with pytest.raises((TypeError, ValueError)):
        make(grid, n_iter=n_iter).fit(X, y)


def test_a_text_beside_a_distribution_is_not_drawn_letter_by_letter():
    with pytest.raises(TypeError, match="kernel"):
        make({"kernel": "rbf", "gamma": uniform(0.1, 1)}, n_iter=2).fit(X, y)


def test_standard_errors_are_in_the_table():
    table = make({"lam": [1e-3, 1e-1]}, cv=4).fit(X, y).cv_results_
    splits = np.array([table[f"split{i}_test_score"] for i in range(4)])
    np.testing.assert_allclose(table["se_test_score"], splits.std(axis=0, ddof=1) / 2.0)
