"""Stationary kernels with a gamma for every feature: automatic relevance determination.

K(x, y) = base(x o s, y o s) with a kernel of gamma = 1 on columns multiplied by s: the root of
gamma for kernels of the squared distance, and gamma itself for the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onefit.kernels.base import Kernel, require_number
from onefit.kernels.distances import Array, Geometry, Points, as_points, is_sparse, row_blocks
from onefit.kernels.rows import number_type
from onefit.kernels.stationary import Stationary
from onefit.linalg import arrays_of, is_elsewhere


@dataclass(frozen=True)
class PerFeature(Kernel):
    """A stationary kernel with one gamma per column of X.

    Parameters
    ----------
    kind : type
        Gaussian, Laplace, Matern12, Matern32, Matern52, or a subclass of your own.
    gamma : sequence of float
        Non-negative, one for each column; a column with gamma 0 is ignored.
    """

    kind: type[Stationary]
    gamma: Sequence[float]

    def __post_init__(self) -> None:
        if not (isinstance(self.kind, type) and issubclass(self.kind, Stationary)):
            raise TypeError(f"kind must be a class, such as Gaussian, got {self.kind!r}")
        gamma = tuple(
            require_number(float(value), f"gamma[{f}]", positive=False)
            for f, value in enumerate(self.gamma)
        )
        if not any(gamma):
            raise ValueError(
                "gamma is zero for every column: no column is left to distinguish rows."
            )
        object.__setattr__(self, "gamma", gamma)

    @property
    def _base(self) -> Stationary:
        return self.kind(1.0)

    @property
    def _squared(self) -> bool:
        """Whether gamma multiplies squared differences."""
        return self._base.metric == "sqeuclidean"

    def _scaled(self, X: Points) -> Points:
        points = as_points(X, "X")
        if points.shape[1] != len(self.gamma):
            raise ValueError(
                f"gamma has {len(self.gamma)} values, one for each column, but X has "
                f"{points.shape[1]} columns."
            )
        scale = np.asarray(self.gamma, dtype=number_type(points))
        scale = np.sqrt(scale) if self._squared else scale
        if is_elsewhere(points):
            return points * arrays_of(points).asarray(scale)
        return points.multiply(scale).tocsr() if is_sparse(points) else points * scale

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        Y = None if geometry.symmetric else self._scaled(geometry.Y)
        return self._base.matrix(Geometry(self._scaled(geometry.X), Y, keep=False), out)

    def diag(self, X: Points) -> Array:
        return self._base.diag(X)

    def separation(self, X: Points, Y: Points) -> Array:
        return self._base.separation(self._scaled(X), self._scaled(Y))

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        """One number per column.

        With z = x o s and h_ij = (left right')_ij times the derivative of K_ij by the squared
        distance of z_i and z_j, that by log gamma_f is sum_ij h_ij (z_if - z_jf)^2 (twice that
        where gamma multiplies distances), for all f by one product with the matrix h.
        """
        scaled, base = self._scaled(X), self._base
        xp = arrays_of(scaled)
        lib, Z = xp.lib, xp.astype(scaled.toarray() if is_sparse(scaled) else scaled, np.float64)
        t = Geometry(Z, keep=False).take(base.metric)
        t *= -base.rate
        left, right, total = xp.asarray(left), xp.asarray(right), np.zeros(Z.shape[1])
        for rows in row_blocks(t.shape, xp):
            h = (left[rows, :] @ right.T) * base.slope(t[rows, :], lib)
            if base.metric == "manhattan":
                h = -base.rate * h
                for f in range(Z.shape[1]):
                    total[f] += float(lib.sum(h * lib.abs(Z[rows, f][:, None] - Z[:, f][None, :])))
                continue
            if self._squared:
                h = -base.rate * h
            else:
                near = t[rows, :] == 0.0
                h = base.rate**2 * lib.where(near, 0.0, h / lib.where(near, 1.0, t[rows, :]))
            own, others = lib.sum(h, axis=1)[:, None], lib.sum(h, axis=0)[:, None]
            z = Z[rows, :]
            total += xp.host(lib.sum(own * z * z - 2.0 * z * (h @ Z), axis=0))
            total += xp.host(lib.sum(others * Z * Z, axis=0))
        return {"gamma": total}
