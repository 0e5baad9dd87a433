"""The full-sample solutions along the lambdas, from which leave-out problems start.

Solutions come from the largest lambda down, each a start of the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.fit import solve
from onefit.heldout.splits import Splits
from onefit.losses.base import loss_of
from onefit.newton import Batch, minimise
from onefit.problem import Problem, Solution
from onefit.solve import recomputed, stationary
from onefit.systems import (
    Cholesky,
    ColumnUpdate,
    Float32CG,
    Float32Kernel,
    SharedFactor,
    System,
    Update,
)

__all__ = ["FullPath", "curvature"]

#: with fewer points with curvature, following saves nothing
MIN_CURVED_ROWS = 200
#: leave-out problems solved side by side; n times this many numbers are held a few times over
MAX_COLUMNS = 256
#: Newton steps that float32 CG is expected to take: for exact leave-out problems, and for the full
#: one, whose single column makes every step of iteration wait for memory
FOLD_NEWTON_STEPS, FULL_NEWTON_STEPS = 2, 3
#: splits that share a Lambda, so few that a factor of its own serves each of them better
MAX_ALONE_SPLITS = 2


def curvature(problem: Problem, j: int, u: Array) -> Array:
    """That of the loss of target ``j`` at predictions u, (n,), zero where the weight is."""
    d = loss_of(problem.loss, [j]).curvature(problem.Y[:, j], u)
    return np.where(problem.s > 0, d, np.zeros_like(d))


def _known(problem: Problem, lam: float, given: Array | None) -> Solution | None:
    """The solution that was given, coefficients above intercepts, if it is one."""
    if given is None or not np.isfinite(given).all():
        return None
    a, b = np.asfortranarray(given[:-1], dtype=problem.Y.dtype), given[-1].astype(problem.Y.dtype)
    columns = problem.targets(problem.positive, problem.ridge(lam))
    found = recomputed(columns, Solution(a, b, np.zeros_like(a), np.zeros(b.size), steps=0))
    return found if found.converged else None


@dataclass
class FullPath:
    """Full-sample solutions, and the systems of the leave-out problems around them.

    Parameters
    ----------
    splits : Splits
    follow : bool, default=False
        Whether solutions may follow the last by float32 CG or small changes of one factor.
    rough : bool, default=False
        Whether one step of every leave-out problem will follow, to which a few digits do.

    Attributes
    ----------
    whole : Problem
        The full sample's, with the loss that all rows together have; a loss that takes its width
        from the targets has another on every split.
    float32 : Float32Kernel or None
        A kernel matrix that may be iterated with.
    iterated : list of bool
        The lambdas at which that pays.
    batches : list of (weights, which, members)
        Splits that are solved side by side: the values of Lambda / lam among them, which of these
        each has, and the splits.
    """

    splits: Splits
    follow: bool = False
    rough: bool = False
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
        """That of the splits."""
        return self.splits.problem

    @linalg.overflowing
    def solutions(
        self, lams: Array, starts: Mapping[float, Array] | None = None
    ) -> list[Solution | str]:
        """The solution at every lambda, or why there is none.

        Those of some lambdas may be known (``starts``, coefficients above intercepts).
        """
        found: list[Solution | str] = [""] * len(lams)
        problem, self.iterated = self.whole, [False] * len(lams)
        past: tuple[float, Solution] | None = None
        order = np.argsort(-np.asarray(lams), kind="stable")
        for i in order:
            lam = float(lams[i])
            try:
                start = past[1] if past else None
                known = _known(problem, lam, (starts or {}).get(lam))
                pays = (
                    known is None
                    and start is not None
                    and self._pays(problem, lam, start, FULL_NEWTON_STEPS)
                )
                one = (
                    known
                    or self._along(problem, lam, past, pays)
                    or solve(problem, lam, start=start)
                )
                self.iterated[i] = self._pays(
                    problem, lam, one, 1 if self.rough else FOLD_NEWTON_STEPS
                )
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

        None if that does not do.
        """
        if not past or not (self.follow or iterated):
            return None
        (last, start), parts = past, []
        for j in range(problem.Y.shape[1]):
            at = start.take([j])
            d = curvature(problem, j, at.u[:, 0])
            if np.count_nonzero(d) < MIN_CURVED_ROWS:
                return None
            ridge = np.array([problem.ridge(lam)])
            system: System
            if iterated and self.float32 is not None:
                system = Float32CG(self.float32, ridge)
            else:
                system = ColumnUpdate(SharedFactor(problem, d, float(ridge[0]), alone=True))
            columns = problem.columns(j, np.ones((problem.n, 1), dtype=bool), ridge)
            scaled = at.scaled(np.array([last / lam], dtype=at.u.dtype))
            batch = Batch.start(columns, system, at, scaled)
            minimise(batch)
            batch.recompute()  # the next lambda starts from predictions without drift
            if iterated and not stationary(batch).all():
                batch.step()
                batch.recompute()
            if not stationary(batch).all():
                return None
            parts.append(replace(batch.at, steps=int(batch.steps[0])))
        return Solution.stack(parts)

    def _batches(self) -> Iterator[tuple[Array, Indices, Indices]]:
        """Two large groups with one Lambda at a time at most: those may come to hold an inverse."""
        groups = sorted(self.splits.groups, key=lambda group: group[1].size)
        while groups:
            small = [group for group in groups[:-2] if group[1].size <= MAX_ALONE_SPLITS][
                : MAX_COLUMNS // MAX_ALONE_SPLITS
            ]
            taken = [*small, *groups[-2:]]
            groups = groups[len(small) : -2]
            which = np.repeat(np.arange(len(taken)), [members.size for _, members in taken])
            members = np.concatenate([members for _, members in taken])
            yield np.array([w for w, _ in taken]), which, members

    def systems(self, lam: float, d: Array) -> Iterator[tuple[System, Indices]]:
        """The splits side by side, with their systems around curvature d.

        A device has a new factor in less time than the many small steps of an update take.
        """
        if not self.on_host:
            for first in range(0, len(self.splits.removed), MAX_COLUMNS):
                own = np.arange(first, min(first + MAX_COLUMNS, len(self.splits.removed)))
                yield Cholesky(self.problem, lam * self.splits.weight[own]), own
            return
        for weights, which, members in self.batches:
            bases = [SharedFactor(self.problem, d, lam * float(w)) for w in weights]
            for first in range(0, members.size, MAX_COLUMNS):
                some = slice(first, first + MAX_COLUMNS)
                yield Update(bases, which[some]), members[some]
