"""Reweighting, the second opinion: it agrees with Newton's method, and says when it is not done."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from heldout._twins import make_problem
from hypothesis import given, settings
from registries import LOSS_IDS, LOSSES, SCALINGS, cases

from onefit.columns.fit import fit
from onefit.columns.reweight import solve_reweight
from onefit.losses import Huber, SmoothedHinge, Squared
from onefit.losses.base import MissingDerivativeError
from onefit.problem import Problem


def objective(problem, lam, solution):
    return problem.targets(problem.positive, problem.ridge(lam)).objective(solution)


@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
@pytest.mark.parametrize(
    ("fit_intercept", "scaling"), [(b, c) for b in (False, True) for c in SCALINGS]
)
def test_it_agrees_with_newtons_method(loss, task, fit_intercept, scaling):
    problem = make_problem(
        loss, task, 20, weight="zeros", fit_intercept=fit_intercept, scaling=scaling
    )
    lam = 0.05 * (1.0 if scaling == "mean" else problem.s.sum())
    if loss == SmoothedHinge(1e-3):
        lam *= 10.0  # its steps are of the size of delta
    newton, other = fit(problem, lam), solve_reweight(problem, lam)
    assert other.converged
    assert other.u == pytest.approx(newton.u, abs=2e-6)
    assert other.u == pytest.approx(problem.K.matrix @ other.a + other.b, abs=1e-9)
    assert not other.a[problem.s == 0].any()
    assert objective(problem, lam, other) == pytest.approx(
        objective(problem, lam, newton), rel=1e-9
    )


@settings(max_examples=60)
@given(case=cases(powers=(-3.0, 3.0), max_rows=12))
def test_it_is_never_lower(case):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        other = solve_reweight(case.problem, case.lam, max_steps=300)
        newton = fit(case.problem, case.lam)
    ours, theirs = (objective(case.problem, case.lam, each)[0] for each in (newton, other))
    assert ours <= theirs + 1e-8 * abs(theirs) + 1e-12


def test_every_target_is_solved():
    problem = make_problem(Huber(0.3), "regression", 20, q=2)
    assert solve_reweight(problem, 0.1).u == pytest.approx(fit(problem, 0.1).u, abs=1e-7)


def test_the_squared_loss_takes_one_step_and_another_to_see_it():
    assert solve_reweight(make_problem(Squared(), "regression", 20), 0.1).steps == 2


def test_it_says_when_it_is_not_done():
    problem = make_problem(SmoothedHinge(1e-3), "classification")
    assert not solve_reweight(problem, 1e-4, max_steps=5).converged


def test_it_ends_in_single_precision():
    problem = make_problem(Huber(0.3), "regression")
    single = make_problem(Huber(0.3), "regression", dtype=np.float32)
    solution = solve_reweight(single, 0.1)
    assert solution.steps < 200
    assert solution.a.dtype == solution.u.dtype == np.float32
    assert solution.u == pytest.approx(solve_reweight(problem, 0.1).u, abs=1e-4)


def test_it_needs_a_majorant():
    class Bare:
        name, task, piecewise_quadratic = "bare", "regression", True

    problem = Problem(np.eye(2), np.ones((2, 1)), np.ones(2), Bare())
    with pytest.raises(MissingDerivativeError, match="method 'reweight' needs 'reweight'"):
        solve_reweight(problem, 1.0)
