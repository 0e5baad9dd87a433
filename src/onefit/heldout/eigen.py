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
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
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

    @linalg.overflowing
    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        layout = Layout.arrange(problem, folds)
        return _Eigen(layout, _decompose(layout), lams)


@dataclass(frozen=True)
class _Complement:
    """A = R K R in the directions v and off v.

    ``negative`` is how far below zero its eigenvalues went off v, before they were set to zero,
    ``entry`` the largest entry of A.
    """

    v: Array
    omega: float
    w: Array
    torn: Torn
    negative: float
    entry: float

    @property
    def values(self) -> Array:
        return self.torn.values

    @property
    def vectors(self) -> Array:
        return self.torn.vectors


def _decompose(layout: Layout) -> _Complement:
    """Reflect v to the first axis, set that axis aside, decompose the rest, reflect back."""
    M = layout.matrix()
    entry = float(np.abs(np.einsum("ii->i", M)).max())
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
    negative = max(0.0, -torn.smallest)
    torn = replace(torn, values=without_rounding(torn.values, omega))
    return _Complement(v, omega, w - omega * v, torn, negative, entry)


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
        border = [] if layout.problem.fit_intercept else [parts.w]
        right = np.column_stack([layout.targets, *border])
        self.changed = parts.negative
        self.projected = linalg.matmul(parts.vectors.T, np.asfortranarray(right))
        self.ridges = np.array(layout.ridges(self.lams))
        self.table = self.tabulate(self.ridges)
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
        """Of what was decomposed, and of what was rounded before: the entries of the whole matrix,
        and without an intercept the part along v, which tau is a difference of.
        """
        parts = self.parts
        along = 0.0 if self.layout.problem.fit_intercept else abs(parts.omega)
        return float(parts.values[-1] + 4.0 * np.sqrt(parts.values.size) * parts.entry + along)

    @cached_property
    def amplified(self) -> Array:
        """Errors of an eigendecomposition are relative to the largest row of R Y."""
        layout, folds = self.layout, self.layout.folds
        root = np.empty(folds.n)
        root[layout.order] = layout.root
        smallest = np.minimum.reduceat(root[folds.rows], folds.offsets[:-1])
        return np.asarray(root.max() / smallest)

    def rows_of(self, i: int) -> Array:
        """The rows of Q that the i-th near split removes."""
        return np.asarray(self.parts.vectors[self.layout.removed[i]])

    def seen(self, ridge: float) -> int:
        """Where the values begin that are not dropped at one c."""
        values = self.parts.values
        epsilon = float(np.finfo(values.dtype).eps)
        return int(np.searchsorted(values, epsilon * max(256.0 * ridge, 2.0 * values[-1])))

    def tabulate(self, ridges: Array) -> Array:
        """The rows of (P R Y)' and of C' at every c, (L, q + p, n)."""
        (n, q), parts = self.layout.targets.shape, self.parts
        damped = 1.0 / (parts.values + ridges[:, None].astype(parts.values.dtype))
        right = damped[:, None, :] * self.projected.T
        columns = np.concatenate([right, parts.torn.corrections(ridges)], axis=1)
        right, W = np.split(columns, [right.shape[1]], axis=1)
        right += (W @ self.projected).transpose(0, 2, 1) @ W
        solved = linalg.matmul(parts.vectors, columns.reshape(-1, n).T).T.reshape(columns.shape)
        if not self.layout.problem.fit_intercept:
            # in place of z, the column of the constants
            constants = solved[:, q]
            tau = parts.omega + ridges - constants @ parts.w
            lacking = float((ridges - tau).max(initial=0.0))
            self.changed = max(self.changed, lacking)
            np.subtract(parts.v, constants, out=constants)
            constants /= np.sqrt(np.maximum(tau, ridges))[:, None]
            solved[:, :q] += (constants @ self.layout.targets)[:, :, None] * constants[:, None]
        return solved

    def _tabulate_diagonals(self) -> None:
        """The diagonal of P_ for every c of a leave-one-out at once; uses up the eigenvectors."""
        parts, ridges = self.parts, self.ridges
        damped = 1.0 / (parts.values[:, None] + ridges)
        np.square(parts.vectors, out=parts.vectors)
        sums = linalg.matmul(parts.vectors, np.asfortranarray(damped, dtype=parts.values.dtype))
        self.diagonals = {float(ridge): sums[:, j] for j, ridge in enumerate(ridges)}

    def _tabulate_residuals(self, ridges: Array, members: list[int]) -> None:
        """Formula (*) for as many c at once as there is room for, unless values are dropped."""
        n, rows = self.parts.values.size, [self.rows_of(i).shape[0] for i in members]
        pieces = np.ceil(ridges.size * max(rows, default=0) ** 2 / (ROOM * n**2))
        for some in np.array_split(np.sort(ridges), max(1, int(pieces))):
            if some.size < 2:
                continue
            groups = shares(self.parts.values, some)
            if groups is None and _worth_dropping(self.seen(some[-1]), n):
                continue
            # if a block is singular they are left to `predict`, which tells which c it is
            with suppress(linalg.LinAlgError):
                self._solve_together(members, groups, some)

    def _solve_together(
        self, members: list[int], groups: list[Share] | None, ridges: Array
    ) -> None:
        """Formula (*) at some c, from the sums of all of them."""
        q, places = self.layout.targets.shape[1], np.searchsorted(self.ridges, ridges)
        sums = list(_sums(self.parts.values, groups, ridges))
        largest = max(self.rows_of(i).shape[0] for i in members) ** 2
        held = max(len(some.roots) for some in sums) if groups else 0
        room = np.zeros((ridges.size + held, largest), dtype=self.parts.values.dtype)
        found = []
        for i in members:
            part = self.table[:, :, self.layout.removed[i]][places]
            blocks = self._blocks(i, sums, ridges.size, room)
            for block, correction in zip(blocks, part[:, q:], strict=True):
                linalg.add_gram(block, correction.T)
            solved = [
                linalg.solve_spd(block, alpha.T, overwrite=True)
                for block, alpha in zip(blocks, part[:, :q], strict=True)
            ]
            found.append(np.array(solved))
        keys = [(float(ridge), members[0]) for ridge in ridges]
        self.residuals |= zip(keys, np.concatenate(found, axis=1), strict=True)

    def _blocks(self, i: int, sums: list[_Sums], ridges: int, room: Array) -> list[Array]:
        """Q_S diag(1/(e + c)) Q_S' of one fold at every c (lower triangles), in a given room."""
        rows = np.asfortranarray(self.rows_of(i))
        b = rows.shape[0]
        squares = room.ravel()[: room.shape[0] * b**2].reshape(-1, b, b)
        columns = squares.reshape(-1, b * b).T
        turned = list(squares.transpose(0, 2, 1))
        for turn, some in enumerate(sums):
            part = rows[:, some.group]
            if some.combine is None:
                self.weighted_grams(part, some.roots, turned)
                continue
            self.weighted_grams(part, some.roots, turned[ridges:])
            held = columns[:, ridges : ridges + len(some.roots)]
            linalg.accumulate(columns[:, :ridges], held, some.combine, fresh=turn == 0)
        return turned[:ridges]

    def weighted_grams(self, rows: Array, roots: list[Array], out: list[Array]) -> None:
        """Q_S diag(root^2) Q_S' over some of the eigenvectors, for many roots (lower triangle)."""
        scaled = self.scratch[: rows.size].reshape(rows.shape, order="F")
        for root, square in zip(roots, out, strict=False):
            np.multiply(rows, root, out=scaled)
            linalg.gram(scaled, rows=True, out=square)


