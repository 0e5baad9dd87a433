"""One decomposition for every lambda (Tanaka and Imai, IEICE 2019), torn, off the constants.

R K R = Q diag(e) Q' gives M^-1 = Q diag(1/(e + c)) Q' for any c, so the block of a fold is a
symmetric rank update, (M^-1)_SS = A A' with A = Q_S diag((e + c)^-1/2), and the diagonal alone
(leave-one-out) costs n^2 a lambda. An eigendecomposition that stops short of its last part
(onefit.torn) does as well: it leaves M^-1 = Q diag(1/(e + c)) Q' + C C' with a few columns in C.

*Off the constants.* A kernel matrix of positive entries has one eigenvalue far above the
others, whose eigenvector is nearly R 1. Rounding in an eigendecomposition is relative to the
largest eigenvalue, and so are the digits lost at small c. Let v = R 1 / |R 1|, and decompose
the matrix on the complement of v only (a Householder reflection takes v to the first axis; the
first row and column are set aside):

    A = R K R,      w = A v,      omega = v'w,      w_ = w - omega v,
    P_ = Q (diag(1/(e + c)) + W W') Q'   on v's complement.

With an intercept P_ *is* the projected inverse P, its border is R 1. Without, block elimination
gives

    M^-1 = P_ + (v - z)(v - z)' / tau,       z = P_ w_,       tau = omega + c - w_'z,

a sum of positive terms, and the columns of C are those of Q W and (v - z) / sqrt(tau).

*The cut.* Write P_ - Q W W'Q' = (I - vv' - H)/c with H = Q diag(e/(e + c)) Q'. Values e below
roundoff times c, or below roundoff times the largest, add less to H than rounding does: they are
dropped, and the rank of the update falls from n to the number of those that matter. Where
I - H_SS is nearly singular that form cancels (its Cholesky pivots tell), and the sum over all of
them is taken instead.

*Many lambdas.* The sums over a group of values at all c are combinations of those at a few
(onefit.heldout.shares). Where that saves work, the blocks of a fold are made for many c together,
used, and forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, Prepared
from onefit.heldout.leaveout import Inverse, Layout, LeaveOut
from onefit.heldout.shares import Share, shares
from onefit.problem import Problem
from onefit.solvers.direct import without_rounding
from onefit.torn import Torn

Array = NDArray[Any]

__all__ = ["Eigen"]

#: a Cholesky pivot of I - H_SS below this has cancelled too many digits
PIVOT = 1e-5
#: sums at chosen c that are held at a time
HELD = 8
#: numbers that the blocks of a fold may take for several c together, in n^2
ROOM = 1.0


class Eigen(HeldOutMethod):
    """Exact k-fold of the squared loss for all lambdas by one eigendecomposition a kernel."""

    name = "eigen"
    losses = ("squared",)

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        layout = Layout.arrange(problem, folds)
        return _Eigen(layout, _decompose(layout), lams)


@dataclass(frozen=True)
class _Complement:
    """A = R K R in the directions v and off v."""

    v: Array
    omega: float
    w: Array
    torn: Torn

    @property
    def values(self) -> Array:
        return self.torn.values

    @property
    def vectors(self) -> Array:
        return self.torn.vectors


def _decompose(layout: Layout) -> _Complement:
    """Reflect v to the first axis, set that axis aside, decompose the rest, reflect back."""
    M = layout.matrix()
    v = layout.root / np.linalg.norm(layout.root)
    w = linalg.matmul(M, v)
    omega = float(v @ w)
    mirror = v.copy()
    mirror[0] += np.copysign(1.0, v[0])
    mirror /= np.linalg.norm(mirror)
    _reflect(M, mirror)
    M[0, :] = M[:, 0] = 0.0
    torn = Torn.decompose(M)
    vectors = torn.vectors
    vectors[:, np.argmax(np.abs(vectors[0]))] = 0.0
    linalg.rank_one(vectors, -2.0 * mirror, linalg.matmul(vectors.T, mirror))
    torn = replace(torn, values=without_rounding(torn.values, omega))
    return _Complement(v, omega, w - omega * v, torn)


def _reflect(M: Array, mirror: Array) -> None:
    """(I - 2hh') M (I - 2hh') in place: a symmetric update of rank two."""
    p = linalg.matmul(M, mirror)
    q = 2.0 * (p - (mirror @ p) * mirror)
    linalg.rank_one(M, -mirror, q)
    linalg.rank_one(M, -q, mirror)


@dataclass
class _Eigen(LeaveOut):
    layout: Layout
    parts: _Complement
    lams: Array
    name = "eigen"

    def __post_init__(self) -> None:
        layout, parts = self.layout, self.parts
        right = np.column_stack([layout.targets, parts.w])
        self.projected = linalg.matmul(parts.vectors.T, np.asfortranarray(right))
        self.solved = self._tabulate()
        self.diagonals: dict[float, Array] = {}
        self.residuals: dict[tuple[float, int], Array] = {}
        if layout.one_row_each:
            self._tabulate_diagonals()
            return
        sizes = [np.arange(layout.root.size)[rows].size for rows in layout.removed]
        largest = parts.values.size * max(sizes, default=0)
        self.scratch = np.empty(largest, dtype=parts.values.dtype)
        for weight, members in layout.together.items():
            self._tabulate_residuals(np.array(self.lams, dtype=np.float64) * weight, members)

    def inverse(self, ridge: float) -> _Spectral:
        return _Spectral(self, ridge)

    def largest(self) -> float:
        """Of what was decomposed: rounding is relative to that."""
        return float(self.parts.values[-1])

    def rows_of(self, i: int) -> Array:
        """The rows of Q that the i-th near split removes."""
        return np.asarray(self.parts.vectors[self.layout.removed[i]])

    def _tabulate(self) -> dict[float, Array]:
        """P_ [R Y, w_] and Q W for every c at once."""
        ridges = self.layout.ridges(self.lams)
        if not ridges:
            return {}
        n, width = self.projected.shape[0], self.projected.shape[1] + self.parts.torn.tears.shape[1]
        columns = np.empty((n, width * len(ridges)), self.projected.dtype, order="F")
        places = [slice(j * width, (j + 1) * width) for j in range(len(ridges))]
        tears = self.parts.torn.corrections(np.array(ridges))
        for place, c, W in zip(places, ridges, tears, strict=True):
            columns[:, place] = self.coefficients(c, W)
        solved = linalg.matmul(self.parts.vectors, columns)
        return {c: solved[:, place] for c, place in zip(ridges, places, strict=True)}

    def coefficients(self, ridge: float, W: Array) -> Array:
        """P_ [R Y, w_] and Q W at one c, in the columns of Q."""
        values = self.parts.values
        damped = self.projected / (values + values.dtype.type(ridge))[:, None]
        return np.hstack([damped + W @ (W.T @ self.projected), W])

    def _tabulate_diagonals(self) -> None:
        """The diagonal of P_ for every c of a leave-one-out at once; uses up the eigenvectors."""
        parts, ridges = self.parts, self.layout.ridges(self.lams)
        damped = 1.0 / (parts.values[:, None] + np.array(ridges))
        np.square(parts.vectors, out=parts.vectors)
        sums = linalg.matmul(parts.vectors, np.asfortranarray(damped, dtype=parts.values.dtype))
        self.diagonals = {ridge: sums[:, j] for j, ridge in enumerate(ridges)}

    def _tabulate_residuals(self, ridges: Array, members: list[int]) -> None:
        """Formula (*) for as many c at once as there is room for, where that is less work."""
        n, rows = self.parts.values.size, [self.rows_of(i).shape[0] for i in members]
        pieces = np.ceil(ridges.size * max(rows, default=0) ** 2 / (ROOM * n**2))
        for some in np.array_split(np.sort(ridges), max(1, int(pieces))):
            groups = shares(self.parts.values, some) if some.size > 1 else None
            if groups is not None:
                self._solve_together(members, groups, some)

    def _solve_together(self, members: list[int], groups: list[Share], ridges: Array) -> None:
        """Formula (*) at some c, from the sums of all of them."""
        inverses = [self.inverse(float(ridge)) for ridge in ridges]
        sums = list(_sums(self.parts.values, groups, ridges))
        largest = max(self.rows_of(i).shape[0] for i in members) ** 2
        room = np.zeros(largest * (ridges.size + HELD), dtype=self.parts.values.dtype)
        for i in members:
            blocks = self._blocks(i, sums, ridges.size, room)
            for inverse, block in zip(inverses, blocks, strict=True):
                inverse.correct(i, block)
                key = inverse.ridge, i
                self.residuals[key] = linalg.solve_spd(block, inverse.alpha(i), overwrite=True)

    def _blocks(self, i: int, sums: list[_Sums], ridges: int, room: Array) -> list[Array]:
        """Q_S diag(1/(e + c)) Q_S' of one fold at every c (lower triangles), in a given room."""
        rows = np.asfortranarray(self.rows_of(i))
        b = rows.shape[0]
        columns = room[: b * b * (ridges + HELD)].reshape((b * b, -1), order="F")
        total, held = columns[:, :ridges], columns[:, ridges:]
        squares = [column.reshape((b, b), order="F") for column in columns.T]
        total[...] = 0.0
        for some in sums:
            part = rows[:, some.group]
            for square, root in zip(squares[ridges:], some.roots, strict=False):
                self.weighted_gram(part, root, out=square)
            linalg.accumulate(total, held[:, : len(some.roots)], some.combine)
        return squares[:ridges]

    def weighted_gram(self, rows: Array, root: Array, out: Array | None = None) -> Array:
        """Q_S diag(root^2) Q_S' over some of the eigenvectors (lower triangle)."""
        scaled = self.scratch[: rows.size].reshape(rows.shape, order="F")
        np.multiply(rows, root, out=scaled)
        return linalg.gram(scaled, rows=True, out=out)


