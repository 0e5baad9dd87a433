"""From the solution at one lambda to that at the next.

The next solution of a path is that of a leave-out problem that leaves nothing out, and the steps
towards it are small changes of a factor too (onefit.heldout.downdate): the points with curvature
change by many in the first step, when a new factor is due, and by few in those that follow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onefit.heldout.downdate import Downdate, Factors
from onefit.heldout.front import Front
from onefit.heldout.full import Target
from onefit.heldout.inverses import Factored
from onefit.heldout.point import Former, Point
from onefit.heldout.repair import MAX_STEPS, refine
from onefit.heldout.stretch import Stretch

__all__ = ["follow"]

#: points that may have changed before a new factor costs less than another change of the old one
CHANGED = 0.08


def follow(target: Target, lam: float, stretch: Stretch | None) -> Front:
    """Newton steps at ``lam`` from a solution at another lambda, as the one column of a front.

    Every row has a positive weight.
    """
    problem = target.problem
    ridge = problem.ridge(lam)
    factor = Downdate(target, ridge, stretch, Factored)
    drift = np.array([target.drift])
    start = Point(target.a[:, None], np.array([target.b]), target.u[:, None], drift)
    former = Former(start, target, np.array([problem.ridge(target.lam)]))
    everyone = np.ones((problem.n, 1), dtype=bool)
    front = Front.start(target, _alone(factor), everyone, former)
    for _ in range(MAX_STEPS):
        front.step()
        if front.settled[0]:
            break
        d = problem.loss.curvature(target.y, front.u[:, 0])
        if np.count_nonzero(d != factor.d) > CHANGED * factor.p:
            here = replace(target, d=d, active=np.flatnonzero(d > 0.0))
            factor = Downdate(here, ridge, hold=Factored)
            front.factor = _alone(factor)
    front.recompute()  # the next lambda starts from a solution that knows of no rounding
    refine(front)
    return front


def _alone(factor: Downdate) -> Factors:
    return Factors([factor], np.zeros(1, dtype=np.intp))
