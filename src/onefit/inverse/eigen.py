"""The inverse by eigenvectors, R K R = Q diag(e) Q': M^-1 = Q diag(1/(e + c)) Q' for any c.

A partial eigendecomposition (onefit.linalg.partial_eigh) leaves a correction of few columns C in
the coordinates of Q: M^-1 = Q (diag(1/(e + c)) + C C') Q'.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.inverse.base import RidgeInverse
from onefit.linalg.arrays import arrays_of

__all__ = ["EigenInverse"]


class EigenInverse(RidgeInverse):
    """Eigenvalues and eigenvectors.

    Parameters
    ----------
    values : (m,) array
        e, as a NumPy array.
    vectors : (n, m) array
        Q.
    ridge : float
        c.
    root, fit_intercept : as of RidgeInverse
    negative : float, default=0.0
        How far below zero eigenvalues were before they were set to zero.
    correction : (m, p) array, default=None
        C.
    """

    def __init__(
        self,
        values: Array,
        vectors: Any,
        ridge: float,
        root: Array,
        fit_intercept: bool = False,
        negative: float = 0.0,
        correction: Array | None = None,
    ) -> None:
        super().__init__(arrays_of(vectors), root, fit_intercept)
        self.ridge, self.negative, self.vectors = ridge, negative, vectors
        number = root.dtype.type
        self.damped = np.asarray(1.0 / (values + number(ridge)), dtype=root.dtype)
        self.correction = np.empty((values.size, 0)) if correction is None else correction

    @classmethod
    def of(cls, M: Any, ridge: float, root: Array, fit_intercept: bool = False) -> EigenInverse:
        """From R K R, which is overwritten; eigenvalues that rounding made negative are zero."""
        xp = arrays_of(M)
        values, vectors = xp.eigh(M)
        e = linalg.without_rounding(xp.host(values))
        return cls(e, vectors, ridge, root, fit_intercept)

    def apply(self, B: Array) -> Array:
        xp, Q = self.arrays, self.vectors
        b = np.asfortranarray(np.reshape(B, (self.root.size, -1)))
        inside = xp.host(xp.matmul(Q.T, xp.asarray(b)))
        inside = self.damped[:, None] * inside + self.correction @ (self.correction.T @ inside)
        solved = xp.host(xp.matmul(Q, xp.asarray(np.asfortranarray(inside))))
        return solved.reshape(np.shape(B))

    def block(self, rows: Indices) -> Any:
        xp = self.arrays
        own = xp.rows(self.vectors, rows)
        if not xp.on_host:
            return (own * xp.asarray(self.damped)) @ own.T
        block = linalg.gram(own * np.sqrt(self.damped), rows=True)
        if self.correction.shape[1]:
            linalg.add_gram(block, own @ self.correction)
        return block

    def diagonal(self) -> Array:
        xp, Q = self.arrays, self.vectors
        squares = xp.host(xp.matmul(Q * Q, xp.asarray(self.damped[:, None])))[:, 0]
        if not self.correction.shape[1]:
            return np.asarray(squares)
        return np.asarray(squares + np.square(xp.host(Q) @ self.correction).sum(axis=1))

    @property
    def norm(self) -> float:
        left = self.ridge - self.negative
        return 1.0 / left if left > 0.0 else np.inf

    def columns(self, rows: Indices) -> Array:
        xp = self.arrays
        own = xp.host(xp.rows(self.vectors, rows)).T
        inside = self.damped[:, None] * own + self.correction @ (self.correction.T @ own)
        return xp.host(xp.matmul(self.vectors, xp.asarray(np.asfortranarray(inside))))
