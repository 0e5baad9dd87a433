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

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onefit.criteria.base import Criterion, check_loss, weighted_mean
from onefit.criteria.solutions import positive
from onefit.fit import fit
from onefit.problem import Problem, Solution

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

__all__ = ["Gacv", "gacv"]


def gacv(problem: Problem, lam: float, solution: Solution | None = None) -> float:
    """The hinge of the fit, plus what each point does to itself.

    Parameters
    ----------
    problem : Problem
        With the smoothed hinge.
    lam : float
    solution : Solution, default=None
        Of the rows of positive weight, where it is known already.
    """
    check_loss(problem, "gacv", ("smoothed_hinge",))
    kept = positive(problem)
    found = solution or fit(kept, lam)
    margin = kept.Y * found.u
    self_effect = np.abs(found.a) * kept.K.diagonal[:, None]
    times = np.where(margin < -1.0, 2.0, 1.0)  # beyond the corner a is zero
    return weighted_mean(np.maximum(1.0 - margin, 0.0) + times * self_effect, kept.s)


@dataclass(frozen=True)
class Gacv(Criterion):
    """GACV of the smoothed hinge."""

    name = "gacv"
    losses = ("smoothed_hinge",)

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        path = evidence.solutions
        return lambda i: gacv(path.problem, evidence.lams[i], path.at(evidence.lams[i]))
