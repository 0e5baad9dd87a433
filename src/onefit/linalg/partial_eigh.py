r"""A partial eigendecomposition: inverses at many shifts at a lower cost than eigenvectors.

An eigendecomposition of A gives (A + c)^-1 at every c, but part of its cost is not needed for that:
the eigenvectors of a tridiagonal matrix and their transformation back. Here that matrix T = H'AH is
torn at a few of its off-diagonal elements t_j [1]_,

    T = diag(T_1, ..., T_k) - sum_j |t_j| u_j u_j',          u_j = e_i - sign(t_j) e_{i+1},

where the blocks have |t_j| added to the diagonal elements on both sides of a tear, and so are
positive semidefinite if T is. Their eigendecompositions T_b = Z_b diag(e_b) Z_b' cost little, and

    A = Q (diag(e) - U U') Q',       Q = H diag(Z_1, ..., Z_k),      U = diag(Z)' [|t_j|^1/2 u_j],

with Q orthogonal and few columns in U. With D = diag(1/(e + c)), Woodbury's identity reads

    (A + c)^-1 = Q (D + W W') Q',     W = D U S^(-1/2),     S = I - U'D U,

a sum of positive semidefinite terms. For one tear S = 1/(1 + |t| u'(T + c)^-1 u) >= c/(c + 2|t|):
forming it loses no more digits than the condition number of A + c implies.

References
----------
.. [1] J. J. M. Cuppen, "A divide and conquer method for the symmetric tridiagonal eigenproblem",
   Numerische Mathematik 36, 1981.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from onefit._types import Array, Indices
from onefit.linalg import blas as linalg
from onefit.linalg.arrays import arrays_of
from onefit.linalg.reflections import tridiagonal

__all__ = ["PartialEigh"]

#: fewest rows of a block, and the largest number of blocks (benchmarks/ablation.py)
MIN_BLOCK_ROWS, MAX_BLOCKS = 125, 8


@dataclass(frozen=True)
class PartialEigh:
    """A = Q (diag(e) - U U') Q'.

    Attributes
    ----------
    values : (n,) array
        e, ascending.
    vectors : (n, n) array
        Q.
    tears : (n, p) array
        U.
    smallest : float
        The smallest eigenvalue of A.
    """

    values: Array
    vectors: Array
    tears: Array
    smallest: float

    @classmethod
    def decompose(cls, A: Array, whole: bool = False) -> PartialEigh:
        """Decompose a column-major symmetric matrix (lower triangle), which is overwritten.

        The ``whole`` eigendecomposition has no tears; on a device there is no other. The vectors
        are where A is.
        """
        xp = arrays_of(A)
        blocks = 1 if whole or not xp.on_host else min(A.shape[0] // MIN_BLOCK_ROWS, MAX_BLOCKS)
        if blocks < 2:
            values, vectors = xp.eigh(A)
            values = xp.host(values)
            none = np.zeros((values.size, 0), values.dtype)
            return cls(values, vectors, none, float(values[0]))
        diagonal, beside, H = tridiagonal(A, overwrite=True)
        smallest = linalg.smallest_tridiagonal(diagonal, beside)
        Q = H.columns
        ends = _places(beside, blocks)
        cut = ends[1:-1]
        weight = np.abs(beside[cut - 1])
        diagonal[cut - 1] += weight
        diagonal[cut] += weight
        tears = np.zeros((diagonal.size, cut.size), diagonal.dtype)
        # from the last: a block reads no reflections behind its own columns, and Q replaces those
        for j, (first, last) in reversed(list(enumerate(pairwise(ends)))):
            e, Z = linalg.eigh_tridiagonal(diagonal[first:last], beside[first : last - 1])
            diagonal[first:last] = e
            Q[:, first:last] = H.times(Z, first)
            if j > 0:
                sign = -np.sign(beside[first - 1])
                tears[first:last, j - 1] = sign * np.sqrt(weight[j - 1]) * Z[0]
            if j < cut.size:
                tears[first:last, j] = np.sqrt(weight[j]) * Z[-1]
        order = np.argsort(diagonal)
        for first in range(0, order.size, xp.panel_rows):
            some = slice(first, first + xp.panel_rows)
            Q[some] = Q[some, order]
        U = np.asfortranarray(tears[order][:, weight > 0.0])
        return cls(diagonal[order], Q, U, smallest)

    def corrections(self, shifts: Array) -> Array:
        """W' at every c, (L, p, n)."""
        U, (n, p) = self.tears, self.tears.shape
        damped = 1.0 / (self.values + np.asarray(shifts, dtype=U.dtype)[:, None])
        if p == 0:
            return np.empty((damped.shape[0], 0, n), U.dtype)
        pairs = np.asfortranarray((U[:, :, None] * U[:, None, :]).reshape(n, p * p))
        inner = linalg.matmul(damped, pairs).reshape(-1, p, p)
        # NumPy's, as matrices are too small for threads
        sigma, V = np.linalg.eigh(np.eye(p, dtype=U.dtype) - inner)
        V /= np.sqrt(np.maximum(sigma, np.finfo(sigma.dtype).eps))[:, None, :]
        return np.asarray(V.transpose(0, 2, 1) @ (damped[:, None, :] * U.T))


def _places(beside: Array, blocks: int) -> Indices:
    """Ends of blocks of about equal size, each at the smallest element nearby."""
    n = beside.size + 1
    slack = n // (8 * blocks)
    places = [0]
    for near in np.arange(1, blocks) * n // blocks:
        around = np.abs(beside[near - slack - 1 : near + slack])
        places.append(int(near - slack + np.argmin(around)))
    return np.array([*places, n])
