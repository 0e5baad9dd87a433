"""Rows that leave and enter a shared inverse."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import Expectile
from systems._twins import assert_minimises, random_models, small_problem

from onefit import linalg
from onefit.inverse import DenseInverse, FactorInverse
from onefit.losses import EpsilonQuadratic, Huber, Squared
from onefit.problem import Problem
from onefit.systems import ColumnUpdate, NewtonModel, SharedFactor, Update
from onefit.systems.update import MAX_CHANGED_SHARE


def held(base):
    """Whether the inverse was made: a small change is an update, any other a factor of its own."""
    return "inverse" in vars(base)


def leave(problem, d, *parts):
    """Models that each leave some rows out."""
    random, k = np.random.default_rng(0), len(parts)
    curvature = np.repeat(d[:, None], k, axis=1)
    for c, rows in enumerate(parts):
        curvature[rows, c] = 0.0
    missing = random.normal(size=(problem.n, k)) * (curvature > 0)
    return NewtonModel(curvature, missing, np.zeros_like(missing), random.normal(size=k))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("change", [0.0, 0.1])
def test_many_columns_are_worth_an_inverse_and_one_is_not(fit_intercept, change):
    for loss in (Huber(0.3), EpsilonQuadratic(0.3), Expectile(0.8)):
        problem, d = small_problem(loss, fit_intercept=fit_intercept)
        for k in (1, 20):
            base = SharedFactor(problem, d, 0.2)
            model = random_models(problem, d, np.random.default_rng(0), k, change)
            assert_minimises(problem, 0.2, model, base.solve(model))
            assert held(base) == (k > 1)


def test_columns_with_many_changes_have_factors_of_their_own():
    problem, d = small_problem(Squared())
    few, many = [[i] for i in range(20)], [np.arange(22)]
    base = SharedFactor(problem, d, 0.2)
    model = leave(problem, d, *few, *many)
    assert_minimises(problem, 0.2, model, base.solve(model))
    assert held(base)
    alone = SharedFactor(problem, d, 0.2)
    model = leave(problem, d, *(20 * many))
    assert_minimises(problem, 0.2, model, alone.solve(model))
    assert not held(alone)


def test_points_whose_curvature_changed_leave_and_enter():
    problem, d = small_problem(Expectile(0.8))
    curvature = np.repeat(d[:, None], 20, axis=1)
    for c in range(20):
        curvature[c, c] = 4.0 * d[c]
        curvature[(c + 5) % 26, c] = 0.0
    missing = np.random.default_rng(0).normal(size=curvature.shape) * (curvature > 0)
    model = NewtonModel(curvature, missing, np.zeros_like(missing), np.ones(20))
    base = SharedFactor(problem, d, 0.2)
    assert_minimises(problem, 0.2, model, base.solve(model))
    assert held(base)
    np.testing.assert_array_equal(np.sort(base.entrants), np.arange(20))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_points_enter_in_any_order_and_once(fit_intercept):
    problem, d = small_problem(Huber(0.1), fit_intercept=fit_intercept)
    outside = np.flatnonzero(d == 0)
    assert outside.size >= 6
    base, random = SharedFactor(problem, d, 0.2), np.random.default_rng(0)
    seen = set()
    for _ in range(4):
        curvature = np.repeat(d[:, None], 12, axis=1)
        for c in range(12):
            some = random.permutation(outside)[:2]
            curvature[some, c] = 2.0
            seen |= set(some.tolist())
        missing = random.normal(size=curvature.shape) * (curvature > 0)
        model = NewtonModel(curvature, missing, np.zeros_like(missing), random.normal(size=12))
        assert_minimises(problem, 0.2, model, base.solve(model))
    assert held(base)
    assert sorted(base.entrants.tolist()) == sorted(seen)


def test_an_inverse_that_rounding_denies_gives_way_to_factors():
    """K of rank two and a Lambda below the rounding of its norm: M has no Cholesky factor."""
    random = np.random.default_rng(0)
    X = random.normal(size=(20, 2))
    problem = Problem(X @ X.T, random.normal(size=(20, 1)), np.ones(20), Squared(), False, "total")
    d, ridge = np.full(20, 2.0), 1e-17
    base = SharedFactor(problem, d, ridge)
    with pytest.raises(linalg.LinAlgError):
        _ = base.inverse
    model = leave(problem, d, *[[i] for i in range(20)])
    a, b = base.solve(model)
    assert np.isfinite(a).all()
    assert np.isfinite(b).all()


def test_every_column_is_solved_by_its_own_base():
    problem, d = small_problem(Huber(0.3))
    ridges = np.array([0.1, 5.0, 0.7])
    which = np.array([2, 0, 1, 1, 0, 2, 2, 2, 0, 1])
    model = random_models(problem, d, np.random.default_rng(0), which.size, 0.1)
    system = Update([SharedFactor(problem, d, ridge) for ridge in ridges], which)
    assert_minimises(problem, ridges[which], model, system.solve(model))
    one = np.array([3])
    assert_minimises(problem, 5.0, model.take(one), system.take(one).solve(model.take(one)))


@pytest.mark.parametrize("hold", [DenseInverse, FactorInverse])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_inverses_however_they_are_held(hold, dtype):
    """Blocks are asked for in any order, some of their rows for the second time."""
    random = np.random.default_rng(0)
    A = random.normal(size=(30, 30))
    M = np.asfortranarray(np.eye(30) + A @ A.T, dtype=dtype)
    expected, tolerance = np.linalg.inv(M), 1e-10 if dtype == np.float64 else 1e-4
    inverse = hold(M.copy(order="F"), np.ones(30, dtype=dtype))
    for rows in (np.array([7, 2, 19]), np.array([2, 4, 19, 0]), np.array([4])):
        block = inverse.block(rows)
        assert block.dtype == dtype
        wanted = np.tril(expected[np.ix_(rows, rows)])
        np.testing.assert_allclose(np.tril(block), wanted, atol=tolerance)
    for B in (A[:, :3], A[:, 0]):
        found = inverse.apply(np.asfortranarray(B, dtype=dtype))
        np.testing.assert_allclose(found, expected @ B, atol=20 * tolerance)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_column_is_followed_from_base_to_base(fit_intercept):
    """By changes of one factor while few points change, by a new one where many do."""
    problem, d = small_problem(EpsilonQuadratic(0.05), n=120, fit_intercept=fit_intercept)
    first = SharedFactor(problem, d, 0.2, alone=True)
    follow, random = ColumnUpdate(first), np.random.default_rng(0)
    assert follow.curvature is None
    for change, renewed in ((0.01, False), (0.02, False), (0.3, True), (0.01, None)):
        before = follow.base
        at = before.d.copy()
        some = random.permutation(np.flatnonzero(at))[: int(change * before.p)]
        at[some] = 0.0
        model = leave(problem, at, [])
        assert_minimises(problem, 0.2, model, follow.take([0]).solve(model))
        if renewed is not None:
            assert (follow.base is not before) == renewed
        assert np.count_nonzero(follow.base.d != at) <= MAX_CHANGED_SHARE * follow.base.p
    assert held(first)
    assert follow.base.alone
