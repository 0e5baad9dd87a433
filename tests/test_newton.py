"""Newton's method against brute force, reweighting, other starts, and rows left out."""

from __future__ import annotations

import warnings

import naive.losses
import naive.machines
import numpy as np
import pytest
from hypothesis import given, settings
from onefit.solvers import solve_newton, solve_reweight
from onefit.solvers.newton import Machine, State, minimise
from registries import LOSS_IDS, LOSSES, SCALINGS, cases, sample
from sklearn.exceptions import ConvergenceWarning

from onefit.losses import EpsilonQuadratic, Huber, Log, Logistic, SmoothedHinge, SquaredHinge
from onefit.losses.base import MissingDerivativeError
from onefit.problem import Problem

each_loss = pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
each_form = pytest.mark.parametrize(
    ("fit_intercept", "scaling"), [(b, c) for b in (False, True) for c in SCALINGS]
)


def problem_of(loss, task, n=30, weighted=False, fit_intercept=True, scaling="mean", seed=0):
    X, y = sample(task, n=n, seed=seed)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    s = np.random.default_rng(1).uniform(0.2, 2.0, n) if weighted else np.ones(n)
    return Problem(K, y[:, None].astype(float), s, loss, fit_intercept, scaling)


@each_loss
@each_form
def test_brute_force_finds_nothing_lower(loss, task, fit_intercept, scaling):
    problem = problem_of(loss, task, 8, True, fit_intercept, scaling)
    for lam in (1e-2, 1.0):
        solution = solve_newton(problem, lam)
        ours = naive.machines.objective_of(problem, lam, solution)
        lowest, u = naive.machines.brute_force(
            problem.K,
            problem.Y[:, 0],
            problem.s,
            lambda y, v: naive.losses.value(loss, y, v),
            lam,
            fit_intercept,
            scaling,
        )
        assert ours <= lowest + 1e-12
        assert ours == pytest.approx(lowest, rel=1e-5, abs=1e-9)  # brute force did arrive
        assert problem.objective(lam, solution)[0] == pytest.approx(
            ours * (problem.s.sum() if scaling == "mean" else 1.0), rel=1e-10
        )
        if loss.name not in ("smoothed_hinge", "epsilon_quadratic", "squared_hinge"):
            # the others may be flat in b
            assert solution.decision[:, 0] == pytest.approx(u, abs=1e-3)


@each_loss
@each_form
def test_reweighting_agrees(loss, task, fit_intercept, scaling):
    problem = problem_of(loss, task, 20, True, fit_intercept, scaling)
    lam = 0.05 * (1.0 if scaling == "mean" else problem.s.sum())
    if loss == SmoothedHinge(1e-3):
        lam *= 10.0  # its steps are of the size of delta
    newton, other = solve_newton(problem, lam), solve_reweight(problem, lam)
    assert other.converged
    assert other.decision == pytest.approx(newton.decision, abs=2e-6)
    assert problem.objective(lam, other) == pytest.approx(problem.objective(lam, newton), rel=1e-9)


@settings(max_examples=60)
@given(case=cases(powers=(-3.0, 3.0), max_rows=12))
def test_reweighting_is_never_lower(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        other = solve_reweight(case.problem, case.lam, max_steps=300)
        newton = solve_newton(case.problem, case.lam)
    ours, theirs = (case.problem.objective(case.lam, each)[0] for each in (newton, other))
    assert ours <= theirs + 1e-8 * abs(theirs) + 1e-12


def test_reweighting_says_when_it_is_not_done():
    problem = problem_of(SmoothedHinge(1e-3), "classification")
    with pytest.warns(ConvergenceWarning, match="has not converged in 5 steps.*use Newton's"):
        assert not solve_reweight(problem, 1e-4, max_steps=5).converged


def test_reweighting_ends_in_single_precision():
    problem = problem_of(Huber(0.3), "regression")
    single = Problem(
        problem.K.astype("f"), problem.Y.astype("f"), problem.s.astype("f"), Huber(0.3)
    )
    solution = solve_reweight(single, 0.1)
    assert solution.steps < 200
    assert solution.decision == pytest.approx(solve_reweight(problem, 0.1).decision, abs=1e-4)


def test_reweighting_needs_a_majorant():
    class Bare:
        name, task, piecewise_quadratic = "bare", "regression", True

    with pytest.raises(MissingDerivativeError, match="method 'reweight' needs 'reweight'"):
        solve_reweight(problem_of(Bare(), "regression"), 1.0)


@each_loss
@each_form
def test_warm_starts_reach_the_same_solution(loss, task, fit_intercept, scaling):
    problem = problem_of(loss, task, 30, True, fit_intercept, scaling)
    lams = np.logspace(-4, 2, 7) * (1.0 if scaling == "mean" else 30.0)
    start = None
    for lam in [*lams, *lams[::-1]]:
        cold, warm = solve_newton(problem, lam), solve_newton(problem, lam, start)
        size = 1.0 + np.abs(cold.decision).max()
        assert warm.decision == pytest.approx(cold.decision, abs=1e-8 * size)
        assert warm.coef == pytest.approx(cold.coef, abs=1e-7 * np.abs(cold.coef).max())
        assert warm.intercept == pytest.approx(cold.intercept, abs=1e-8 * size)
        start = cold


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
            cold = solve_newton(problem, 1e-2)
            start = solve_newton(problem, 1e-2, start)
            assert start.decision == pytest.approx(cold.decision, abs=1e-8)


@each_loss
def test_a_start_at_the_solution_stays_and_is_not_written_to(loss, task):
    problem = problem_of(loss, task)
    there = solve_newton(problem, 1e-2)
    before = there.coef.copy(), there.intercept.copy(), there.decision.copy()
    again = solve_newton(problem, 1e-2, there)
    assert again.steps <= 2
    for old, kept in zip(before, (there.coef, there.intercept, there.decision), strict=True):
        assert np.array_equal(old, kept)


@each_loss
def test_targets_are_independent_columns(loss, task):
    one, other = (problem_of(loss, task, seed=seed) for seed in (0, 5))
    Y = np.column_stack([one.Y, other.Y])
    both = solve_newton(Problem(one.K, Y, one.s, loss), 1e-2)
    for j in range(2):
        alone = solve_newton(Problem(one.K, Y[:, [j]], one.s, loss), 1e-2)
        assert np.array_equal(both.coef[:, [j]], alone.coef)
        assert both.intercept[j] == alone.intercept[0]


@each_loss
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_rows_of_weight_zero_are_as_if_removed(loss, task, fit_intercept):
    problem = problem_of(loss, task, 25, True, fit_intercept)
    kept = np.arange(25) % 4 != 1
    s = np.where(kept, problem.s, 0.0)
    machine = Machine(problem.K, problem.Y[:, 0], s, 0.3, loss, fit_intercept)
    state, _, converged = minimise(machine, State.zero(problem.Y[:, 0]), 60)
    part = problem.take(np.flatnonzero(kept))
    small = Machine(part.K, part.Y[:, 0], part.s, 0.3, loss, fit_intercept)
    expected, _, _ = minimise(small, State.zero(part.Y[:, 0]), 60)
    assert converged
    assert state.a[kept] == pytest.approx(expected.a, abs=1e-9)
    assert not state.a[~kept].any()
    assert state.u[kept] == pytest.approx(expected.u, abs=1e-9)


def test_rows_of_weight_zero_do_not_bend_the_model():
    """At the start only rows without weight have curvature."""
    y = np.array([0.1, -0.2, 30.0, 31.0, 33.0])
    s = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    K = np.exp(-np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))))
    machine = Machine(K, y, s, 0.3, Huber(1.0), True)
    state, _, converged = minimise(machine, State.zero(y), 60)
    small = Machine(K[2:, 2:], y[2:], s[2:], 0.3, Huber(1.0), True)
    expected, _, _ = minimise(small, State.zero(y[2:]), 60)
    assert converged
    assert state.a == pytest.approx(np.append([0.0, 0.0], expected.a), abs=1e-10)
    assert state.b == pytest.approx(expected.b, abs=1e-10)


