"""One decomposition for every lambda (Tanaka and Imai, IEICE 2019), off the constants.

R K R = Q diag(e) Q' gives M^-1 = Q diag(1/(e + c)) Q' for any c, so the block of a fold is a
symmetric rank update, (M^-1)_SS = A A' with A = Q_S diag((e + c)^-1/2), and the diagonal alone
(leave-one-out) costs n^2 per lambda. A partial eigendecomposition (onefit.linalg.partial_eigh)
gives the same, with M^-1 = Q diag(1/(e + c)) Q' + C C' and a few columns in C.

*Off the constants.* A kernel matrix of positive entries has one eigenvalue far above the
others, whose eigenvector is nearly R 1. Rounding in an eigendecomposition is relative to the
largest eigenvalue, and so are the digits lost at small c. Let v = R 1 / |R 1|, and decompose
the matrix on the complement of v only (onefit.inverse.off_constants takes v to the first axis, and
sets the first row and column aside):

    A = R K R,      w = A v,      omega = v'w,      w_ = w - omega v,
    P_ = Q (diag(1/(e + c)) + W W') Q'   on v's complement.

With an intercept P_ *is* the projected inverse P, its border is R 1. Without, block elimination
gives

    M^-1 = P_ + (v - z)(v - z)' / tau,       z = P_ w_,       tau = omega + c - w_'z,

a sum of positive terms, and the columns of C are those of Q W and (v - z) / sqrt(tau).

*Many lambdas.* The sums over a group of values at all c are combinations of those at a few
(onefit.linalg.shift_interpolation). Where that saves work, the blocks of a fold are made for many c
together, used, and discarded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.inverse.off_constants import OffConstants
from onefit.linalg.partial_eigh import PartialEigh
from onefit.linalg.shift_interpolation import ShiftGroup, interpolate_shifts

__all__ = ["ShiftedSums", "Spectrum"]

#: sums at chosen c that are held at a time (benchmarks/ablation.py)
MAX_CACHED_SUMS = 8


class Spectrum:
    """R K R along v and on its complement, with the targets in these coordinates.

    Parameters
    ----------
    M : (n, n) array
        R K R, column-major; overwritten. The vectors stay on its device, all else is NumPy's.
    root : (n,) array
        The diagonal of R.
    targets : (n, q) array
        R Y.
    fit_intercept : bool
    whole : bool, default=False
        Whether eigenvectors are needed, as for powers of the matrix, and without an intercept those
        of M itself.

    Attributes
    ----------
    partial : PartialEigh
        The decomposition, its values not negative.
    negative : float
        The absolute value of the most negative eigenvalue, before it was set to zero.
    entry : float
        The largest entry of M.
    """

    def __init__(
        self, M: Any, root: Array, targets: Array, fit_intercept: bool, whole: bool = False
    ) -> None:
        self.fit_intercept, self.arrays = fit_intercept, linalg.arrays_of(M)
        self.entry = float(np.abs(self.arrays.diagonal(M)).max())
        self.separate = not fit_intercept and not whole
        self.v, self.omega = root / np.linalg.norm(root), 0.0
        if fit_intercept or self.separate:
            self._decompose_off(whole, M)
        else:
            self._keep(PartialEigh.decompose(M, whole=True))
        border = [self.w] if self.separate else []
        right = np.asfortranarray(np.column_stack([targets, *border]))
        self.projected = self._product(self.vectors.T, right)
        self.along = self.v @ targets

    def _decompose_off(self, whole: bool, M: Any) -> None:
        """Decompose the part on the complement of v, and reflect it back."""
        xp = self.arrays
        off = OffConstants.of(M, self.v)
        self.omega, self.w = off.omega, off.w - off.omega * self.v
        partial = PartialEigh.decompose(M, whole)
        vectors = partial.vectors
        vectors[:, int(np.argmax(np.abs(xp.host(vectors[0, :]))))] = 0.0
        mirror = xp.asarray(off.mirror)
        xp.rank_one(vectors, -2.0 * mirror, xp.matmul(vectors.T, mirror))
        self._keep(partial)

    def _product(self, a: Any, b: Array) -> Array:
        """a b, as NumPy's array."""
        return self.arrays.host(self.arrays.matmul(a, self.arrays.asarray(b)))

    def _keep(self, partial: PartialEigh) -> None:
        self.negative = max(0.0, -partial.smallest)
        values = linalg.without_rounding(partial.values, self.omega)
        self.partial = replace(partial, values=values)

    @property
    def values(self) -> Array:
        """e, ascending."""
        return self.partial.values

    @property
    def vectors(self) -> Array:
        """Q."""
        return self.partial.vectors

    @cached_property
    def rounded(self) -> float:
        """Norm of what was rounded: what was decomposed, the entries of the matrix before, and
        without an intercept the part along v, which tau is a difference of.
        """
        along = abs(self.omega) if self.separate else 0.0
        return float(self.values[-1] + 4.0 * np.sqrt(self.values.size) * self.entry + along)

    def at(self, ridges: Array) -> ShiftedSums:
        """P at every c of ``ridges``."""
        return ShiftedSums.of(self, np.asarray(ridges, dtype=np.float64))

    def rows(self, rows: Indices) -> Array:
        """Some rows of Q, column-major; Q itself for all rows."""
        whole = rows.size == self.v.size and np.array_equal(rows, np.arange(rows.size))
        return self.vectors if whole else self.arrays.fortran(self.arrays.rows(self.vectors, rows))

    def square_sums(self, weights: Array, rows: Indices | None = None) -> Array:
        """sum_j Q_ij^2 weights_jl for some rows i (all by default) and every l."""
        rows = np.arange(self.v.size) if rows is None else rows
        weights = np.asfortranarray(weights, dtype=self.values.dtype)
        xp = self.arrays
        size = xp.panel_rows
        pieces = (rows[first : first + size] for first in range(0, rows.size, size))
        return np.concatenate(
            [xp.square_sums(xp.rows(self.vectors, piece), weights) for piece in pieces]
        )


