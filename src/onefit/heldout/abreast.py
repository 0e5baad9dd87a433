"""The full problem and its leave-out problems side by side, along falling lambdas.

A full solution need not be known before its folds are begun. All problems start from the line, in
log lam, through their own last two solutions, and where few points have curvature each has a factor
of its own (onefit.heldout.apart): the full problem costs no more than one fold more. How far the
predictions ended from where they started tells which rows to look at at the next lambda
(onefit.heldout.shrink).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout.apart import Apart
from onefit.heldout.base import EXACT
from onefit.heldout.front import Front
from onefit.heldout.full import Target
from onefit.heldout.path import FullPath
from onefit.heldout.point import Former, Point
from onefit.heldout.repair import repair
from onefit.heldout.shrink import approach_near, near
from onefit.problem import Solution

Array = NDArray[Any]
Rows = NDArray[np.intp]

__all__ = ["Abreast"]

#: splits, beyond which the full solution is so close to most of them that it had better come first
MOST = 16
#: points with curvature, beyond which a factor that the folds share costs less
SMALL = 185
#: the ratio of a lambda to the next, beyond which folds start better from the full solution
STRIDE = 2.5
#: how far to go on the line through the last two solutions, in units of the way between them
AHEAD = 0.55
#: how far a row may end from where it starts: so many times as far as it did before, and so many
#: times as far as any row did
SAME_ROW, ANY_ROW = 2.0, 0.2
#: the part of the rows near a kink above which all are taken
MANY = 0.7


@dataclass(frozen=True)
class _Stage:
    """Where all problems of a target were at one lambda, the full one first."""

    full: Target
    at: Point
    ridge: Array
    grown: float


class Abreast:
    """One target along a path with few near splits.

    Attributes
    ----------
    train : (n, 1 + k) bool array
        The rows each problem is trained on: all of positive weight for the full one.
    weight : (1 + k,) array
        Lambda / lam of each.
    past : list
        The last two stages.
    drift : (n,) array, or None
        How far predictions ended from where they started, at the last lambda, in any problem.
    """

    def __init__(self, path: FullPath, j: int, members: Rows) -> None:
        problem = path.problem
        self.path, self.j = path, j
        train = [problem.s[:, None] > 0, ~path.removed[:, members]]
        self.train = np.asfortranarray(np.hstack(train))
        weight = np.concatenate([[problem.ridge(1.0)], path.weight[members]])
        self.weight = weight.astype(problem.Y.dtype)
        self.past: list[_Stage] = []
        self.drift: Array | None = None

    @classmethod
    def of(cls, path: FullPath) -> list[Abreast]:
        """One for every target; none where full solutions had better come before their folds."""
        few = len(path.teams) == 1 and len(path.near) <= MOST
        if not (few and path.problem.loss.piecewise_quadratic):
            return []
        first = path.ahead[-1]
        each = [cls(path, j, path.teams[0][2]) for j in range(path.problem.Y.shape[1])]
        return [] if any(one.crowded(first) for one in each) else each

    def crowded(self, lam: float) -> bool:
        """Whether the full solution at a lambda has many points with curvature."""
        return self.path.target(lam, self.j).active.size > SMALL

    def former(self) -> Former | None:
        """The folds at the last lambda."""
        if not self.past:
            return None
        last, folds = self.past[-1], slice(1, None)
        return Former(last.at.take(folds), last.full, last.ridge[folds], last.grown)

    def remember(self, front: Front) -> None:
        """The folds at a lambda whose full solution came first."""
        full = front.target
        a, u = (
            np.asfortranarray(np.column_stack([one, some]))
            for one, some in ((full.a, front.a), (full.u, front.u))
        )
        at = Point(a, np.concatenate([[full.b], front.b]), u)
        self._keep(_Stage(full, at, full.lam * self.weight, front.grown))
        self.drift = None

    def _keep(self, stage: _Stage) -> None:
        self.past = [*self.past[-1:], stage]

    def ready(self, lam: float) -> bool:
        """Whether a lambda can be begun without its full solution, and had better be."""
        if len(self.past) < 2 or not self.path.is_next(lam):
            return False
        older, newer = (stage.full for stage in self.past)
        if not older.lam > newer.lam > lam >= newer.lam / STRIDE:
            return False
        u = newer.u + self._theta(lam) * (newer.u - older.u)
        curved = self.path.problem.loss.curvature(newer.y, u) > 0.0
        return bool(np.count_nonzero(curved) <= SMALL)

    def _theta(self, lam: float) -> float:
        """How far to go, at most a stretch as long (in log lam) as the last."""
        before, last = (stage.full.lam for stage in self.past)
        return AHEAD * min(1.0, log(last / lam) / log(before / last))

    def solve(self, lam: float) -> tuple[Solution, Front]:
        """The full solution at the next lambda, and the folds."""
        older, newer = self.past
        start = newer.at.beyond(older.at, self._theta(lam))
        front = self._front(lam, start.copy())
        if self.drift is not None:
            reach = SAME_ROW * self.drift + ANY_ROW * self.drift.max()
            rows = near(front, newer.at.u, reach[:, None])
            if 0 < rows.size <= MANY * self.path.problem.n:
                approach_near(front, rows)
        repair(front)
        self.drift = np.where(self.train, np.abs(front.u - start.u), 0.0).max(axis=1)
        full = self._target(lam, front)
        self._keep(_Stage(full, Point(front.a, front.b, front.u), front.ridge, front.grown))
        sure = bool(front.error[0] <= EXACT * front.scale[0])
        solution = Solution(front.a[:, :1], front.b[:1], front.u[:, :1], int(front.steps[0]), sure)
        return solution, replace(front.take(slice(1, None)), target=full)

    def _front(self, lam: float, start: Point) -> Front:
        """All problems where they start, seen from the last stage."""
        problem, last = self.path.problem, self.past[-1]
        target, ridge = self._target(lam, start), lam * self.weight
        factor, ratio = Apart.of(target, self.path.norms, ridge), last.ridge / ridge
        pieces = problem.loss.piece(target.y[:, None], start.u)
        front = Front.at(target, factor, self.train, start, last.at.scaled(ratio), pieces)
        front.grown = last.grown * float(ratio.max())
        return front

    def _target(self, lam: float, at: Point | Front) -> Target:
        """The full problem, the first column."""
        a, b, u = at.a[:, 0], float(at.b[0]), at.u[:, 0]
        return Target.of(self.path.problem, lam, self.j, a, b, u)
