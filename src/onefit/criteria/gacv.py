"""Generalized approximate cross-validation of the SVM: Wahba, Lin and Zhang 1999.

Leave-one-out of the hinge, (1/n) sum_i (1 - y_i u_i^(-i))_+, differs from the fit's hinge by what
point i does to its own prediction. With f = sum_j a_j K(x_j, .) that is about |a_i| K_ii, counted
twice where the point is on the wrong side by more than the margin and not at all where it is safe:

    GACV = (1/n) [ sum_i (1 - y_i u_i)_+  +  2 sum_{y u < -1} |a_i| K_ii
                                          +  sum_{-1 <= y u <= 1} |a_i| K_ii ].

The smoothed hinge puts the SVM's points at y u = 1 on its corner, and the corner, up to y u = 1 +
delta, counts with the last sum. (In the authors' dual variables |a_i| = alpha_i / (2 n lam).) The
penalty is held fixed, as in total scaling. Derived for the hinge; here for the smoothed hinge,
which lies within delta/4 of it. Cost: a fit and n. When to use: as the cheap baseline of Liu and
Liao (2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit.criteria.base import OfSolution, weighted_mean
from onefit.problem import Problem, Solution

__all__ = ["Gacv"]


@dataclass(frozen=True)
class Gacv(OfSolution):
    """The smoothed hinge of the fit, plus what each point does to itself."""

    name = "gacv"
    losses = ("smoothed_hinge",)

    def of_solution(self, problem: Problem, lam: float, solution: Solution) -> float:
        margin = problem.Y * solution.u
        self_effect = np.abs(solution.a) * problem.K.diagonal[:, None]
        times = np.where(margin < -1.0, 2.0, 1.0)  # beyond the corner a is zero
        return weighted_mean(np.maximum(1.0 - margin, 0.0) + times * self_effect, problem.s)
