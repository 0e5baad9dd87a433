"""Intercepts that the loss has no curvature in: where they belong, and how far they are from there.

With no row of training on a curved piece, sum s dV/du does not change with b until a row changes
its piece. Where the sum is not zero, b goes to where it is. Where it is zero, any b in between is a
minimum; b* is by convention the middle of that stretch, as in onefit.certificate. Whether the sum
is zero must not be a matter of rounding: it is asked only where all terms are whole numbers, which
are added up without any, as they are for a hinge without weights. (Sums of other weights that
cancel to the last bit are chance, and these columns go without a bound.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit import linalg
from onefit._precise import EPSILON
from onefit._types import Array
from onefit.flat_interval import piece_interval
from onefit.losses.base import loss_of
from onefit.stream.accumulate import Chunk
from onefit.stream.passes import Form, Run, Sum, trained
from onefit.stream.step_length import BRACKET_POINTS

__all__ = ["ShiftedSlopes", "Stretch", "Stretches", "slide"]

#: shifts of the intercept, in units of the targets' scale, where its slope is looked at
SLOPE_SHIFTS_IN_SCALES = np.concatenate(
    [-(10.0 ** np.arange(4.0, -7.0, -1.0)), 10.0 ** np.arange(-6.0, 5.0)]
)


@dataclass(frozen=True)
class Stretches:
    """How far intercepts may go; c columns.

    Attributes
    ----------
    flat : (c,) bool array
        Whether the loss is flat in b.
    below, above : (c,) arrays
        How far b may be lowered and raised until a row changes its piece.
    rounding : (c,) array
        Of these.
    """

    flat: Array
    below: Array
    above: Array
    rounding: Array

    @property
    def middle(self) -> Array:
        """Where b belongs, as a shift; the finite end of a stretch that is open to one side."""
        below, above = (np.where(np.isfinite(x), x, 0.0) for x in (self.below, self.above))
        both = np.isfinite(self.below) & np.isfinite(self.above)
        return np.where(self.flat, (above - below) * np.where(both, 0.5, 1.0), 0.0)

    @property
    def beta(self) -> Array:
        """A bound on how far b is from there; infinite where it is not flat."""
        ends = np.isfinite(self.below) | np.isfinite(self.above)
        return np.where(self.flat & ends, np.abs(self.middle) + self.rounding, np.inf)

    @property
    def width(self) -> Array:
        """Of the stretch."""
        return self.below + self.above


@dataclass(frozen=True)
class Stretch:
    """The accumulator of that."""

    form: Form
    theta: Array = field(repr=False)
    train: Array = field(repr=False)

    def init(self) -> tuple[Array, ...]:
        c = self.theta.shape[1]
        sums, curved, broken, size = np.zeros((4, c))
        return sums, curved, broken, size, np.full(c, np.inf), np.full(c, np.inf)

    def update(self, state: tuple[Array, ...], chunk: Chunk) -> tuple[Array, ...]:
        form, y, s = self.form, self.form.targets(chunk), trained(self.train, chunk)
        u = form.predictions(form.features.read(chunk.X), self.theta)
        terms = s * form.gradient(y, u)
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
        pairs = list(zip(one, other, strict=True))
        sums = (a + b for a, b in pairs[:3])
        return (*sums, np.maximum(*pairs[3]), np.minimum(*pairs[4]), np.minimum(*pairs[5]))

    def finish(self, state: tuple[Array, ...]) -> Stretches:
        sums, curved, broken, size, below, above = state
        flat = (sums == 0.0) & (curved == 0.0) & (broken == 0)
        return Stretches(flat, below, above, 8.0 * EPSILON * (size + 1.0))


def slide(form: Form, theta: Array, train: Array, run: Run, scale: float) -> Array:
    """Shifts of the intercepts to where they belong, nearly."""
    shift = _crossing(form, theta, train, run, scale)
    there = theta.copy()
    there[-1] += shift
    found: Stretches = run(Stretch(form, there, train))
    return np.asarray(shift + found.middle)


def _crossing(form: Form, theta: Array, train: Array, run: Run, scale: float) -> Array:
    """Shifts of the intercepts to where sum s dV/du vanishes, nearly."""
    every = np.arange(theta.shape[1])
    shifts = np.repeat(scale * SLOPE_SHIFTS_IN_SCALES[:, None], every.size, axis=1)
    for _ in range(3):
        slopes: Array = run(ShiftedSlopes(form, theta, train, shifts))
        above = (slopes > 0.0).argmax(axis=0)
        # an end where nothing rises, or nothing falls: the nearest point that was looked at
        above = np.where((slopes > 0.0).any(axis=0), above, shifts.shape[0] - 1)
        high, low = shifts[above, every], shifts[np.maximum(above - 1, 0), every]
        before, after = slopes[np.maximum(above - 1, 0), every], slopes[above, every]
        shifts = low + BRACKET_POINTS[:, None] * (high - low)
    rise = np.where(after > before, after - before, 1.0)
    share = np.where(after > before, np.clip(-before / rise, 0.0, 1.0), 0.5)
    return np.asarray(low + share * (high - low))


@dataclass(frozen=True)
class ShiftedSlopes(Sum):
    """sum s dV/du with every prediction of a column raised by some shifts, (T, c)."""

    form: Form
    theta: Array = field(repr=False)
    train: Array = field(repr=False)
    shifts: Array

    def init(self) -> Array:
        return np.zeros(self.shifts.shape)

    def update(self, state: Array, chunk: Chunk) -> Array:
        form, y, s = self.form, self.form.targets(chunk), trained(self.train, chunk)
        u = form.predictions(form.features.read(chunk.X), self.theta)
        for i, shift in enumerate(self.shifts):
            state[i] += linalg.dots(s, form.gradient(y, u + shift))
        return state
