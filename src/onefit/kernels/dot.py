"""Kernels of the inner product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit.kernels.base import Kernel, require_finite, require_gamma, require_number
from onefit.kernels.distances import Array, Geometry, Points, as_points, row_blocks, squared_norms
from onefit.linalg import arrays_of

#: multiple of rounding that counts as a digit
_DIGIT = 10.0


@dataclass(frozen=True)
class Linear(Kernel):
    """``K(x, y) = <x, y>``."""

    metric = "dot"

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        return geometry.take("dot", out)

    def diag(self, X: Points) -> Array:
        return squared_norms(as_points(X, "X"))

    def separation(self, X: Points, Y: Points) -> Array:
        return Geometry(X, Y, keep=False).take("euclidean")

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        return {}


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``K(x, y) = (gamma <x, y> + coef0)^degree``.

    Positive semi-definite for gamma > 0, coef0 >= 0 and a whole degree: the binomial expansion then
    is a sum of products of semi-definite kernels with non-negative weights. The papers have
    gamma = 1.

    Parameters
    ----------
    gamma : float or None, default=None
        Positive; None means the ``gamma`` of the estimator.
    coef0 : float, default=1.0
    degree : int, default=3
    """

    metric = "dot"

    gamma: Any = None
    coef0: float = 1.0
    degree: int = 3

    def __post_init__(self) -> None:
        if self.gamma is not None:
            object.__setattr__(self, "gamma", require_number(self.gamma, "gamma", positive=True))
        object.__setattr__(self, "coef0", require_number(self.coef0, "coef0", positive=False))
        degree = require_number(self.degree, "degree", positive=True)
        if not degree.is_integer():
            raise ValueError(f"degree must be a positive whole number, got {self.degree!r}.")
        object.__setattr__(self, "degree", int(degree))

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        out = geometry.take("dot", out, require_gamma(self), self._power)
        largest = 0.0
        if geometry.symmetric and out.shape[0]:
            largest = self.gamma * float(geometry.arrays.lib.max(squared_norms(geometry.X)))
        require_finite(out, repr(self), "The power overflows: scale X, or lower gamma or degree.")
        self._require_digits(largest, geometry.dtype)
        return out

    def diag(self, X: Points) -> Array:
        return self._power(require_gamma(self) * squared_norms(as_points(X, "X")))

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        xp, gamma, coef0 = arrays_of(X), 0.0, 0.0
        points = xp.astype(as_points(X, "X"), np.float64)
        dots = Geometry(points, keep=False).take("dot", scale=require_gamma(self))
        left, right = xp.asarray(left), xp.asarray(right)
        for rows in row_blocks(dots.shape, xp):
            slope = self.degree * (dots[rows, :] + self.coef0) ** (self.degree - 1)
            slope *= left[rows, :] @ right.T
            gamma += float(xp.lib.sum(slope * dots[rows, :]))
            coef0 += self.coef0 * float(xp.lib.sum(slope))
        return {"gamma": np.asarray(gamma), "coef0": np.asarray(coef0)}

    def _require_digits(self, largest: float, dtype: Any) -> None:
        """Raise if coef0 is below the rounding of the largest ``gamma <x, x>``.

        The matrix would be finite, but that of another kernel, ``(gamma <x, y>)^degree``: the lower
        powers of the expansion would be lost in rounding, and so would a penalty.
        """
        if 0.0 < self.coef0 < _DIGIT * float(np.finfo(dtype).eps) * largest:
            raise ValueError(
                f"{self!r}: gamma <x, x> is up to {largest:.3g} in X, next to which coef0 is lost "
                f"in the rounding of {np.dtype(dtype).name}. Centre and scale X, or lower gamma."
            )

    def _power(self, t: Array, _: Any = None) -> Array:
        """``(t + coef0)^degree`` of ``t = gamma <x, y>``."""
        with np.errstate(over="ignore", invalid="ignore"):
            return (t + self.coef0) ** self.degree
