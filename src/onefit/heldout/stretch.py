r"""One decomposition for a stretch of a path along which the points with curvature stay the same.

Leave-out steps (onefit.heldout.downdate) need the inverse of

    M = I + S K_AA S / (2 Lambda),                 S = diag(sqrt(s_i d_i)), i in A,

with A the points with curvature d. For a piecewise quadratic loss d depends on a point's piece
alone; where neither changes from lambda to lambda, as often happens towards small lambda, Lambda
is a mere shift,

    M^-1 = 2 Lambda (S K_AA S + 2 Lambda)^-1,

and the torn decomposition of S K_AA S (onefit.torn) serves every lambda, and every training size,
of the stretch. A few points may differ: to a leave-out step they are rows that leave or enter.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.heldout.full import Target
from onefit.torn import Torn

Array = NDArray[Any]
Rows = NDArray[np.intp]

__all__ = ["Shifted", "Stretch"]


class Stretch:
    """The decomposition of S K_AA S, at the points with curvature of one solution.

    Attributes
    ----------
    active : index array
        A.
    d : (n,) array
        Curvature of these points, zero elsewhere.
    """

    def __init__(self, target: Target) -> None:
        problem, A = target.problem, target.active
        self.active, self.d = A, target.d
        root = np.sqrt(problem.s[A] * target.d[A])
        M = linalg.submatrix(problem.K, A, A)
        M *= root
        M *= root[:, None]
        torn = Torn.decompose(M.T)
        # by rows: blocks of the inverse gather some of them
        vectors = np.ascontiguousarray(torn.vectors)
        self.torn = replace(torn, values=np.maximum(torn.values, 0.0), vectors=vectors)

    def changes(self, target: Target) -> int:
        """Points whose curvature is another in a solution."""
        return int(np.count_nonzero(self.d != target.d))

    def at(self, ridge: float) -> Shifted:
        """M^-1 at one Lambda."""
        return Shifted(self, 2.0 * ridge)


class Shifted:
    """c (S K_AA S + c)^-1 with c = 2 Lambda, by its decomposition."""

    @staticmethod
    def price(p: int) -> float:
        """It is there."""
        return 0.0

    @staticmethod
    def price_of_rows(p: int, rows: int) -> float:
        """A symmetric rank update."""
        return float(p) * rows**2

    def __init__(self, stretch: Stretch, shift: float) -> None:
        torn = stretch.torn
        number = torn.values.dtype.type
        self.vectors = torn.vectors
        self.weight = number(shift) / (torn.values + number(shift))
        self.columns = torn.correction(shift) * number(sqrt(shift))

    def apply(self, B: Array) -> Array:
        """M^-1 B."""
        inside = linalg.matmul(self.vectors.T, np.asfortranarray(B))
        weight = self.weight if B.ndim == 1 else self.weight[:, None]
        mended = self.columns @ (self.columns.T @ inside)
        return linalg.matmul(self.vectors, np.asfortranarray(weight * inside + mended))

    def block(self, rows: Rows) -> Array:
        """Rows and columns of M^-1 (its lower triangle)."""
        some = self.vectors[rows]
        mended = some @ self.columns
        some *= np.sqrt(self.weight)
        block = linalg.gram(some, rows=True)
        linalg.add_gram(block, mended)
        return block
