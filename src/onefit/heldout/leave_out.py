"""The limit of the influence series, and the Newton steps that make it exact.

**Limit.** The influence series of a fold (onefit.heldout.series) sums to one Newton step of the
leave-fold-out problem from the full solution, at the cost of its first term. For the squared loss
it is exact; for a piecewise quadratic loss it is exact if no training point changed its piece; and
a bound says how wrong it can be otherwise (onefit.certificate).

**Exact.** Where the limit is not exact, further Newton steps follow, all folds side by side, each
step a small change of the full solution's factor (onefit.systems.update). For the smooth losses the
curvature is kept at the full solution and the steps converge linearly; a fold that is too far for
that is refitted from where it stands. Along a path of lambdas the folds start from the full
solution shifted by how they differed from it at the last lambda.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices, Mask
from onefit.certificate import EXACT
from onefit.certify import certify
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.path import FullPath, curvature
from onefit.heldout.refit import cheap_to_refit, fill_refits, refit_columns, refit_fold
from onefit.heldout.splits import Splits
from onefit.newton import Batch, minimise
from onefit.problem import Columns, Problem, Solution
from onefit.systems import System

__all__ = ["Exact", "Limit"]

#: the most by which solutions are multiplied on their way along the lambdas: their rounding errors
#: grow with it
NEAR = 32.0


class Limit(HeldOutMethod):
    """Order infinity of the influence series, with its error bound: one Newton step per fold."""

    name = "limit"
    requires = ("value", "gradient", "curvature", "max_curvature", "piece")
    on_device = True

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutNewton:
        self.check(problem)
        return LeaveOutNewton(Splits.sort(problem, folds), self.name)


class Exact(Limit):
    """The limit, taken on by Newton steps until it is the leave-out solution."""

    name = "exact"


@dataclass(frozen=True)
class _Last:
    """Leave-out solutions at another lambda, and the full solution there."""

    solution: Solution
    full: Solution
    ridge: Array

    def shifted(self, full: Solution) -> Solution:
        """A full solution, shifted as the leave-out solutions are from theirs."""
        pairs = (
            (getattr(full, x), getattr(self.full, x), getattr(self.solution, x)) for x in "abu"
        )
        a, b, u = (new + (apart - old) for new, old, apart in pairs)
        return Solution(a, b, u, self.solution.drift + self.full.drift + full.drift)


@dataclass
class LeaveOutNewton(Prepared):
    """Phase two of both: one step, or all it takes."""

    splits: Splits
    name: str

    @linalg.overflowing
    def predict(self, lams: Array) -> HeldOutPath:
        splits, problem = self.splits, self.splits.problem
        path = HeldOutPath.empty(problem, splits.folds, self.name, lams)
        full = FullPath(splits, share=True)
        solutions = full.solutions(path.lams)
        last: dict[tuple[int, int], _Last] = {}
        for i in np.argsort(-path.lams, kind="stable"):
            solution = solutions[i]
            if isinstance(solution, str):
                path.fail(i, solution)
                continue
            try:
                mine = full.problems[i]
                for j, batch, members in self._batches(full, mine, path.lams[i], solution, last):
                    self._fill(path, i, j, batch, members, solution)
                fill_refits(path, i, mine, splits.positive, splits.by_refit)
            except linalg.LinAlgError as error:
                path.fail(i, str(error))
        return path.judged(problem)

    def _fill(
        self, path: HeldOutPath, i: int, j: int, batch: Batch, members: Indices, full: Solution
    ) -> None:
        """What a batch of leave-out problems predicts."""
        columns = batch.columns
        changed = batch.pieces != columns.loss.piece(columns.y, full.u[:, [j]])
        moved = (changed & columns.train).sum(axis=0)
        for column, k in enumerate(self.splits.by_formula[members]):
            values = batch.at.u[self.splits.folds.test[k], column]
            path.fill(i, k, j, values, batch.error[column])
            path.moved[i, k] = max(path.moved[i, k], moved[column])
            path.steps[i, k] = max(path.steps[i, k], batch.steps[column])

    def _batches(
        self,
        path: FullPath,
        problem: Problem,
        lam: float,
        solution: Solution,
        last: dict[tuple[int, int], _Last],
    ) -> Iterator[tuple[int, Batch, Indices]]:
        """The splits of every target, some at a time, at their solutions or limits."""
        for j in range(problem.Y.shape[1]):
            full = solution.take([j])
            d = curvature(problem, j, full.u[:, 0])
            for place, (system, members) in enumerate(path.systems(lam, d, j)):
                ridge = lam * self.splits.weight[members]
                columns = problem.columns(j, self.splits.train(members), ridge)
                if self.name == "limit":
                    batch = _limit(_start(columns, system, full, None))
                else:
                    batch = _start(columns, system, full, last.get((j, place)))
                    _solve(batch)
                    last[j, place] = _Last(batch.at, full, ridge)
                yield j, batch, members

    def machines(self, lam: float) -> list[Solution]:
        """The machines of all splits as columns, per target; weights must be positive."""
        splits, path = self.splits, FullPath(self.splits)
        (solution,) = path.solutions(np.array([lam]))
        if isinstance(solution, str):
            raise linalg.LinAlgError(solution)
        problem = path.problems[0]
        zero = Solution.zero(problem.n, len(splits.folds), np.float64)
        found = [zero.copy() for _ in range(problem.Y.shape[1])]
        for j, batch, members in self._batches(path, problem, lam, solution, {}):
            found[j].put(splits.by_formula[members], batch.at)
        for k in splits.by_refit:
            refitted = refit_fold(problem, lam, splits.folds.train[k], splits.folds.test[k])
            for j, one in enumerate(found):
                one.put([k], refitted.solution.take([j]))
        return found


def _start(columns: Columns, system: System, full: Solution, last: _Last | None) -> Batch:
    """At the full solution, or at it shifted as the folds were before, whichever is lower."""
    at = full.take(np.zeros(columns.ridge.size, dtype=np.intp))
    base = at
    if last is not None:
        ratio = (last.ridge / columns.ridge).astype(columns.K.dtype)
        if columns.loss.piecewise_quadratic and (ratio <= NEAR).all():
            base = last.solution.scaled(ratio)
        there = last.shifted(full)
        better = np.flatnonzero(columns.objective(there) < columns.objective(full))
        at.put(better, there.take(better))
    return Batch.start(columns, system, at, base)


def _limit(batch: Batch) -> Batch:
    """One full step, with its bound."""
    n = batch.columns.problem.n
    batch.step(full=True)
    certify(batch, ~batch.columns.train, sharpen=cheap_to_refit(n, 1))
    rough = batch.settled & ~(batch.error <= EXACT * batch.columns.scale)
    cheap = rough & cheap_to_refit(n, int(rough.sum()))
    _refit(batch, np.flatnonzero(cheap | _lost(batch)))
    return batch


def _solve(batch: Batch) -> None:
    """Newton steps, refinement, and refits for what these do not bring home."""
    columns, n = batch.columns, batch.columns.problem.n
    minimise(batch)
    certify(batch, ~columns.train)
    rough = ~(batch.error <= EXACT * columns.scale)
    cheap = rough & cheap_to_refit(n, int(rough.sum()))
    _refit(batch, np.flatnonzero(cheap | _lost(batch) | (~batch.settled & rough)))


def _lost(batch: Batch) -> Mask:
    """Columns without a bound, or at one side of what is flat in b, in whose middle a refit is."""
    rough = np.flatnonzero(batch.settled & ~(batch.error <= EXACT * batch.columns.scale))
    lost = np.isinf(batch.error)
    if rough.size:
        lost[rough] |= batch.take(rough).flat()
    return lost


def _refit(batch: Batch, some: Indices) -> None:
    """Solve some columns afresh, from where they stand."""
    if some.size:
        batch.own()
    for k in some:
        columns = batch.columns.take([k]).double
        found = refit_columns(columns, ~columns.train, batch.at.take([k]))
        found.steps = found.steps + batch.steps[k]
        batch.put([k], found)
