"""One driver for leave-out problems: start, minimise, certify, refit what is left, fill the path.

A leave-out problem is a column of Newton's method (onefit.columns.newton) that starts at the full
solution (onefit.heldout.path). The methods are policies of this driver:

=========  ==========================  =============================  ==========================
method     steps                       systems                        certificate
=========  ==========================  =============================  ==========================
limit      one, in full                small changes of one factor,   refined
                                       or float32 CG
exact      until the minimum           the same                       refined
iterative  until the minimum           conjugate gradients            unchanged
influence  terms of the series         one factor                     none
refit      from zero, every split      a factor per step              refined
=========  ==========================  =============================  ==========================

Splits that no formula serves (onefit.heldout.splits) are refitted by every method. So are columns
that end without a certificate, where that is cheap, and where nothing else leads to a minimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices, Mask
from onefit.columns.certify import bound, certify
from onefit.columns.newton import Batch, minimise
from onefit.heldout.base import HeldOutPath, Prepared
from onefit.heldout.path import FullPath, LeaveOutGroup
from onefit.heldout.refit import cheap_to_refit, finished, refit_columns, refit_fold
from onefit.heldout.splits import Splits
from onefit.inverse.low_rank import LowRank
from onefit.problem import Columns, Solution
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.systems import System

__all__ = ["LeaveOutDriver", "Policy"]

#: largest factor by which solutions are multiplied from lambda to lambda, and their rounding
#: errors with them
MAX_SCALING_RATIO = 32.0
#: leave-out solutions at the last lambda and their Lambda, by target and splits
_Last = dict[tuple[int, bytes], tuple[Solution, Array]]


@dataclass(frozen=True)
class Policy:
    """How a method solves leave-out problems.

    Attributes
    ----------
    name : str
        The method's.
    one_step : bool
        One Newton step in full, instead of all that it takes.
    low_rank : LowRank or None
        The preconditioner, where systems are solved by conjugate gradients in double precision:
        K need not be held then, and bounds are not refined.
    wanted : float
        The bound above which columns are solved again, in units of the targets' scale.
    order : int or None
        Of the influence series.
    """

    name: str
    one_step: bool = False
    low_rank: LowRank | None = None
    wanted: float = EXACT_TOLERANCE
    order: int | None = None


@dataclass
class LeaveOutDriver(Prepared):
    """Phase two of the methods that start from full solutions, or from zero.

    Parameters
    ----------
    splits : Splits
    policy : Policy
    """

    splits: Splits
    policy: Policy
    #: whether full solutions may follow each other along the lambdas
    follow: ClassVar[bool] = True

    @linalg.overflowing
    def predict(self, lams: Array) -> HeldOutPath:
        splits, policy, problem = self.splits, self.policy, self.splits.problem
        path = HeldOutPath.empty(problem, splits.folds, policy.name, lams, policy.order)
        if splits.by_formula.size:
            full = self._full_path(self.follow)
            solutions = full.solutions(path.lams)
            for i, one in enumerate(solutions):
                if isinstance(one, str):
                    path.fail(i, one)
            self.leave_out(path, full, solutions)
        return finished(path, splits, again=False)

    def leave_out(self, path: HeldOutPath, full: FullPath, solutions: list[Solution | str]) -> None:
        """Fill the splits by formula, at the lambdas that have a full solution."""
        last: _Last = {}
        for group in full.work(path.lams, solutions):
            work = group.take(np.flatnonzero(path.done[group.lams]))
            if not work.lams.size:
                continue
            try:
                self._fill(path, work, self._solved(work, path.lams, solutions, last))
            except linalg.LinAlgError:
                for i in np.unique(work.lams):  # one lambda that fails spares the others
                    with path.attempt([int(i)]):
                        one = work.take(np.flatnonzero(work.lams == i))
                        self._fill(path, one, self._solved(one, path.lams, solutions, last))

    def models(self, lam: float) -> list[Solution]:
        """The models of all splits as columns, per target."""
        splits, problem, lams = self.splits, self.splits.problem, np.array([lam])
        full = self._full_path(follow=False)
        solutions = full.solutions(lams)
        if isinstance(solutions[0], str):
            raise linalg.LinAlgError(solutions[0])
        zero = Solution.zero(problem.n, len(splits.folds), np.float64)
        found = [zero.copy() for _ in range(problem.Y.shape[1])]
        for work in full.work(lams, solutions):
            batch, _ = self._solved(work, lams, solutions, {})
            found[work.j].put(splits.by_formula[work.members], batch.at)
        for k in splits.by_refit:
            refitted = refit_fold(problem, lam, splits.folds.train[k], splits.folds.test[k])
            for j, one in enumerate(found):
                one.put([k], refitted.solution.take([j]))
        return found

    @cached_property
    def _working(self) -> Splits:
        """The splits of the problem that is solved: in double precision by conjugate gradients."""
        if self.policy.low_rank is None:
            return self.splits
        return replace(self.splits, problem=self.splits.problem.double)

    def _full_path(self, follow: bool) -> FullPath:
        policy = self.policy
        follow = follow and policy.low_rank is None
        return FullPath(self._working, follow, policy.one_step, policy.low_rank)

    def _solved(
        self, work: LeaveOutGroup, lams: Array, solutions: list[Solution | str], last: _Last
    ) -> tuple[Batch, Indices]:
        """Leave-out problems, solved or at their limits, and how many rows changed piece."""
        splits, policy = self._working, self.policy
        ridge = lams[work.lams] * splits.weight[work.members]
        columns = splits.problem.columns(work.j, splits.train(work.members), ridge)
        key = work.j, work.members.tobytes()
        batch = _from_last(columns, work.system, last.get(key))
        if batch is None:
            batch = Batch.start(columns, work.system, work.start(solutions))
        before, tested = batch.pieces, splits.tested(work.members)
        if policy.one_step:
            _one_step(batch)
        else:
            _all_steps(batch, tested, policy.wanted)
        if policy.low_rank is None:
            sharpen = policy.one_step and cheap_to_refit(columns.problem.n, 1)
            certify(batch, tested, sharpen=sharpen)
        else:
            bound(batch, tested)
        _refit(batch, tested, self._to_refit(batch))
        if not (columns.K.arrays.on_host or policy.one_step or batch.smooth):
            last[key] = batch.at, ridge
        return batch, ((batch.pieces != before) & columns.train).sum(axis=0)

    def _to_refit(self, batch: Batch) -> Indices:
        """Columns without a certificate where refits are cheap, or nothing else leads to one.

        One step is not expected to reach the minimum, unless it settled there.
        """
        columns, policy = batch.columns, self.policy
        rough = ~(batch.error <= policy.wanted * columns.scale)
        if policy.one_step:
            rough &= batch.settled
        cheap = columns.K.held and cheap_to_refit(columns.problem.n, int(rough.sum()))
        again = rough & cheap
        if policy.low_rank is None:
            again |= _lost(batch) | (rough & ~batch.settled)
        return np.flatnonzero(again)

    def _fill(self, path: HeldOutPath, work: LeaveOutGroup, solved: tuple[Batch, Indices]) -> None:
        """Predictions of a batch of leave-out problems."""
        batch, moved = solved
        for column, i in enumerate(work.lams):
            k = self.splits.by_formula[work.members[column]]
            values = batch.at.u[self.splits.folds.test[k], column]
            path.fill(i, k, work.j, values, batch.error[column])
            path.moved[i, k] = max(path.moved[i, k], moved[column])
            path.steps[i, k] = max(path.steps[i, k], batch.steps[column])


def _from_last(
    columns: Columns, system: System, last: tuple[Solution, Array] | None
) -> Batch | None:
    """Leave-out problems at their solutions of the last lambda, for a piecewise quadratic loss.

    On a device, where every step takes a factor, that saves most of the steps (benchmarks/gpu.py,
    part svm); on the host, where a step is a small change of a shared factor, it gains nothing.
    """
    if last is None:
        return None
    ratio = last[1] / columns.ridge
    if (ratio > MAX_SCALING_RATIO).any():
        return None
    return Batch.start(columns, system, last[0].scaled(ratio.astype(columns.K.dtype)), last[0].u)


def _one_step(batch: Batch) -> None:
    """One step in full.

    Where systems are not solved to rounding, columns that kept their pieces take further steps.
    """
    before = batch.pieces
    batch.step(full=True)
    if batch.smooth:
        return
    moved = ((batch.pieces != before) & batch.columns.train).any(axis=0)
    close = np.flatnonzero(~batch.settled & ~moved)
    if close.size:
        part = batch.take(close)
        minimise(part)
        batch.put(close, part)


def _all_steps(batch: Batch, tested: Mask, wanted: float) -> None:
    """Steps to the minimum, and one more where a system left too much of the last for the bound."""
    minimise(batch)
    if batch.system.tolerance == 0.0:
        return
    bound(batch, tested)
    rough = np.flatnonzero(batch.settled & ~(batch.error <= wanted * batch.columns.scale))
    if rough.size:
        part = batch.take(rough)
        part.step()
        batch.put(rough, part)


def _lost(batch: Batch) -> Mask:
    """Columns without a bound, or at an end of a flat interval, of which a refit has the middle."""
    rough = np.flatnonzero(batch.settled & ~(batch.error <= EXACT_TOLERANCE * batch.columns.scale))
    lost = np.isinf(batch.error)
    if rough.size:
        lost[rough] |= batch.take(rough).flat()
    return lost


def _refit(batch: Batch, tested: Mask, some: Indices) -> None:
    """Solve some columns again, from their present values."""
    for k in some:
        columns = batch.columns.take([k]).double
        found = refit_columns(columns, tested[:, [k]], batch.at.take([k]))
        found.steps = found.steps + batch.steps[k]
        batch.put([k], found)
