"""The full-sample solutions along the lambdas, and the splits that start from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.certificate import EXACT
from onefit.folds import Folds
from onefit.heldout.downdate import Downdate, Factors
from onefit.heldout.follow import follow
from onefit.heldout.full import Target
from onefit.heldout.stretch import Stretch
from onefit.problem import Problem, Solution
from onefit.solvers import solve

Array = NDArray[Any]

__all__ = ["FullPath"]

#: points of a solution that may differ from those of the last one for a stretch to begin, and from
#: those of a stretch for it to serve
STEADY, SERVED = 0.02, 0.06
#: fewer points with curvature are not worth the trouble
FEWEST = 200
#: a decomposition costs so many inverses
PRICE = 4.0
#: numbers that decompositions may hold, in n^2
ROOM = 2.0
#: leave-out problems solved side by side; n times this many numbers are held a few times over
WIDTH = 256
#: problems that share a Lambda, so few that a factor of its own serves each of them better
FEW = 2


class FullPath:
    """Full-sample solutions along the lambdas, from the largest down, each a start of the next.

    Parameters
    ----------
    share : bool, default=False
        Whether to look for stretches of the path that can share a decomposition.

    Attributes
    ----------
    near : list of int
        Splits that a leave-out formula serves; ``far`` ones keep fewer rows than they remove, or
        test rows they train on, and are refitted.
    removed : (n, len(near)) bool array
        The rows each near split does without, those of weight zero among them.
    weight : (len(near),) array
        Lambda / lam of each near split.
    """

    def __init__(self, problem: Problem, folds: Folds, lams: Array, share: bool = False) -> None:
        self.problem, self.folds = problem, folds
        self.positive = folds.without(np.flatnonzero(problem.s == 0))
        sizes = [rows.size for rows in self.positive.removed]
        fits = [
            2 * size <= problem.n and disjoint
            for size, disjoint in zip(sizes, self.positive.disjoint, strict=True)
        ]
        self.near = [k for k, fit in enumerate(fits) if fit]
        self.far = [k for k, fit in enumerate(fits) if not fit]
        self.removed = np.zeros((problem.n, len(self.near)), dtype=bool)
        for column, k in enumerate(self.near):
            self.removed[self.positive.removed[k], column] = True
        self.weight = np.array([problem.ridge(1.0, self.positive.train[k]) for k in self.near])
        self.stretches: list[list[Stretch]] = [[] for _ in range(problem.Y.shape[1])]
        self.share = share and problem.loss.piecewise_quadratic and bool(problem.s.all())
        self.kept = np.flatnonzero(problem.s)
        self.whole = self.kept.size == problem.n
        self.part = problem if self.whole else problem.take(self.kept)
        self.ahead = sorted({float(lam) for lam in lams})
        self.past: list[tuple[float, Solution]] = []
        self.solutions: dict[float, Solution] = {}
        self.failed: dict[float, str] = {}
        self.teams = list(self._teams())

    def solution(self, lam: float) -> Solution:
        """That at one of the prepared lambdas; the larger ones come first."""
        while lam not in self.solutions:
            if not self.ahead or lam > self.ahead[-1]:
                raise linalg.LinAlgError(self.failed.get(lam, f"lam={lam:g} was not prepared"))
            self._advance()
        return self.solutions[lam]

    def finish(self) -> None:
        """All solutions that are still to come, and the stretches that they can share."""
        while self.ahead:
            self._advance()

    @linalg.overflowing
    def _advance(self) -> None:
        """The solution at the next lambda, or why there is none."""
        lam, last = self.ahead.pop(), self.past[-1] if self.past else None
        try:
            found = self._along(lam, *last) if last and self.share else None
            if found is None:
                # rows of weight zero are predicted, not fitted
                found = solve(self.part, lam, start=_start(self.part, lam, self.past))
                found = _consistent(self.part, found)
        except linalg.LinAlgError as error:
            self.failed[lam] = str(error)
            return
        self._keep(lam, found, found if self.whole else self._spread(found))
        if self.share and last:
            self._look_ahead(lam, found, last[1], len(self.ahead) + 2)

    def _keep(self, lam: float, part: Solution, solution: Solution) -> None:
        self.solutions[lam] = solution
        self.past = [*self.past[-1:], (lam, part)]

    def _spread(self, solution: Solution) -> Solution:
        coef = np.zeros_like(self.problem.Y)
        coef[self.kept] = solution.coef
        decision = self.problem.K[:, self.kept] @ solution.coef + solution.intercept
        return Solution(coef, solution.intercept, decision, solution.steps, solution.converged)

    def _along(self, lam: float, last: float, start: Solution) -> Solution | None:
        """The solution at ``lam`` by small steps from that at ``last``; None if one goes astray."""
        coef, decision = np.empty_like(start.coef), np.empty_like(start.decision)
        intercept, steps = np.empty_like(start.intercept), 1
        for j in range(self.problem.Y.shape[1]):
            target = Target.at(self.problem, last, start, j)
            if target.active.size < FEWEST:
                return None
            front = follow(target, lam, self.stretch(target, j))
            if not (front.settled[0] and front.error[0] <= EXACT * front.scale):
                return None
            coef[:, j], intercept[j], decision[:, j] = front.a[:, 0], front.b[0], front.u[:, 0]
            steps = max(steps, int(front.steps[0]))
        return Solution(coef, intercept, decision, steps)

    def _look_ahead(self, lam: float, found: Solution, before: Solution, rest: int) -> None:
        """Decompose where the points with curvature have come to rest, with lambdas to come."""
        for j, stretches in enumerate(self.stretches):
            target = Target.at(self.problem, lam, found, j)
            p = target.active.size
            moved = np.count_nonzero(Target.at(self.problem, lam, before, j).d != target.d)
            held = sum(one.active.size**2 for several in self.stretches for one in several)
            if (
                p >= FEWEST
                and moved <= STEADY * p
                and held + p**2 <= ROOM * self.problem.n**2
                and self.stretch(target, j) is None
                and self._worthwhile(p, rest)
            ):
                stretches.append(Stretch(target))

    def _worthwhile(self, p: int, lams: int) -> bool:
        """Whether a decomposition costs less than the inverses of the lambdas."""
        inverses = blocks = 0.0
        for _, members in self.groups():
            removed = self.removed[:, members].sum(axis=0) * (p / self.problem.n)
            small, alone = (removed**3).sum() / 3.0, ((p - removed) ** 3).sum() / 3.0
            inverses += min(float(p) ** 3 + small, alone)
            blocks += p * (removed**2).sum() + small
        return bool(PRICE * p**3 + lams * blocks < lams * inverses)

    def stretch(self, target: Target, j: int) -> Stretch | None:
        """The decomposition that serves a solution of target ``j`` best, if any does."""
        best = min(self.stretches[j], key=lambda one: one.changes(target), default=None)
        if best is None or best.changes(target) > SERVED * best.active.size:
            return None
        return best

    def target(self, lam: float, j: int) -> Target:
        """Target ``j`` at one of the prepared lambdas."""
        return Target.at(self.problem, lam, self.solution(float(lam)), j)

    def groups(self) -> list[tuple[float, NDArray[np.intp]]]:
        """The near splits by Lambda / lam: those with one value share a factorisation."""
        return [(float(w), np.flatnonzero(self.weight == w)) for w in np.unique(self.weight)]

    def _teams(self) -> Iterator[tuple[list[float], NDArray[np.intp], NDArray[np.intp]]]:
        """Near splits that are solved side by side: the values of Lambda / lam among them, which of
        these each has, and the splits. Two large groups with one value at a time at most: those may
        come to hold an inverse.
        """
        groups = sorted(self.groups(), key=lambda group: group[1].size)
        while groups:
            small = [group for group in groups[:-2] if group[1].size <= FEW][: WIDTH // FEW]
            taken = [*small, *groups[-2:]]
            groups = groups[len(small) : -2]
            which = np.repeat(np.arange(len(taken)), [members.size for _, members in taken])
            yield [w for w, _ in taken], which, np.concatenate([members for _, members in taken])

    def fronts(self, target: Target, j: int) -> Iterator[tuple[Factors, NDArray[np.intp]]]:
        """The near splits side by side, with their factors."""
        stretch = self.stretch(target, j)
        for weights, which, members in self.teams:
            each = [Downdate(target, target.lam * w, stretch) for w in weights]
            for first in range(0, members.size, WIDTH):
                some = slice(first, first + WIDTH)
                yield Factors(each, which[some]), members[some]


def _consistent(problem: Problem, solution: Solution) -> Solution:
    """The solution with its predictions computed from its coefficients, as error bounds take them.

    A direct solution of the squared loss has them from stationarity, which is as good, but not K a.
    """
    if problem.loss.name != "squared":
        return solution
    decision = linalg.matmul(problem.K, solution.coef) + solution.intercept
    return replace(solution, decision=decision)


def _start(problem: Problem, lam: float, past: list[tuple[float, Solution]]) -> Solution | None:
    """The last solution, or the line in log lam through the last two, whichever is lower."""
    if len(past) < 2:
        return past[-1][1] if past else None
    (before, older), (last, newer) = past
    theta = min(1.0, log(last / lam) / log(before / last))
    pairs = [(getattr(older, x), getattr(newer, x)) for x in ("coef", "intercept", "decision")]
    ahead = Solution(*(new + theta * (new - old) for old, new in pairs))
    better = problem.objective(lam, ahead) < problem.objective(lam, newer)
    return replace(
        newer,
        coef=np.where(better, ahead.coef, newer.coef),
        intercept=np.where(better, ahead.intercept, newer.intercept),
        decision=np.where(better, ahead.decision, newer.decision),
    )
