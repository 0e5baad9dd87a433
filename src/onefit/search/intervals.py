"""Scores as intervals: what the bounds of held-out values leave open.

Every held-out value u comes with a bound e on |u - u*|, u* being that of the honest refit, so that
whatever grows or falls with |y - u| is known within ends:

- squared and absolute errors, their root, R^2: by max(|y - u| - e, 0) and |y - u| + e;
- accuracy, balanced or not: a row is in doubt only if its decision could change, that is if
  |u| <= e, or with several classes if its largest value and another are within 2 e. Every other row
  is settled, and a fold of settled rows has an exact error rate however rough its values are.

Means, weighted means, medians and pooled scores over splits never fall when a split's score rises,
hence their ends are those of the splits' ends. Scores that are not of these kinds have no interval.

What a search by method "exact" computes is itself within a tolerance of u*. That tolerance is added
to e, so that the intervals hold for its scores as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.certificate import EXACT
from onefit.search.aggregate import aggregate
from onefit.search.metrics import (
    Truth,
    absolute_error,
    accuracy,
    balanced_accuracy,
    determination,
    hits,
    root_squared_error,
    squared_error,
)
from onefit.search.scoring import Scoring
from onefit.search.workers import Outcome, Task

Array = NDArray[Any]
Ends = tuple[Array, Array]

__all__ = ["interval_columns", "score_interval", "supports"]


def supports(scoring: Scoring, metric: str) -> bool:
    """Whether a score has intervals."""
    return metric in scoring.fast and scoring.fast[metric][0] in ENDS


def score_interval(task: Task, outcome: Outcome, metric: str) -> Ends:
    """The least and the largest score that every lambda of an outcome can have, (L,) each.

    NaN where it has no score.
    """
    y = task.sample.Y.astype(np.float64)
    unit = EXACT * float(np.max(y.std(axis=0), initial=0.0))
    known = np.isfinite(outcome.values).all(axis=(1, 2))
    ends = np.full((2, known.size), np.nan)
    if not known.any():
        return ends[0], ends[1]
    values = outcome.values[known].astype(np.float64)
    sizes = np.diff(task.sample.folds.offsets)
    rough = np.where(np.isnan(outcome.error[known]), np.inf, outcome.error[known]) + unit
    error = np.repeat(rough, sizes, axis=1)[..., None]
    split = _of(task.scoring, metric, values, error)
    pooled: Any = (None, None)
    if task.pooled is not None:
        pooled = [one[:, 0] for one in _of(task.pooled, metric, values, error)]
    for end, one, all_rows in zip(ends, split, pooled, strict=True):
        end[known] = aggregate(task.how, one, sizes, all_rows)
    return ends[0], ends[1]


def interval_columns(task: Task, outcomes: list[Outcome], size: int) -> dict[str, Array]:
    """``low_test_<metric>`` and ``high_test_<metric>`` of all candidates, where there are any."""
    columns: dict[str, Array] = {}
    for metric in task.scoring.names:
        if not supports(task.scoring, metric):
            continue
        ends = np.full((2, size), np.nan)
        for outcome in outcomes:
            ends[:, list(outcome.indices)] = score_interval(task, outcome, metric)
        columns |= {f"low_test_{metric}": ends[0], f"high_test_{metric}": ends[1]}
    return columns


def _of(scoring: Scoring, metric: str, values: Array, error: Array) -> Ends:
    """Of every lambda and split, (L, k)."""
    function, sign, truth = scoring.fast[metric]
    low, high = (one.mean(axis=2) for one in ENDS[function](truth, values, error))
    return (low, high) if sign > 0 else (-high, -low)


def _errors(metric: Any) -> Callable[[Truth, Array, Array], Ends]:
    """Of a metric that grows with every |y - u|: at the nearest and at the furthest values."""

    def ends(truth: Truth, u: Array, error: Array) -> Ends:
        off = truth.y - u
        near = np.sign(off) * np.maximum(np.abs(off) - error, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            far = np.where(off < 0.0, off - error, off + error)
            return metric(truth, truth.y - near), metric(truth, truth.y - far)

    return ends


def _determination(truth: Truth, u: Array, error: Array) -> Ends:
    low, high = _errors(determination)(truth, u, error)
    return high, low


def _labels(mean: Callable[[Truth, Array], Array]) -> Callable[[Truth, Array, Array], Ends]:
    """Of a mean of hits: rows that are in doubt miss, or hit."""

    def ends(truth: Truth, u: Array, error: Array) -> Ends:
        if u.shape[-1] == 1:
            margin, reach = np.abs(u), error
        else:
            own = np.take_along_axis(u, np.broadcast_to(truth.y, (len(u), *truth.y.shape)), axis=-1)
            others = np.where(np.arange(u.shape[-1]) == truth.y, -np.inf, u).max(axis=-1)[..., None]
            margin, reach = np.abs(own - others), 2.0 * error
        right, settled = hits(truth.y, u), margin > reach
        return mean(truth, right * settled), mean(truth, np.maximum(right, ~settled))

    return ends


#: the least and the largest value of each metric
ENDS: dict[Any, Callable[[Truth, Array, Array], Ends]] = {
    squared_error: _errors(squared_error),
    root_squared_error: _errors(root_squared_error),
    absolute_error: _errors(absolute_error),
    determination: _determination,
    accuracy: _labels(Truth.mean),
    balanced_accuracy: _labels(Truth.mean_of_classes),
}
