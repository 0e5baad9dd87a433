"""Where to stop on a line, from slopes at a few points of it that one pass adds up.

**Step lengths.** F is convex, so its slope along a Newton step rises. Where it is small at the end,
the whole step is taken. Otherwise its zero lies between two of the points; a second pass takes
points between these, a third once more, and the zero is interpolated.

**Flat intercepts.** With no row of training on a curved piece, sum s dV/du does not change with b
until a row changes its piece. Where the sum is not zero, b goes to where it is. Where it is zero,
any b in between is a minimum; b* is by convention the middle of that interval, as in
onefit.proof.certificate. Whether the sum is zero must not be a matter of rounding where the middle
is proved: there it is added up without any. Each term is a whole number times a power of two, and
whole numbers of equal powers are added as such. (Where terms such as 0.3 and 0.7 nearly cancel, the
middle is taken, as it is for the whole kernel matrix, but it is not proved to be the minimum.)
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

__all__ = ["FlatIntervals", "from_ends", "recentre", "step_lengths"]

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

#: share of the sum of their sizes below which slopes are balanced, up to their rounding
MAX_BALANCED_SHARE = 1e-12
#: powers of two of double precision, as np.frexp returns them
SMALLEST_POWER, LARGEST_POWER = -1073, 1024


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
    """The accumulator of the flat intervals of some columns.

    ``proved``: only those of slopes that cancel without any rounding.
    """

    form: Form
    theta: Array = field(repr=False)
    proved: bool = True

    def init(self) -> tuple[Array, ...]:
        c = self.theta.shape[1]
        sums, curved, size = np.zeros(c), np.zeros(c), np.zeros(c)
        digits = digits_of(np.empty((0, c)))
        return sums, np.zeros(c), digits, curved, size, np.full(c, np.inf), np.full(c, np.inf)

    def update(self, state: tuple[Array, ...], chunk: Chunk) -> tuple[Array, ...]:
        form, y, s = self.form, self.form.targets(chunk), self.form.weights(chunk)
        u = form.predictions(form.features.read(chunk.X), self.theta)
        terms = s * form.loss.gradient(y, u)
        curved = linalg.dots(s, form.loss.curvature(y, u))
        size = np.where(s > 0.0, np.abs(y) + np.abs(u), 0.0).max(axis=0, initial=0.0)
        ends = [
            piece_interval(loss_of(form.loss, [c]), y[own, 0], u[own, c])
            for c, own in enumerate((s > 0.0).T)
        ]
        below, above = np.array(ends).reshape(-1, 2).T
        sums, sizes = terms.sum(axis=0), np.abs(terms).sum(axis=0)
        return self.merge(state, (sums, sizes, digits_of(terms), curved, size, below, above))

    def merge(self, one: tuple[Array, ...], other: tuple[Array, ...]) -> tuple[Array, ...]:
        size, below, above = zip(one[4:], other[4:], strict=True)
        ends = np.maximum(*size), np.minimum(*below), np.minimum(*above)
        return (*super().merge(one[:4], other[:4]), *ends)

    def finish(self, state: tuple[Array, ...]) -> FlatInterval:
        sums, sizes, digits, curved, size, below, above = state
        flat = cancels(digits) if self.proved else np.abs(sums) <= MAX_BALANCED_SHARE * sizes
        return FlatInterval(below, above, 8.0 * EPSILON * (size + 1.0), flat & (curved == 0.0))


def digits_of(terms: Array) -> Array:
    """The sums of the columns of (n, c) numbers without rounding, (2, powers, c).

    A number is (2^27 h + l) 2^p with whole numbers h and l of at most 27 bits. Sums of these are
    free of rounding errors up to 2^36 rows.

    Examples
    --------
    >>> digits = digits_of(np.array([[0.1, 0.1], [1e30, 0.2], [-1e30, -0.3], [-0.1, 0.0]]))
    >>> cancels(digits)
    array([ True, False])
    """
    mantissa, power = np.frexp(terms)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    digits = np.zeros((2, LARGEST_POWER - SMALLEST_POWER + 1, terms.shape[1]), dtype=np.int64)
    place = (
        np.asarray(power - SMALLEST_POWER),
        np.broadcast_to(np.arange(terms.shape[1]), terms.shape),
    )
    np.add.at(digits[0], place, whole >> 27)
    np.add.at(digits[1], place, whole & (2**27 - 1))
    return digits


def cancels(digits: Array) -> Array:
    """Whether sums without rounding are zero."""
    totals = [0] * digits.shape[2]
    for power in np.flatnonzero(digits.any(axis=(0, 2))).tolist():
        for column, (high, low) in enumerate(digits[:, power].T.tolist()):
            totals[column] += ((high << 27) + low) << power
    return np.array([total == 0 for total in totals])


def recentre(columns: PrimalColumns, theta: Array) -> Array:
    """Shifts of the intercepts to their minima, nearly."""
    upward = np.zeros_like(theta)
    upward[-1] = 1.0
    shifts = np.repeat(columns.scale * SLOPE_SHIFTS_IN_SCALES[:, None], theta.shape[1], axis=1)
    shift = _zeros(columns, theta, upward, shifts, _slopes(columns, theta, upward, shifts))
    found: FlatInterval = columns.run(FlatIntervals(columns.form, theta + shift * upward, False))
    return np.asarray(shift + found.middle)


def from_ends(columns: PrimalColumns, theta: Array) -> Array:
    """Shifts from the ends of flat intervals to their middles; zero for columns at no end.

    At an end some rows are on curved pieces by rounding. A small shift to one side takes them off.
    """
    form, found = columns.form, np.zeros(theta.shape[1])
    w, b = theta[: form.features.size], np.abs(theta[-1])
    reach = columns.scale + b + columns.longest * np.linalg.norm(w, axis=0)
    for nudge in (-(EPSILON**0.5) * reach, EPSILON**0.5 * reach):
        at = theta.copy()
        at[-1] += nudge
        one: FlatInterval = columns.run(FlatIntervals(form, at, False))
        found = np.where(one.flat, nudge + one.middle, found)
    return found
