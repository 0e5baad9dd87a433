"""From the scores of the splits to one number per candidate, its standard error and its rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[Any]

__all__ = ["AGGREGATES", "aggregate", "rank", "standard_error"]

AGGREGATES = ("mean", "weighted", "pooled", "median")


def aggregate(how: str, scores: Array, sizes: Array, pooled: Array | None = None) -> Array:
    """One number per candidate from its (..., k) split scores.

    Parameters
    ----------
    how : {"mean", "weighted", "pooled", "median"}
        Every split alike; in proportion to its test rows; the metric of all test rows at once,
        given as ``pooled``; the median split.
    scores : (..., k) array
    sizes : (k,) array
        Test rows of each split.
    pooled : (...) array, default=None
    """
    if how == "mean":
        return np.asarray(scores.mean(axis=-1))
    if how == "weighted":
        return np.asarray(scores @ (sizes / sizes.sum()))
    if how == "median":
        return np.asarray(np.median(scores, axis=-1))
    assert pooled is not None
    return pooled


def standard_error(scores: Array) -> Array:
    """Standard error of the mean of (..., k) split scores, taken as k independent draws."""
    k = scores.shape[-1]
    if k < 2:
        return np.full(scores.shape[:-1], np.nan)
    return np.asarray(scores.std(axis=-1, ddof=1) / np.sqrt(k))


def rank(values: Array) -> Array:
    """Rank 1 for the largest, ties share the best rank, NaN comes last; as in scikit-learn."""
    if np.isnan(values).all():
        return np.ones(values.shape, dtype=np.int32)
    filled = np.where(np.isnan(values), -np.inf, values)
    return np.asarray(rankdata(-filled, method="min").astype(np.int32))
