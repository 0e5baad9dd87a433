"""Held-out values that their bounds do not tell apart, made equal.

Rows far from all others, or equal rows, have the same value in a refit: the intercept, say, plus
nothing. By a formula they have it up to rounding, and the rounding depends on the target of the
row: u = y - (y - u) rounds differently for y = -1 and y = 1. A metric that looks at the order of
the values, or at their sign, would read the target from the rounding: an area under the ROC curve
of 1 where nothing is predicted. So values of a split that differ by less than their errors may
become one value, and those that may be zero become zero.
"""

from __future__ import annotations

import numpy as np

from onefit._types import Array
from onefit.folds import Folds

__all__ = ["DECISION_DECIMALS", "level", "resolution"]

#: of decision values whose bounds are not computed
DECISION_DECIMALS = 11

#: the largest difference that is levelled, however large the bound, which is often far above the
#: error: in units of the targets' spread, and in roundings of these (not tuned by a script)
MAX_IN_SCALES, MAX_IN_ROUNDINGS = 1e-11, 16.0


def resolution(bounds: Array, Y: Array, scale: Array) -> Array:
    """Differences below which values may be equal, (..., q); zero where no bound is known.

    Parameters
    ----------
    bounds : (..., q) array
        On the errors of the values.
    Y : (n, q) array
        Targets. An outlier among them raises bounds and scale far above the error of the others.
    scale : (q,) array
        Of the targets.
    """
    apart = np.median(np.abs(Y - np.median(Y, axis=0)), axis=0)
    share = max(MAX_IN_SCALES, MAX_IN_ROUNDINGS * float(np.finfo(Y.dtype).eps))
    most = share * np.where(apart > 0.0, np.minimum(apart, scale), scale)
    return np.where(np.isnan(bounds), 0.0, np.minimum(2.0 * bounds, most))


def level(values: Array, folds: Folds, within: Array) -> Array:
    """Make values equal, in place, that differ by no more than ``within``, split by split.

    Parameters
    ----------
    values : (N, q) array
    folds : Folds
    within : (k, q) array

    Returns
    -------
    (k, q) array
        The largest change in every split.
    """
    sizes = np.diff(folds.offsets)
    split, before = np.repeat(np.arange(sizes.size), sizes), values.copy()
    for u, width in zip(values.T, np.repeat(within, sizes, axis=0).T, strict=True):
        u[2.0 * np.abs(u) <= width] = 0.0
        order = np.lexsort((u, split))
        ordered = u[order]
        close = (np.diff(ordered) <= width[order[1:]]) & (np.diff(split[order]) == 0)
        if not close.any():
            continue
        ends = np.flatnonzero(np.diff(np.concatenate([[False], close, [False]]).astype(int)))
        for first, last in ends.reshape(-1, 2):
            _level_chain(ordered[first : last + 1], float(width[order[first]]))
        u[order] = ordered
    return folds.largest(values - before)


def _level_chain(values: Array, within: float) -> None:
    """Sorted neighbours become one value as long as none is further from the first of them."""
    first = 0
    while first < values.size:
        end = int(np.searchsorted(values, values[first] + within, side="right"))
        some = values[first : max(end, first + 1)]
        some[:] = 0.0 if (some == 0.0).any() else some[some.size // 2]
        first += some.size
