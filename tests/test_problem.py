"""Problems, columns and solutions: what the normal form is, and what taking some of it gives."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import make_problem

from onefit.losses import EpsilonQuadratic, Huber, Log, Squared, SquaredHinge
from onefit.problem import Problem, Solution

N = 12


def problem_of(**options):
    return make_problem(Huber(0.3), "regression", N, **({"weight": "zeros", "q": 2} | options))


def solution_of(problem, seed=0):
    """Any point, its predictions right."""
    random = np.random.default_rng(seed)
    q = problem.Y.shape[1]
    a, b = random.normal(size=(problem.n, q)), random.normal(size=q)
    return Solution(a, b, problem.K.matrix @ a + b, random.uniform(size=q), seed, bool(seed))


# the problem


def test_ridge_shrinks_with_the_training_part_under_mean_scaling():
    problem, rows = problem_of(), np.arange(5, N)
    assert problem.ridge(0.1) == pytest.approx(0.1 * problem.s.sum())
    assert problem.ridge(0.1, rows) == pytest.approx(0.1 * problem.s[5:].sum())
    assert problem.ridge(0.1, rows) == pytest.approx(problem.take(rows).ridge(0.1))
    assert problem_of(scaling="total").ridge(0.1, rows) == 0.1


def test_only_the_squared_loss_is_quadratic():
    assert make_problem(Squared(), "regression", N).quadratic
    assert not problem_of().quadratic
    nameless = type("Nameless", (), {})()
    assert not Problem(np.eye(2), np.ones((2, 1)), np.ones(2), nameless).quadratic


def test_some_rows_of_a_problem():
    problem = problem_of(may_overwrite=True)
    rows = np.array([7, 1, 4])
    part = problem.take(rows)
    np.testing.assert_array_equal(part.K.matrix, problem.K.matrix[np.ix_(rows, rows)])
    np.testing.assert_array_equal(part.Y, problem.Y[rows])
    np.testing.assert_array_equal(part.s, problem.s[rows])
    assert part.n == 3
    assert not part.may_overwrite


def test_positive_are_the_rows_with_weight():
    problem = problem_of()
    assert 0 < problem.positive.size < N
    np.testing.assert_array_equal(problem.positive, np.flatnonzero(problem.s))


def test_double_precision_keeps_what_is_known():
    single = problem_of(dtype=np.float32)
    double = single.double
    assert {x.dtype for x in (double.K.matrix, double.Y, double.s)} == {np.dtype(np.float64)}
    np.testing.assert_array_equal(double.K.matrix, single.K.matrix)
    assert double.norms is single.norms
    assert double.double is double
    assert problem_of().double.K.dtype == np.float64


@pytest.mark.parametrize(
    ("loss", "Y", "expected"),
    [
        (Squared(), [[1.0], [2.0], [4.0]], np.std([1.0, 2.0, 4.0])),
        (Squared(), [[1.0], [-1.0], [-1.0]], 1.0),
        (Log(), [[1.0], [-1.0], [1.0]], 1.0),
        (Huber(1.0), [[3.0], [3.0], [3.0]], 3.0),
        (Huber(1.0), [[0.0], [0.0], [0.0]], 1.0),
        (EpsilonQuadratic(0.1), [[1e-6], [2e-6], [4e-6]], 1e-6 * np.std([1.0, 2.0, 4.0])),
    ],
)
def test_the_scale_of_a_target(loss, Y, expected):
    problem = Problem(np.eye(3), np.array(Y), np.ones(3), loss)
    assert problem.scale[0] == pytest.approx(expected)


def test_the_scale_weighs_rows_as_the_loss_does():
    Y = np.array([[1.0, 5.0], [2.0, 7.0], [9.0, 7.0]])
    problem = Problem(np.eye(3), Y, np.array([3.0, 1.0, 0.0]), SquaredHinge())
    spread = np.sqrt(np.average((Y - np.average(Y, 0, [3, 1, 0])) ** 2, 0, [3, 1, 0]))
    np.testing.assert_allclose(problem.scale, spread)


# columns


def test_a_column_per_mask():
    problem = problem_of()
    train = np.random.default_rng(0).random((N, 4)) < 0.7
    ridge = np.array([1.0, 2.0, 3.0, 4.0])
    columns = problem.columns(1, train, ridge)
    np.testing.assert_array_equal(columns.y, problem.Y[:, [1]])
    np.testing.assert_array_equal(columns.weights, problem.s[:, None] * train)
    np.testing.assert_array_equal(columns.train, columns.weights > 0)
    np.testing.assert_array_equal(columns.ridge, ridge)
    np.testing.assert_array_equal(columns.scale, np.full(4, problem.scale[1]))
    part = columns.take([2, 0])
    np.testing.assert_array_equal(part.weights, columns.weights[:, [2, 0]])
    np.testing.assert_array_equal(part.ridge, [3.0, 1.0])
    np.testing.assert_array_equal(part.y, columns.y)


def test_a_column_per_target():
    problem, rows = problem_of(), np.array([1, 3, 8, 9])
    columns = problem.targets(rows, 0.7)
    np.testing.assert_array_equal(columns.y, problem.Y)
    mask = np.isin(np.arange(N), rows)[:, None]
    np.testing.assert_array_equal(columns.weights, problem.s[:, None] * mask * np.ones(2))
    np.testing.assert_array_equal(columns.ridge, [0.7, 0.7])
    np.testing.assert_array_equal(columns.scale, problem.scale)
    np.testing.assert_array_equal(columns.take([1]).y, problem.Y[:, [1]])


def test_columns_in_double_precision():
    problem = problem_of(dtype=np.float32)
    columns = problem.targets(problem.positive, 0.1)
    assert columns.penalty.dtype == np.float32
    assert columns.ridge.dtype == np.float64
    assert columns.epsilon == np.finfo(np.float32).eps
    double = columns.double
    assert {x.dtype for x in (double.K.matrix, double.y, double.weights)} == {np.dtype(np.float64)}
    assert double.ridge[0] == 0.1


@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_the_objective_is_the_normal_form(scaling):
    problem = problem_of(scaling=scaling)
    at, ridge = solution_of(problem), problem.ridge(0.1)
    found = problem.targets(problem.positive, ridge).objective(at)
    for j in range(2):
        losses = problem.s @ problem.loss.value(problem.Y[:, j], at.u[:, j])
        norm = at.a[:, j] @ problem.K.matrix @ at.a[:, j]
        assert found[j] == pytest.approx(losses + ridge * norm, rel=1e-10)


def test_one_point_serves_all_columns_of_an_objective():
    problem = problem_of(q=1)
    at, train = solution_of(problem), np.random.default_rng(0).random((N, 3)) < 0.7
    columns = problem.columns(0, train, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(columns.objective(at), columns.objective(at.take([0, 0, 0])))


# solutions


def test_a_solution_of_zero():
    zero = Solution.zero(4, 2, np.float32)
    assert zero.a.dtype == zero.u.dtype == zero.b.dtype == np.float32
    for part in (zero.a, zero.b, zero.u, zero.drift):
        assert not part.any()
    assert not np.shares_memory(zero.a, zero.u)


def test_solutions_side_by_side():
    problem = problem_of()
    one, other = solution_of(problem, 1), solution_of(problem, 2)
    both = Solution.stack([one, other])
    for name in ("a", "b", "u", "drift"):
        np.testing.assert_array_equal(getattr(both.take([0, 1]), name), getattr(one, name))
        np.testing.assert_array_equal(getattr(both.take([2, 3]), name), getattr(other, name))
    assert both.steps == 2
    assert both.converged
    assert not Solution.stack([one, solution_of(problem, 0)]).converged


def test_what_is_put_back_is_what_was_taken():
    problem = problem_of()
    one, other = solution_of(problem, 1), solution_of(problem, 2)
    copy = one.copy()
    copy.put([1], other.take([0]))
    for name in ("a", "b", "u", "drift"):
        old, new, put = (getattr(x, name) for x in (one, copy, other))
        np.testing.assert_array_equal(new[..., 0], old[..., 0])
        np.testing.assert_array_equal(new[..., 1], put[..., 0])
        assert not np.array_equal(old[..., 1], put[..., 0])


def test_functions_are_scaled_and_intercepts_are_not():
    problem = problem_of()
    at, ratio = solution_of(problem), np.array([2.0, 0.5])
    scaled = at.scaled(ratio)
    np.testing.assert_allclose(scaled.a, ratio * at.a)
    np.testing.assert_array_equal(scaled.b, at.b)
    np.testing.assert_allclose(scaled.u, problem.K.matrix @ scaled.a + scaled.b, atol=1e-12)
    np.testing.assert_allclose(scaled.drift, ratio * at.drift)


def test_another_precision():
    at = solution_of(problem_of())
    single = at.astype(np.float32)
    assert {x.dtype for x in (single.a, single.b, single.u)} == {np.dtype(np.float32)}
    np.testing.assert_allclose(single.u, at.u, rtol=1e-6)
