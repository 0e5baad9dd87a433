"""Grids that grow where the winner lies at an end."""

from __future__ import annotations

import numpy as np
import pytest

from onefit import KernelRegressor, KernelSearchCV
from onefit.auto.extend import fit_growing
from onefit.report.facts import Facts
from onefit.report.words import rivals

random = np.random.default_rng(0)
X = random.normal(size=(50, 2))
smooth = np.sin(X[:, 0]) + 0.5 * X[:, 1]
noisy = smooth + 0.3 * random.normal(size=50)


def fitted(grid, y=noisy):
    return KernelSearchCV(KernelRegressor(), grid, cv=5).fit(X, y)


def grown(grid, y=noisy, rounds=1):
    """The grid after some rounds, and the notes."""
    search, turns = KernelSearchCV(KernelRegressor(), grid, cv=5), iter([True] * rounds + [False])
    notes = fit_growing(search, X, y, {}, may_grow=lambda: next(turns))
    return search.param_grid, notes


def test_ends_are_found_on_the_side_where_they_are():
    (low,), _ = grown({"gamma": [0.3, 1.0, 3.0], "lam": [1e-1, 1.0, 10.0]}, smooth)
    assert low["gamma"][2:] == [0.3, 1.0, 3.0]
    assert low["lam"][3:] == [1e-1, 1.0, 10.0]
    (high,), _ = grown({"gamma": [1e-3, 1e-2], "lam": [1e-2]})
    assert high["gamma"][:2] == [1e-3, 1e-2]
    assert high["lam"] == [1e-2]
    inside = {"gamma": [1e-6, 0.2, 1e4], "lam": [1e-9, 1e-2, 1e3]}
    assert grown(inside) == (inside, [])


def test_new_values_keep_the_spacing():
    (grid,), _ = grown({"gamma": [0.3], "lam": [1e-1, 1.0, 10.0]}, smooth)
    np.testing.assert_allclose(grid["lam"], 10.0 ** np.arange(-4, 2))
    assert grid["gamma"] == [0.3]


def test_only_the_part_of_the_winner_grows():
    grid = [
        {"kernel": ["linear"], "lam": [10.0, 100.0]},
        {"kernel": ["rbf"], "gamma": [0.3], "lam": [1e-2, 1e-1]},
    ]
    found, _ = grown(grid, smooth)
    assert found[0] == grid[0]
    assert len(found[1]["lam"]) == 5


def test_growth_ends_inside_and_equals_a_search_of_the_whole_grid():
    search = KernelSearchCV(KernelRegressor(), {"gamma": [3.0, 6.0], "lam": [1.0, 3.0]}, cv=5)
    told = fit_growing(search, X, noisy, {})
    assert search.journal is None
    assert any("gamma and lam was extended" in one for one in told)
    assert len(told) == 1
    honest = fitted(search.param_grid)
    assert honest.best_params_ == search.best_params_
    np.testing.assert_allclose(
        honest.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-9
    )
    np.testing.assert_allclose(honest.predict(X), search.predict(X), rtol=1e-9)


def test_an_end_that_is_left_is_told():
    search = KernelSearchCV(KernelRegressor(), {"gamma": [3.0, 6.0], "lam": [1.0, 3.0]}, cv=5)
    assert fit_growing(search, X, noisy, {}, may_grow=lambda: False) == []
    assert Facts(search).edge_sides == {"gamma": "smallest", "lam": "smallest"}
    assert "gamma is the smallest tried and lam is the smallest" in rivals(Facts(search))


def test_growth_keeps_what_a_journal_holds(tmp_path):
    search = KernelSearchCV(
        KernelRegressor(), {"gamma": [0.3], "lam": [1e-1, 1.0]}, cv=5, journal=tmp_path / "kept"
    )
    fit_growing(search, X, smooth, {})
    assert search.journal == tmp_path / "kept"
    assert len(list((tmp_path / "kept").glob("*.entry"))) > 1


@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_lams_end_where_rounding_begins(scaling):
    """With mean scaling, eps times the mean of K(x, x) is lost; n times that with total scaling."""
    rounding = np.finfo(float).eps * np.mean(np.sum(X**2, axis=1))
    rounding *= 50 if scaling == "total" else 1
    model = KernelRegressor(kernel="linear", scaling=scaling)
    grid = {"lam": [1e3 * rounding, 1e4 * rounding]}
    search = KernelSearchCV(model, grid, cv=5, scoring="neg_mean_squared_error")
    fit_growing(search, X, X[:, 0], {})
    assert min(search.param_grid[0]["lam"]) == pytest.approx(1e2 * rounding)
