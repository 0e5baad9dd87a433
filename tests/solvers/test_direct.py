"""The squared loss by factorisation, against its bordered system written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from naive.machines import least_squares
from registries import SCALINGS, cases, sample

from onefit.losses import Squared
from onefit.problem import Problem
from onefit.solvers import solve, solve_direct, solve_newton
from onefit.solvers.direct import spectrum

SQUARED = [(Squared(), "regression")]


def problem_of(n=20, q=2, weighted=True, fit_intercept=True, scaling="mean"):
    X, y = sample("regression", n=n)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    Y = np.asfortranarray(np.column_stack([y * (j + 1) - j for j in range(q)]))
    s = np.random.default_rng(1).uniform(0.2, 2.0, n) if weighted else np.ones(n)
    return Problem(K, Y, s, Squared(), fit_intercept, scaling)


each_form = pytest.mark.parametrize(
    ("weighted", "fit_intercept", "scaling"),
    [(w, b, c) for w in (False, True) for b in (False, True) for c in SCALINGS],
)


@each_form
@pytest.mark.parametrize("lam", [1e-4, 1e-1, 1e2])
def test_equals_the_bordered_system(weighted, fit_intercept, scaling, lam):
    problem = problem_of(weighted=weighted, fit_intercept=fit_intercept, scaling=scaling)
    a, b = least_squares(problem.K, problem.Y, problem.s, lam, fit_intercept, scaling)
    for given_spectrum in (None, spectrum(problem)):
        solution = solve_direct(problem, lam, given_spectrum)
        assert solution.coef == pytest.approx(a, rel=1e-8, abs=1e-9 * np.abs(a).max())
        assert solution.intercept == pytest.approx(b, rel=1e-8, abs=1e-10)
        assert solution.decision == pytest.approx(problem.K @ a + b, rel=1e-8, abs=1e-9)
        assert solution.steps == 1
        assert solution.converged


@each_form
@pytest.mark.parametrize("lam", [1e-6, 1e-2, 1e3])
def test_newton_agrees(weighted, fit_intercept, scaling, lam):
    problem = problem_of(weighted=weighted, fit_intercept=fit_intercept, scaling=scaling)
    direct, newton = solve_direct(problem, lam), solve_newton(problem, lam)
    size = np.abs(direct.coef).max()
    assert newton.coef == pytest.approx(direct.coef, rel=1e-7, abs=1e-8 * size)
    assert newton.intercept == pytest.approx(direct.intercept, rel=1e-8, abs=1e-10)
    assert newton.decision == pytest.approx(direct.decision, rel=1e-8, abs=1e-9)


@settings(max_examples=150)
@given(case=cases(losses=SQUARED, powers=(-12.0, 6.0)))
def test_spectrum_agrees_with_cholesky(case):
    """Predictions, that is: where K is singular the coefficients themselves are less well known."""
    one = solve_direct(case.problem, case.lam)
    other = solve_direct(case.problem, case.lam, spectrum(case.problem))
    terms = np.diag(case.problem.K).max() * np.abs(one.coef).sum()
    size = np.abs(case.problem.Y).max()
    assert other.decision == pytest.approx(one.decision, rel=1e-8, abs=1e-8 * size + 1e-13 * terms)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("lam", [1e-9, 1e-12])
def test_singular_kernel_that_the_intercept_completes(lam, weighted):
    """K has rank n - 1, and K + Lambda I is nearly singular where its border is not."""
    random = np.random.default_rng(0)
    X, y = random.normal(size=(4, 3)), random.normal(size=4)
    s = random.uniform(0.5, 2.0, 4) if weighted else np.ones(4)
    a, b = least_squares(X @ X.T, y, s, lam)
    problem = Problem(X @ X.T, y[:, None], s, Squared())
    for solution in (solve_direct(problem, lam), solve_direct(problem, lam, spectrum(problem))):
        assert solution.coef[:, 0] == pytest.approx(a, rel=1e-10)
        assert solution.intercept[0] == pytest.approx(b, rel=1e-10)
        assert solution.coef.sum() == pytest.approx(0.0, abs=1e-11)


def test_the_solver_names():
    problem = problem_of()
    direct = solve_direct(problem, 0.1)
    assert np.array_equal(solve(problem, 0.1).coef, direct.coef)
    for name in ("newton", "reweight"):
        other = solve(problem, 0.1, name)
        assert other.steps >= 1
        assert other.decision == pytest.approx(direct.decision, rel=1e-8, abs=1e-9)


def test_objective_is_that_of_the_normal_form():
    problem = problem_of()
    solution = solve_direct(problem, 0.1)
    for j in range(2):
        a, u = solution.coef[:, j], solution.decision[:, j]
        losses = (problem.s * (problem.Y[:, j] - u) ** 2).sum()
        expected = losses + 0.1 * problem.s.sum() * a @ problem.K @ a
        assert problem.objective(0.1, solution)[j] == pytest.approx(expected, rel=1e-10)


def test_ridge_shrinks_with_the_training_part_under_mean_scaling():
    problem = problem_of()
    rows = np.arange(5, 20)
    assert problem.ridge(0.1, rows) == pytest.approx(0.1 * problem.s[5:].sum())
    assert problem.ridge(0.1, rows) == pytest.approx(problem.take(rows).ridge(0.1))
    assert problem_of(scaling="total").ridge(0.1, rows) == 0.1


def test_an_indefinite_matrix_is_refused_not_mended():
    problem = problem_of()
    K = problem.K - 3.0 * np.eye(20)
    broken = Problem(K, problem.Y, problem.s, Squared(), True, "total")
    for solver in ("auto", "newton"):
        with pytest.raises(ValueError, match=r"kernel matrix is indefinite: .* eigenvalue is -"):
            solve(broken, 1e-3, solver)
