"""Full-sample solutions for criteria: on the rows of positive weight, along the lambdas."""

from __future__ import annotations

from onefit.fit import fit
from onefit.problem import Problem, Solution

__all__ = ["SolutionPath", "positive"]


def positive(problem: Problem) -> Problem:
    """The problem on its rows of positive weight."""
    kept = problem.positive
    return problem if kept.size == problem.n else problem.take(kept)


class SolutionPath:
    """Solutions along lambdas, each starting the next."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.last: Solution | None = None

    def at(self, lam: float) -> Solution:
        """The solution at ``lam``."""
        self.last = fit(self.problem, lam, start=self.last)
        return self.last
