"""Folds and order for the lambdas, kernels and corners that a search has."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from registries import sample
from sklearn.model_selection import KFold

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.criteria import granularity
from onefit.heldout import Influence
from onefit.kernels import Gaussian, Polynomial
from onefit.losses import SmoothedHinge
from onefit.search import Interval
from onefit.search.granularity import search_granularity

X, y = sample("classification", n=60)
MACHINE = KernelClassifier(loss=SmoothedHinge(0.01), gamma=1.0, fit_intercept=False)


def found_for(grid, machine=MACHINE, accuracy=0.1, X=X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return search_granularity(KernelSearchCV(machine, grid), X, y, accuracy, **options)


@pytest.mark.parametrize(
    "grid",
    [
        {"lam": [0.3, 0.02, 4.0]},
        {"lam": Interval(0.02, 1.0, 5)},
        [{"lam": [1.0], "gamma": [0.1, 1.0]}, {"lam": [0.02, 1.0], "kernel": ["laplacian"]}],
    ],
    ids=["list", "interval", "grids"],
)
def test_the_smallest_lam(grid):
    found = found_for(grid)
    assert (found.folds, found.order) == granularity(0.1, 0.02)
    assert found.lam == pytest.approx(0.02)
    assert found.accuracy <= 0.1
    assert not found.capped


def test_the_largest_kernel_of_the_rows():
    kappa = ((X**2).sum(axis=1) + 1.0).max() ** 2
    machine = MACHINE.__class__(**MACHINE.get_params(deep=False) | {"kernel": Polynomial(degree=2)})
    found = found_for({"lam": [50.0, 70.0]}, machine)
    assert (found.folds, found.order) == granularity(0.1, 50.0, kappa=kappa)
    mixed = [
        {"kernel": ["rbf"], "lam": [50.0]},
        {"kernel": ["poly"], "kernel__degree": [2], "lam": [60.0]},
    ]
    assert found_for(mixed).lam == 60.0


def test_total_scaling_and_weights():
    weight = np.where(np.arange(60) % 3 == 0, 0.0, 2.0)
    total = KernelClassifier(**MACHINE.get_params(deep=False) | {"scaling": "total"})
    found = found_for({"lam": [2.4, 8.0]}, total, sample_weight=weight)
    assert found.lam == pytest.approx(2.4 / 80)
    assert (found.folds, found.order) == granularity(0.1, 0.03)
    search = KernelSearchCV(total, {"lam": [1e-4]})
    with pytest.warns(UserWarning, match="there are 40 rows"):
        found = search_granularity(search, X, y, 0.1, weight)
    assert found.folds == 40


def test_the_widest_corner():
    """A wide corner spends more of the accuracy: its lam decides though it is not the smallest."""
    grid = [{"loss__delta": [0.19], "lam": [0.2]}, {"loss__delta": [0.01], "lam": [0.1]}]
    found = found_for(grid)
    assert found.lam == 0.2
    assert (found.folds, found.order) == granularity(0.1, 0.2, 0.19)


def test_precomputed():
    K = Gaussian(1.0)(X) * 2.0
    machine = KernelClassifier(
        **MACHINE.get_params(deep=False) | {"kernel": "precomputed", "gamma": "scale"}
    )
    found = found_for({"lam": [0.1]}, machine, X=K)
    assert (found.folds, found.order) == granularity(0.1, 0.1, kappa=2.0)


def test_the_end_of_the_rows_is_told_and_the_search_runs():
    search = KernelSearchCV(MACHINE, {"lam": [1e-3, 1e-1]})
    with pytest.warns(UserWarning, match="and there are 60 rows"):
        found = search_granularity(search, X, y, 0.05)
    assert found.capped
    search.set_params(cv=KFold(found.folds), method=Influence(order=found.order)).fit(X, y)
    assert search.n_splits_ == 60
    assert search.heldout_.order == 58


def test_bad_input():
    with pytest.raises(ValueError, match=r"loss='smoothed_hinge'.*SquaredHinge"):
        found_for({"loss": ["smoothed_hinge", "squared_hinge"]})
    with pytest.raises(ValueError, match=r"loss='smoothed_hinge'.*Squared"):
        search_granularity(KernelSearchCV(KernelRegressor(), {}), X, y.astype(float))
    with pytest.raises(ValueError, match="not above delta/2"):
        found_for({"loss__delta": [0.01, 0.3]})
    with pytest.raises(ValueError, match="accuracy must be a positive"):
        found_for({"lam": [1.0]}, accuracy=0.0)
