"""Intervals of a stack: its held-out residuals around its prediction.

Members of a stack (:mod:`onefit.stacking`) may have metrics that are learned in each training part,
so that there are no models of the splits that could predict a new row, as CV+ needs. The
interval is u(x) -/+ the quantile of the cross-fitted held-out residuals, with u the prediction of
the stack of all rows: cross-validated conformal prediction without the "+". No bound on its
coverage is proven. The residuals are those of models of fewer rows, which makes the intervals
rather too wide than too narrow.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onefit._types import Array
from onefit.estimators import KernelRegressor
from onefit.folds import Folds

__all__ = ["StackedRows", "by_stack"]


class StackedRows(NamedTuple):
    """Number, targets (n, 1) and weights of the rows that a stack was fitted to."""

    n: int
    Y: Array
    s: Array

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, weight: Any, method: str, width: str) -> StackedRows:
        """The rows of checked data; refuses methods that need the models of the splits."""
        if method != "cv+" or width != "constant":
            raise ValueError(
                "intervals of a stack come from its held-out residuals alone; use method='cv+' and "
                "width='constant'"
            )
        plain = KernelRegressor(**model.get_params(deep=False))
        _, Y, s = plain._check_data(X, y, weight)
        if len(Y) != len(model.heldout_predictions_):
            raise ValueError(
                f"the stack was fitted to {len(model.heldout_predictions_)} rows, but X_train has "
                f"{len(Y)}; pass the rows of the search"
            )
        return cls(len(Y), Y, s)


def by_stack(
    model: Any, problem: StackedRows, rows: Array, folds: Folds, X_new: Any, *_: Any
) -> tuple[Array, list[tuple[Array, Array]], None]:
    """Predictions (m, 1), which are those of every split, and the held-out ones (n, k)."""
    full, own = model._decision(X_new), np.full((rows.size, len(folds)), np.nan)
    for k, test in enumerate(folds.test):
        own[test, k] = model.heldout_predictions_[rows][test]
    return full, [(own, np.repeat(full, len(folds), axis=1))], None