@dataclass(frozen=True)
class _Sums:
    """Some of the sums over a group of values: (e + c)^(-1/2) of each, and how they combine."""

    group: slice
    roots: list[Array]
    combine: Array


def _sums(values: Array, groups: list[Share], ridges: Array) -> Iterator[_Sums]:
    """As many at a time as are held."""
    for share in groups:
        for first in range(0, share.chosen.size, HELD):
            some = slice(first, first + HELD)
            chosen = ridges[share.chosen[some]].astype(values.dtype)
            roots = [1.0 / np.sqrt(values[share.group] + c) for c in chosen]
            yield _Sums(
                share.group, roots, np.asfortranarray(share.combine[some], dtype=values.dtype)
            )


class _Spectral(Inverse):
    def __init__(self, state: _Eigen, ridge: float) -> None:
        self.state, self.ridge, self.parts = state, ridge, state.parts
        self.damped = 1.0 / (state.parts.values + ridge)
        self.fit_intercept = state.layout.problem.fit_intercept
        epsilon = float(np.finfo(self.damped.dtype).eps)
        values = state.parts.values
        self.seen = int(
            np.searchsorted(values, max(256.0 * epsilon * ridge, 2.0 * epsilon * values[-1]))
        )

    @cached_property
    def solved(self) -> Array:
        """P_ [R Y, w_] and Q W."""
        known = self.state.solved.get(self.ridge)
        if known is not None:
            return known
        W = self.parts.torn.correction(self.ridge)
        coefficients = np.asfortranarray(self.state.coefficients(self.ridge, W))
        return linalg.matmul(self.parts.vectors, coefficients)

    @cached_property
    def correction(self) -> Array:
        """C, whose first column is that of the constants (none with an intercept)."""
        targets = self.state.layout.targets.shape[1]
        tears = self.solved[:, targets + 1 :]
        if self.fit_intercept:
            return tears
        z = self.solved[:, targets]
        tau = self.parts.omega + self.ridge - float(self.parts.w @ z)
        constants = (self.parts.v - z) / sqrt(max(tau, self.ridge))
        return np.column_stack([constants, tears])

    @cached_property
    def all(self) -> Array:
        """P R Y."""
        targets = self.state.layout.targets
        solved = self.solved[:, : targets.shape[1]]
        if self.fit_intercept:
            return solved
        constants = self.correction[:, 0]
        return np.asarray(solved + np.outer(constants, constants @ targets))

    def alpha(self, i: int) -> Array:
        return np.asarray(self.all[self.state.layout.removed[i]])

    def diagonal(self) -> tuple[Array, Array]:
        squares = np.square(self.correction).sum(axis=1)
        return self.state.diagonals[self.ridge] + squares, self.all

    def residuals(self, i: int) -> Array:
        known = self.state.residuals.get((self.ridge, i))
        return super().residuals(i) if known is None else known

    def block(self, i: int) -> Array:
        block = self._uncorrected(i)
        self.correct(i, block)
        return block

    def correct(self, i: int, block: Array) -> None:
        """Add C_S C_S' in place."""
        linalg.add_gram(block, self.correction[self.state.layout.removed[i]])

    def _uncorrected(self, i: int) -> Array:
        """Q_S diag(1/(e + c)) Q_S', by the form with the smaller rank that does not cancel."""
        whole = slice(None)
        if 10 * self.seen < self.damped.size:
            return self._update(i, self.damped, whole)
        seen = slice(self.seen, None)
        block = self._update(i, self.parts.values[seen] * self.damped[seen], seen)
        v = self.parts.v[self.state.layout.removed[i]]
        block += np.outer(v, v)
        np.negative(block, out=block)
        block[np.diag_indices_from(block)] += 1.0
        if _cancelled(block):
            return self._update(i, self.damped, whole)
        block /= self.ridge
        return block

    def _update(self, i: int, weight: Array, columns: slice) -> Array:
        """Q_S diag(weight) Q_S' over some of the eigenvectors."""
        return self.state.weighted_gram(self.state.rows_of(i)[:, columns], np.sqrt(weight))


def _cancelled(block: Array) -> bool:
    """Whether I - H_SS has lost too many digits, told by its Cholesky pivots."""
    try:
        factor = linalg.cholesky(block)
    except linalg.LinAlgError:
        return True
    return bool(np.diagonal(factor).min() ** 2 < PIVOT)
