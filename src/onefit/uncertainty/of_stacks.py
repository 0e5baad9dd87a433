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
from onefit.uncertainty.fold_models import FoldPredictions

__all__ = ["StackedSample"]


class StackedSample(NamedTuple):
    """The rows that a stack was fitted to: the stack, targets (n, 1) and weights."""

    leaf: Any
    Y: Array
    s: Array

    @classmethod
    def of(cls, model: Any, X: Any, y: Any, weight: Any, method: str, width: str) -> StackedSample:
        """The rows of checked data; refuses methods that need the models of the splits."""
        if method != "cv+" or width != "constant":
            raise ValueError(
                "intervals of a stack come from its held-out residuals alone, got "
                f"method={method!r} and width={width!r}; use method='cv+' and width='constant'"
            )
        plain = KernelRegressor(**model.get_params(deep=False))
        _, Y, s = plain._check_data(X, y, weight)
        if len(Y) != len(model.heldout_predictions_):
            raise ValueError(
                f"the stack was fitted to {len(model.heldout_predictions_)} rows, but X_train has "
                f"{len(Y)}; pass the rows of the search"
            )
        return cls(model, Y, s)

    def predict(
        self, rows: Array, folds: Folds, X_new: Any, local: bool, verbose: int
    ) -> FoldPredictions:
        """Predict with the stack of all rows, also for every split."""
        full, own = self.leaf._decision(X_new), np.full((rows.size, len(folds)), np.nan)
        for k, test in enumerate(folds.test):
            own[test, k] = self.leaf.heldout_predictions_[rows][test]
        return FoldPredictions(full, [(own, np.repeat(full, len(folds), axis=1))])
