"""The inverse by eigenvectors, R K R = Q diag(e) Q': M^-1 = Q diag(1/(e + c)) Q' for any c."""

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
        The absolute value of the most negative eigenvalue, before it was set to zero.
    """

    def __init__(
        self,
        values: Array,
        vectors: Any,
        ridge: float,
        root: Array,
        fit_intercept: bool = False,
        negative: float = 0.0,
    ) -> None:
        super().__init__(arrays_of(vectors), root, fit_intercept)
        self.ridge, self.negative, self.vectors = ridge, negative, vectors
        number = root.dtype.type
        self.damped = np.asarray(1.0 / (values + number(ridge)), dtype=root.dtype)

    @classmethod
    def of(cls, M: Any, ridge: float, root: Array, fit_intercept: bool = False) -> EigenInverse:
        """Decompose R K R, which is overwritten; negative eigenvalues are set to zero."""
        xp = arrays_of(M)
        values, vectors = xp.eigh(M)
        e = linalg.without_rounding(xp.host(values))
        return cls(e, vectors, ridge, root, fit_intercept)

    def apply(self, B: Array) -> Array:
        xp, Q = self.arrays, self.vectors
        b = np.asfortranarray(np.reshape(B, (self.root.size, -1)), dtype=self.root.dtype)
        inside = xp.host(xp.matmul(Q.T, xp.asarray(b)))
        inside = self.damped[:, None] * inside
        solved = xp.host(xp.matmul(Q, xp.asarray(np.asfortranarray(inside))))
        return solved.reshape(np.shape(B))

    def block(self, rows: Indices) -> Any:
        xp = self.arrays
        own = xp.rows(self.vectors, rows)
        if not xp.on_host:
            return (own * xp.asarray(self.damped)) @ own.T
        return linalg.gram(own * np.sqrt(self.damped), rows=True)

    def diagonal(self) -> Array:
        xp, Q = self.arrays, self.vectors
        return np.asarray(xp.host(xp.matmul(Q * Q, xp.asarray(self.damped[:, None])))[:, 0])

    @property
    def norm(self) -> float:
        left = self.ridge - self.negative
        return 1.0 / left if left > 0.0 else np.inf
