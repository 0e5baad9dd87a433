"""Predictions of all splits by refits: the estimators that no single fit serves.

A pipeline fits its steps in every training part, so every split has a kernel matrix of its own.
The pipeline itself is fitted once per split, and once to all rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from onefit._indexing import n_rows, select_params, split_rows
from onefit._types import Array
from onefit._validation import check_weights
from onefit.folds import Folds
from onefit.progress import counted
from onefit.search.preprocess import kernel_estimator, metadata_of_fit
from onefit.uncertainty.fold_models import FoldPredictions

__all__ = ["PipelineSample"]


class PipelineSample(NamedTuple):
    """The rows of a pipeline, as prediction intervals read them.

    Attributes
    ----------
    pipeline : a pipeline that ends in a KernelRegressor
    X, y : rows and targets, as given
    Y : (n, q) array
        Targets, by column.
    s : (n,) array
        Sample weights.
    weighted : bool
        Whether weights were given.
    leaf : KernelRegressor
        The estimator at the end of the pipeline, which knows the targets.
    """

    pipeline: Any
    X: Any
    y: Any
    Y: Array
    s: Array
    weighted: bool
    leaf: Any

    @classmethod
    def of(
        cls, pipeline: Any, X: Any, y: Any, sample_weight: Any, method: str, width: str
    ) -> PipelineSample:
        """From checked data; refuses what needs one kernel matrix of all rows."""
        if method == "full" or width == "local":
            what = "method='full'" if method == "full" else "width='local'"
            raise ValueError(
                f"{what} needs one kernel matrix of all rows, and a {type(pipeline).__name__} has "
                "one per split; use method='cv+' with width='constant'"
            )
        leaf = clone(kernel_estimator(pipeline))
        Y = leaf._code_targets(y, np.float64)
        s = check_weights(sample_weight, np.zeros((n_rows(X), 1)))
        return cls(pipeline, X, y, Y, s, sample_weight is not None, leaf)

    def predict(
        self, rows: Array, folds: Folds, X_new: Any, local: bool, verbose: int
    ) -> FoldPredictions:
        """Predict with refits, see :class:`onefit.uncertainty.fold_models.Sample`."""
        full = _predicted(self._fitted(rows, "all rows"), X_new)
        (m, q), k = full.shape, len(folds)
        own, new = np.full((q, rows.size, k), np.nan), np.empty((q, m, k))
        for split in counted(range(k), verbose, "split {}".format):
            train, test = rows[folds.train[split]], folds.test[split]
            model = self._fitted(train, f"the training part of split {split}")
            X_test, _ = split_rows(self.pipeline, self.X, self.y, rows[test], train)
            own[:, test, split] = _predicted(model, X_test).T
            new[:, :, split] = _predicted(model, X_new).T
        return FoldPredictions(full, list(zip(own, new, strict=True)))

    def _fitted(self, rows: Array, where: str) -> Any:
        params = {"sample_weight": self.s} if self.weighted else {}
        params = select_params(self.X, metadata_of_fit(self.pipeline, params), rows)
        X, y = split_rows(self.pipeline, self.X, self.y, rows)
        try:
            return clone(self.pipeline).fit(X, y, **params)
        except Exception as error:
            raise ValueError(
                f"{type(self.pipeline).__name__} cannot be fitted to {where}: "
                f"{type(error).__name__}: {error}"
            ) from error


def _predicted(model: Any, X: Any) -> Array:
    return np.asarray(model.predict(X), dtype=np.float64).reshape(n_rows(X), -1)
