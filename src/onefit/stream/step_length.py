"""How far to go along a Newton step, from slopes at a few points of it that one pass adds up.

F is convex, so its slope along a step rises. Where it is small at the end, the whole step is taken.
Otherwise the zero lies between two of the points; a second pass takes points between these, a third
once more, and the zero is interpolated.
"""

from __future__ import annotations

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.stream.hessian import PrimalColumns, penalty
from onefit.stream.passes import Form, Run, Slopes

__all__ = ["BRACKET_POINTS", "step_lengths"]

#: points of a step where slopes are taken
STEP_LENGTHS = np.array([0.0, 1e-6, 1e-4, 1e-3, 1e-2, 0.03, 0.1, 0.25, 0.5, 1.0])
#: the part of a slope that a full step may leave
MAX_LEFT_SLOPE_SHARE = 0.5
#: points between two of them
BRACKET_POINTS = np.linspace(0.0, 1.0, 17)


def step_lengths(form: Form, columns: PrimalColumns, run: Run, theta: Array, move: Array) -> Array:
    """How far to go along every step: all the way, or to where its slope vanishes."""
    t, on = np.ones(theta.shape[1]), np.arange(theta.shape[1])
    ts = np.repeat(STEP_LENGTHS[:, None], on.size, axis=1)
    for turn in range(3):
        some = form.take(on), columns.take(on)
        slopes = _slopes(*some, run, theta[:, on], move[:, on], ts)
        if turn == 0:
            # the slope rises along the step: where it ends small, the step was a good one
            short = slopes[-1] > MAX_LEFT_SLOPE_SHARE * np.abs(slopes[0])
            on, ts, slopes = on[short], ts[:, short], slopes[:, short]
        if on.size == 0:
            break
        above, every = np.maximum((slopes > 0.0).argmax(axis=0), 1), np.arange(on.size)
        low, high = ts[above - 1, every], ts[above, every]
        before, after = slopes[above - 1, every], slopes[above, every]
        rise = np.where(after > before, after - before, 1.0)
        t[on] = low + np.clip(-before / rise, 0.0, 1.0) * (high - low)
        ts = low + BRACKET_POINTS[:, None] * (high - low)
    return t


def _slopes(
    form: Form, columns: PrimalColumns, run: Run, theta: Array, move: Array, ts: Array
) -> Array:
    """Of F along every step, (T, c)."""
    losses: Array = run(Slopes(form, theta, move, columns.train, ts))
    ridges = penalty(form, columns.ridge)
    start, bend = linalg.dots(ridges * theta, move), linalg.dots(ridges * move, move)
    return np.asarray(losses + start + ts * bend)
