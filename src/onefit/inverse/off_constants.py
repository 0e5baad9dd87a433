"""A matrix, split into the direction of the constants and the rest.

A kernel matrix of positive entries has one eigenvalue far above the others, whose eigenvector is
nearly v = R 1 / |R 1|. Rounding in a decomposition is relative to the largest eigenvalue, and so
are the digits lost at small ridges. A Householder reflection takes v to the first axis,

    R K R  ->  [omega, w'; w, A],

and only A, with zeros for the first row and column, is decomposed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array

__all__ = ["OffConstants"]


class OffConstants(NamedTuple):
    """The part along the direction of the constants.

    Attributes
    ----------
    mirror : (n,) array
        h of the reflection I - 2 h h', which takes v to the first axis, up to its sign.
    sign : float
        The reflection of v is minus this on the first axis.
    w : (n,) array
        R K R v.
    omega : float
        v'w.
    """

    mirror: Array
    sign: float
    w: Array
    omega: float

    @classmethod
    def of(cls, M: Any, v: Array) -> OffConstants:
        """Split R K R (column-major, possibly on a device), which A overwrites."""
        xp = linalg.arrays_of(M)
        w = xp.host(xp.matmul(M, xp.asarray(v)))
        sign = float(np.copysign(1.0, v[0]))
        mirror = v.copy()
        mirror[0] += sign
        mirror /= np.linalg.norm(mirror)
        h = xp.asarray(mirror)
        p = xp.matmul(M, h)
        q = 2.0 * (p - float(h @ p) * h)
        xp.rank_one(M, -h, q)
        xp.rank_one(M, -q, h)
        M[0, :] = 0.0
        M[:, 0] = 0.0
        return cls(mirror, sign, w, float(v @ w))

    def reflected(self, a: Array) -> Array:
        """(I - 2 h h') a, for a NumPy array."""
        return np.asarray(a - 2.0 * np.outer(self.mirror, self.mirror @ a))
