"""Sizes that error bounds are made of: those of a kernel matrix, and of targets."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import eigh

from onefit import linalg
from onefit._types import Array, Indices
from onefit.gram import Gram
from onefit.kernels.on_device import CANCELLATION_SHARE

__all__ = ["MAX_SHARP_BOUND_ROWS", "Norms", "target_scale"]

#: rows up to which a bound may take a factor of its own: for the smallest eigenvalue of a definite
#: matrix, and for the sharper bound, which holds four matrices
MAX_SHARP_BOUND_ROWS = 3000


@dataclass(frozen=True)
class Norms:
    """Sizes of a kernel matrix, which error bounds are made of.

    Attributes
    ----------
    roots : (n,) array
        Roots of the diagonal: |K_ij| <= roots_i roots_j.
    definite : bool
        Whether K is the matrix of a positive semidefinite function, but for rounding.
    """

    K: Gram = field(repr=False)
    roots: Array = field(repr=False)
    definite: bool = False

    @classmethod
    def of(cls, K: Gram, definite: bool = False) -> Norms:
        """Norms of a kernel matrix, which is not copied."""
        diagonal = K.diagonal.astype(np.float64)
        return cls(K, np.sqrt(np.maximum(diagonal, 0.0)), definite)

    @cached_property
    def row_sum(self) -> float:
        """The largest absolute row sum, no less than the largest eigenvalue."""
        if not self.K.held:
            return float(self.roots.max(initial=0.0) * self.roots.sum())
        return float(self.K.row_sums().max())

    def part(self, rows: Indices, columns: Indices) -> Any:
        """Some rows and columns of the matrix in double precision, where it is."""
        return self.K.arrays.astype(self.K.block(rows, columns), np.float64)

    def entries(self, rows: Indices, columns: Indices) -> Array:
        """The same as NumPy's array."""
        return self.K.arrays.host(self.part(rows, columns))

    @property
    def diagonal(self) -> float:
        """The largest diagonal entry."""
        return float(self.roots.max() ** 2)

    @property
    def root(self) -> float:
        """The largest root of the diagonal, 1 for a matrix of zeros."""
        return float(self.roots.max()) or 1.0

    @property
    def rounding(self) -> float:
        """Bound on negative eigenvalues of a definite matrix that are due to rounding alone."""
        return self._rounding(float(np.finfo(np.float64).eps) / CANCELLATION_SHARE)

    def _rounding(self, more: float = 0.0) -> float:
        """Norm of an error of entries that is due to rounding, and ``more`` in their units."""
        epsilon = float(np.finfo(self.K.dtype).eps) + more
        return float((8.0 + 6.0 * self.K.shape[0] ** 0.5) * epsilon * self.diagonal)

    @cached_property
    def negative(self) -> float:
        """How far below zero the smallest eigenvalue may be.

        A Cholesky factor of K shifted by what rounding makes of one proves that it is no further
        below than twice that; only where there is none is the eigenvalue itself computed. Of a
        large matrix that is known to be definite but for rounding, only the latter is looked at:
        its entries come from distances that are right to a rounding over CANCELLATION_SHARE at
        worst (onefit.kernels.distances).
        """
        large = self.definite and self.K.shape[0] > MAX_SHARP_BOUND_ROWS
        if large or not (self.K.held and self.K.arrays.on_host):
            return self.rounding
        shift = max(self._rounding(), float(np.finfo(np.float32).tiny))
        shifted = linalg.fortran(self.K.matrix)
        shifted[np.diag_indices_from(shifted)] += self.K.dtype.type(shift)
        try:
            linalg.cholesky(shifted, overwrite=True)
        except linalg.LinAlgError:
            smallest = eigh(self.K.matrix, eigvals_only=True, subset_by_index=[0, 0])[0]
            return float(max(0.0, -smallest) + shift)
        return float(2.0 * shift)


def target_scale(Y: Array, s: Array) -> Array:
    """The unit in which an error is judged, one number per target.

    It is 1 for labels -1 and +1, whose margin is 1, and the weighted standard deviation of any
    other target. A constant target has its size for a unit.
    """
    Y, s = Y[s > 0].astype(np.float64), s[s > 0].astype(np.float64)
    size = np.abs(Y).max(axis=0)
    mean = np.average(Y, axis=0, weights=s)
    spread = np.sqrt(np.average(np.square(Y - mean), axis=0, weights=s))
    constant = (Y[0] == Y).all(axis=0)
    labels = np.all(np.abs(Y) == 1.0, axis=0)
    return np.where(labels | (size == 0.0), 1.0, np.where(constant, size, spread))
