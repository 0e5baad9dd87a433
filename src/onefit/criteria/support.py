"""The support-vector count: Vapnik 1995.

Leaving out a point with coefficient zero changes nothing, and it is on the right side; so only
support vectors can be leave-one-out errors, and

    LOO error <= (1/n) #{i : a_i != 0}

with C held fixed. For the rounded hinge the support vectors are the points with y u < 1 + delta,
those on its corner and those beyond. (The 2016 paper calls only the points on the corner so: they
are what its inverse is taken of.) Loose, and free of charge after the fit. When to use: as a
bound, or to break ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onefit.criteria.base import Criterion, check_loss, weighted_mean
from onefit.criteria.solutions import positive
from onefit.criteria.span import HINGES
from onefit.fit import fit
from onefit.problem import Problem, Solution

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

__all__ = ["SvCount", "sv_count"]


def sv_count(problem: Problem, lam: float, solution: Solution | None = None) -> float:
    """The part of the points that are support vectors.

    Parameters
    ----------
    problem : Problem
        With a smoothed or squared hinge.
    lam : float
    solution : Solution, default=None
        Of the rows of positive weight, where it is known already.
    """
    check_loss(problem, "sv_count", HINGES)
    kept = positive(problem)
    found = solution or fit(kept, lam)
    # the loss tells, not a: rounding leaves traces in coefficients that are zero
    slope = kept.loss.gradient(kept.Y, found.u)
    return weighted_mean((np.abs(slope) > 0.0).astype(np.float64), kept.s)


@dataclass(frozen=True)
class SvCount(Criterion):
    """The part of the points that are support vectors."""

    name = "sv_count"
    losses = HINGES

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        path = evidence.solutions
        return lambda i: sv_count(path.problem, evidence.lams[i], path.at(evidence.lams[i]))