@dataclass(frozen=True)
class _Sums:
    """Some of the sums over a group of values: (e + c)^(-1/2) of each, and how they combine."""

    group: slice
    roots: list[Array]
    combine: Array | None = None


def _sums(values: Array, groups: list[Share] | None, ridges: Array) -> Iterator[_Sums]:
    """As many at a time as are held; of all values at every c if there are no groups."""
    ridges = ridges.astype(values.dtype)
    if groups is None:
        yield _Sums(slice(None), [1.0 / np.sqrt(values + c) for c in ridges])
        return
    for share in groups:
        for first in range(0, share.chosen.size, HELD):
            some = slice(first, first + HELD)
            roots = [1.0 / np.sqrt(values[share.group] + c) for c in ridges[share.chosen[some]]]
            yield _Sums(
                share.group, roots, np.asfortranarray(share.combine[some], dtype=values.dtype)
            )


class _Spectral(Inverse):
    def __init__(self, state: _Eigen, ridge: float) -> None:
        self.state, self.ridge, self.parts = state, ridge, state.parts
        self.changed = state.changed

    @cached_property
    def table(self) -> Array:
        """(P R Y)' and C'."""
        place = int(np.searchsorted(self.state.ridges, self.ridge))
        if place < self.state.ridges.size and self.state.ridges[place] == self.ridge:
            return np.asarray(self.state.table[place])
        return np.asarray(self.state.tabulate(np.array([self.ridge]))[0])

    @property
    def all(self) -> Array:
        """P R Y."""
        return self.table[: self.state.layout.targets.shape[1]].T

    @property
    def correction(self) -> Array:
        """C, whose first column is that of the constants (none with an intercept)."""
        return self.table[self.state.layout.targets.shape[1] :].T

    @property
    def norm(self) -> float:
        """Of the matrix itself, before its negative eigenvalues were set to zero."""
        return 1.0 / (self.ridge - self.changed) if self.ridge > self.changed else np.inf

    @cached_property
    def damped(self) -> Array:
        return 1.0 / (self.parts.values + self.ridge)

    def alpha(self, i: int) -> Array:
        return np.asarray(self.all[self.state.layout.removed[i]])

    def diagonal(self) -> tuple[Array, Array]:
        squares = np.square(self.correction).sum(axis=1)
        return self.state.diagonals[self.ridge] + squares, self.all

    def residuals(self, members: list[int]) -> Array:
        known = self.state.residuals.get((self.ridge, members[0]))
        return super().residuals(members) if known is None else known

    def block(self, i: int) -> Array:
        block = self._uncorrected(i)
        linalg.add_gram(block, self.correction[self.state.layout.removed[i]])
        return block

    def _uncorrected(self, i: int) -> Array:
        """Q_S diag(1/(e + c)) Q_S', by the form with the smaller rank that does not cancel."""
        whole = slice(None)
        first = self.state.seen(self.ridge)
        if not _worth_dropping(first, self.damped.size):
            return self._update(i, self.damped, whole)
        seen = slice(first, None)
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
        rows = self.state.rows_of(i)[:, columns]
        return linalg.gram(np.asfortranarray(rows * np.sqrt(weight)), rows=True)


def _worth_dropping(values: int, n: int) -> bool:
    return 10 * values >= n


def _cancelled(block: Array) -> bool:
    """Whether I - H_SS has lost too many digits, told by its Cholesky pivots."""
    try:
        factor = linalg.cholesky(block)
    except linalg.LinAlgError:
        return True
    return bool(np.diagonal(factor).min() ** 2 < PIVOT)
