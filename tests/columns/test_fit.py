"""Fits: stationary or an error, never above brute force, the same from any start."""

from __future__ import annotations

import warnings

import naive.losses
import naive.machines
import numpy as np
import pytest
from heldout._twins import gaussian, make_problem, weights
from hypothesis import given, settings
from naive.machines import least_squares, stationarity_gaps
from registries import LOSS_IDS, LOSSES, REGRESSION_LOSSES, SCALINGS, Case, cases, sample

from onefit.columns.fit import FitError, fit, solve
from onefit.losses import (
    EpsilonQuadratic,
    Huber,
    Log,
    Logistic,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from onefit.problem import Problem, Solution

SINGLE, DOUBLE = 1e-3, 1e-8
SQUARED = [(Squared(), "regression")]
each_loss = pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
each_regression = pytest.mark.parametrize(
    ("loss", "task"),
    [pair for pair in LOSSES if pair[1] == "regression"],
    ids=LOSS_IDS[: len(REGRESSION_LOSSES)],
)
each_form = pytest.mark.parametrize(
    ("fit_intercept", "scaling"), [(b, c) for b in (False, True) for c in SCALINGS]
)


def problem_of(loss, task, n=30, weight="none", fit_intercept=True, scaling="mean", seed=0):
    X, y = sample(task, n=n, seed=seed)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    s = weights(weight, n)
    return Problem(K, y[:, None].astype(float), s, loss, fit_intercept, scaling)


def objective(problem, lam, solution):
    return problem.targets(problem.positive, problem.ridge(lam)).objective(solution)


# stationary, or an error


def fit_or_none(case: Case):
    """The solution, or None where there was an error; no warning passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            solution = fit(case.problem, case.lam)
        except FitError:
            return None
    for part in (solution.a, solution.b, solution.u):
        assert np.isfinite(part).all()
    assert solution.converged
    return solution


def assert_stationary(case, tolerance):
    solution = fit_or_none(case)
    if solution is not None:
        gaps = stationarity_gaps(case.problem, case.lam, solution)
        assert max(gaps) <= tolerance, gaps
    return solution


@settings(max_examples=150)
@given(case=cases())
def test_stationary_or_an_error(case):
    assert_stationary(case, DOUBLE)


@settings(max_examples=50)
@given(case=cases(powers=(-12.0, -8.0)))
def test_nearly_no_penalty(case):
    assert_stationary(case, DOUBLE)


@settings(max_examples=100)
@given(case=cases(dtype=np.float32, powers=(-4.0, 6.0)))
def test_single_precision(case):
    solution = assert_stationary(case, SINGLE)
    if solution is not None:
        assert solution.a.dtype == solution.u.dtype == np.float32


@pytest.mark.parametrize("fit_intercept", [False, True])
@each_loss
def test_ordinary_problems_give_no_warning(loss, task, fit_intercept):
    for scaling, powers in (("mean", range(-8, 7, 2)), ("total", range(-7, 7, 3))):
        problem = problem_of(loss, task, 40, fit_intercept=fit_intercept, scaling=scaling)
        for power in powers:
            assert assert_stationary(Case(problem, 10.0**power), DOUBLE) is not None, power


@pytest.mark.parametrize("fit_intercept", [False, True])
@each_loss
def test_singular_kernel_with_repeated_rows(loss, task, fit_intercept):
    X, y = sample(task, n=12)
    X, y = np.repeat(X, 3, axis=0), np.concatenate([y, y[::-1], y])
    problem = Problem(X @ X.T, y[:, None].astype(float), np.ones(36), loss, fit_intercept, "mean")
    for lam in (1e-6, 1e-3, 1.0, 1e3):
        assert assert_stationary(Case(problem, lam), DOUBLE) is not None, lam


@pytest.mark.parametrize("fit_intercept", [False, True])
@each_loss
def test_identical_rows_that_disagree(loss, task, fit_intercept):
    """K sees only the sum of a: predictions stand still long before the coefficients do."""
    s, y = np.array([2.6, 2.3, 2.0]), np.array([[1.0], [-1.0], [1.0]])
    problem = Problem(np.ones((3, 3)), y, s, loss, fit_intercept, "mean")
    for lam in np.logspace(-8, 2, 11):
        assert assert_stationary(Case(problem, lam), DOUBLE) is not None, lam


@pytest.mark.parametrize("level", [0.0, 1e-8, 3.0, 1e4])
@each_regression
def test_constant_targets_are_the_intercept(loss, task, level):
    X, _ = sample("regression", n=15)
    for lam in (1e-8, 1e-3, 1e3):
        problem = Problem(X @ X.T, np.full((15, 1), level), np.ones(15), loss, True, "mean")
        solution = assert_stationary(Case(problem, lam), DOUBLE)
        assert solution.u == pytest.approx(level, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("size", [1e2, 3e2, 7.05e2, 1e4, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_regression
def test_targets_far_from_zero(loss, task, dtype, size):
    """The start is far out on every loss, where the smooth ones have hardly any curvature."""
    X, y = sample("regression", n=15)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(dtype)
    Y = (y[:, None] + size).astype(dtype)
    problem = Problem(K, Y, np.ones(15, dtype), loss, True, "mean")
    case = Case(problem, 0.1)
    assert assert_stationary(case, DOUBLE if dtype == np.float64 else SINGLE) is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_end_short_of_the_minimum_is_an_error(dtype):
    """One class and the log loss have no minimum; in float32 the gradient vanishes on the way."""
    problem = Problem(*(x.astype(dtype) for x in (np.eye(6), np.ones((6, 1)), np.ones(6))), Log())
    with pytest.raises(FitError, match=r"did not reach its minimum .* no bound .* raise lam"):
        fit(problem, 1.0)
    found = solve(problem, 1.0)
    assert not found.converged
    assert np.isfinite(found.u).all()


@each_loss
def test_columns_that_a_start_leads_astray_begin_again(loss, task):
    """From zero by way of easier problems; the steps of both count."""
    problem = make_problem(loss, task, 30, q=2)
    expected = fit(problem, 1e-2)
    start = expected.copy()
    start.a[:, 1] = start.u[:, 1] = 1e10
    found = fit(problem, 1e-2, start=start)
    assert found.converged
    assert found.steps > fit(problem, 1e-2, start=expected).steps
    np.testing.assert_allclose(found.u, expected.u, atol=1e-8)


def test_the_way_down_has_an_end():
    """However large the kernel and small the penalty."""
    problem = make_problem(Huber(0.3), "regression", 12, kernel=lambda X: 1e200 * gaussian(X))
    assert solve(problem, 1e-160).steps < 10_000


# nothing is lower


@each_loss
@each_form
def test_brute_force_finds_nothing_lower(loss, task, fit_intercept, scaling):
    problem = problem_of(loss, task, 8, "random", fit_intercept, scaling)
    lam = 1e-2 if fit_intercept == (scaling == "mean") else 1.0
    solution = fit(problem, lam)
    ours = naive.machines.objective_of(problem, lam, solution)
    lowest, u = naive.machines.brute_force(
        problem.K.matrix,
        problem.Y[:, 0],
        problem.s,
        lambda y, v: naive.losses.value(loss, y, v),
        lam,
        fit_intercept,
        scaling,
    )
    assert ours <= lowest + 1e-12
    assert ours == pytest.approx(lowest, rel=1e-5, abs=1e-9)  # brute force did arrive
    assert objective(problem, lam, solution)[0] == pytest.approx(
        ours * (problem.s.sum() if scaling == "mean" else 1.0), rel=1e-10
    )
    if loss.name not in ("smoothed_hinge", "epsilon_quadratic", "squared_hinge"):
        # the others may be flat in b
        assert solution.u[:, 0] == pytest.approx(u, abs=1e-3)


# the squared loss


@pytest.mark.parametrize("weight", ["none", "random"])
@each_form
@pytest.mark.parametrize("lam", [1e-4, 1e-1, 1e2])
def test_the_squared_loss_is_its_bordered_system(weight, fit_intercept, scaling, lam):
    problem = make_problem(
        Squared(), "regression", 20, weight=weight, q=2, fit_intercept=fit_intercept,
        scaling=scaling,
    )  # fmt: skip
    a, b = least_squares(problem.K.matrix, problem.Y, problem.s, lam, fit_intercept, scaling)
    for solver in ("auto", "newton"):
        solution = fit(problem, lam, solver)
        assert solution.a == pytest.approx(a, rel=1e-8, abs=1e-9 * np.abs(a).max())
        assert solution.b == pytest.approx(b, rel=1e-8, abs=1e-10)
        assert solution.u == pytest.approx(problem.K.matrix @ a + b, rel=1e-8, abs=1e-9)
        assert solution.steps == 1
        assert solution.converged


@settings(max_examples=100)
@given(case=cases(losses=SQUARED, powers=(-8.0, 6.0)))
def test_any_problem_of_the_squared_loss_is_its_bordered_system(case):
    """Predictions, that is: where K is singular the coefficients themselves are less well known."""
    problem = case.problem
    a, b = least_squares(
        problem.K.matrix,
        problem.Y[:, 0],
        problem.s,
        case.lam,
        problem.fit_intercept,
        problem.scaling,
    )
    found = fit(problem, case.lam).u[:, 0]
    terms = np.diag(problem.K.matrix).max() * (np.abs(a).sum() + np.abs(problem.Y).max() / case.lam)
    size = np.abs(problem.Y).max()
    expected = problem.K.matrix @ a + b
    assert found == pytest.approx(expected, rel=1e-8, abs=1e-8 * size + 1e-13 * terms)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [1e-9, 1e-12])
def test_singular_kernel_that_the_intercept_completes(lam, weighted):
    """K has rank n - 1, and K + Lambda I is nearly singular where its border is not."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(4, 3)), random.normal(size=4)
    s = random.uniform(0.5, 2.0, 4) if weighted else np.ones(4)
    a, b = least_squares(X @ X.T, y, s, lam)
    solution = fit(Problem(X @ X.T, y[:, None], s, Squared()), lam)
    assert solution.a[:, 0] == pytest.approx(a, rel=1e-10)
    assert solution.b[0] == pytest.approx(b, rel=1e-10)
    assert solution.a.sum() == pytest.approx(0.0, abs=1e-11)


def test_the_solver_names():
    for loss in (Squared(), Huber(0.3)):
        problem = make_problem(loss, "regression", 20, weight="random", q=2)
        expected = fit(problem, 0.1)
        for name in ("newton", "reweight"):
            other = fit(problem, 0.1, name)
            assert other.steps >= 1
            assert other.u == pytest.approx(expected.u, rel=1e-8, abs=1e-8)


def test_an_indefinite_matrix_is_refused_not_mended():
    problem = make_problem(Squared(), "regression", 20)
    K = problem.K.matrix - 3.0 * np.eye(20)
    broken = Problem(K, problem.Y, problem.s, Squared(), True, "total")
    with pytest.raises(ValueError, match=r"kernel matrix is indefinite: .* eigenvalue is -"):
        fit(broken, 1e-3)


# any start, any company


@each_loss
@each_form
def test_warm_starts_reach_the_same_solution(loss, task, fit_intercept, scaling):
    problem = problem_of(loss, task, 30, "random", fit_intercept, scaling)
    lams = np.logspace(-4, 2, 4) * (1.0 if scaling == "mean" else 30.0)
    cold = {lam: fit(problem, lam) for lam in lams}
    start = None
    for lam in [*lams, *lams[::-1]]:
        expected, warm = cold[lam], fit(problem, lam, start=start)
        size = 1.0 + np.abs(expected.u).max()
        assert warm.u == pytest.approx(expected.u, abs=1e-8 * size)
        assert warm.a == pytest.approx(expected.a, abs=1e-7 * np.abs(expected.a).max())
        assert warm.b == pytest.approx(expected.b, abs=1e-8 * size)
        start = expected


@pytest.mark.parametrize(
    ("make", "task", "widths"),
    [
        (SmoothedHinge, "classification", [1.0, 0.3, 0.1, 0.03, 0.01, 1e-3]),
        (Huber, "regression", [3.0, 1.0, 0.3, 0.1, 0.03, 1e-3]),
        (EpsilonQuadratic, "regression", [1.0, 0.3, 0.1, 0.03, 0.0]),
    ],
)
def test_warm_starts_along_the_width(make, task, widths):
    for order in (widths, widths[::-1]):
        start = None
        for width in order:
            problem = problem_of(make(width), task)
            cold = fit(problem, 1e-2)
            start = fit(problem, 1e-2, start=start)
            assert start.u == pytest.approx(cold.u, abs=1e-8)


@each_loss
def test_a_start_at_the_solution_stays_and_is_not_written_to(loss, task):
    problem = problem_of(loss, task)
    there = fit(problem, 1e-2)
    before = there.copy()
    again = fit(problem, 1e-2, start=there)
    assert again.steps <= 2
    for name in ("a", "b", "u", "drift"):
        np.testing.assert_array_equal(getattr(there, name), getattr(before, name))


@each_loss
def test_targets_are_independent_columns(loss, task):
    one, other = (problem_of(loss, task, seed=seed) for seed in (0, 5))
    Y = np.column_stack([one.Y, other.Y])
    both = fit(Problem(one.K.matrix, Y, one.s, loss), 1e-2)
    for j in range(2):
        alone = fit(Problem(one.K.matrix, Y[:, [j]], one.s, loss), 1e-2)
        assert both.a[:, [j]] == pytest.approx(alone.a, rel=1e-9, abs=1e-11)
        assert both.b[j] == pytest.approx(alone.b[0], rel=1e-9, abs=1e-11)


@each_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_of_weight_zero_are_as_if_removed(loss, task, fit_intercept):
    problem = problem_of(loss, task, 25, "zeros", fit_intercept)
    whole, part = fit(problem, 1e-2), fit(problem.take(problem.positive), 1e-2)
    assert whole.a[problem.positive] == pytest.approx(part.a, abs=1e-9)
    assert not whole.a[problem.s == 0].any()
    assert whole.u == pytest.approx(
        problem.K.matrix[:, problem.positive] @ part.a + part.b, abs=1e-9
    )


def test_rows_of_weight_zero_do_not_bend_the_model():
    """At the start only rows without weight have curvature."""
    y = np.array([0.1, -0.2, 30.0, 31.0, 33.0])[:, None]
    s = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    K = np.exp(-np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))))
    problem = Problem(K, y, s, Huber(1.0))
    found, expected = fit(problem, 0.1), fit(problem.take(np.arange(2, 5)), 0.1)
    assert found.converged
    assert found.a[:, 0] == pytest.approx(np.append([0.0, 0.0], expected.a[:, 0]), abs=1e-10)
    assert found.b == pytest.approx(expected.b, abs=1e-10)


