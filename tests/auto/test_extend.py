"""Grids that grow where the winner lies at an end."""

from __future__ import annotations

import numpy as np
import pytest

from onefit import KernelRegressor, KernelSearchCV
from onefit.auto.extend import extended_grid, fit_growing, lam_limits, winner_edges

random = np.random.default_rng(0)
X = random.normal(size=(50, 2))
smooth = np.sin(X[:, 0]) + 0.5 * X[:, 1]
noisy = smooth + 0.3 * random.normal(size=50)


def fitted(grid, y=noisy):
    return KernelSearchCV(KernelRegressor(), grid, cv=5).fit(X, y)


def test_ends_are_found_on_the_side_where_they_are():
    low = fitted({"gamma": [0.3, 1.0, 3.0], "lam": [1e-1, 1.0, 10.0]}, smooth)
    assert winner_edges(low) == {"gamma": -1, "lam": -1}
    assert winner_edges(low, ["lam"]) == {"lam": -1}
    high = fitted({"gamma": [1e-6, 1e-5], "lam": [1e-2]})
    assert winner_edges(high) == {"gamma": 1}
    inside = fitted({"gamma": [1e-6, 0.2, 1e4], "lam": [1e-9, 1e-2, 1e3]})
    assert winner_edges(inside) == {}
    assert extended_grid(inside) is None


def test_new_values_keep_the_spacing_and_the_limits():
    search = fitted({"gamma": [0.3], "lam": [1e-1, 1.0, 10.0]}, smooth)
    (grid,) = extended_grid(search)
    np.testing.assert_allclose(grid["lam"], 10.0 ** np.arange(-4, 2))
    (grid,) = extended_grid(search, limits={"lam": (5e-3, 1e2)})
    np.testing.assert_allclose(grid["lam"], 10.0 ** np.arange(-2, 2))
    assert extended_grid(search, limits={"lam": (1e-1, 1e2)}) is None
    assert extended_grid(search, names=["gamma"]) is None


def test_only_the_part_of_the_winner_grows():
    grid = [
        {"kernel": ["linear"], "lam": [10.0, 100.0]},
        {"kernel": ["rbf"], "gamma": [0.3], "lam": [1e-2, 1e-1]},
    ]
    found = extended_grid(fitted(grid, smooth))
    assert found[0] == grid[0]
    assert len(found[1]["lam"]) == 5


def test_growth_ends_inside_and_equals_a_search_of_the_whole_grid():
    search = KernelSearchCV(KernelRegressor(), {"gamma": [3.0, 6.0], "lam": [1.0, 3.0]}, cv=5)
    told = fit_growing(search, X, noisy, {})
    assert search.journal is None
    assert any("gamma and lam was extended" in one for one in told)
    assert winner_edges(search) == {}
    honest = fitted(search.param_grid)
    assert honest.best_params_ == search.best_params_
    np.testing.assert_allclose(
        honest.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], rtol=1e-9
    )
    np.testing.assert_allclose(honest.predict(X), search.predict(X), rtol=1e-9)


def test_an_end_that_is_left_is_told():
    search = KernelSearchCV(KernelRegressor(), {"gamma": [3.0, 6.0], "lam": [1.0, 3.0]}, cv=5)
    told = fit_growing(search, X, noisy, {}, may_grow=lambda: False)
    assert len(told) == 2
    assert "the best gamma (3) is the smallest that was tried" in told[0]
    assert fit_growing(search, X, noisy, {}, names=()) == []


def test_growth_keeps_what_a_journal_holds(tmp_path):
    search = KernelSearchCV(
        KernelRegressor(), {"gamma": [0.3], "lam": [1e-1, 1.0]}, cv=5, journal=tmp_path / "kept"
    )
    fit_growing(search, X, smooth, {})
    assert search.journal == tmp_path / "kept"
    assert len(list((tmp_path / "kept").glob("*.entry"))) > 1


@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_lams_end_where_rounding_begins(scaling):
    search = KernelSearchCV(
        KernelRegressor(kernel="linear", scaling=scaling), {"lam": [1.0, 10.0]}, cv=5
    ).fit(X, X[:, 0])
    low, high = lam_limits(search, X)
    size = np.mean(np.sum(X**2, axis=1)) * (50 if scaling == "total" else 1)
    assert 1.0 <= low / (np.finfo(float).eps * size) <= 100.0
    assert high > size
    fit_growing(search, X, X[:, 0], {})
    assert min(search.param_grid[0]["lam"]) >= low
