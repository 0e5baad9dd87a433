"""A kernel matrix in memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.gram.base import Gram

__all__ = ["DenseGram"]

#: entries of K that a product reads between two checks for an interrupt by the user
PANEL_ELEMENTS = 2**27


class DenseGram(Gram):
    """A NumPy array.

    Parameters
    ----------
    matrix : (n, n) array
        Symmetric; kept, not copied.
    """

    held = True

    def __init__(self, matrix: Array) -> None:
        self._matrix = np.asarray(matrix)

    @property
    def matrix(self) -> Array:
        """The array itself."""
        return self._matrix

    @cached_property
    def diagonal(self) -> Array:
        """A copy of the diagonal: a method may overwrite the matrix."""
        return np.array(self._matrix.diagonal())

    @property
    def shape(self) -> tuple[int, int]:
        n, m = self._matrix.shape
        return n, m

    @property
    def dtype(self) -> Any:
        return self._matrix.dtype

    def hold(self) -> DenseGram:
        return self

    def matmul(self, V: Array, precise: bool = False) -> Array:
        """K V. Rows of K that meet only zeros in V are not read.

        A large matrix is read in panels, so that the user can interrupt between two of them.
        """
        K, n = self._matrix, self._matrix.shape[0]
        if not precise and K.dtype == V.dtype and n * n <= PANEL_ELEMENTS:
            return linalg.row_product(K, V)
        out = np.zeros((n, V.shape[1]), dtype=np.result_type(K.dtype, V.dtype))
        rows, terms = max(1, PANEL_ELEMENTS // n), self.terms if precise else n
        for first in range(0, n, rows):
            panel = K[first : first + rows].astype(out.dtype, copy=False)
            for begin in range(0, n, terms):
                some = slice(begin, begin + terms)
                out[first : first + rows] += panel[:, some] @ V[some]
        return out

    def block(self, rows: Indices, columns: Indices | None = None) -> Array:
        if columns is None and rows.size == self._matrix.shape[0]:
            return self._matrix
        return linalg.submatrix(self._matrix, rows, rows if columns is None else columns)

    def columns(self, rows: Indices) -> Array:
        return np.ascontiguousarray(self._matrix[rows].T)

    def row_sums(self, squared: bool = False) -> Array:
        K = self._matrix
        if squared:
            return np.asarray(np.einsum("ij,ij->i", K, K))
        size = linalg.HOST.panel_rows
        starts = range(0, K.shape[0], size)
        return np.concatenate([np.abs(K[i : i + size]).sum(axis=1) for i in starts])

    def astype(self, dtype: Any) -> DenseGram:
        return DenseGram(self._matrix.astype(dtype, copy=False))

    def take(self, rows: Indices) -> DenseGram:
        return DenseGram(linalg.submatrix(self._matrix, rows, rows))
