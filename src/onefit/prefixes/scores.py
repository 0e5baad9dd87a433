"""Scores of many sets of decision values of the same rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onefit._types import Array
from onefit.scoring import Metric, Truth
from onefit.spec.coding import class_codes

__all__ = ["Score", "scores_by"]

#: scores (b,) of values (b, t, q) of rows with targets (t, q) and weights (t,) or (b, t)
Score = Callable[[Array, Array, Array], Array]


def scores_by(metric: Metric, sign: int) -> Score:
    """Scores by a metric that is a function of means over rows."""

    def score(u: Array, Y: Array, weights: Array) -> Array:
        if metric.needs_variance and (np.count_nonzero(weights, axis=-1) < 2).any():
            raise ValueError(
                f"the metric {metric.name} is undefined on a set of one row, and a set of rows to "
                "be scored has one; use larger test sets, or scoring='neg_mean_squared_error'"
            )
        of_classes = metric.task == "classification"
        y = class_codes(Y)[:, None] if of_classes else Y.astype(np.float64)
        truth = Truth(y, np.zeros(1, dtype=np.intp), weights)
        values = metric.values(truth, u.astype(np.float64, copy=False))
        return np.asarray(sign * values.mean(axis=-1)[..., 0])

    return score
