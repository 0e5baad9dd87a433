"""Losses of a margin t = y u, y in {-1, +1}.

==============  ===============================  ========================  =================
loss            V                                g = dV/du                 d = d2V/du2
==============  ===============================  ========================  =================
squared hinge   max(1 - t, 0)^2                  -2 y max(1 - t, 0)        2 where t < 1
smoothed hinge  0 if t > 1 + delta;              0;                        0;
                (1+delta-t)^2/(4 delta) between  -y (1+delta-t)/(2 delta)  1/(2 delta)
                1 - t if t < 1 - delta           -y                        0
log             log(1 + exp(-t))                 -y s(-t)                  s(t) s(-t)
==============  ===============================  ========================  =================

The smoothed hinge (the "Huber loss" of Liu and Liao, Information Sciences 2016, section 3.1) lies
between the hinge and the hinge + delta/4, so its minimiser is within delta/2 of the SVM's
objective (their Theorem 1) and tends to the SVM as delta -> 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from onefit._validation import check_positive
from onefit.losses.base import Array, PiecewiseQuadratic, SmoothLoss
from onefit.losses.regression import tanh_weight

__all__ = ["Log", "SmoothedHinge", "SquaredHinge"]


@dataclass(frozen=True)
class SquaredHinge(PiecewiseQuadratic):
    """max(1 - y u, 0)^2: the L2-SVM."""

    name = "squared_hinge"
    max_curvature = 2.0
    task = "classification"

    def value(self, y: Array, u: Array) -> Array:
        return np.maximum(1.0 - y * u, 0.0) ** 2

    def gradient(self, y: Array, u: Array) -> Array:
        return -2.0 * y * np.maximum(1.0 - y * u, 0.0)

    def curvature(self, y: Array, u: Array) -> Array:
        t = y * u
        return np.where(t < 1.0, 2.0, 0.0).astype(t.dtype, copy=False)

    def piece(self, y: Array, u: Array) -> Array:
        return (y * u < 1.0).astype(np.int8)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        return np.ones_like(u), y * np.maximum(y * u, 1.0)


@dataclass(frozen=True)
class SmoothedHinge(PiecewiseQuadratic):
    """The hinge with its corner rounded over a width of 2 delta."""

    delta: float = 0.1
    name = "smoothed_hinge"
    task = "classification"

    def __post_init__(self) -> None:
        hint = "the hinge itself (delta = 0) has no curvature, use a small width such as 0.01"
        object.__setattr__(self, "delta", check_positive("delta", self.delta, hint))

    @property
    def max_curvature(self) -> float:
        """Curvature of the rounded corner."""
        return 0.5 / self.delta

    def widened(self, factor: float) -> tuple[SmoothedHinge, float]:
        """The loss with a corner ``factor`` times as wide, and the factor of Lambda."""
        return SmoothedHinge(factor * self.delta), 1.0

    def _slope(self, y: Array, u: Array) -> Array:
        """-dV/dt, which runs from 1 through the rounded corner to 0."""
        return np.clip((1.0 + self.delta - y * u) / (2.0 * self.delta), 0.0, 1.0)

    def value(self, y: Array, u: Array) -> Array:
        # V = delta p^2 in the corner (p the slope), and 1 - t where p = 1
        return self.delta * self._slope(y, u) ** 2 + np.maximum(1.0 - self.delta - y * u, 0.0)

    def gradient(self, y: Array, u: Array) -> Array:
        return -y * self._slope(y, u)

    def curvature(self, y: Array, u: Array) -> Array:
        gap = 1.0 - y * u
        inside = np.abs(gap) <= self.delta
        return np.multiply(inside, 0.5 / self.delta, dtype=gap.dtype)

    def piece(self, y: Array, u: Array) -> Array:
        gap = 1.0 - y * u
        return np.subtract(gap > self.delta, gap < -self.delta, dtype=np.int8)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        end = 1.0 + self.delta
        gap = np.maximum(end - y * u, 0.0)
        return 0.5 / np.maximum(gap, 2.0 * self.delta), y * np.maximum(y * u, end)


@dataclass(frozen=True)
class Log(SmoothLoss):
    """log(1 + exp(-y u)): kernel logistic regression."""

    name = "log"
    max_curvature = 0.25
    task = "classification"

    def value(self, y: Array, u: Array) -> Array:
        return np.asarray(np.logaddexp(0.0, -y * u))

    def gradient(self, y: Array, u: Array) -> Array:
        return -y * expit(-y * u)

    def curvature(self, y: Array, u: Array) -> Array:
        return expit(u) * expit(-u)

    def third(self, y: Array, u: Array) -> Array:
        """d3V/du3."""
        return -expit(u) * expit(-u) * np.tanh(0.5 * u)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        weight = 0.5 * tanh_weight(u)
        return weight, y / (4.0 * weight)

    def probability(self, u: Array) -> Array:
        """P(y = +1) at the decision value u."""
        return expit(u)
