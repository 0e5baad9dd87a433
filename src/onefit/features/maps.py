"""Feature maps: K(x, z) ~ phi(x)'phi(z) with m features, so that n rows cost n m^2, not n^3.

**Nystrom.** With landmarks Z and K_ZZ = L L', phi(x) = L^-1 k_Z(x) are the coordinates of the
projection of K(x, .) on the functions K(z, .) in an orthonormal basis, so that |phi(x)|^2 <=
K(x, x) and the penalty ||f||^2 of f = phi'w is |w|^2. L comes from a Cholesky factorisation with
pivots that ends at the numerical rank: landmarks that the others explain already, to rounding,
give no feature, and nothing has to be added to the diagonal. A prediction is also k_Z(x)'alpha with
alpha = L^-T w, which needs no triangular solve.

**Without some landmarks.** The model of a fold does not use the landmarks in the fold. The
functions of the others are w = L'alpha with alpha zero on the dropped ones D: what is orthogonal to
the null space of L_kept. With one feature per landmark, that null space is spanned by
L^-1 e_d, d in D. Otherwise a landmark without a feature of its own may stand in for a dropped one.
With V an orthonormal basis of the span of L^-1 e_d over the dropped pivots, the rows of C = L V for
the kept landmarks without a feature are what these add to the functions of the kept pivots;
directions in which that is no more than the cut of the factorisation are the null space, up to
rounding. A model of the kept landmarks has the same sums over the rows, restricted to the
complement (`Complement`): it needs no other pass, and equals the model with features of the kept
landmarks alone.

**On a device.** Features of PyTorch or CuPy arrays are computed on their device; products with a
few columns of weights are returned as NumPy arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from onefit import linalg
from onefit._types import Array, Indices
from onefit.gram.tiled import TILE_ROWS
from onefit.kernels import Geometry, Kernel
from onefit.linalg.threads import blas_threads, each
from onefit.proof.precise import summation

__all__ = ["FeatureMap", "HeldMap", "NystromMap", "nystrom_map", "product"]


class FeatureMap(ABC):
    """A map of rows to features, in double precision whatever the rows are in.

    By default, coefficients are the weights themselves, and there are no landmarks.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of features."""

    @abstractmethod
    def apply(self, X: Any, out: Array | None = None) -> Any:
        """phi of every row, (n, m), C-ordered; the caller may overwrite it.

        ``out`` is memory for the result of rows on the host.
        """

    def read(self, X: Any) -> Any:
        """The same, which the caller may not overwrite."""
        return self.apply(X)

    def coefficients(self, W: Array) -> Array:
        """The argument of :meth:`evaluate` for weights W of the features, (m, c)."""
        return np.asfortranarray(W)

    def evaluate(self, X: Any, coefficients: Array) -> Array:
        """phi(X) W."""
        return product(self.read(X), coefficients)

    def drift(self, W: Array) -> Array:
        """Rounding error of a product, per column, in units of the length of a row."""
        return np.asarray(summation(self.size) * np.linalg.norm(W, axis=0))

    @abstractmethod
    def lengths(self, X: Any) -> Array:
        """Bounds on |phi(x)|, such as the root of K(x, x)."""

    def lost(self, dropped: Indices) -> Array:
        """Columns that span what is orthogonal to the functions of the other landmarks, (m, d)."""
        return np.empty((self.size, 0))


@dataclass(frozen=True)
class NystromMap(FeatureMap):
    """Whitened features of landmarks.

    Attributes
    ----------
    kernel : Kernel
    points : (m, d) array or sparse matrix
        The landmarks that have a feature, in the order of their pivots.
    factor : (M, m) array
        L, its first m rows those of ``points``, the others those of landmarks without a feature.
    order : (M,) array of int
        The position of each row of the factor among the given landmarks.
    cut : float
        What counts as rounding in the diagonal of K_ZZ.
    """

    kernel: Kernel
    points: Any = field(repr=False)
    factor: Array = field(repr=False)
    order: Indices = field(repr=False)
    cut: float

    @property
    def size(self) -> int:
        return int(self.factor.shape[1])

    @property
    def triangle(self) -> Array:
        """The rows of L that belong to ``points``."""
        return self.factor[: self.size]

    def apply(self, X: Any, out: Array | None = None) -> Any:
        xp = linalg.arrays_of(X)
        _, lower = self._at(xp)
        return xp.solve_rows(lower, self._kernels(X, out))

    def evaluate(self, X: Any, coefficients: Array) -> Array:
        """phi(X) W; a thread multiplies and frees the kernel values of a tile at a time."""
        if not linalg.arrays_of(X).on_host:
            return product(self._kernels(X), coefficients)
        out = np.empty((X.shape[0], coefficients.shape[1]))

        def fill(rows: slice) -> None:
            np.matmul(self._tile(X[rows]), coefficients, out=out[rows])

        each(fill, _tiles(X.shape[0]))
        return out

    def coefficients(self, W: Array) -> Array:
        """alpha of f = sum_j alpha_j K(z_j, .), from the weights of the features."""
        return np.asarray(solve_triangular(self.triangle, W, trans="T", lower=True))

    def drift(self, W: Array) -> Array:
        lengths = np.sqrt(self.kernel.diag(self.points).astype(np.float64))
        return np.asarray(summation(self.size) * (lengths @ np.abs(self.coefficients(W))))

    def lengths(self, X: Any) -> Array:
        diagonal: Array = linalg.to_host(self.kernel.diag(X)).astype(np.float64)
        return np.sqrt(np.maximum(diagonal, 0.0))

    def lost(self, dropped: Indices) -> Array:
        place = np.empty_like(self.order)
        place[self.order] = np.arange(self.order.size)
        gone = np.zeros(self.order.size, dtype=bool)
        gone[place[dropped]] = True
        pivots = np.flatnonzero(gone[: self.size])
        units = np.zeros((self.size, pivots.size), order="F")
        units[pivots, np.arange(pivots.size)] = 1.0
        lost = linalg.solve_lower(self.triangle, units)
        spare = self.factor[self.size :][~gone[self.size :]]
        return _unspared(lost, spare, self.cut) if spare.size and lost.size else lost

    def _kernels(self, X: Any, out: Array | None = None) -> Any:
        """K(x, z) of all rows and landmarks; on the host several tiles of rows in parallel."""
        xp = linalg.arrays_of(X)
        if not xp.on_host:
            return self.kernel(xp.astype(X, np.float64), self._at(xp)[0])
        values = np.empty((X.shape[0], self.size)) if out is None else out[: X.shape[0]]

        def fill(rows: slice) -> None:
            self._tile(X[rows], values[rows])

        each(fill, _tiles(X.shape[0]))
        return values

    def _tile(self, X: Any, out: Array | None = None) -> Array:
        """K(x, z) of a few rows."""
        X = X.astype(np.float64, copy=False)
        return self.kernel.matrix(Geometry(X, self.points, keep=False), out)

    def _at(self, xp: linalg.Arrays) -> tuple[Any, Any]:
        """Landmarks and their triangle where the rows are, copied to a device once."""
        if xp.on_host:
            return self.points, self.triangle
        if repr(xp) not in self._sent:
            self._sent[repr(xp)] = xp.asarray(self.points), xp.asarray(self.triangle)
        return self._sent[repr(xp)]

    @cached_property
    def _sent(self) -> dict[str, tuple[Any, Any]]:
        return {}

    def forget(self) -> None:
        """Release the copies on devices."""
        self._sent.clear()

    def __getstate__(self) -> dict[str, Any]:
        """State for pickling, without copies on devices."""
        return {one.name: getattr(self, one.name) for one in fields(self)}


def _tiles(n: int) -> list[tuple[slice]]:
    """Tiles of rows, at least one per thread."""
    size = max(1, min(TILE_ROWS, -(-n // blas_threads())))
    return [(slice(first, min(n, first + size)),) for first in range(0, n, size)]


def product(values: Any, coefficients: Array) -> Array:
    """A product with a few columns, as a NumPy array."""
    xp = linalg.arrays_of(values)
    return xp.host(xp.matmul(values, xp.asarray(coefficients)))


def _unspared(lost: Array, spare: Array, cut: float) -> Array:
    """The part of the span of ``lost`` that the rows of ``spare`` do not span."""
    basis, _ = np.linalg.qr(lost)
    _, sizes, directions = np.linalg.svd(spare @ basis)
    reached = int(np.count_nonzero(np.square(sizes) > cut))
    return np.asarray(basis @ directions[reached:].T)


def nystrom_map(kernel: Kernel, landmarks: Any) -> NystromMap:
    """Features of landmarks; those that add nothing but rounding get none."""
    landmarks = landmarks.astype(np.float64, copy=False)
    K = linalg.fortran(np.asarray(kernel(landmarks)))
    cut = float(K.shape[0] * np.finfo(np.float64).eps * K.diagonal().max())
    factor, order = linalg.pivoted_cholesky(K, cut)
    if factor.shape[1] == 0:
        raise linalg.LinAlgError("the kernel is zero on every landmark; scale X, or change gamma")
    factor = np.asfortranarray(factor)
    return NystromMap(kernel, landmarks[order[: factor.shape[1]]], factor, order, cut)


@dataclass(frozen=True)
class HeldMap(FeatureMap):
    """The map of rows that are features already.

    Attributes
    ----------
    base : FeatureMap
        The map that computed them.
    """

    base: FeatureMap

    @property
    def size(self) -> int:
        return self.base.size

    def apply(self, X: Any, out: Array | None = None) -> Any:
        xp = linalg.arrays_of(X)
        if not xp.on_host:
            return xp.copy(X)
        if out is None:
            return np.array(X, order="C")
        out[: X.shape[0]] = X
        return out[: X.shape[0]]

    def read(self, X: Any) -> Any:
        return np.ascontiguousarray(X) if linalg.arrays_of(X).on_host else X

    def lengths(self, X: Any) -> Array:
        return linalg.arrays_of(X).row_norms(X) * (1.0 + 1e-12)

    def lost(self, dropped: Indices) -> Array:
        return self.base.lost(dropped)
