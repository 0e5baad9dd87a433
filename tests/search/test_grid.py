"""Which candidates share what."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import ParameterGrid

from onefit import KernelRegressor
from onefit.kernels import Gaussian, Linear, Polynomial, WeightedSum
from onefit.losses import Huber, Quantile
from onefit.search.grid import candidate_models, candidates, jobs

X = np.random.default_rng(0).normal(size=(8, 2))
ONES = np.ones(8)


def group(param_grid, estimator=None):
    estimator = estimator or KernelRegressor()
    return jobs(
        candidate_models(estimator, candidates(estimator, param_grid)), X, ONES[:, None], ONES
    )


def test_candidates_come_in_the_order_of_scikit_learn():
    grid = [{"lam": [1.0, 2.0], "gamma": [0.1]}, {"kernel": ["linear"], "lam": [3.0]}]
    assert candidates(KernelRegressor(), grid) == list(ParameterGrid(grid))


def test_every_candidate_is_in_one_machine_and_lams_descend():
    grid = {
        "gamma": [0.1, 1.0],
        "loss__threshold": [1.0, 2.0],
        "loss": ["huber"],
        "lam": [1.0, 3.0, 2.0],
    }
    found = candidates(KernelRegressor(), grid)
    work = group(grid)
    assert len(work) == 2
    assert [len(job.models) for job in work] == [2, 2]
    seen = []
    for machine in (machine for job in work for machine in job.models):
        assert machine.lams == (3.0, 2.0, 1.0)
        for lam, index in zip(machine.lams, machine.indices, strict=True):
            expected = found[index]
            assert lam == expected["lam"]
            assert machine.estimator.loss == Huber(expected["loss__threshold"])
            seen.append(index)
    assert sorted(seen) == list(range(len(found)))


@pytest.mark.parametrize(
    ("grid", "kernels"),
    [
        ({"kernel": ["linear", "rbf"], "gamma": [1.0, 2.0]}, 3),
        ({"kernel": ["rbf", "gaussian"], "gamma": [1.0]}, 1),
        ({"kernel": ["rbf"], "gamma": ["auto", 0.5]}, 1),
        ({"kernel": ["rbf"], "gamma": [1, 1.0, np.float64(1)]}, 1),
        ({"kernel": ["rbf", "laplacian"], "gamma": [1.0]}, 2),
        ({"kernel": ["poly"], "kernel__degree": [2, 3], "kernel__coef0": [0, 1]}, 4),
        ({"kernel": [Polynomial(degree=2), "poly", Polynomial(degree=3)]}, 2),
        ({"kernel": [Gaussian(1.0), Gaussian(1.0), Linear()]}, 2),
        ({"kernel": [WeightedSum([Linear(), Gaussian(1.0)], [1.0, 2.0])], "lam": [1, 2]}, 1),
    ],
)
def test_kernels_are_shared_by_what_they_depend_on(grid, kernels):
    assert len(group(grid)) == kernels


def test_lam_may_come_from_the_estimator():
    (job,) = group({"fit_intercept": [True, False]}, KernelRegressor(lam=0.7))
    assert [machine.lams for machine in job.models] == [(0.7,), (0.7,)]


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"names 'lambda'.*did you mean 'lam'\?"):
        candidates(KernelRegressor(), {"lambda": [1.0]})


def test_an_empty_grid_is_refused():
    with pytest.raises(ValueError, match="holds no candidate"):
        candidates(KernelRegressor(), [])


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        ({"lam": [1.0, -1.0]}, "lam must be a positive"),
        ({"scaling": ["meen"]}, "did you mean 'mean'"),
        ({"loss": ["huber"], "loss__threshold": [0.0]}, "threshold must be"),
        (
            {"loss__level": [0.5]},
            "'loss__level' is not a parameter of loss='squared', which has none",
        ),
        (
            {"loss": ["huber"], "loss__level": [0.5]},
            "'loss__level' is not a parameter of loss='huber', which has only 'loss__threshold'",
        ),
        ({"loss": [Quantile()], "loss__levels": [0.5]}, r"did you mean 'loss__level'\?"),
        ({"approximation__n_components": [5]}, "parameter of approximation=None, which has none"),
        ({"kernel": ["rbf"], "kernel__degree": [5]}, "which has only 'kernel__gamma'"),
    ],
)
def test_bad_values_are_refused(grid, message):
    with pytest.raises(ValueError, match=message):
        group(grid)
