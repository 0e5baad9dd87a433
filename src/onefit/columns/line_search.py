"""Exact line search: the root of a monotone function.

Along a ray (a + t da, b + t db) the objective of a convex model is convex in t, and its slope

    phi'(t) = sum_i s_i g(y_i, u_i + t du_i) du_i + 2 Lambda (a'K da + t da'K da)

does not decrease. For a piecewise quadratic loss phi' is piecewise linear, so Newton steps on it,
kept inside a bracket, reach the root exactly once they land on its piece; smooth losses converge
quadratically. Columns are independent rays (folds), searched together.
"""

from __future__ import annotations

import numpy as np

from onefit._types import Array
from onefit.losses.base import MAX_BISECTIONS, Loss, loss_of

__all__ = ["line_search"]

#: share of the slope at zero that counts as zero: a few hundred roundings
SLOPE_TOLERANCE = 1e-13
#: a slope still negative at this t is not followed further
MAX_STEP_LENGTH = 2.0**20


def line_search(
    loss: Loss,
    Y: Array,
    U: Array,
    dU: Array,
    s: Array,
    linear: Array,
    quadratic: Array,
    tolerance: float = SLOPE_TOLERANCE,
) -> Array:
    """The minimising t >= 0 for every column.

    Parameters
    ----------
    loss : Loss
    Y, U, dU : (n, k) arrays
        Targets, predictions and their directions.
    s : (n, k) or (n, 1) array
        Weights; zero for rows left out.
    linear, quadratic : (k,) arrays
        2 Lambda a'K da and 2 Lambda da'K da.
    tolerance : float
        Share of the slope at zero that may be left before the minimum; beyond it no more than
        SLOPE_TOLERANCE is.
    """
    moving = s * dU

    def slope(t: Array, columns: Array) -> tuple[Array, Array]:
        at = U[:, columns] + t * dU[:, columns]
        y, m, own = Y[:, columns], moving[:, columns], loss_of(loss, columns)
        first = (m * own.gradient(y, at)).sum(axis=0)
        second = (m * dU[:, columns] * own.curvature(y, at)).sum(axis=0)
        q = quadratic[columns]
        return first + linear[columns] + t * q, second + q

    every = np.arange(dU.shape[1])
    start, _ = slope(np.zeros(every.size), every)
    done = np.where(start < 0, 1.0, 0.0)
    left = np.flatnonzero(start < 0)
    low, high = np.zeros(every.size), np.full(every.size, np.inf)
    for _ in range(MAX_BISECTIONS):
        if left.size == 0:
            break
        t = done[left]
        value, curvature = slope(t, left)
        # beyond the minimum the objective may have risen again where the slope is small
        allowed = np.where(value > 0, min(tolerance, SLOPE_TOLERANCE), tolerance)
        finished = np.abs(value) <= allowed * np.abs(start[left])
        low[left] = np.where(value < 0, t, low[left])
        high[left] = np.where(value > 0, t, high[left])
        done[left] = np.where(finished, t, _propose(t, value, curvature, low[left], high[left]))
        narrow = high[left] <= (1.0 + max(4e-16, 0.1 * tolerance)) * low[left]
        done[left] = np.where(narrow & ~finished, low[left], done[left])
        left = left[~(finished | narrow | (done[left] >= MAX_STEP_LENGTH))]
    return done


def _propose(t: Array, value: Array, curvature: Array, low: Array, high: Array) -> Array:
    """Newton's next t where it falls inside the bracket, else its middle or a doubling.

    The middle is that of the logarithms while the bracket is wide: a root may be many powers of
    ten below the first trial.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        newton = t - value / curvature
        wide = np.where(low > 0.0, np.sqrt(low) * np.sqrt(high), 0.125 * high)
    middle = np.where(high > 4.0 * low, wide, 0.5 * (low + high))
    middle = np.where(np.isinf(high), 2.0 * np.maximum(t, 1.0), middle)
    inside = (newton > low) & (newton < np.minimum(high, 16.0 * np.maximum(t, 1.0)))
    return np.where(inside, newton, middle)
