"""Inverses that come from a Cholesky factor, M = L L'.

They differ in what is kept: L costs least and solves systems; W = L^-1 gives every diagonal block
as a product W_S'W_S; M^-1 itself has all blocks.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.inverse.base import RidgeInverse
from onefit.linalg.arrays import HOST, Arrays

__all__ = ["DenseInverse", "FactorInverse", "TriangularInverse"]


class FactorInverse(RidgeInverse):
    """L, for few right-hand sides; columns of L^-1 are computed when a block needs them.

    Parameters
    ----------
    M : (n, n) array
        Overwritten.
    root, fit_intercept, arrays : as of RidgeInverse
    """

    def __init__(
        self, M: Any, root: Array, fit_intercept: bool = False, arrays: Arrays = HOST
    ) -> None:
        super().__init__(arrays, root, fit_intercept)
        self.lower = arrays.cholesky(M)
        self._known: Any = None
        self._place = np.full(root.size, -1, dtype=np.intp)

    def apply(self, B: Array) -> Array:
        xp = self.arrays
        b = np.asfortranarray(np.reshape(B, (self.root.size, -1)), dtype=self.root.dtype)
        return xp.host(xp.solve_cholesky(self.lower, xp.asarray(b))).reshape(np.shape(B))

    def block(self, rows: Indices) -> Any:
        """W_S'W_S; columns of W are kept for later blocks. On the host only."""
        new = rows[self._place[rows] < 0]
        if new.size:
            unit = np.zeros((self._place.size, new.size), dtype=self.lower.dtype, order="F")
            unit[new, np.arange(new.size)] = 1.0
            solved, known = linalg.solve_lower(self.lower, unit), self._known
            before = 0 if known is None else known.shape[1]
            self._place[new] = before + np.arange(new.size)
            both = solved if known is None else np.column_stack([known, solved])
            self._known = np.asfortranarray(both)
        if self._known is None:
            return np.empty((0, 0), dtype=self.lower.dtype, order="F")
        return linalg.gram(self._known[:, self._place[rows]])


class TriangularInverse(RidgeInverse):
    """W = L^-1, for the diagonal blocks of many folds.

    Parameters
    ----------
    M : (n, n) array
        Overwritten by W.
    root, fit_intercept, arrays : as of RidgeInverse
    """

    def __init__(
        self, M: Any, root: Array, fit_intercept: bool = False, arrays: Arrays = HOST
    ) -> None:
        super().__init__(arrays, root, fit_intercept)
        self.W = arrays.triangular_inverse(arrays.cholesky(M))

    def apply(self, B: Array) -> Array:
        xp = self.arrays
        b = np.asfortranarray(np.reshape(B, (self.root.size, -1)), dtype=self.root.dtype)
        solved = xp.host(xp.matmul(self.W.T, xp.matmul(self.W, xp.asarray(b))))
        return solved.reshape(np.shape(B))

    def block(self, rows: Indices) -> Any:
        # the columns of W are zero above the first of the rows
        return self.arrays.gram(self.arrays.columns(self.W[rows[0] :, :], rows))

    def diagonal(self) -> Array:
        return self.arrays.dots(self.W, self.W)

    @cached_property
    def norm(self) -> float:
        return self.arrays.norm_of_gram(self.W)

    def columns(self, rows: Indices) -> Array:
        xp = self.arrays
        return xp.host(xp.matmul(self.W.T, xp.fortran(xp.columns(self.W, rows))))


class DenseInverse(RidgeInverse):
    """M^-1, for many right-hand sides and many blocks. On the host only.

    Parameters
    ----------
    M : (n, n) array
        Overwritten.
    root, fit_intercept : as of RidgeInverse
    """

    def __init__(self, M: Array, root: Array, fit_intercept: bool = False) -> None:
        super().__init__(HOST, root, fit_intercept)
        self.matrix = linalg.inverse_spd(M)

    def apply(self, B: Array) -> Array:
        return linalg.matmul(self.matrix, B)

    def block(self, rows: Indices) -> Array:
        return linalg.submatrix(self.matrix.T, rows, rows)
