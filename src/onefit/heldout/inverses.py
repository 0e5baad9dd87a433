"""Ways to hold M^-1, the inverse that leave-out steps change (onefit.heldout.downdate)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg

Array = NDArray[Any]
Rows = NDArray[np.intp]

__all__ = ["Dense", "Factored", "Inverse"]


class Inverse(Protocol):
    """M^-1, as far as leave-out steps need it, and what that costs in operations."""

    @staticmethod
    def price(p: int) -> float:
        """Of having it, p rows in all."""

    @staticmethod
    def price_of_rows(p: int, rows: int) -> float:
        """Of a block of so many rows."""

    def apply(self, B: Array) -> Array:
        """M^-1 B."""

    def block(self, rows: Rows) -> Array:
        """Rows and columns of M^-1 (its lower triangle)."""


class Dense:
    """M^-1 as a matrix."""

    @staticmethod
    def price(p: int) -> float:
        """A factor and its inverse."""
        return float(p) ** 3

    @staticmethod
    def price_of_rows(p: int, rows: int) -> float:
        """They are there."""
        return 0.0

    def __init__(self, M: Array) -> None:
        self.matrix = linalg.inverse_spd(M)

    def apply(self, B: Array) -> Array:
        """M^-1 B."""
        return linalg.matmul(self.matrix, B)

    def block(self, rows: Rows) -> Array:
        """Rows and columns of M^-1."""
        return linalg.submatrix(self.matrix.T, rows, rows)


class Factored:
    """M^-1 by a Cholesky factor, M = L L': for one problem, of which few rows are asked for."""

    @staticmethod
    def price(p: int) -> float:
        """A factor."""
        return float(p) ** 3 / 3.0

    @staticmethod
    def price_of_rows(p: int, rows: int) -> float:
        """A triangular solve, and one more for what enters."""
        return 2.0 * rows * float(p) ** 2

    def __init__(self, M: Array) -> None:
        self.lower = linalg.cholesky(M, overwrite=True)
        self.known = np.empty((M.shape[0], 0), dtype=M.dtype, order="F")
        self.place = np.full(M.shape[0], -1, dtype=np.intp)

    def apply(self, B: Array) -> Array:
        """M^-1 B."""
        return linalg.solve_cholesky(self.lower, np.asfortranarray(B))

    def block(self, rows: Rows) -> Array:
        """Rows and columns of M^-1 (its lower triangle): W'W with W = L^-1 of these columns."""
        new = rows[self.place[rows] < 0]
        if new.size:
            unit = np.zeros((self.place.size, new.size), dtype=self.lower.dtype, order="F")
            unit[new, np.arange(new.size)] = 1.0
            self.place[new] = self.known.shape[1] + np.arange(new.size)
            solved = linalg.solve_lower(self.lower, unit)
            self.known = np.asfortranarray(np.column_stack([self.known, solved]))
        return linalg.gram(self.known[:, self.place[rows]])
