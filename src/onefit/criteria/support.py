"""The support-vector count: Vapnik 1995.

Leaving out a point with coefficient zero changes nothing, and its label is right, so that only
support vectors can be leave-one-out errors, and

    LOO error <= (1/n) #{i : a_i != 0}

with C held fixed. For the rounded hinge the support vectors are the points with y u < 1 + delta,
those on its corner and those beyond. (The 2016 paper calls only the points on the corner support
vectors.) The bound is loose and costs nothing after the fit. When to use: as a bound, or to break
ties.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit.criteria.base import OfSolution, weighted_mean
from onefit.criteria.span import HINGES
from onefit.problem import Problem, Solution

__all__ = ["SvCount"]


@dataclass(frozen=True)
class SvCount(OfSolution):
    """The share of support vectors among the points."""

    name = "sv_count"
    losses = HINGES

    def of_solution(self, problem: Problem, lam: float, solution: Solution) -> float:
        # by the slope of the loss: rounding may leave coefficients that should be zero
        slope = problem.loss.gradient(problem.Y, solution.u)
        return weighted_mean((np.abs(slope) > 0.0).astype(np.float64), problem.s)
