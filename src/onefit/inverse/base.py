"""The interface of all forms of a ridge inverse, and the projection of the intercept.

With M = R K R + c I, R = diag(r), the model of least squares is R^-1 a = M^-1 R y without an
intercept. An intercept b adds the border r = R 1 to the system,

    M x + b r = R y,    r'x = 0,

and eliminating b leaves x = P R y with the projected inverse

    P = M^-1 - h h',          h = M^-1 r / sqrt(r'M^-1 r).

That is all an intercept does: every formula that has M^-1 without an intercept has P with one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.linalg.arrays import Arrays

__all__ = ["RidgeInverse", "solve_block"]


class RidgeInverse(ABC):
    """M^-1 and P of M = R K R + c I.

    Attributes
    ----------
    arrays : Arrays
        The device of matrices of n rows and columns; those with a few columns are NumPy's.
    root : (n,) array
        r.
    fit_intercept : bool
        Whether P projects r out.
    """

    def __init__(self, arrays: Arrays, root: Array, fit_intercept: bool) -> None:
        self.arrays, self.root, self.fit_intercept = arrays, root, fit_intercept

    @abstractmethod
    def apply(self, B: Array) -> Array:
        """M^-1 B, for a vector or for some columns."""

    @abstractmethod
    def block(self, rows: Indices) -> Any:
        """(M^-1)_SS, at least its lower triangle, on the device of K; may be overwritten."""

    def columns(self, rows: Indices) -> Array:
        """A selection of columns of M^-1."""
        unit = np.zeros((self.root.size, rows.size), dtype=self.root.dtype, order="F")
        unit[rows, np.arange(rows.size)] = 1.0
        return self.apply(unit)

    def diagonal(self) -> Array:
        """The diagonal of M^-1."""
        return self.columns(np.arange(self.root.size)).diagonal()

    @property
    def norm(self) -> float:
        """A bound on the largest eigenvalue of M^-1."""
        return float(np.abs(self.columns(np.arange(self.root.size))).sum(axis=1).max())

    # the same for P

    @cached_property
    def border(self) -> Array:
        """h, zero without an intercept."""
        if not self.fit_intercept:
            return np.zeros_like(self.root)
        solved = self.apply(self.root)
        return np.asarray(solved / np.sqrt(self.root @ solved))

    def solve(self, B: Array) -> Array:
        """P B."""
        return np.asarray(self.apply(B) - np.outer(self.border, self.border @ B))

    def solve_left_out(self, rows: Indices, solved: Array, ridge: float) -> Array:
        """(P_SS)^-1 solved_S: with solved = P R Y, these are R_S (y_S - u_S) of the fold S."""
        block, border = self.block(rows), self.arrays.asarray(self.border[rows])
        block -= border[:, None] * border[None, :]
        right = self.arrays.asarray(solved[rows])
        return self.arrays.host(solve_block(block, right, ridge))

    def projected_diagonal(self) -> Array:
        """The diagonal of P."""
        return np.asarray(self.diagonal() - np.square(self.border))

    def projected_columns(self, rows: Indices) -> Array:
        """A selection of columns of P."""
        return np.asarray(self.columns(rows) - np.outer(self.border, self.border[rows]))


def solve_block(block: Any, right: Any, ridge: float, overwrite: bool = False) -> Any:
    """(P_SS)^-1 times some columns, on the device of the block."""
    try:
        if isinstance(block, np.ndarray):
            return linalg.solve_spd(block, right, overwrite)
        return linalg.arrays_of(block).solve_spd(block, right)
    except linalg.LinAlgError as error:
        raise linalg.LinAlgError(
            f"a block of the inverse is singular to working precision ({error}): next to the "
            f"largest kernel values, {ridge:.3g} on the diagonal is lost; raise lam, or "
            "centre and scale X"
        ) from error
