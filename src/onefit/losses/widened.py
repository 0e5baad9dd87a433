"""Losses with wider curved pieces, and steps from a wider loss to a narrower one.

A loss may have a method ``widened(factor)``, which returns the loss with its curved pieces
``factor`` times as wide, and the factor of Lambda that keeps the range of the coefficients.
Problems with wider pieces are easier for Newton's method (onefit.columns.solve).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit.losses.base import MAX_BISECTIONS, Array, Loss

__all__ = ["Carried", "slope_points", "widened_loss"]


def widened_loss(loss: Loss, factor: float) -> tuple[Loss, float]:
    """The loss with curved pieces ``factor`` times as wide, and the factor of Lambda.

    A loss without a method ``widened`` is kept, and Lambda multiplied by the factor.
    """
    widened = getattr(loss, "widened", None)
    found: tuple[Loss, float] = (loss, factor) if widened is None else widened(factor)
    return found


def slope_points(loss: Loss, y: Array, u: Array, slope: Array, small: Any) -> Array:
    """Predictions at which the loss has given slopes.

    Slopes do not decrease in u, so bisection of a bracket finds such a point. Rows whose slope is
    right up to ``small``, and rows without a bracket, stay at u.
    """
    far = np.abs(loss.gradient(y, u) - slope) > small
    reach = 1.0 + np.abs(y) + np.abs(u)
    low, high = u - reach, u + reach
    far &= (loss.gradient(y, low) <= slope) & (slope <= loss.gradient(y, high))
    for _ in range(MAX_BISECTIONS):
        middle = 0.5 * (low + high)
        below = loss.gradient(y, middle) < slope
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.where(far, middle, u)


@dataclass(frozen=True)
class Carried:
    """The models of a loss around the slopes that a wider one has at the same predictions.

    Parameters
    ----------
    loss, wide : Loss
    ratio : float
        Of the slopes of the two.
    """

    loss: Loss
    wide: Loss
    ratio: float

    @property
    def max_curvature(self) -> float:
        """Largest curvature of the loss."""
        return float(self.loss.max_curvature)

    def _points(self, y: Array, u: Array) -> tuple[Array, Array]:
        slope = self.ratio * self.wide.gradient(y, u)
        small = 16.0 * np.finfo(u.dtype).eps * np.abs(slope)
        return slope_points(self.loss, y, u, slope, small), slope

    def gradient(self, y: Array, u: Array) -> Array:
        """Gradient at u of the line through the point with the slope."""
        v, slope = self._points(y, u)
        return np.asarray(slope + self.loss.curvature(y, v) * (u - v))

    def curvature(self, y: Array, u: Array) -> Array:
        """Curvature at the point with the slope."""
        return self.loss.curvature(y, self._points(y, u)[0])