@dataclass(frozen=True)
class ShiftedSums:
    """P at several c.

    Attributes
    ----------
    spectrum : Spectrum
    ridges : (L,) array
        c.
    damped : (L, n) array
        1 / (e + c).
    inside : (L, q + p, n) array
        P R Y and C in the coordinates of Q, without the part along v; then z, if v is separate.
    tau : (L,) array
    lacking : float
        The largest amount by which tau was raised.
    """

    spectrum: Spectrum
    ridges: Array
    damped: Array
    inside: Array
    tau: Array
    lacking: float

    @classmethod
    def of(cls, spectrum: Spectrum, ridges: Array) -> ShiftedSums:
        """Solve in the coordinates of Q."""
        values, projected = spectrum.values, spectrum.projected
        damped = 1.0 / (values + ridges[:, None].astype(values.dtype))
        right = damped[:, None, :] * projected.T
        W = spectrum.partial.corrections(ridges)
        right += (W @ projected).transpose(0, 2, 1) @ W
        tau, lacking = np.ones(ridges.size), 0.0
        if spectrum.separate:
            right, z = right[:, :-1], right[:, -1:]
            tau = spectrum.omega + ridges - z[:, 0] @ projected[:, -1]
            lacking = float((ridges - tau).max(initial=0.0))
            tau = np.maximum(tau, ridges)
            W = np.concatenate([W, z], axis=1)
        return cls(spectrum, ridges, damped, np.concatenate([right, W], axis=1), tau, lacking)

    @property
    def changed(self) -> float:
        """Norm of the change of the matrix: negative eigenvalues set to zero."""
        return max(self.spectrum.negative, self.lacking)

    @property
    def norm(self) -> Array:
        """Norm of M^-1, (L,), with the negative eigenvalues of M."""
        left = self.ridges - self.changed
        with np.errstate(divide="ignore"):
            return np.where(left > 0.0, 1.0 / left, np.inf)

    def solved(self, rows: Indices, Q: Array | None = None) -> tuple[Array, Array]:
        """Rows of P R Y, (L, m, q), and of C, (L, m, p); those of Q may be passed."""
        spectrum, (L, _, n) = self.spectrum, self.inside.shape
        q, Q = spectrum.along.size, spectrum.rows(rows) if Q is None else Q
        found = spectrum._product(Q, self.inside.reshape(-1, n).T).reshape(Q.shape[0], L, -1)
        found = found.transpose(1, 0, 2)
        alpha, C = found[:, :, :q], found[:, :, q:]
        if not spectrum.separate:
            return alpha, C
        root = np.sqrt(self.tau).astype(found.dtype)[:, None]
        constants = (spectrum.v[rows] - C[:, :, -1]) / root
        z = self.inside[:, -1]
        share = (spectrum.along - z @ spectrum.projected[:, :q]) / root
        alpha = alpha + constants[:, :, None] * share[:, None, :].astype(found.dtype)
        return alpha, np.concatenate([C[:, :, :-1], constants[:, :, None]], axis=2)

    def leave_one_out(self, rows: Indices) -> Array:
        """P R Y over the diagonal of P on some rows, (L, m, q): R (y - u) of leave-one-out."""
        alpha, C = self.solved(rows)
        diagonal = self.spectrum.square_sums(self.damped.T, rows).T + np.square(C).sum(axis=2)
        return np.asarray(alpha / diagonal[:, :, None])

    def columns(self, rows: Indices) -> Array:
        """P_{.S} at the only c."""
        spectrum = self.spectrum
        inside = self.damped[0][:, None] * spectrum.vectors[rows].T
        _, C = self.solved(np.arange(spectrum.v.size))
        found = linalg.matmul(spectrum.vectors, np.asfortranarray(inside))
        return np.asarray(found + C[0] @ C[0][rows].T)

    def pieces(self, size: int) -> Iterator[tuple[slice, ShiftedSums]]:
        """The c in pieces, such that blocks of ``size`` rows fit into memory."""
        L, n = self.damped.shape
        number = max(1, int(np.ceil(L * size**2 / n**2)))
        ends = np.linspace(0, L, number + 1).round().astype(int)
        for first, last in pairwise(ends):
            some = slice(int(first), int(last))
            yield (
                some,
                replace(
                    self,
                    ridges=self.ridges[some],
                    damped=self.damped[some],
                    inside=self.inside[some],
                    tau=self.tau[some],
                ),
            )

    @cached_property
    def _groups(self) -> list[ShiftGroup] | None:
        """Groups of eigenvalues with their chosen c; None if one c at a time is less work."""
        return (
            interpolate_shifts(self.spectrum.values, self.ridges) if self.ridges.size > 1 else None
        )

    @property
    def interpolated(self) -> Array:
        """The largest relative error of a weight 1/(e + c) in the blocks, (L,)."""
        errors = [one.error for one in self._groups or ()]
        return np.max(errors, axis=0, initial=0.0) if errors else np.zeros(self.ridges.size)

    @cached_property
    def _sums(self) -> list[_Sums]:
        """The sums that give the blocks at all c; over all values if that is less work."""
        values = self.spectrum.values
        if self._groups is None:
            return [_Sums(slice(None), list(np.sqrt(self.damped)))]
        found = []
        for one in self._groups:
            for first in range(0, one.chosen.size, MAX_CACHED_SUMS):
                some = slice(first, first + MAX_CACHED_SUMS)
                roots = [np.sqrt(self.damped[c, one.group]) for c in one.chosen[some]]
                combine = np.asfortranarray(one.combine[some], dtype=values.dtype)
                found.append(_Sums(one.group, roots, combine))
        return found

    def blocks(self, Q: Array, rows: Indices) -> tuple[list[Array], Array]:
        """P_SS at every c (lower triangles), and P R Y on S."""
        sums, L, b = self._sums, self.ridges.size, Q.shape[0]
        held = max(len(some.roots) for some in sums) if sums[0].combine is not None else 0
        room = np.zeros((L + held, b, b), dtype=Q.dtype)
        columns, turned = room.reshape(-1, b * b).T, list(room.transpose(0, 2, 1))
        scratch = np.empty_like(Q, order="F")
        for turn, some in enumerate(sums):
            out = turned if some.combine is None else turned[L:]
            for root, square in zip(some.roots, out, strict=False):
                part = scratch[:, : root.size]
                np.multiply(Q[:, some.group], root, out=part)
                linalg.gram(part, rows=True, out=square)
            if some.combine is not None:
                made = columns[:, L : L + len(some.roots)]
                linalg.accumulate(columns[:, :L], made, some.combine, fresh=turn == 0)
        alpha, C = self.solved(rows, Q)
        for block, correction in zip(turned, C, strict=False):
            linalg.add_gram(block, np.ascontiguousarray(correction))
        return turned[:L], alpha


@dataclass(frozen=True)
class _Sums:
    """Sums over a group of values: (e + c)^(-1/2) of each, and how they combine."""

    group: slice
    roots: list[Array]
    combine: Array | None = None
