"""Norms of vectors in the metric of K + diag(c) and of its inverse: what the sharper bound needs.

With an intercept the coefficients add up to zero, and K may be replaced by any K - m 1' - 1 m'
without changing the model. Centred so (m the row means, less half of their mean), the common part
of all kernel values, which the intercept takes care of, no longer makes norms large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.proof.norms import Norms
from onefit.proof.precise import EPSILON, summation

__all__ = ["RidgeNorm"]

#: a matrix whose rounding errors may reach this part of its smallest eigenvalue is not trusted
MAX_ROUNDING_SHARE = 0.25


@dataclass(frozen=True)
class RidgeNorm:
    """M = K + diag(c) on some rows, its inverse as W'W with room for rounding.

    Attributes
    ----------
    norms : Norms
        Of the whole kernel matrix.
    rows : (m,) index array
    K, c : (m, m) and (m,) arrays
        K is centred with an intercept.
    mean : (m,) array, or None
        m, if K is centred.
    W : (m, m) array
    unit, pull : (m,) arrays
        ||e_i||_{1/M} and ||K e_i||_{1/M}.
    """

    norms: Norms
    rows: Array
    K: Array
    c: Array
    mean: Array | None
    W: Array
    unit: Array
    pull: Array

    @classmethod
    def of(cls, norms: Norms, rows: Array, c: Array, centred: bool = False) -> RidgeNorm | None:
        """The norm; None if M is not certainly positive definite."""
        K = norms.entries(rows, rows)
        mean, changed = None, 0.0
        if centred:
            mean = K.mean(axis=1)
            mean -= 0.5 * mean.mean()
            changed = 8.0 * EPSILON * float(np.abs(K).max())
            K = K - mean - mean[:, None]
        ends = np.einsum("ii->i", K) + c
        if not (ends > 0.0).all():
            return None
        root = 1.0 / np.sqrt(ends)
        N = root[:, None] * K * root
        np.einsum("ii->i", N)[:] = 1.0
        try:
            W = linalg.triangular_inverse(linalg.cholesky(N.T, overwrite=True), overwrite=True)
        except linalg.LinAlgError:
            return None
        doubt = summation(rows.size) + changed * float((root * root).sum())
        doubt *= linalg.HOST.norm_of_gram(W)
        if not doubt < MAX_ROUNDING_SHARE:
            return None
        W = W * (root / np.sqrt(1.0 - 2.0 * doubt))
        unit = np.square(W).sum(axis=0)
        diagonal = ends - c
        pull = diagonal - c + c * c * unit + 8.0 * EPSILON * (np.abs(diagonal) + c) + 2.0 * changed
        return cls(norms, rows, K, c, mean, W, np.sqrt(unit), np.sqrt(np.maximum(pull, 0.0)))

    @property
    def roots(self) -> Array:
        """Roots of the diagonal of K, (m, 1)."""
        return np.asarray(np.sqrt(np.maximum(np.einsum("ii->i", self.K), 0.0))[:, None])

    def at(self, x: Array) -> tuple[Array, Array]:
        """Kernel values of other rows of the sample, centred like K, and m there."""
        K = self.norms.entries(x, self.rows)
        if self.mean is None:
            return K, np.zeros(x.size)
        mean = K.mean(axis=1) - self.mean.mean()
        return K - mean[:, None] - self.mean, mean

    def dual(self, q: Array, ones: Array | None = None) -> Array:
        """||q||_{1/M} of every column, less its best multiple of the ``ones`` there."""
        x = linalg.matmul(self.W, np.asfortranarray(q))
        square = np.square(x).sum(axis=0)
        rounding = summation(q.shape[0]) * square
        if ones is not None:
            w = linalg.matmul(self.W, np.asfortranarray(ones, dtype=np.float64))
            square = square - np.square((x * w).sum(axis=0)) / np.square(w).sum(axis=0)
        return np.asarray(np.sqrt(np.maximum(square, 0.0) + rounding))

    def ones(self, train: Array) -> Array:
        """||1||_M / m of every column, no less than (1'M^-1 1)^(-1/2) over its m rows."""
        one = train.astype(np.float64)
        square = (one * (linalg.matmul(self.K, one) + self.c[:, None])).sum(axis=0)
        return np.asarray(np.sqrt(np.maximum(square, 0.0)) / one.sum(axis=0))