def test_the_piecewise_quadratic_losses_end_on_an_exact_step():
    """Finite: a few steps, and stationary to rounding rather than to a tolerance."""
    for loss, task in [(Huber(0.2), "regression"), (SquaredHinge(), "classification")]:
        problem = problem_of(loss, task, n=60)
        solution = solve_newton(problem, 1e-3)
        assert solution.steps <= 15
        gap = 2.0 * problem.ridge(1e-3) * solution.coef + loss.gradient(
            problem.Y, solution.decision
        )
        assert np.abs(gap).max() < 1e-11


def test_the_middle_of_a_flat_stretch_is_taken_from_any_start():
    """Two groups far apart, almost no f: every b between them is a minimiser."""
    y = np.array([0.0] * 5 + [10.0] * 5)[:, None]
    problem = Problem(np.eye(10), y, np.ones(10), Huber(1.0))
    cold = solve_newton(problem, 1e9)
    assert cold.intercept[0] == pytest.approx(5.0, abs=1e-6)
    for b in (-3.0, 1.0, 2.0, 9.0, 9.5, 400.0):
        start = type(cold)(np.zeros_like(y), np.array([b]), np.full_like(y, b))
        assert solve_newton(problem, 1e9, start).intercept[0] == pytest.approx(5.0, abs=1e-6)


def test_a_stretch_open_to_one_side_ends_at_its_end():
    """One class only: any b beyond the margin has no loss, the nearest is taken."""
    y = np.ones((6, 1))
    for loss, end in [(SquaredHinge(), 1.0), (SmoothedHinge(0.1), 1.1)]:
        solution = solve_newton(Problem(np.eye(6), y, np.ones(6), loss), 1.0)
        assert solution.converged
        assert solution.intercept[0] == pytest.approx(end, abs=1e-7)
        assert solution.coef == pytest.approx(0.0, abs=1e-7)


def test_without_a_minimiser_the_loss_still_falls_to_nothing():
    """One class and the log loss: b has no end to run to, but no NaN on its way."""
    problem = Problem(np.eye(6), np.ones((6, 1)), np.ones(6), Log())
    solution = solve_newton(problem, 1.0)
    assert np.isfinite(solution.decision).all()
    assert problem.objective(1.0, solution)[0] < 1e-6


def test_an_end_short_of_the_minimum_is_told():
    problem = problem_of(SmoothedHinge(1e-3), "classification", n=60)
    with pytest.warns(ConvergenceWarning, match=r"Newton's method stopped .* raise lam, or scale"):
        solution = solve_newton(problem, 1e-6, max_steps=1)
    assert not solution.converged
    assert np.isfinite(solution.decision).all()


def test_too_few_steps_are_told():
    problem = problem_of(Logistic(), "regression")
    machine = Machine(problem.K, 50.0 * problem.Y[:, 0], problem.s, 1e-3, Logistic(), True)
    state, steps, converged = minimise(machine, State.zero(machine.y), 2)
    assert steps == 2
    assert not converged
    assert np.isfinite(state.u).all()
