"""Whatever the problem, a solution is stationary, or a warning says that it is not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from naive.machines import stationarity_gaps
from registries import LOSS_IDS, LOSSES, Case, cases, sample
from sklearn.exceptions import ConvergenceWarning

from onefit.problem import Problem
from onefit.solvers import solve

SINGLE, DOUBLE = 1e-3, 1e-8


def solve_or_warn(case: Case):
    """The solution, or None where a ConvergenceWarning was given; no other warning passes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", ConvergenceWarning)
        solution = solve(case.problem, case.lam)
    for part in (solution.coef, solution.intercept, solution.decision):
        assert np.isfinite(part).all()
    assert solution.converged == (not caught)
    return None if caught else solution


def assert_stationary(case, tolerance):
    solution = solve_or_warn(case)
    if solution is not None:
        gaps = stationarity_gaps(case.problem, case.lam, solution)
        assert max(gaps) <= tolerance, gaps
    return solution


@settings(max_examples=400)
@given(case=cases())
def test_stationary_or_warned(case):
    assert_stationary(case, DOUBLE)


@settings(max_examples=200)
@given(case=cases(powers=(-12.0, -8.0)))
def test_nearly_no_penalty(case):
    assert_stationary(case, DOUBLE)


@settings(max_examples=200)
@given(case=cases(dtype=np.float32, powers=(-4.0, 6.0)))
def test_single_precision(case):
    solution = assert_stationary(case, SINGLE)
    if solution is not None:
        assert solution.coef.dtype == solution.decision.dtype == np.float32


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
def test_ordinary_problems_give_no_warning(loss, task, fit_intercept):
    X, y = sample(task, n=40)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    for scaling in ("mean", "total"):
        problem = Problem(K, y[:, None].astype(float), np.ones(40), loss, fit_intercept, scaling)
        for lam in 10.0 ** np.arange(-8.0, 7.0):
            assert assert_stationary(Case(problem, lam), DOUBLE) is not None, (scaling, lam)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
def test_singular_kernel_with_repeated_rows(loss, task, fit_intercept):
    X, y = sample(task, n=12)
    X, y = np.repeat(X, 3, axis=0), np.concatenate([y, y[::-1], y])
    problem = Problem(X @ X.T, y[:, None].astype(float), np.ones(36), loss, fit_intercept, "mean")
    for lam in (1e-6, 1e-3, 1.0, 1e3):
        assert assert_stationary(Case(problem, lam), DOUBLE) is not None, lam


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
def test_identical_rows_that_disagree(loss, task, fit_intercept):
    """K sees only the sum of a: predictions stand still long before the coefficients do."""
    s, y = np.array([2.6, 2.3, 2.0]), np.array([[1.0], [-1.0], [1.0]])
    problem = Problem(np.ones((3, 3)), y, s, loss, fit_intercept, "mean")
    for lam in np.logspace(-8, 2, 21):
        assert assert_stationary(Case(problem, lam), DOUBLE) is not None, lam


@pytest.mark.parametrize("level", [0.0, 1e-8, 3.0, 1e4])
@pytest.mark.parametrize(
    ("loss", "task"), [pair for pair in LOSSES if pair[1] == "regression"], ids=LOSS_IDS[:7]
)
def test_constant_targets_are_the_intercept(loss, task, level):
    X, _ = sample("regression", n=15)
    K = X @ X.T
    for lam in (1e-8, 1e-3, 1e3):
        problem = Problem(K, np.full((15, 1), level), np.ones(15), loss, True, "mean")
        solution = assert_stationary(Case(problem, lam), DOUBLE)
        assert solution.decision == pytest.approx(level, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("size", [1e2, 3e2, 7.05e2, 1e4, 1e9])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("loss", "task"), [pair for pair in LOSSES if pair[1] == "regression"], ids=LOSS_IDS[:7]
)
def test_targets_far_from_zero(loss, task, dtype, size):
    """The start is far out on every loss, where the smooth ones have hardly any curvature."""
    X, y = sample("regression", n=15)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(dtype)
    Y = (y[:, None] + size).astype(dtype)
    problem = Problem(K, Y, np.ones(15, dtype), loss, True, "mean")
    case = Case(problem, 0.1)
    assert assert_stationary(case, DOUBLE if dtype == np.float64 else SINGLE) is not None
