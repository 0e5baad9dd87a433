"""Orthogonal matrices as products of Householder reflections, which LAPACK applies unformed.

They come from two factorisations: QR, for the orthogonal complement of some columns, and the
reduction of a symmetric matrix to tridiagonal form.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onefit._types import Array
from onefit.linalg.blas import column_major, lapack_routine

__all__ = ["Complement", "Reflections", "tridiagonal"]

#: columns moved, and columns reduced, at a time
_MOVED_COLUMNS, _REDUCED_COLUMNS = 64, 16
#: reflections that LAPACK makes or applies together: more room for them is not used
_APPLIED_COLUMNS = 32
#: numbers that LAPACK keeps for itself when it applies them
_LAPACK_WORK_ELEMENTS = 65 * 64


class Reflections(NamedTuple):
    """H, a product of Householder reflections.

    Attributes
    ----------
    columns : (n, d) array
        The vector of the j-th reflection below the diagonal of column j.
    scales : (d,) array
    """

    columns: Array
    scales: Array

    def times(self, block: Array, first: int) -> Array:
        """H times a matrix that is zero but for a block of rows: what follows them is not read."""
        last = first + block.shape[0]
        out = np.zeros((self.columns.shape[0], block.shape[1]), dtype=block.dtype, order="F")
        out[first:last] = block
        part = Reflections(self.columns[:, :last], self.scales[:last])
        return part.apply(out, "L", "N", overwrite=True)

    def coordinates(self, a: Array) -> Array:
        """H'a."""
        return self.apply(a, "L", "T")

    def apply(self, a: Array, side: str, trans: str, overwrite: bool = False) -> Array:
        """H or H' (``trans`` "N" or "T") times a, from the left or the right (``side``)."""
        size = _APPLIED_COLUMNS * max(a.shape) + _LAPACK_WORK_ELEMENTS
        out, _, _ = lapack_routine("ormqr", a)(
            side, trans, self.columns, self.scales, a, size, overwrite_c=overwrite
        )
        return np.asarray(out)


class Complement(NamedTuple):
    """The orthogonal complement of some columns, in the basis of their Householder reflections.

    Attributes
    ----------
    reflections : Reflections
        H of the d columns: its last n - d columns are the basis Q.
    """

    reflections: Reflections

    @classmethod
    def of(cls, a: Array) -> Complement:
        """The complement of the columns of a (n, d), which must be independent."""
        size = _APPLIED_COLUMNS * max(1, a.shape[1])
        columns, scales, _, _ = lapack_routine("geqrf", a)(np.array(a, order="F"), lwork=size)
        return cls(Reflections(np.asarray(columns), np.asarray(scales)))

    def coordinates(self, a: Array) -> Array:
        """Q'a."""
        H = self.reflections
        return np.asfortranarray(H.coordinates(a)[H.scales.size :])

    def vectors(self, a: Array) -> Array:
        """Q a."""
        H = self.reflections
        out = np.zeros((H.columns.shape[0], a.shape[1]), dtype=a.dtype, order="F")
        out[H.scales.size :] = a
        return H.apply(out, "L", "N", overwrite=True)

    def congruent(self, a: Array) -> Array:
        """Q'a Q of a symmetric matrix, both triangles."""
        H = self.reflections
        whole = H.apply(H.coordinates(a), "R", "N", overwrite=True)
        return np.asfortranarray(whole[H.scales.size :, H.scales.size :])


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
