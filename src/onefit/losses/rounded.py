"""Losses of a residual r = y - u whose corners are rounded over a width delta.

The epsilon-insensitive loss of the support vector machine for regression (Vapnik 1995) and the
loss of a quantile (Koenker and Bassett, Econometrica 1978) are made of linear pieces, without
curvature for a Newton step. Both are replaced by their Moreau envelope,

    V(r) = min over v of   V_0(v) + (r - v)^2 / (2 delta),

which is V_0 with its slope clipped from a line of steepness 1 / delta: quadratic where V_0 has a
corner, linear elsewhere, with V <= V_0 <= V + delta/2.

===================  ==========================================  ==========================
loss                 V                                           g = dV/du
===================  ==========================================  ==========================
epsilon-insensitive  0 if |r| <= eps;                            -sign(r) min(e / delta, 1),
                     e^2 / (2 delta), e = |r| - eps <= delta;    e = max(|r| - eps, 0)
                     e - delta / 2 beyond
quantile, level l    c (r - delta c / 2)                         -c,
                                                                 c = clip(r/delta, l - 1, l)
===================  ==========================================  ==========================

The curvature is 1 / delta on the rounded corners and zero elsewhere. As delta falls the models
tend to those of V_0 (libsvm's epsilon-SVR with C = 1 / (2 Lambda); a kernel quantile regression),
and the mean of V_0 plus the penalty is within delta / 2 of its minimum: V_0 of the minimiser of V
is at most V + delta / 2, and V of any other is at most its V_0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from onefit._validation import check_positive
from onefit.losses.base import Array, check_level, in_type_of, per_target
from onefit.losses.regression import PerSpread

__all__ = ["EpsilonInsensitive", "Quantile"]

#: the width "mad": the widest of those tried that costs at most about 1 % of the pinball loss, even
#: where the function explains 99 % of the variance (benchmarks/scale_rule.py)
DELTA_IN_SPREADS = 0.03


class Rounded(PerSpread):
    """Base of both losses; the width is that of the rounded corners."""

    delta: Any
    width = "delta"
    width_in_spreads = DELTA_IN_SPREADS

    def __post_init__(self) -> None:
        self._check_width("the loss itself (delta = 0) has no curvature, use a small width")

    @property
    def max_curvature(self) -> float:
        """Curvature of the rounded corners; infinite until their width is known."""
        return np.inf if self.relative else 1.0 / float(np.min(self.delta))

    def widened(self, factor: float) -> tuple[Self, float]:
        """The loss with corners ``factor`` times as wide, and the factor of Lambda."""
        return self._widened(factor), 1.0


@dataclass(frozen=True)
class EpsilonInsensitive(Rounded):
    """Zero within epsilon of the target, quadratic over a width delta, then linear: SVR.

    Parameters
    ----------
    epsilon : float, default=0.1
        Half width of the tube, in units of the targets.
    delta : float, or "mad", default="mad"
        Width of the rounded corners, in units of the targets. "mad" is 0.03 times the spread of the
        training targets: their median absolute deviation, scaled to the standard deviation of a
        normal distribution, separately for every target and training set.
    """

    epsilon: float = 0.1
    delta: Any = "mad"
    name = "epsilon_insensitive"
    by_target = ("delta",)

    def __post_init__(self) -> None:
        hint = "or 0, for a tube without width"
        epsilon = check_positive("epsilon", self.epsilon, hint) if self.epsilon != 0 else 0.0
        object.__setattr__(self, "epsilon", epsilon)
        super().__post_init__()

    def _slope(self, e: Array) -> Array:
        """|dV/dr| where |r| exceeds epsilon by e."""
        return np.asarray(np.clip(e / in_type_of(e, self.delta), 0.0, 1.0), dtype=e.dtype)

    def value(self, y: Array, u: Array) -> Array:
        e = np.abs(y - u) - self.epsilon
        slope = self._slope(e)
        return np.asarray(slope * (e - 0.5 * in_type_of(e, self.delta) * slope))

    def unrounded(self, y: Array, u: Array) -> Array:
        """V_0, which is independent of the width."""
        return np.asarray(np.maximum(np.abs(y - u) - self.epsilon, 0.0))

    def gradient(self, y: Array, u: Array) -> Array:
        r = y - u
        return np.asarray(-np.copysign(self._slope(np.abs(r) - self.epsilon), r))

    def curvature(self, y: Array, u: Array) -> Array:
        r = y - u
        # a tube of width zero has one corner
        corner = np.abs(self.piece(y, u)) == (1 if self.epsilon else 0)
        return np.asarray(corner / in_type_of(r, self.delta), dtype=r.dtype)

    def piece(self, y: Array, u: Array) -> Array:
        r = y - u
        far = self.epsilon + in_type_of(r, self.delta)
        found = np.subtract(r > far, r < -far, dtype=np.int8)
        if self.epsilon:
            found += np.subtract(r > self.epsilon, r < -self.epsilon, dtype=np.int8)
        return np.asarray(found)

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        r = y - u
        e = np.maximum(np.abs(r) - self.epsilon, 0.0)
        weight = 0.5 / np.maximum(e, in_type_of(r, self.delta))
        return np.asarray(weight, dtype=r.dtype), np.asarray(u + np.sign(r) * e)


@dataclass(frozen=True)
class Quantile(Rounded):
    """The quantile of a level: a share ``level`` of the targets is below; the corner is rounded.

    Parameters
    ----------
    level : float, or one per target, default=0.5
        Between 0 and 1.
    delta : float, or "mad", default="mad"
        Width of the rounded corner, in units of the targets; "mad" as in
        :class:`EpsilonInsensitive`.
    """

    level: Any = 0.5
    delta: Any = "mad"
    name = "quantile"
    by_target = ("level", "delta")

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", per_target(self.level, check_level))
        super().__post_init__()

    def _slope(self, r: Array) -> Array:
        """dV/dr, which runs from level - 1 through the rounded corner to level."""
        level, delta = in_type_of(r, self.level), in_type_of(r, self.delta)
        return np.asarray(np.clip(r / delta, level - 1.0, level), dtype=r.dtype)

    def value(self, y: Array, u: Array) -> Array:
        r = y - u
        slope = self._slope(r)
        return np.asarray(slope * (r - 0.5 * in_type_of(r, self.delta) * slope))

    def unrounded(self, y: Array, u: Array) -> Array:
        """V_0, which is independent of the width."""
        r = y - u
        level = in_type_of(r, self.level)
        return np.asarray(np.maximum(level * r, (level - 1.0) * r))

    def gradient(self, y: Array, u: Array) -> Array:
        return -self._slope(y - u)

    def curvature(self, y: Array, u: Array) -> Array:
        r = y - u
        return np.asarray((self.piece(y, u) == 0) / in_type_of(r, self.delta), dtype=r.dtype)

    def piece(self, y: Array, u: Array) -> Array:
        r = y - u
        level, delta = in_type_of(r, self.level), in_type_of(r, self.delta)
        above, below = r > level * delta, r < (level - 1.0) * delta
        return np.asarray(np.subtract(above, below, dtype=np.int8))

    def reweight(self, y: Array, u: Array) -> tuple[Array, Array]:
        """Weight and target of a quadratic upper bound that touches the loss at u."""
        # V is the rounded |x| / 2 at x = r - delta (level - 1/2), plus a linear function of r
        r = y - u
        level, delta = in_type_of(r, self.level), in_type_of(r, self.delta)
        weight = 0.5 / np.maximum(2.0 * np.abs(r - delta * (level - 0.5)), delta)
        return weight, np.asarray(u + self._slope(r) / (2.0 * weight))
