"""The limit of the influence series, and the repair that makes it exact.

**Limit.** The influence series of a fold (onefit.heldout.influence) sums to one Newton step of
the leave-fold-out problem from the full solution, at the cost of its first term. For the
squared loss it is exact; for a piecewise quadratic loss it is exact if no training point
changed its piece; and a bound says how wrong it can be otherwise (onefit.heldout.front).

**Repair.** Where the limit is not exact, further Newton steps follow, with an exact line search
where a full step would not do, all folds side by side, each step a small change of the full
solution's factor (onefit.heldout.downdate). For the smooth losses the curvature is frozen at
the full solution and the steps converge linearly; a fold that is too far for that is refitted
from where it stands. Along a path of lambdas the folds start from the full solution shifted by
how they differed from it at the last lambda.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Folds
from onefit.heldout.base import HeldOut, HeldOutMethod, Prepared
from onefit.heldout.front import Front
from onefit.heldout.path import FullPath
from onefit.heldout.point import Former, Point
from onefit.heldout.refit import refit_fold
from onefit.heldout.repair import refine, repair, sharpen
from onefit.problem import Problem

Array = NDArray[Any]
Rows = NDArray[np.intp]

__all__ = ["Exact", "Limit"]


class Limit(HeldOutMethod):
    """Order infinity of the influence series, with its error bound: one Newton step a fold."""

    name = "limit"
    requires = ("value", "gradient", "curvature", "max_curvature", "piece")

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        path = FullPath(problem, folds, lams, share=True)
        path.finish()
        return _Newton(path, self.name)


class Exact(Limit):
    """The limit, repaired by Newton steps until it is the leave-out solution."""

    name = "exact"


@dataclass
class _Newton(Prepared):
    path: FullPath
    name: str
    former: dict[tuple[int, int], Former] = field(default_factory=dict)

    @linalg.overflowing
    def predict(self, lam: float) -> HeldOut:
        path, folds = self.path, self.path.folds
        values = np.empty((folds.rows.size, path.problem.Y.shape[1]), dtype=path.problem.Y.dtype)
        size = len(folds)
        error = np.zeros((size, values.shape[1]))
        moved, steps = np.zeros(size, np.intp), np.zeros(size, np.intp)
        for j, front, members in self._fronts(float(lam)):
            pieces = front.moved()
            for column, k in enumerate(path.near[i] for i in members):
                place, u = folds.place(k), front.u[folds.test[k], column]
                values[place, j] = u
                error[k, j] = front.error[column] + np.abs(values[place, j] - u).max()
                moved[k] = max(moved[k], pieces[column])
                steps[k] = max(steps[k], front.steps[column])
        for k in path.far:
            train, test = path.positive.train[k], path.positive.test[k]
            found = refit_fold(path.problem, lam, train, test)
            values[folds.place(k)], error[k] = found.values, found.error
            steps[k] = found.solution.steps
        return HeldOut.judged(path.problem, values, folds, self.name, error, moved, steps)

    def _fronts(self, lam: float) -> Iterator[tuple[int, Front, Rows]]:
        """The near splits of every target, some at a time, at their solutions or limits."""
        path = self.path
        for j in range(path.problem.Y.shape[1]):
            target = path.target(lam, j)
            for place, (factors, members) in enumerate(path.fronts(target, j)):
                train = ~path.removed[:, members]
                if self.name == "limit":
                    yield j, self._limit(Front.start(target, factors, train, None)), members
                    continue
                front = Front.start(target, factors, train, self.former.get((j, place)))
                repair(front)
                self._remember(front, j, place)
                yield j, front, members

    def _limit(self, front: Front) -> Front:
        front.step(full=True)
        refine(front)
        sharpen(front)
        for column in np.flatnonzero(np.isinf(front.error)):
            front.refit(int(column))
        return front

    def _remember(self, front: Front, j: int, place: int) -> None:
        point = Point(front.a, front.b, front.u, front.drift)
        self.former[j, place] = Former(point, front.target, front.ridge)
