"""(A + c I)^-1 of one symmetric matrix at many c, and the complement of a few columns.

On the host A = H T H' with a tridiagonal T and Householder reflections H, and each c costs a
tridiagonal system; the orthogonal complement of some columns has the basis of their reflections. A
device computes the whole eigendecomposition faster than reflections one after the other, and holds
the basis as a matrix, because products are its fastest operation.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onefit._types import Array, Mask
from onefit.linalg import blas, reflections

__all__ = ["Eigenvectors", "OrthogonalBasis", "Tridiagonal"]


class Tridiagonal:
    """A = H T H' on the host.

    Parameters
    ----------
    A : (k, k) array
        Column-major; overwritten.
    """

    def __init__(self, A: Array) -> None:
        self.diagonal, self.beside, self.H = reflections.tridiagonal(A, overwrite=True)

    def solve(self, ridges: Array, r: Array) -> tuple[Array, Mask]:
        """(A + c)^-1 r at every c, (k, L q), and the c for which it exists."""
        (k, q), L = r.shape, ridges.size
        V, found = np.zeros((k, L, q), dtype=r.dtype), np.ones(L, dtype=bool)
        z = self.H.coordinates(r)
        for i, c in enumerate(ridges):
            try:
                V[:, i] = blas.solve_tridiagonal(self.diagonal + r.dtype.type(c), self.beside, z)
            except blas.LinAlgError:
                found[i] = False
        return self.H.times(np.asfortranarray(V.reshape(k, L * q)), 0), found


class Eigenvectors:
    """A = Q diag(e) Q' on a device.

    Parameters
    ----------
    A : (k, k) array
    xp : Device
    """

    def __init__(self, A: Any, xp: Any) -> None:
        self.arrays = xp
        values, self.Q = xp.eigh(A)
        self.values = xp.host(values)

    def solve(self, ridges: Array, r: Any) -> tuple[Any, Mask]:
        """(A + c)^-1 r at every c, (k, L q), and the c for which it exists."""
        xp, found = self.arrays, self.values[0] + ridges > 0.0
        z = xp.host(self.Q.T @ r)
        shifted = np.where(found, self.values[:, None] + ridges, np.inf)
        V = z[:, None, :] / shifted[:, :, None]
        return self.Q @ xp.asarray(V.reshape(z.shape[0], -1)), found


class OrthogonalBasis(NamedTuple):
    """A basis of the orthogonal complement of some columns, as a matrix.

    Attributes
    ----------
    Q : (n, n - d) array
    """

    Q: Any

    def coordinates(self, a: Any) -> Any:
        """Q'a."""
        return self.Q.T @ a

    def vectors(self, a: Any) -> Any:
        """Q a."""
        return self.Q @ a

    def congruent(self, a: Any) -> Any:
        """Q'a Q."""
        return self.Q.T @ (a @ self.Q)
