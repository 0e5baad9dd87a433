"""The full-sample solutions along the lambdas, from which leave-out problems start.

Solutions come from the largest lambda down, each a start of the next. Where the points with
curvature have come to rest, with lambdas to come, one decomposition is made for all of these
(onefit.systems.spectral): it serves the full problem and all its folds.
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
    Narrow,
    SharedFactor,
    SharedSpectrum,
    Single,
    System,
    Update,
)

__all__ = ["FullPath", "curvature"]

#: part of the points with curvature that may differ from the last solution for a decomposition to
#: be made, and from that of a decomposition for it to serve (benchmarks/ablation.py)
STEADY, SERVED = 0.02, 0.06
#: with fewer points with curvature, neither following nor decompositions save anything
FEWEST = 200
#: a decomposition costs as much as so many inverses, and helps folds no larger than n / LARGE
PRICE, LARGE = 4.0, 4
#: numbers that decompositions may hold, in n^2
ROOM = 2.0
#: leave-out problems solved side by side; n times this many numbers are held a few times over
WIDTH = 256
#: Newton steps that are counted where systems are iterated: for exact leave-out problems, and for
#: the full one, whose single column makes every step of iteration wait for memory
NEWTON, PATH = 2, 3
#: splits that share a Lambda, so few that a factor of its own serves each of them better
FEW = 2


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
    share : bool, default=False
        Whether to look for decompositions that several lambdas can share.
    rough : bool, default=False
        Whether one step of every leave-out problem will follow, to which a few digits do.

    Attributes
    ----------
    whole : Problem
        The full sample's, with the loss that all rows together have; a loss that takes its width
        from the targets has another on every split.
    spectra : list of lists of SharedSpectrum
        Per target.
    narrow : Narrow or None
        A kernel matrix that may be iterated with.
    iterated : list of bool
        The lambdas at which that pays.
    batches : list of (weights, which, members)
        Splits that are solved side by side: the values of Lambda / lam among them, which of these
        each has, and the splits.
    """

    splits: Splits
    share: bool = False
    rough: bool = False
    whole: Problem = field(init=False)
    spectra: list[list[SharedSpectrum]] = field(init=False)
    narrow: Narrow | None = field(init=False, default=None)
    iterated: list[bool] = field(init=False)
    batches: list[tuple[Array, Indices, Indices]] = field(init=False)
    on_host: bool = field(init=False)

    def __post_init__(self) -> None:
        problem, self.whole = self.problem, self.problem.resolved
        self.on_host = problem.K.arrays.on_host
        if self.share and self.on_host and problem.K.dtype == np.float64:
            self.narrow = Narrow(problem)
        pieces = problem.loss.piecewise_quadratic and bool(problem.s.all())
        self.share = self.share and self.on_host and pieces
        self.spectra = [[] for _ in range(problem.Y.shape[1])]
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
        for turn, i in enumerate(order):
            lam = float(lams[i])
            try:
                start = past[1] if past else None
                known = _known(problem, lam, (starts or {}).get(lam))
                pays = known is None and start is not None and self._pays(problem, lam, start, PATH)
                one = (
                    known
                    or self._along(problem, lam, past, pays)
                    or solve(problem, lam, start=start)
                )
                self.iterated[i] = self._pays(problem, lam, one, 1 if self.rough else NEWTON)
            except linalg.LinAlgError as error:
                found[i] = str(error)
                continue
            found[i] = one
            if self.share and past and not self.iterated[i]:
                self._look_ahead(problem, one, past[1], len(order) - turn + 1)
            past = lam, one
        return found

    def _pays(self, problem: Problem, lam: float, near: Solution, newton: int) -> bool:
        """Whether systems around a solution are iterated at less than a factor costs."""
        narrow, ridge = self.narrow, problem.ridge(lam)
        targets = range(problem.Y.shape[1])
        return narrow is not None and all(
            narrow.pays(curvature(problem, j, near.u[:, j]), ridge, newton) for j in targets
        )

    def _along(
        self, problem: Problem, lam: float, past: tuple[float, Solution] | None, iterated: bool
    ) -> Solution | None:
        """The solution from the last, by iteration or small changes of one factor.

        None if that does not do.
        """
        if not past or not (self.share or iterated):
            return None
        (last, start), parts = past, []
        for j in range(problem.Y.shape[1]):
            at = start.take([j])
            d = curvature(problem, j, at.u[:, 0])
            if np.count_nonzero(d) < FEWEST:
                return None
            ridge = np.array([problem.ridge(lam)])
            system: System
            if iterated and self.narrow is not None:
                system = Single(self.narrow, ridge)
            else:
                system = ColumnUpdate(
                    SharedFactor(problem, d, float(ridge[0]), self.spectrum(d, j), alone=True)
                )
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

    def _look_ahead(self, problem: Problem, found: Solution, before: Solution, rest: int) -> None:
        """Decompose where the points with curvature have come to rest, with lambdas to come."""
        for j, spectra in enumerate(self.spectra):
            d, last = (curvature(problem, j, one.u[:, j]) for one in (found, before))
            p = int(np.count_nonzero(d))
            held = sum(one.size**2 for several in self.spectra for one in several)
            if (
                p >= FEWEST
                and np.count_nonzero(d != last) <= STEADY * p
                and held + p**2 <= ROOM * self.problem.n**2
                and self.spectrum(d, j) is None
                and self._worthwhile(rest)
            ):
                spectra.append(SharedSpectrum(self.problem, d))

    def _worthwhile(self, lams: int) -> bool:
        """Whether a decomposition costs less than the inverses of the lambdas; where folds are
        large, factors of their own cost less than either.
        """
        largest = max((rows.size for rows in self.splits.removed), default=0)
        return lams > PRICE and LARGE * largest <= self.problem.n

    def spectrum(self, d: Array, j: int) -> SharedSpectrum | None:
        """The decomposition that serves a solution of target ``j`` best, if any does."""
        best = min(self.spectra[j], key=lambda one: one.changes(d), default=None)
        if best is None or best.changes(d) > SERVED * best.size:
            return None
        return best

    def _batches(self) -> Iterator[tuple[Array, Indices, Indices]]:
        """Two large groups with one Lambda at a time at most: those may come to hold an inverse."""
        groups = sorted(self.splits.groups, key=lambda group: group[1].size)
        while groups:
            small = [group for group in groups[:-2] if group[1].size <= FEW][: WIDTH // FEW]
            taken = [*small, *groups[-2:]]
            groups = groups[len(small) : -2]
            which = np.repeat(np.arange(len(taken)), [members.size for _, members in taken])
            members = np.concatenate([members for _, members in taken])
            yield np.array([w for w, _ in taken]), which, members

    def systems(self, lam: float, d: Array, j: int) -> Iterator[tuple[System, Indices]]:
        """The splits of target ``j`` side by side, with their systems around curvature d.

        A device has a new factor in less time than the many small steps of an update take.
        """
        if not self.on_host:
            for first in range(0, len(self.splits.removed), WIDTH):
                own = np.arange(first, min(first + WIDTH, len(self.splits.removed)))
                yield Cholesky(self.problem, lam * self.splits.weight[own]), own
            return
        spectrum = self.spectrum(d, j)
        for weights, which, members in self.batches:
            bases = [SharedFactor(self.problem, d, lam * float(w), spectrum) for w in weights]
            for first in range(0, members.size, WIDTH):
                some = slice(first, first + WIDTH)
                yield Update(bases, which[some]), members[some]
