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

import numpy as np

from onefit._types import Array
from onefit.search.scorers import Scoring

__all__ = ["score_ends"]


def score_ends(scoring: Scoring, values: Array, error: Array) -> dict[str, Array]:
    """The least and the largest score at every lambda and split, (2, L, k), by metric.

    Parameters
    ----------
    scoring : Scoring
    values : (L, N, q) array
    error : (L, N, 1) array
        Bounds on their errors.
    """
    found = {}
    for name, (metric, sign, truth) in scoring.fast.items():
        if metric.ends is not None:
            low, high = (one.mean(axis=2) for one in metric.interval(truth, values, error))
            found[name] = np.stack((low, high) if sign > 0 else (-high, -low))
    return found
