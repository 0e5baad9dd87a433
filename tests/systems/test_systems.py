"""Every system of the registry against dense bordered systems."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import WEIGHTS, Expectile, gaussian
from registries import SYSTEMS
from systems._twins import assert_minimises, random_models, small_problem

from onefit.linalg.partial_eigh import MIN_BLOCK_ROWS
from onefit.losses import EpsilonQuadratic, Huber, Log

each_system = pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)
RIDGES = np.array([0.2, 0.2, 3.0, 0.2, 1e-3, 3.0, 0.2])


@each_system
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_every_column_is_solved(make, fit_intercept, weight):
    random = np.random.default_rng(0)
    for loss in (Huber(0.3), EpsilonQuadratic(0.3), Expectile(0.8), Log()):
        task = "classification" if isinstance(loss, Log) else "regression"
        problem, d = small_problem(loss, task, fit_intercept=fit_intercept, weight=weight)
        system = make(problem, d, RIDGES)
        # several times: what one model asked for is known to the next
        for change in (0.0, 0.1, 0.1, 0.6):
            model = random_models(problem, d, random, RIDGES.size, change)
            model.d[:, 3] = model.missing[:, 3] = 0.0
            assert_minimises(problem, RIDGES, model, system.solve(model))


@each_system
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_rows(make, fit_intercept):
    """So many that the decomposition of one of them is torn."""
    n = 3 * MIN_BLOCK_ROWS
    problem, d = small_problem(
        EpsilonQuadratic(0.02), n=n, weight="random", fit_intercept=fit_intercept,
        kernel=lambda X: gaussian(X, 4.0),
    )  # fmt: skip
    assert 2 * MIN_BLOCK_ROWS <= np.count_nonzero(d) < n
    random, system = np.random.default_rng(1), make(problem, d, RIDGES)
    for change in (0.0, 0.02):
        model = random_models(problem, d, random, RIDGES.size, change)
        assert_minimises(problem, RIDGES, model, system.solve(model), 1e-7)


@each_system
def test_some_of_the_columns_are_solved_alike(make):
    problem, d = small_problem(Huber(0.3), weight="random")
    system, some = make(problem, d, RIDGES), np.array([4, 2, 5])
    model = random_models(problem, d, np.random.default_rng(2), RIDGES.size, 0.1)
    found = system.take(some).solve(model.take(some))
    assert_minimises(problem, RIDGES[some], model.take(some), found)
    for whole, part in zip(system.solve(model), found, strict=True):
        np.testing.assert_allclose(part, whole[..., some], rtol=1e-8, atol=1e-10)


@each_system
def test_single_precision_stays_single(make):
    problem, d = small_problem(Huber(0.3), weight="random", dtype=np.float32)
    model = random_models(problem, d, np.random.default_rng(3), RIDGES.size, 0.1)
    a, b = make(problem, d, RIDGES).solve(model)
    assert a.dtype == np.float32
    assert_minimises(problem, RIDGES, model, (a, b), 2e-2)


@each_system
def test_the_model_is_not_written_to(make):
    problem, d = small_problem(Huber(0.3))
    model = random_models(problem, d, np.random.default_rng(4), RIDGES.size, 0.1)
    kept = [
        x.copy() for x in (problem.K.matrix, d, model.d, model.missing, model.fixed, model.total)
    ]
    make(problem, d, RIDGES).solve(model)
    for old, new in zip(
        kept, (problem.K.matrix, d, model.d, model.missing, model.fixed, model.total), strict=True
    ):
        np.testing.assert_array_equal(new, old)


@each_system
def test_a_system_says_which_curvature_it_can_do(make):
    """None where any will do, else that of the base, as a column."""
    problem, d = small_problem(Log(), "classification")
    curvature = make(problem, d, RIDGES).curvature
    if curvature is not None:
        np.testing.assert_array_equal(curvature, d[:, None])
