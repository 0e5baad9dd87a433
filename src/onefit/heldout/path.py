"""The full-sample solutions along the lambdas, from which leave-out problems start.

Solutions come from the largest lambda down, each a start of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.columns.fit import solve
from onefit.columns.newton import Batch
from onefit.columns.solve import minimised, stationary
from onefit.heldout.splits import Splits
from onefit.inverse.low_rank import LowRank
from onefit.losses.base import loss_of
from onefit.problem import Problem, Solution
from onefit.systems import (
    Cholesky,
    ColumnUpdate,
    Float32CG,
    Float32Kernel,
    KrylovSystem,
    SharedFactor,
    System,
    Update,
)

__all__ = ["FullPath", "LeaveOutGroup", "curvature"]

#: leave-out problems solved side by side; n times this many numbers are held a few times over
#: (benchmarks/constants.py)
MAX_BATCH_COLUMNS = 256
#: Newton steps that float32 CG is expected to take (benchmarks/constants.py)
EXPECTED_NEWTON_STEPS = 2


def curvature(problem: Problem, j: int, u: Array) -> Array:
    """Curvature of the loss of target ``j`` at predictions u, (n,); zero on rows of weight zero."""
    d = loss_of(problem.loss, [j]).curvature(problem.Y[:, j], u)
    return np.where(problem.s > 0, d, np.zeros_like(d))


class LeaveOutGroup(NamedTuple):
    """Leave-out problems of one target that are solved side by side.

    Attributes
    ----------
    j : int
        The target.
    lams, members : (k,) index arrays
        The lambda and the split by formula of each.
    system : System
    """

    j: int
    lams: Indices
    members: Indices
    system: System

    def take(self, columns: Indices) -> LeaveOutGroup:
        """Some of the problems."""
        if columns.size == self.lams.size:
            return self
        lams, members = self.lams[columns], self.members[columns]
        return LeaveOutGroup(self.j, lams, members, self.system.take(columns))

    def start(self, solutions: Sequence[Solution | str]) -> Solution:
        """The full solution at the lambda of each."""
        distinct, which = np.unique(self.lams, return_inverse=True)
        full = [one for i in distinct if isinstance(one := solutions[i], Solution)]
        return Solution.stack([one.take([self.j]) for one in full]).take(which)


def _joined(groups: list[LeaveOutGroup]) -> Iterator[LeaveOutGroup]:
    """Problems of one target, side by side."""
    if len(groups) < 2:
        yield from groups
        return
    lams, members = (np.concatenate([g[k] for g in groups]) for k in (1, 2))
    system = Update.joined([g.system for g in groups if isinstance(g.system, Update)])
    yield LeaveOutGroup(groups[0].j, lams, members, system)


@dataclass
class FullPath:
    """Full-sample solutions, and the systems of the leave-out problems around them.

    Parameters
    ----------
    splits : Splits
    follow : bool, default=False
        Whether solutions may follow the last by float32 CG or small changes of one factor.
    one_step : bool, default=False
        Whether each leave-out problem takes a single step, for which a few digits suffice.
    low_rank : LowRank, default=None
        Where given, systems are solved by conjugate gradients with this preconditioner.

    Attributes
    ----------
    whole : Problem
        The full sample's, with the loss that all rows together have; a loss that takes its width
        from the targets has another on every split.
    float32 : Float32Kernel or None
        For float32 CG, where it may be used.
    iterated : list of bool
        The lambdas at which that pays.
    batches : list of (weights, which, members)
        Splits that are solved side by side: the values of Lambda / lam among them, which of these
        each has, and the splits.
    """

    splits: Splits
    follow: bool = False
    one_step: bool = False
    low_rank: LowRank | None = None
    whole: Problem = field(init=False)
    float32: Float32Kernel | None = field(init=False, default=None)
    iterated: list[bool] = field(init=False)
    batches: list[tuple[Array, Indices, Indices]] = field(init=False)
    on_host: bool = field(init=False)

    def __post_init__(self) -> None:
        problem, self.whole = self.problem, self.problem.resolved
        self.on_host = problem.K.arrays.on_host
        if self.follow and self.on_host and problem.K.dtype == np.float64:
            self.float32 = Float32Kernel(problem)
        pieces = problem.loss.piecewise_quadratic and bool(problem.s.all())
        self.follow = self.follow and self.on_host and pieces
        self.batches = list(self._batches())

    @property
    def problem(self) -> Problem:
        """The problem of the splits."""
        return self.splits.problem

    @linalg.overflowing
    def solutions(self, lams: Array) -> list[Solution | str]:
        """The solution at every lambda, or why it failed."""
        found: list[Solution | str] = [""] * len(lams)
        problem, self.iterated = self.whole, [False] * len(lams)
        past: tuple[float, Solution] | None = None
        solver = "auto" if self.low_rank is None else "iterative"
        order = np.argsort(-np.asarray(lams), kind="stable")
        for i in order:
            lam = float(lams[i])
            try:
                start = past[1] if past else None
                pays = start is not None and self._pays(problem, lam, start, EXPECTED_NEWTON_STEPS)
                one = self._along(problem, lam, past, pays) or solve(
                    problem, lam, solver=solver, start=start
                )
                steps = 1 if self.one_step else EXPECTED_NEWTON_STEPS
                self.iterated[i] = self._pays(problem, lam, one, steps)
            except linalg.LinAlgError as error:
                found[i] = str(error)
                continue
            found[i], past = one, (lam, one)
        return found

    def _pays(self, problem: Problem, lam: float, near: Solution, newton: int) -> bool:
        """Whether systems around a solution are iterated at less than a factor costs."""
        float32, ridge = self.float32, problem.ridge(lam)
        targets = range(problem.Y.shape[1])
        return float32 is not None and all(
            float32.pays(curvature(problem, j, near.u[:, j]), ridge, newton) for j in targets
        )

    def _along(
        self, problem: Problem, lam: float, past: tuple[float, Solution] | None, iterated: bool
    ) -> Solution | None:
        """The solution from the last, by iteration or small changes of one factor.

        None if it does not converge.
        """
        if not past or not (self.follow or iterated):
            return None
        (last, start), parts = past, []
        for j in range(problem.Y.shape[1]):
            at = start.take([j])
            d = curvature(problem, j, at.u[:, 0])
            if not d.any():
                return None
            ridge = np.array([problem.ridge(lam)])
            system: System
            if iterated and self.float32 is not None:
                system = Float32CG(self.float32, ridge)
            else:
                system = ColumnUpdate(SharedFactor(problem, d, float(ridge[0]), alone=True))
            columns = problem.columns(j, np.ones((problem.n, 1), dtype=bool), ridge)
            scaled = at.scaled(np.array([last / lam], dtype=at.u.dtype))
            batch = Batch.start(columns, system, scaled, at.u)
            minimised(batch)  # the next lambda starts from predictions without drift
            if not stationary(batch).all():
                return None
            parts.append(replace(batch.at, steps=int(batch.steps[0])))
        return Solution.stack(parts)

    def _batches(self) -> Iterator[tuple[Array, Indices, Indices]]:
        """At most two groups with one Lambda at a time, since each may need an inverse.

        Splits that are alone with theirs, as some of unequal sizes are, take a factor each and are
        solved side by side with these.
        """
        groups = sorted(self.splits.groups, key=lambda group: group[1].size)
        while groups:
            small = [group for group in groups[:-2] if group[1].size == 1][:MAX_BATCH_COLUMNS]
            taken = [*small, *groups[-2:]]
            groups = groups[len(small) : -2]
            which = np.repeat(np.arange(len(taken)), [members.size for _, members in taken])
            members = np.concatenate([members for _, members in taken])
            yield np.array([w for w, _ in taken]), which, members

    def work(self, lams: Array, solutions: Sequence[Solution | str]) -> Iterator[LeaveOutGroup]:
        """All leave-out problems of lambdas with a full solution, as they are solved together."""
        targets, order = range(self.problem.Y.shape[1]), np.argsort(-lams, kind="stable")
        yield from self._float32_work(lams, order)
        for j in targets:
            waiting: list[LeaveOutGroup] = []
            for i in order:
                full = solutions[i]
                if isinstance(full, str) or self.iterated[i]:
                    continue
                d = curvature(self.whole, j, full.u[:, j])
                for system, members in self.systems(float(lams[i]), d):
                    one = LeaveOutGroup(j, np.full(members.size, i), members, system)
                    if not self._fits(waiting, one):
                        yield from _joined(waiting)
                        waiting = []
                    waiting.append(one)
            yield from _joined(waiting)

    def _fits(self, waiting: list[LeaveOutGroup], one: LeaveOutGroup) -> bool:
        """Whether problems of several lambdas are solved side by side, which saves small steps.

        Together, their inverses must not exceed one of all rows; each keeps its own curvature.
        """
        together = [*waiting, one]
        systems = [group.system for group in together if isinstance(group.system, Update)]
        return (
            self.problem.loss.piecewise_quadratic
            and len(systems) == len(together)
            and sum(group.members.size for group in together) <= MAX_BATCH_COLUMNS
            and sum(base.p**2 for system in systems for base in system.bases) <= self.problem.n**2
        )

    def _float32_work(self, lams: Array, order: Indices) -> Iterator[LeaveOutGroup]:
        """The lambdas at which float32 CG pays, several side by side."""
        if self.float32 is None:
            return
        weight = self.splits.weight
        some = order[np.array(self.iterated)[order]]
        most = max(1, MAX_BATCH_COLUMNS // max(1, weight.size))
        rounds = 1 if self.one_step else 2
        for j, first in product(range(self.problem.Y.shape[1]), range(0, some.size, most)):
            block, every = some[first : first + most], np.arange(weight.size)
            which, members = (x.ravel() for x in np.meshgrid(block, every, indexing="ij"))
            system = Float32CG(self.float32, lams[which] * weight[members], rounds)
            yield LeaveOutGroup(j, which, members, system)

    def systems(self, lam: float, d: Array) -> Iterator[tuple[System, Indices]]:
        """The splits side by side, with their systems around curvature d.

        A device has a new factor in less time than the many small steps of an update take.
        """
        if self.low_rank is not None:
            ridge = lam * self.splits.weight
            yield KrylovSystem(self.problem, ridge, self.low_rank), np.arange(ridge.size)
            return
        if not self.on_host:
            for first in range(0, len(self.splits.removed), MAX_BATCH_COLUMNS):
                own = np.arange(first, min(first + MAX_BATCH_COLUMNS, len(self.splits.removed)))
                yield Cholesky(self.problem, lam * self.splits.weight[own]), own
            return
        for weights, which, members in self.batches:
            bases = [SharedFactor(self.problem, d, lam * float(w)) for w in weights]
            for first in range(0, members.size, MAX_BATCH_COLUMNS):
                some = slice(first, first + MAX_BATCH_COLUMNS)
                yield Update(bases, which[some]), members[some]
