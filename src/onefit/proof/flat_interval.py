"""Intercepts that are equally good: where the objective of a model is flat in b.

If no training row has curvature at the minimum, the minimising intercepts are an interval. Its
middle depends on the data alone, not on the way there, so it is the intercept of the model. The
interval ends where a row changes its piece of the loss; both ends are found by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.losses.base import MAX_BISECTIONS, Loss
from onefit.proof.precise import EPSILON

__all__ = ["FlatInterval", "from_middle", "piece_interval", "shift_to_middle"]


@dataclass(frozen=True)
class FlatInterval:
    """How far b may be lowered and raised without loss: numbers, or arrays of one per column.

    Attributes
    ----------
    below, above : float or (c,) array
        Infinite where the interval is open.
    rounding : float or (c,) array
        Of targets and predictions.
    flat : bool or (c,) bool array
        Whether the objective is flat in b; there is no interval where it is not.
    """

    below: Any
    above: Any
    rounding: Any = 0.0
    flat: Any = True

    @property
    def middle(self) -> Array:
        """The shift of b to the middle; to the finite end of an interval open to one side."""
        below, above = self._ends
        both = np.isfinite(self.below) & np.isfinite(self.above)
        return np.where(self.flat, (above - below) * np.where(both, 0.5, 1.0), 0.0)

    @property
    def distance(self) -> Array:
        """A bound on how far b is from there; infinite without an interval or an end of it.

        Ends that are far from the targets are rounded more than these.
        """
        known = np.isfinite(self.below) | np.isfinite(self.above)
        rounding = self.rounding + 8.0 * EPSILON * sum(self._ends)
        return np.where(self.flat & known, np.abs(self.middle) + rounding, np.inf)

    @property
    def _ends(self) -> tuple[Array, Array]:
        """Both ends, zero where they are open."""
        below, above = (np.where(np.isfinite(x), x, 0.0) for x in (self.below, self.above))
        return below, above

    @property
    def width(self) -> Array:
        """Distance between the ends."""
        return np.asarray(self.below + self.above)


def shift_to_middle(loss: Loss, y: Array, u: Array, s: Array, nudge: float) -> float:
    """Shift of b to the middle of the flat interval; 0 if the objective is not flat in b.

    Predictions u may lie at an end of the interval, up to rounding: they are inside of it after a
    small shift, the ``nudge``, to one side.
    """
    train = s > 0.0
    y, u, s = y[train], u[train], s[train]
    for shift in (0.0, -nudge, nudge):
        v = u + u.dtype.type(shift)
        slopes = s * loss.gradient(y, v)
        level = 1e-12 * float(np.abs(slopes).sum())
        balanced = abs(float(slopes.sum(dtype=np.float64))) <= level
        if balanced and not loss.curvature(y, v).any():
            return float(shift + FlatInterval(*piece_interval(loss, y, v)).middle)
    return 0.0


def from_middle(loss: Loss, y: Array, v: Array, s: Array) -> tuple[float, float]:
    """Distance of the intercept from the middle of the flat interval, and the interval's width.

    Both are infinite if the objective is not flat in b at predictions v.
    """
    train = s > 0.0
    y, v, s = y[train], v[train], s[train]
    if loss.curvature(y, v).any() or fsum(s * loss.gradient(y, v)) != 0.0:
        return np.inf, np.inf
    rounding = 8.0 * EPSILON * float((np.abs(y) + np.abs(v)).max())
    found = FlatInterval(*piece_interval(loss, y, v), rounding)
    return float(found.distance), float(found.width)


def piece_interval(loss: Loss, y: Array, v: Array) -> tuple[float, float]:
    """How far all predictions may be lowered, and raised, before one of them changes its piece."""
    pieces = loss.piece(y, v)
    size, most = float((np.abs(y) + np.abs(v)).max(initial=0.0)), float(np.finfo(v.dtype).max) / 4.0

    def end(sign: float) -> float:
        if np.array_equal(loss.piece(y, v + sign * most), pieces):
            return np.inf
        inside, outside = 0.0, size or 1.0
        while np.array_equal(loss.piece(y, v + sign * outside), pieces):
            inside, outside = outside, 2.0 * outside
        for _ in range(MAX_BISECTIONS):
            middle = 0.5 * (inside + outside)
            same = np.array_equal(loss.piece(y, v + sign * middle), pieces)
            inside, outside = (middle, outside) if same else (inside, middle)
        return outside

    return end(-1.0), end(1.0)
