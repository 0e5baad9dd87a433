"""Where to stop on a line, from slopes at a few points of it that one pass adds up.

**Step lengths.** F is convex, so its slope along a Newton step rises. Where it is small at the end,
the whole step is taken. Otherwise its zero lies between two of the points; a second pass takes
points between these, a third once more, and the zero is interpolated.

**Flat intercepts.** With no row of training on a curved piece, sum s dV/du does not change with b
until a row changes its piece. Where the sum is not zero, b goes to where it is. Where it is zero,
any b in between is a minimum; b* is by convention the middle of that interval, as in
onefit.proof.certificate. Whether the sum is zero must not be a matter of rounding: it is asked only
where all terms are whole numbers, which are added up without any, as they are for a hinge without
weights. (Sums of other weights that cancel to the last bit are chance, and these columns go without
a bound.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.features.hessian import PrimalColumns
from onefit.features.passes import Form, Slopes
from onefit.losses.base import loss_of
from onefit.proof.flat_interval import FlatInterval, piece_interval
from onefit.proof.precise import EPSILON
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = ["FlatIntervals", "recentre", "step_lengths"]

#: step lengths at which slopes are computed
STEP_LENGTHS = np.array([0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.25, 0.5, 1.0])
#: share of the slope that may remain after a full step (benchmarks/constants.py)
MAX_LEFT_SLOPE_SHARE = 0.5
#: points between two step lengths, as shares of their distance
BRACKET_POINTS = np.linspace(0.0, 1.0, 17)
#: shifts of the intercept, in units of the targets' scale, at which its slope is computed
SLOPE_SHIFTS_IN_SCALES = np.concatenate(
    [-(10.0 ** np.arange(4.0, -7.0, -1.0)), 10.0 ** np.arange(-6.0, 5.0)]
)


def step_lengths(columns: PrimalColumns, theta: Array, move: Array) -> Array:
    """Step lengths: 1, or up to the point where the slope vanishes."""
    t = np.ones(theta.shape[1])
    ts = np.repeat(STEP_LENGTHS[:, None], t.size, axis=1)
    slopes = _slopes(columns, theta, move, ts)
    # the slope rises along the step: where it ends small, the step was a good one
    on = np.flatnonzero(slopes[-1] > MAX_LEFT_SLOPE_SHARE * np.abs(slopes[0]))
    if on.size:
        t[on] = _zeros(columns.take(on), theta[:, on], move[:, on], ts[:, on], slopes[:, on])
    return t


def _slopes(columns: PrimalColumns, theta: Array, move: Array, ts: Array) -> Array:
    """Slopes of F along every step, (T, c)."""
    losses: Array = columns.run(Slopes(columns.form, theta, move, ts))
    penalty = columns.penalty
    start, bend = linalg.dots(penalty * theta, move), linalg.dots(penalty * move, move)
    return np.asarray(losses + start + ts * bend)


def _zeros(columns: PrimalColumns, theta: Array, move: Array, ts: Array, slopes: Array) -> Array:
    """Points of every step where the slope vanishes, nearly; ``slopes`` are those at ``ts``."""
    every = np.arange(theta.shape[1])
    for turn in range(3):
        rising = slopes > 0.0
        # without a change of sign, the last points or the first ones
        above = np.where(rising.any(axis=0), rising.argmax(axis=0), len(ts) - 1)
        above = np.maximum(above, 1)
        low, high = ts[above - 1, every], ts[above, every]
        before, after = slopes[above - 1, every], slopes[above, every]
        if turn < 2:
            ts = low + BRACKET_POINTS[:, None] * (high - low)
            slopes = _slopes(columns, theta, move, ts)
    rise = np.where(after > before, after - before, 1.0)
    share = np.where(after > before, np.clip(-before / rise, 0.0, 1.0), 0.5)
    return np.asarray(low + share * (high - low))


@dataclass(frozen=True)
class FlatIntervals(Accumulator[tuple[Array, ...], FlatInterval]):
    """The accumulator of the flat intervals of some columns."""

    form: Form
    theta: Array = field(repr=False)

    def init(self) -> tuple[Array, ...]:
        c = self.theta.shape[1]
        sums, curved, broken, size = np.zeros((4, c))
        return sums, curved, broken, size, np.full(c, np.inf), np.full(c, np.inf)

    def update(self, state: tuple[Array, ...], chunk: Chunk) -> tuple[Array, ...]:
        form, y, s = self.form, self.form.targets(chunk), self.form.weights(chunk)
        u = form.predictions(form.features.read(chunk.X), self.theta)
        terms = s * form.loss.gradient(y, u)
        broken = (terms != np.rint(terms)).sum(axis=0)
        curved = linalg.dots(s, form.loss.curvature(y, u))
        size = np.where(s > 0.0, np.abs(y) + np.abs(u), 0.0).max(axis=0, initial=0.0)
        ends = [
            piece_interval(loss_of(form.loss, [c]), y[own, 0], u[own, c])
            for c, own in enumerate((s > 0.0).T)
        ]
        below, above = np.array(ends).reshape(-1, 2).T
        return self.merge(state, (terms.sum(axis=0), curved, broken, size, below, above))

    def merge(self, one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
        size, below, above = zip(one[3:], other[3:], strict=True)
        ends = np.maximum(*size), np.minimum(*below), np.minimum(*above)
        return (*super().merge(one[:3], other[:3]), *ends)

    def finish(self, state: tuple[Array, ...]) -> FlatInterval:
        sums, curved, broken, size, below, above = state
        flat = (sums == 0.0) & (curved == 0.0) & (broken == 0)
        return FlatInterval(below, above, 8.0 * EPSILON * (size + 1.0), flat)


def recentre(columns: PrimalColumns, theta: Array) -> Array:
    """Shifts of the intercepts to their minima, nearly."""
    upward = np.zeros_like(theta)
    upward[-1] = 1.0
    shifts = np.repeat(columns.scale * SLOPE_SHIFTS_IN_SCALES[:, None], theta.shape[1], axis=1)
    shift = _zeros(columns, theta, upward, shifts, _slopes(columns, theta, upward, shifts))
    found: FlatInterval = columns.run(FlatIntervals(columns.form, theta + shift * upward))
    return np.asarray(shift + found.middle)
