"""Scores as intervals, from the bounds of held-out values.

Every held-out value u comes with a bound e on |u - u*|, u* being that of the honest refit, so that
the statistic of every row is known within ``ends`` (:class:`onefit.scoring.Metric`):

- squared and absolute errors lie between those of max(|y - u| - e, 0) and |y - u| + e;
- a label is in doubt only if the decision could change, that is if |u| <= e, or with several
  classes if its own value and the largest other are within 2 e. A fold without such rows has an
  exact error rate however rough its values are.

Means, weighted means, medians and pooled scores over splits never fall when a split's score rises,
so their ends are those of the splits' ends. Metrics without ``ends`` have no interval.

What a search by method "exact" computes is itself within a tolerance of u*. That tolerance is added
to e, so that the intervals hold for its scores as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit._types import Array
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.scoring.aggregate import aggregate
from onefit.search.outcome import Outcome, Task
from onefit.search.scorers import Scoring

Ends = tuple[Array, Array]

__all__ = ["Ends", "as_columns", "interval_columns", "score_interval", "supports"]


def supports(scoring: Scoring, metric: str) -> bool:
    """Whether a score has intervals."""
    return metric in scoring.fast and scoring.fast[metric][0].ends is not None


def score_interval(task: Task, outcome: Outcome, metric: str) -> Ends:
    """The least and the largest score that every lambda of an outcome can have, (L,) each.

    NaN where it has no score.
    """
    y = task.sample.Y.astype(np.float64)
    unit = EXACT_TOLERANCE * float(np.max(y.std(axis=0), initial=0.0))
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
    names = [metric for metric in task.scoring.names if supports(task.scoring, metric)]
    ends = [{name: score_interval(task, one, name) for name in names} for one in outcomes]
    return as_columns(outcomes, ends, size)


def as_columns(outcomes: list[Outcome], ends: list[dict[str, Ends]], size: int) -> dict[str, Array]:
    """The ends of the scores of every outcome as columns of the table."""
    columns: dict[str, Array] = {}
    for outcome, own in zip(outcomes, ends, strict=True):
        for name, pair in own.items():
            for side, end in zip(("low", "high"), pair, strict=True):
                column = columns.setdefault(f"{side}_test_{name}", np.full(size, np.nan))
                column[list(outcome.indices)] = end
    return columns


def _of(scoring: Scoring, metric: str, values: Array, error: Array) -> Ends:
    """Interval ends for every lambda and split, (L, k)."""
    function, sign, truth = scoring.fast[metric]
    low, high = (one.mean(axis=2) for one in function.interval(truth, values, error))
    return (low, high) if sign > 0 else (-high, -low)
