"""The full-sample fit: directly for the squared loss, by Newton steps or reweighting for others."""

from __future__ import annotations

from onefit.problem import Problem, Solution
from onefit.solvers.direct import solve_direct
from onefit.solvers.newton import solve_newton
from onefit.solvers.reweight import solve_reweight

__all__ = ["SOLVERS", "solve", "solve_direct", "solve_newton", "solve_reweight"]

SOLVERS = ("auto", "newton", "reweight")


def solve(
    problem: Problem, lam: float, solver: str = "auto", start: Solution | None = None
) -> Solution:
    """The minimiser at ``lam``: directly where the loss is squared, else by Newton's method."""
    if solver == "reweight":
        return solve_reweight(problem, lam)
    if solver == "auto" and problem.loss.name == "squared":
        return solve_direct(problem, lam)
    return solve_newton(problem, lam, start)
