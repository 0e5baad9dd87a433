"""Kernels that are a decreasing function of a distance.

`gamma` multiplies the distance of the kernel, so its unit is one over that distance: one over a
squared length for the Gaussian, one over a length for the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np

from onefit.kernels.base import Kernel, require_gamma, require_number
from onefit.kernels.distances import (
    Array,
    Geometry,
    Points,
    as_points,
    ones_of,
    row_blocks,
)
from onefit.linalg import arrays_of


@dataclass(frozen=True)
class Stationary(Kernel):
    """``K(x, y) = value(-rate * gamma * distance(x, y))`` with ``value(0) = 1``.

    Parameters
    ----------
    gamma : float or None, default=None
        Positive; None means the ``gamma`` of the estimator.
    """

    gamma: Any = None
    rate: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if self.gamma is None:
            return
        object.__setattr__(self, "gamma", require_number(self.gamma, "gamma", positive=True))

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        lost = float(np.finfo(geometry.dtype).eps) ** 2

        def mapped(t: Array, lib: Any) -> Array:
            values = self.value(t, lib)
            if geometry.arrays.on_host:
                # negligible beside the diagonal, which is 1; products of such entries underflow,
                # and processors take ten to a hundred times as long then
                values[values < lost] = 0.0
            return values

        return geometry.take(self.metric, out, -self.rate * require_gamma(self), mapped)

    def diag(self, X: Points) -> Array:
        points = as_points(X, "X")
        return ones_of(points)

    def separation(self, X: Points, Y: Points) -> Array:
        """The distance of the points: unlike that in feature space it has no upper bound."""
        metric = "euclidean" if self.metric == "sqeuclidean" else self.metric
        return Geometry(X, Y, keep=False).take(metric)

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        points, xp = as_points(X, "X"), arrays_of(X)
        distances = Geometry(xp.astype(points, np.float64), keep=False).take(self.metric)
        distances *= -self.rate * require_gamma(self)
        left, right, total = xp.asarray(left), xp.asarray(right), 0.0
        for rows in row_blocks(distances.shape, xp):
            t = distances[rows, :]
            # d K / d log gamma = t value'(t)
            change = (left[rows, :] @ right.T) * (t * self.slope(t, xp.lib))
            total += float(xp.lib.sum(change))
        return {"gamma": np.asarray(total)}

    def value(self, t: Array, lib: Any) -> Array:
        """The kernel at ``t``, minus the scaled distance.

        ``t`` is a new array of the library ``lib``, a namespace of the array API standard; it may
        have entries of minus infinity.
        """
        return lib.exp(t)  # type: ignore[no-any-return]

    def slope(self, t: Array, lib: Any) -> Array:
        """The derivative of :meth:`value` by ``t``, which gradients need."""
        return lib.exp(t)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Gaussian(Stationary):
    """``K(x, y) = exp(-gamma ||x - y||_2^2)``; scikit-learn's "rbf".

    A paper's ``exp(-||x - y||^2 / (2 sigma^2))`` has ``gamma = 1 / (2 sigma^2)``.
    """

    metric = "sqeuclidean"


@dataclass(frozen=True)
class Laplace(Stationary):
    """``K(x, y) = exp(-gamma ||x - y||_1)``; scikit-learn's "laplacian"."""

    metric = "manhattan"


@dataclass(frozen=True)
class Matern12(Stationary):
    """``K(x, y) = exp(-rho)`` with ``rho = gamma ||x - y||_2``, the Matern kernel of nu = 1/2.

    In all three Matern kernels gamma is one over the length scale of scikit-learn's
    ``gaussian_process.kernels.Matern``.
    """

    metric = "euclidean"


