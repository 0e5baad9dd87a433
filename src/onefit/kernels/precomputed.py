"""A kernel matrix given by the user, and the check that it is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit.kernels.base import Kernel, noise_level, symmetric
from onefit.kernels.distances import Array, Geometry, Points, as_points, is_sparse, row_blocks
from onefit.linalg import Arrays, LinAlgError, cholesky, eigh, fortran


@dataclass(frozen=True)
class Precomputed(Kernel):
    """Rows of X are rows of the kernel matrix: ``X[i, j] = K(x_i, y_j)``.

    As everywhere in scikit-learn, `X` is (n, n) in a fit and (n_new, n) in a prediction, where the
    columns are the points of the fit.
    """

    definite = False

    def require_device(self, arrays: Arrays) -> None:
        raise TypeError(
            f"a precomputed kernel is not supported on {arrays!r}: pass the rows X and a named "
            "kernel, or leave the device out."
        )

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        """`geometry.X` itself, unless `out` is given or it is only symmetric up to noise."""
        n_columns, n_points = geometry.X.shape[1], geometry.shape[1]
        if n_columns != n_points:
            raise ValueError(
                f"X is a precomputed kernel of shape {geometry.X.shape}: it must have one column "
                f"for each of the {n_points} points of the fit."
            )
        K: Array = geometry.X.toarray() if is_sparse(geometry.X) else geometry.X
        if geometry.symmetric:
            K = symmetric(K, "precomputed kernel")
        if out is None:
            return K
        geometry.output(out)[...] = K
        return out

    def diag(self, X: Points) -> Array:
        points = as_points(X, "X")
        if points.shape[0] != points.shape[1]:
            raise ValueError(
                f"X is a precomputed kernel of shape {points.shape}: K(x, x) of new points is not "
                "in it."
            )
        return np.array(points.diagonal())


def check_precomputed(K: Points) -> Array:
    """Check that `K` is square, finite, symmetric and positive semi-definite up to rounding.

    Semi-definite means that no eigenvalue is below ``-tol`` times the largest in size, with tol =
    1e-8, or 1e-4 for float32, which is the tolerance for symmetry too. The cheap test comes first:
    if ``K + tol (trace K / n) I`` has a Cholesky factor then no eigenvalue is below ``-tol trace(K)
    / n``, which is at least ``-tol`` times the largest. The eigenvalues are computed only if it has
    none.

    Parameters
    ----------
    K : array of shape (n, n)

    Returns
    -------
    K : array of shape (n, n)
        As an array of floats, (K + K') / 2 where it is not symmetric to the last bit.
    """
    matrix: Array = as_points(K.toarray() if is_sparse(K) else K, "precomputed kernel")
    if matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(
            f"precomputed kernel must be square, with a row and a column for each point, got "
            f"shape {matrix.shape}."
        )
    _require_finite_entries(matrix)
    matrix = symmetric(matrix, "precomputed kernel")
    _require_semidefinite(matrix, noise_level(matrix.dtype))
    return matrix


def _require_finite_entries(K: Array) -> None:
    for rows in row_blocks(K.shape):
        bad = np.argwhere(~np.isfinite(K[rows]))
        if bad.size:
            i, j = int(bad[0, 0]) + rows.start, int(bad[0, 1])
            raise ValueError(
                f"precomputed kernel has the value {K[i, j]} at [{i}, {j}]: every entry must be "
                "finite."
            )


def _require_semidefinite(K: Array, tol: float) -> None:
    shifted = fortran(K)
    shifted.flat[:: K.shape[0] + 1] += tol * float(np.trace(K)) / K.shape[0]
    try:
        cholesky(shifted, overwrite=True)
        return
    except LinAlgError:
        eigenvalues, _ = eigh(fortran(K), overwrite=True)
    smallest, largest = float(eigenvalues[0]), float(eigenvalues[-1])
    if smallest < -tol * max(abs(smallest), abs(largest)):
        raise ValueError(
            f"precomputed kernel is indefinite: its smallest eigenvalue is {smallest:.3g}, its "
            f"largest {largest:.3g}. Clip the negative eigenvalues to zero, or shift the spectrum "
            f"by adding {-smallest:.3g} to the diagonal, if the similarity is meant as a kernel."
        )
