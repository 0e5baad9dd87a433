"""Losses of a residual r = y - u.

=============  ====================================  ====================  =================
loss           V                                     g = dV/du             d = d2V/du2
=============  ====================================  ====================  =================
squared        r^2                                   -2 r                  2
Huber, t       r^2 if |r| <= t else 2 t |r| - t^2    -2 clip(r, -t, t)     2 where |r| <= t
eps-quadratic  max(|r| - eps, 0)^2                   -2 sign(r)(|r|-eps)+  2 where |r| > eps
expectile, l   2 w r^2, w = l if r > 0 else 1 - l    -4 w r                4 w
logistic       -log(4 s(r)(1 - s(r))), s = sigmoid   -(2 s(r) - 1)         2 s(r)(1 - s(r))
=============  ====================================  ====================  =================

The Huber loss (threshold t, b in the paper) and the logistic one are those of Debruyne, Hubert and
Suykens (JMLR 2008, section 3.1); the derivative of the logistic loss is misprinted there (section
3.2): it is 2/(1 + e^-r) - 1 in r. The quadratic epsilon-insensitive loss is that of Liu, Jiang and
Liao (ICML 2014, section 4.2.2), with the sign of r restored for r < -eps. The expectile of level l
(Newey and Powell, Econometrica 1987) is the least asymmetrically weighted squares; the factor 2
makes that of level 1/2 the squared loss itself, at the same lam.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from onefit._validation import check_positive
from onefit.losses.base import (
    Array,
    PerTargetLoss,
    PiecewiseQuadratic,
    SmoothLoss,
    check_level,
    in_type_of,
    per_target,
)

__all__ = ["EpsilonQuadratic", "Expectile", "Huber", "Logistic", "PerSpread", "Squared"]

#: median absolute deviation of a normal distribution, in standard deviations
NORMAL_MAD = 0.6744897501960817
#: the threshold "mad": the best of those tried where the function explains 50 to 90 % of the
#: variance (benchmarks/scale_rule.py)
THRESHOLD_IN_SPREADS = 0.5


@dataclass(frozen=True)
class Squared(PiecewiseQuadratic):
    """(y - u)^2: kernel ridge regression, LS-SVM."""

    name = "squared"
    quadratic = True
    max_curvature = 2.0
    of_residual = True
    task = "any"

    def value(self, y: Array, u: Array) -> Array:
        return (y - u) ** 2

    def gradient(self, y: Array, u: Array) -> Array:
        return -2.0 * (y - u)

    def curvature(self, y: Array, u: Array) -> Array:
        return np.full_like(y - u, 2.0)

    def piece(self, y: Array, u: Array) -> Array:
        return np.zeros(np.shape(y - u), dtype=np.int8)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        return np.ones_like(u), y


class PerSpread(PerTargetLoss):
    """Base of losses with a width in units of the targets, possibly computed from their spread.

    Attributes
    ----------
    width : str
        Name of the width parameter: a number, or "mad".
    width_in_spreads : float
        The width of "mad", in spreads of the training targets.
    """

    width: ClassVar[str]
    width_in_spreads: ClassVar[float]

    def _check_width(self, hint: str) -> None:
        def check(value: Any) -> float:
            return check_positive(self.width, value, f"or 'mad'; {hint}")

        if not self.relative:
            object.__setattr__(self, self.width, per_target(getattr(self, self.width), check))

    @property
    def relative(self) -> bool:
        """Whether the width is still to be computed from the targets."""
        found = getattr(self, self.width)
        return isinstance(found, str) and found == "mad"

    def resolve(self, y: Array, s: Array) -> Self:
        """The loss with a width for each column of targets."""
        found = self.width_in_spreads * spread_of(y, s)
        return replace(self, **{self.width: found})  # type: ignore[type-var]

    def _widened(self, factor: float) -> Self:
        found = factor * np.asarray(getattr(self, self.width))
        return replace(self, **{self.width: found.tolist()})  # type: ignore[type-var]


@dataclass(frozen=True)
class Huber(PerSpread):
    """Quadratic within a threshold of the target, linear beyond: bounded influence.

    Parameters
    ----------
    threshold : float, or "mad", default="mad"
        In units of the targets. "mad" is half the spread of the training targets: their median
        absolute deviation, scaled to the standard deviation of a normal distribution, separately
        for every target and training set.
    """

    threshold: Any = "mad"
    name = "huber"
    max_curvature = 2.0
    width = "threshold"
    by_target = ("threshold",)
    width_in_spreads = THRESHOLD_IN_SPREADS

    def __post_init__(self) -> None:
        self._check_width("use loss='squared' for a Huber loss without a threshold")

    def widened(self, factor: float) -> tuple[Huber, float]:
        """The loss with ``factor`` times the threshold, and the factor of Lambda.

        Multiplied alike, the largest slope and Lambda keep the range of the coefficients.
        """
        return self._widened(factor), factor

    def value(self, y: Array, u: Array) -> Array:
        size = np.abs(y - u)
        inside = np.minimum(size, in_type_of(size, self.threshold))
        return np.asarray(inside * (2.0 * size - inside))

    def gradient(self, y: Array, u: Array) -> Array:
        r = y - u
        threshold = in_type_of(r, self.threshold)
        return np.asarray(-2.0 * np.clip(r, -threshold, threshold))

    def curvature(self, y: Array, u: Array) -> Array:
        r = y - u
        inside = np.abs(r) <= in_type_of(r, self.threshold)
        return np.where(inside, 2.0, 0.0).astype(r.dtype, copy=False)

    def piece(self, y: Array, u: Array) -> Array:
        r = y - u
        inside = np.abs(r) <= in_type_of(r, self.threshold)
        return np.where(inside, 0, np.sign(r)).astype(np.int8)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        r = y - u
        threshold = in_type_of(r, self.threshold)
        return threshold / np.maximum(np.abs(r), threshold), y


@dataclass(frozen=True)
class EpsilonQuadratic(PiecewiseQuadratic):
    """Zero within epsilon of the target, quadratic beyond: quadratic epsilon-SVR."""

    epsilon: float = 0.1
    name = "epsilon_quadratic"
    max_curvature = 2.0
    of_residual = True
    task = "regression"

    def __post_init__(self) -> None:
        hint = "or 0, for a tube without width"
        epsilon = check_positive("epsilon", self.epsilon, hint) if self.epsilon != 0 else 0.0
        object.__setattr__(self, "epsilon", epsilon)

    def _excess(self, y: Array, u: Array) -> Array:
        r = y - u
        return np.asarray(np.sign(r) * np.maximum(np.abs(r) - self.epsilon, 0.0), dtype=r.dtype)

    def value(self, y: Array, u: Array) -> Array:
        return self._excess(y, u) ** 2

    def gradient(self, y: Array, u: Array) -> Array:
        return -2.0 * self._excess(y, u)

    def curvature(self, y: Array, u: Array) -> Array:
        r = y - u
        return np.where(np.abs(r) > self.epsilon, 2.0, 0.0).astype(r.dtype, copy=False)

    def piece(self, y: Array, u: Array) -> Array:
        r = y - u
        return np.where(np.abs(r) > self.epsilon, np.sign(r), 0).astype(np.int8)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        return np.ones_like(u), u + self._excess(y, u)


@dataclass(frozen=True)
class Expectile(PerTargetLoss):
    """Squared errors with different weights above and below: asymmetric least squares.

    Parameters
    ----------
    level : float, or one per target, default=0.5
        Between 0 and 1; residuals above zero weigh ``level``, those below ``1 - level``.
    """

    level: Any = 0.5
    name = "expectile"
    by_target = ("level",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", per_target(self.level, check_level))

    @property
    def max_curvature(self) -> float:
        """Curvature of the steeper side."""
        return 4.0 * float(np.max(np.maximum(self.level, np.subtract(1.0, self.level))))

    def _weight(self, r: Array) -> Array:
        level = in_type_of(r, self.level)
        return np.asarray(np.where(r > 0.0, level, 1.0 - level), dtype=r.dtype)

    def value(self, y: Array, u: Array) -> Array:
        r = y - u
        return np.asarray(2.0 * self._weight(r) * r**2)

    def gradient(self, y: Array, u: Array) -> Array:
        r = y - u
        return np.asarray(-4.0 * self._weight(r) * r)

    def curvature(self, y: Array, u: Array) -> Array:
        return np.asarray(4.0 * self._weight(y - u))

    def piece(self, y: Array, u: Array) -> Array:
        return np.asarray(y - u > 0.0).astype(np.int8)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        r = y - u
        level = np.asarray(self.level, dtype=r.dtype)
        weight = np.broadcast_to(2.0 * np.maximum(level, 1.0 - level), r.shape)
        return weight, np.asarray(u - self.gradient(y, u) / (2.0 * weight))


@dataclass(frozen=True)
class Logistic(SmoothLoss):
    """-log(4 s(r)(1 - s(r))): smooth and with bounded derivative, JMLR 2008.

    Near zero it is log(1 + sinh(r/2)^2), which does not cancel; with q = exp(-|r|) it is
    |r| + 2 log(1 + q) - log 4, which does not overflow.
    """

    name = "logistic"
    max_curvature = 0.5
    of_residual = True
    task = "regression"

    def value(self, y: Array, u: Array) -> Array:
        size = np.abs(y - u)
        near = np.log1p(np.sinh(0.5 * np.minimum(size, 1.0)) ** 2)
        far = size + 2.0 * np.log1p(np.exp(-size)) - 2.0 * math.log(2.0)
        return np.asarray(np.where(size < 1.0, near, far))

    def gradient(self, y: Array, u: Array) -> Array:
        return -np.tanh(0.5 * (y - u))

    def curvature(self, y: Array, u: Array) -> Array:
        r = y - u
        return 2.0 * expit(r) * expit(-r)

    def third(self, y: Array, u: Array) -> Array:
        """d3V/du3."""
        r = y - u
        return 2.0 * expit(r) * expit(-r) * np.tanh(0.5 * r)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        return tanh_weight(y - u), y


def spread_of(y: Array, s: Array) -> Array:
    """The spread of every column of targets, weighted, never zero; in double precision.

    The median absolute deviation, in standard deviations of a normal law; where more than half of
    the targets are equal, the mean absolute deviation; where all are, 1.
    """
    values, weights = np.broadcast_arrays(y.astype(np.float64), s.astype(np.float64))
    deviation = np.abs(values - _median(values, weights))
    found = _median(deviation, weights) / NORMAL_MAD
    rest = np.average(deviation, axis=0, weights=weights)
    return np.where(found > 0.0, found, np.where(rest > 0.0, rest, 1.0))


def _median(values: Array, weights: Array) -> Array:
    """The weighted median of every column."""
    order = np.argsort(values, axis=0, kind="stable")
    share = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    place = (share >= 0.5 * share[-1]).argmax(axis=0)
    columns = np.arange(values.shape[1])
    return np.asarray(values[order[place, columns], columns])


def tanh_weight(r: Array) -> Array:
    """tanh(r/2) / (2 r), continued by 1/4 at zero."""
    size = np.maximum(np.abs(r), 1e-30)
    return np.tanh(0.5 * size) / (2.0 * size)