@dataclass(frozen=True)
class Matern32(Matern12):
    """``K(x, y) = (1 + r) exp(-r)``, ``r = sqrt(3) gamma ||x - y||_2``: nu = 3/2."""

    rate = sqrt(3.0)

    def value(self, t: Array, lib: Any) -> Array:
        t = _bounded(t, lib)
        return (1.0 - t) * lib.exp(t)  # type: ignore[no-any-return]

    def slope(self, t: Array, lib: Any) -> Array:
        return -t * lib.exp(t)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Matern52(Matern12):
    """``K(x, y) = (1 + r + r^2 / 3) exp(-r)``, ``r = sqrt(5) gamma ||x - y||_2``: nu = 5/2."""

    rate = sqrt(5.0)

    def value(self, t: Array, lib: Any) -> Array:
        t = _bounded(t, lib)
        return (1.0 - t + t * t / 3.0) * lib.exp(t)  # type: ignore[no-any-return]

    def slope(self, t: Array, lib: Any) -> Array:
        return (t * t - t) / 3.0 * lib.exp(t)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class PowerExponential(Stationary):
    """``K(x, y) = exp(-(gamma ||x - y||_p)^q)``: any roughness between Laplace and Gaussian.

    gamma is one over the length scale. p = 1, q = 1 is the Laplace kernel, p = 2, q = 1 is
    Matern12, and p = 2, q = 2 the Gaussian with the square of gamma. A smaller q makes functions
    rougher.

    The kernel is positive definite for q <= p [1]_: the p-norm to the power q is then of negative
    type, and by Schoenberg's theorem the exponential of minus such a function is positive definite
    for every gamma. For larger q it is not in two or more dimensions, and it is refused.

    Parameters
    ----------
    gamma : float or None, default=None
        Positive; None means the ``gamma`` of the estimator.
    p : {1, 2}, default=2
        Of the norm.
    q : float, default=1
        The power, in (0, p].

    References
    ----------
    .. [1] I. J. Schoenberg, "Metric spaces and positive definite functions", Trans. Amer. Math.
       Soc. 44, 1938.

    Examples
    --------
    >>> from onefit.kernels import PowerExponential
    >>> PowerExponential(0.5, p=1, q=0.7)([[0.0]], [[0.0], [2.0]]).round(3)
    array([[1.   , 0.368]])
    """

    p: int = 2
    q: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.p not in (1, 2):
            raise ValueError(f"p must be 1 or 2, the norm of x - y, got {self.p!r}.")
        object.__setattr__(self, "p", int(self.p))
        object.__setattr__(self, "q", require_number(self.q, "q", positive=True))
        if self.q > self.p:
            raise ValueError(
                f"q must be at most {self.p} for p={self.p}, got {self.q:g}: beyond, "
                "exp(-(gamma ||x - y||_p)^q) is not positive definite. "
                + ("Use p=2 for q up to 2." if self.q <= 2.0 else "Lower q.")
            )

    @property
    def metric(self) -> str:  # type: ignore[override]
        """The distance that the norm gives."""
        return "manhattan" if self.p == 1 else "euclidean"

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        """dK / dlog gamma = -q s^q K, dK / dlog q = -q s^q log(s) K, with s = gamma ||x - y||."""
        points, xp = as_points(X, "X"), arrays_of(X)
        lib, s = xp.lib, Geometry(xp.astype(points, np.float64), keep=False).take(self.metric)
        s *= require_gamma(self)
        left, right, by_gamma, by_q = xp.asarray(left), xp.asarray(right), 0.0, 0.0
        for rows in row_blocks(s.shape, xp):
            near = s[rows, :] == 0.0
            power = s[rows, :] ** self.q
            change = -self.q * power * lib.exp(-power) * (left[rows, :] @ right.T)
            by_gamma += float(lib.sum(change))
            logs = lib.log(lib.where(near, lib.ones_like(power), s[rows, :]))
            by_q += float(lib.sum(change * logs))
        return {"gamma": np.asarray(by_gamma), "q": np.asarray(by_q)}

    def value(self, t: Array, lib: Any) -> Array:
        return lib.exp(-((-t) ** self.q))  # type: ignore[no-any-return]


def _bounded(t: Array, lib: Any) -> Array:
    """``t``, raised where exp(t) is zero anyway, so that no infinity is multiplied by it."""
    return lib.clip(t, -1e3, 0.0)  # type: ignore[no-any-return]
