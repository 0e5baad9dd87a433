"""Orthogonal matrices as products of Householder reflections, which LAPACK applies unformed.

Two factorisations give them: QR, for what is orthogonal to some columns, and the reduction of a
symmetric matrix to tridiagonal form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onefit._types import Array
from onefit.linalg.blas import MAX_DIVIDE_AND_CONQUER_ROWS, column_major, lapack_routine

__all__ = ["Complement", "Reflections", "tridiagonal"]

#: columns moved, and columns reduced, at a time
_MOVED_COLUMNS, _REDUCED_COLUMNS = 64, 16
#: reflections applied at a time: few of them to small matrices, products with which need no packing
_REFLECTIONS = {True: 8, False: 32}
#: numbers that LAPACK keeps for itself when it applies them
_LAPACK_WORK_ELEMENTS = 65 * 64


class Complement(NamedTuple):
    """What is orthogonal to some columns, in the basis that Householder reflections give.

    Attributes
    ----------
    columns : (n, d) array
        The vector of the j-th reflection below the diagonal of column j.
    scales : (d,) array
    """

    columns: Array
    scales: Array

    @classmethod
    def of(cls, a: Array) -> Complement:
        """The complement of the columns of a (n, d), which must be independent."""
        size = 64 * max(1, a.shape[1])
        columns, scales, _, _ = lapack_routine("geqrf", a)(np.array(a, order="F"), lwork=size)
        return cls(np.asarray(columns), np.asarray(scales))

    def coordinates(self, a: Array) -> Array:
        """Q'a, for the basis Q (n, n - d)."""
        return np.asfortranarray(self._reflect(a, "L", "T")[self.scales.size :])

    def vectors(self, a: Array) -> Array:
        """Q a."""
        out = np.zeros((self.columns.shape[0], a.shape[1]), dtype=a.dtype, order="F")
        out[self.scales.size :] = a
        return self._reflect(out, "L", "N")

    def congruent(self, a: Array) -> Array:
        """Q'a Q of a symmetric matrix, both triangles."""
        half = self._reflect(a, "L", "T")
        return np.asfortranarray(
            self._reflect(half, "R", "N")[self.scales.size :, self.scales.size :]
        )

    def _reflect(self, a: Array, side: str, trans: str) -> Array:
        size = 64 * max(a.shape) + _LAPACK_WORK_ELEMENTS
        out, _, _ = lapack_routine("ormqr", a)(side, trans, self.columns, self.scales, a, size)
        return np.asarray(out)


class Reflections(NamedTuple):
    """H, a product of Householder reflections.

    Attributes
    ----------
    columns : (n, n) array
        The vector of the j-th reflection below the diagonal of column j.
    scales : (n,) array
    """

    columns: Array
    scales: Array

    def times(self, block: Array, first: int) -> Array:
        """H times a matrix that is zero but for a block of rows: what follows them is not read."""
        n, last, width = self.columns.shape[0], first + block.shape[0], block.shape[1]
        out = np.zeros((n, width), dtype=block.dtype, order="F")
        out[first:last] = block
        size = _REFLECTIONS[n <= MAX_DIVIDE_AND_CONQUER_ROWS] * width + _LAPACK_WORK_ELEMENTS
        out, _, _ = lapack_routine("ormqr", out)(
            "L", "N", self.columns[:, :last], self.scales[:last], out, size, overwrite_c=1
        )
        return np.asarray(out)

    def coordinates(self, a: Array) -> Array:
        """H'a."""
        size = (
            _REFLECTIONS[a.shape[0] <= MAX_DIVIDE_AND_CONQUER_ROWS] * a.shape[1]
            + _LAPACK_WORK_ELEMENTS
        )
        out, _, _ = lapack_routine("ormqr", a)("L", "T", self.columns, self.scales, a, size)
        return np.asarray(out)


def tridiagonal(a: Array, overwrite: bool = False) -> tuple[Array, Array, Reflections]:
    """Diagonal and subdiagonal of T, and H orthogonal, with a = H T H' (lower triangle of a).

    The reflections that sytrd leaves below the subdiagonal are those that ormqr expects below the
    diagonal of a matrix whose columns stand one further to the right: no memory beside a's own.
    """
    n = a.shape[0]
    reduced, diagonal, beside, tau, _ = lapack_routine("sytrd", a)(
        column_major(a), lower=1, lwork=_REDUCED_COLUMNS * n, overwrite_a=overwrite
    )
    for last in range(n, 1, -_MOVED_COLUMNS):
        first = max(1, last - _MOVED_COLUMNS)
        reduced[:, first:last] = reduced[:, first - 1 : last - 1]
    reduced[:, 0] = 0.0
    H = Reflections(np.asarray(reduced), np.concatenate([np.zeros(1, tau.dtype), tau]))
    return np.asarray(diagonal), np.asarray(beside), H
