"""Kernels that are a decreasing function of a distance, evaluated in place.

`gamma` always multiplies the distance that the kernel is named for, so its unit is one over that
distance: one over a squared length for the Gaussian, one over a length for the others.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np

from onefit.kernels.base import Kernel, require_number
from onefit.kernels.distances import (
    Array,
    Geometry,
    Points,
    as_points,
    ones_of,
    row_blocks,
)
from onefit.linalg import Arrays, arrays_of


@dataclass(frozen=True)
class Stationary(Kernel):
    """``K(x, y) = map(rate * gamma * distance(x, y))`` with ``map(0) = 1``.

    Parameters
    ----------
    gamma : float
        Positive.
    """

    gamma: float
    rate: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", require_number(self.gamma, "gamma", positive=True))

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        out = geometry.take(self.metric, out, scale=-self.rate * self.gamma)
        arrays = geometry.arrays
        if not arrays.on_host:
            self._map(out, arrays)
            return out
        lost = np.finfo(out.dtype).eps ** 2
        for rows in row_blocks(out.shape):
            part = out[rows]
            self._map(part, arrays)
            # nothing beside the diagonal, which is 1; but what a factor makes of such entries
            # underflows, and processors take ten to a hundred times as long then
            part[part < lost] = 0.0
        return out

    def diag(self, X: Points) -> Array:
        points = as_points(X, "X")
        return ones_of(points)

    def separation(self, X: Points, Y: Points) -> Array:
        """The distance that is mapped: that of the images ends at sqrt(2), this one does not."""
        metric = "euclidean" if self.metric == "sqeuclidean" else self.metric
        return Geometry(X, Y, keep=False).take(metric)

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        points, xp = as_points(X, "X"), arrays_of(X)
        distances = Geometry(xp.astype(points, np.float64), keep=False).take(self.metric)
        distances *= -self.rate * self.gamma
        left, right, total = xp.asarray(left), xp.asarray(right), 0.0
        for rows in row_blocks(distances.shape, xp):
            t = distances[rows, :]
            # d K / d log gamma = t map'(t)
            total += float(xp.lib.sum((left[rows, :] @ right.T) * (t * self._slope(t, xp))))
        return {"gamma": np.asarray(total)}

    @staticmethod
    def _slope(t: Array, xp: Arrays) -> Array:
        """The derivative of the map by t."""
        return xp.lib.exp(t)  # type: ignore[no-any-return]

    @staticmethod
    @abstractmethod
    def scale_gamma(n_features: int, variance: float) -> float:
        """gamma="scale": one over the distance of typical points, given the variance of X."""

    @staticmethod
    def _map(t: Array, xp: Arrays) -> None:
        """Overwrite `t`, minus the scaled distance, by the value of the kernel."""
        xp.exp_(t)


@dataclass(frozen=True)
class Gaussian(Stationary):
    """``K(x, y) = exp(-gamma ||x - y||_2^2)``; scikit-learn's "rbf".

    A paper's ``exp(-||x - y||^2 / (2 sigma^2))`` has ``gamma = 1 / (2 sigma^2)``.
    """

    metric = "sqeuclidean"

    @staticmethod
    def scale_gamma(n_features: int, variance: float) -> float:
        return 1.0 / (n_features * variance)


@dataclass(frozen=True)
class Laplace(Stationary):
    """``K(x, y) = exp(-gamma ||x - y||_1)``; scikit-learn's "laplacian"."""

    metric = "manhattan"

    @staticmethod
    def scale_gamma(n_features: int, variance: float) -> float:
        return 1.0 / (n_features * sqrt(variance))


@dataclass(frozen=True)
class Matern12(Stationary):
    """``K(x, y) = exp(-rho)`` with ``rho = gamma ||x - y||_2``, the Matern kernel of nu = 1/2.

    In all three Matern kernels gamma is one over the length scale of scikit-learn's
    ``gaussian_process.kernels.Matern``.
    """

    metric = "euclidean"

    @staticmethod
    def scale_gamma(n_features: int, variance: float) -> float:
        return 1.0 / sqrt(n_features * variance)


@dataclass(frozen=True)
class Matern32(Matern12):
    """``K(x, y) = (1 + r) exp(-r)``, ``r = sqrt(3) gamma ||x - y||_2``: nu = 3/2."""

    rate = sqrt(3.0)

    @staticmethod
    def _map(t: Array, xp: Arrays) -> None:
        decay = _decay(t, xp)
        xp.one_minus_(t)
        t *= decay

    @staticmethod
    def _slope(t: Array, xp: Arrays) -> Array:
        return -t * xp.lib.exp(t)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Matern52(Matern12):
    """``K(x, y) = (1 + r + r^2 / 3) exp(-r)``, ``r = sqrt(5) gamma ||x - y||_2``: nu = 5/2."""

    rate = sqrt(5.0)

    @staticmethod
    def _map(t: Array, xp: Arrays) -> None:
        decay = _decay(t, xp)
        decay *= 1.0 - t + t * t / 3.0
        t[...] = decay

    @staticmethod
    def _slope(t: Array, xp: Arrays) -> Array:
        return (t * t - t) / 3.0 * xp.lib.exp(t)  # type: ignore[no-any-return]


def _decay(t: Array, xp: Arrays) -> Array:
    """exp(t), with `t` bounded where that is zero anyway so that no infinity times zero follows."""
    xp.at_least_(t, -1e3)
    decay: Array = xp.lib.exp(t)
    return decay
