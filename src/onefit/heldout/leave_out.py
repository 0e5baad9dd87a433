"""The limit of the influence series, and the Newton steps that make it exact.

**Limit.** The influence series of a fold (onefit.heldout.series) sums to one Newton step of the
leave-fold-out problem from the full solution, at the cost of its first term. For the squared loss
it is exact; for a piecewise quadratic loss it is exact if no training point changed its piece; and
a bound says how wrong it can be otherwise (onefit.certificate).

**Exact.** Where the limit is not exact, further Newton steps follow, all folds side by side, each
step a small change of the full solution's factor (onefit.systems.update). For the smooth losses the
curvature is kept at the full solution and the steps converge linearly; a fold that is too far for
that is refitted from where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices, Mask
from onefit.certificate import EXACT
from onefit.certify import bound, certify
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.path import MAX_COLUMNS, FullPath, curvature
from onefit.heldout.refit import cheap_to_refit, fill_refits, refit_columns, refit_fold
from onefit.heldout.splits import Splits
from onefit.newton import Batch, minimise
from onefit.problem import Problem, Solution
from onefit.systems import Float32CG

__all__ = ["Exact", "Limit"]


class Limit(HeldOutMethod):
    """Order infinity of the influence series, with its error bound: one Newton step per fold.

    Parameters
    ----------
    keep_full : bool, default=False
        Whether the full-sample solutions are kept (:attr:`HeldOutPath.full`), for others to start
        from.
    """

    name = "limit"
    requires = ("value", "gradient", "curvature", "max_curvature", "piece")
    on_device = True

    def __init__(self, keep_full: bool = False) -> None:
        self._keep_full = keep_full

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutNewton:
        self.check(problem)
        return LeaveOutNewton(Splits.sort(problem, folds), self.name, self._keep_full)


class Exact(HeldOutMethod):
    """The limit, taken on by Newton steps until it is the leave-out solution.

    Parameters
    ----------
    starts : dict, default=None
        The full-sample solutions of some lambdas, as in :attr:`HeldOutPath.full`.
    """

    name = "exact"
    requires = Limit.requires
    on_device = True

    def __init__(self, starts: Mapping[float, Array] | None = None) -> None:
        self._starts = starts or {}

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOutNewton:
        self.check(problem)
        return LeaveOutNewton(Splits.sort(problem, folds), self.name, starts=self._starts)


@dataclass
class LeaveOutNewton(Prepared):
    """Phase two of both: one step, or all it takes."""

    splits: Splits
    name: str
    keep_full: bool = False
    starts: Mapping[float, Array] = field(default_factory=dict)

    @linalg.overflowing
    def predict(self, lams: Array) -> HeldOutPath:
        splits, problem = self.splits, self.splits.problem
        path = HeldOutPath.empty(problem, splits.folds, self.name, lams)
        full = FullPath(splits, follow=True, rough=self.name == "limit")
        solutions = full.solutions(path.lams, self.starts)
        if self.keep_full:
            path.full = _kept(solutions, problem)
        self._iterate(path, full, solutions)
        for i in np.argsort(-path.lams, kind="stable"):
            solution = solutions[i]
            if isinstance(solution, str):
                path.fail(i, solution)
                continue
            try:
                if not full.iterated[i]:
                    for j, batch, members in self._batches(full, path.lams[i], solution):
                        self._fill(path, i, j, batch, members, solution)
                fill_refits(path, i, problem, splits.positive, splits.by_refit)
            except linalg.LinAlgError as error:
                path.fail(i, str(error))
        return path.judged(problem)

    def _iterate(self, path: HeldOutPath, full: FullPath, solutions: list[Solution | str]) -> None:
        """The lambdas at which iterating pays, those of a block side by side."""
        every = np.arange(self.splits.by_formula.size)
        order = np.argsort(-path.lams, kind="stable")
        some = order[np.array(full.iterated)[order]]
        most = max(1, MAX_COLUMNS // max(1, every.size))
        blocks = np.split(some, range(most, some.size, most)) if some.size else []
        for j, lams in product(range(full.problem.Y.shape[1]), blocks):
            assert full.float32 is not None
            which, members = (x.ravel() for x in np.meshgrid(lams, every, indexing="ij"))
            ridge = path.lams[which] * self.splits.weight[members]
            mine = [solutions[i].take([j]) for i in lams]
            columns = full.problem.columns(j, self.splits.train(members), ridge)
            here = Solution.stack(mine).take(np.repeat(np.arange(len(lams)), every.size))
            rounds = 1 if self.name == "limit" else 2
            batch = Batch.start(columns, Float32CG(full.float32, ridge, rounds), here)
            (_limit if self.name == "limit" else _solve)(batch)
            for i in lams:
                own = np.flatnonzero(which == i)
                self._fill(path, i, j, batch.take(own), members[own], solutions[i])

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
        self, path: FullPath, lam: float, solution: Solution
    ) -> Iterator[tuple[int, Batch, Indices]]:
        """The splits of every target, some at a time, at their solutions or limits."""
        problem = path.problem
        for j in range(problem.Y.shape[1]):
            full = solution.take([j])
            d = curvature(path.whole, j, full.u[:, 0])
            for system, members in path.systems(lam, d):
                ridge = lam * self.splits.weight[members]
                columns = problem.columns(j, self.splits.train(members), ridge)
                batch = Batch.start(columns, system, full.take(np.zeros(members.size, dtype=int)))
                (_limit if self.name == "limit" else _solve)(batch)
                yield j, batch, members

    def machines(self, lam: float) -> list[Solution]:
        """The machines of all splits as columns, per target; weights must be positive."""
        splits, path = self.splits, FullPath(self.splits)
        (solution,) = path.solutions(np.array([lam]))
        if isinstance(solution, str):
            raise linalg.LinAlgError(solution)
        problem = splits.problem
        zero = Solution.zero(problem.n, len(splits.folds), np.float64)
        found = [zero.copy() for _ in range(problem.Y.shape[1])]
        for j, batch, members in self._batches(path, lam, solution):
            found[j].put(splits.by_formula[members], batch.at)
        for k in splits.by_refit:
            refitted = refit_fold(problem, lam, splits.folds.train[k], splits.folds.test[k])
            for j, one in enumerate(found):
                one.put([k], refitted.solution.take([j]))
        return found


def _kept(solutions: list[Solution | str], problem: Problem) -> Array:
    """Coefficients above intercepts, NaN where there is no solution."""
    kept = np.full((len(solutions), problem.n + 1, problem.Y.shape[1]), np.nan)
    for i, one in enumerate(solutions):
        if isinstance(one, Solution):
            kept[i] = np.vstack([one.a, one.b])
    return kept


def _limit(batch: Batch) -> None:
    """One full step, with its bound."""
    n, before = batch.columns.problem.n, batch.pieces
    batch.step(full=True)
    if not batch.smooth:
        _finish(batch, before)
    certify(batch, ~batch.columns.train, sharpen=cheap_to_refit(n, 1))
    rough = batch.settled & ~(batch.error <= EXACT * batch.columns.scale)
    cheap = rough & cheap_to_refit(n, int(rough.sum()))
    _refit(batch, np.flatnonzero(cheap | _lost(batch)))


def _finish(batch: Batch, before: Array) -> None:
    """Take columns that kept their pieces all the way, where systems are not solved to rounding."""
    moved = ((batch.pieces != before) & batch.columns.train).any(axis=0)
    close = np.flatnonzero(~batch.settled & ~moved)
    if close.size:
        part = batch.take(close)
        minimise(part)
        batch.own()
        batch.put(close, part)


def _solve(batch: Batch) -> None:
    """Newton steps, refinement, and refits for what these do not bring home."""
    columns, n = batch.columns, batch.columns.problem.n
    minimise(batch)
    if batch.system.tolerance > 0.0:
        _polish(batch)
    certify(batch, ~columns.train)
    rough = ~(batch.error <= EXACT * columns.scale)
    cheap = rough & cheap_to_refit(n, int(rough.sum()))
    _refit(batch, np.flatnonzero(cheap | _lost(batch) | (~batch.settled & rough)))


def _polish(batch: Batch) -> None:
    """One step more where what a system left of the last one is too much for the bound."""
    bound(batch, ~batch.columns.train)
    rough = np.flatnonzero(batch.settled & ~(batch.error <= EXACT * batch.columns.scale))
    if rough.size:
        part = batch.take(rough)
        part.step()
        batch.own()
        batch.put(rough, part)


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