def test_the_piecewise_quadratic_losses_end_on_an_exact_step():
    """Finite: a few steps, and stationary to rounding rather than to a tolerance."""
    for loss, task in [(Huber(0.2), "regression"), (SquaredHinge(), "classification")]:
        problem = problem_of(loss, task, n=60)
        solution = fit(problem, 1e-3)
        assert solution.steps <= 15
        gap = 2.0 * problem.ridge(1e-3) * solution.a + loss.gradient(problem.Y, solution.u)
        assert np.abs(gap).max() < 1e-11


# intercepts that are not determined


def test_the_middle_of_a_flat_stretch_is_taken_from_any_start():
    """Two groups far apart, almost no f: every b between them is a minimiser."""
    y = np.array([0.0] * 5 + [10.0] * 5)[:, None]
    problem = Problem(np.eye(10), y, np.ones(10), Huber(1.0))
    assert fit(problem, 1e9).b[0] == pytest.approx(5.0, abs=1e-6)
    for b in (-3.0, 1.0, 2.0, 9.0, 9.5, 400.0):
        start = Solution(np.zeros_like(y), np.array([b]), np.full_like(y, b), np.zeros(1))
        assert fit(problem, 1e9, start=start).b[0] == pytest.approx(5.0, abs=1e-6)


def test_a_stretch_open_to_one_side_ends_at_its_end():
    """One class only: any b beyond the margin has no loss, the nearest is taken."""
    y = np.ones((6, 1))
    for loss, end in [(SquaredHinge(), 1.0), (SmoothedHinge(0.1), 1.1)]:
        solution = fit(Problem(np.eye(6), y, np.ones(6), loss), 1.0)
        assert solution.converged
        assert solution.b[0] == pytest.approx(end, abs=1e-7)
        assert solution.a == pytest.approx(0.0, abs=1e-7)


def test_without_a_minimiser_the_loss_still_falls_to_nothing():
    """One class and the log loss: b has no end to run to, but no NaN on its way."""
    problem = Problem(np.eye(6), np.ones((6, 1)), np.ones(6), Log())
    solution = solve(problem, 1.0)
    assert np.isfinite(solution.u).all()
    assert objective(problem, 1.0, solution)[0] < 1e-6


def test_the_tails_of_a_smooth_loss_are_no_place_to_step_from():
    """Far out the model sends points past everything; the steps are held, and still few."""
    problem = problem_of(Logistic(), "regression")
    far = Problem(problem.K.matrix, 1e6 * problem.Y, problem.s, Logistic())
    solution = fit(far, 1e-9)
    assert solution.converged
    assert solution.steps <= 100
