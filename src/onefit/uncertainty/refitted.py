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
from onefit.search.preprocess import kernel_estimator, metadata_of_fit

__all__ = ["PipelineSample", "by_refits", "check_pipeline"]


class PipelineSample(NamedTuple):
    """The rows of a pipeline, as prediction intervals read them.

    Attributes
    ----------
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

    X: Any
    y: Any
    Y: Array
    s: Array
    weighted: bool
    leaf: Any

    @classmethod
    def of(cls, pipeline: Any, X: Any, y: Any, sample_weight: Any) -> PipelineSample:
        """Check targets and weights."""
        leaf = clone(kernel_estimator(pipeline))
        Y = leaf._code_targets(y, np.float64)
        s = check_weights(sample_weight, np.zeros((n_rows(X), 1)))
        return cls(X, y, Y, s, sample_weight is not None, leaf)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.s.size)


def by_refits(
    pipeline: Any, sample: PipelineSample, rows: Array, folds: Folds, X_new: Any, *_: Any
) -> tuple[Array, list[tuple[Array, Array]], None]:
    """Predictions (m, q) of the pipeline of all rows and, per target, those of the splits."""
    full = _predicted(_fitted(pipeline, sample, rows, "all rows"), X_new)
    (m, q), k = full.shape, len(folds)
    own, new = np.full((q, rows.size, k), np.nan), np.empty((q, m, k))
    for split, (train, test) in enumerate(folds):
        model = _fitted(pipeline, sample, rows[train], f"the training part of split {split}")
        X_test, _y = split_rows(pipeline, sample.X, sample.y, rows[test], rows[train])
        own[:, test, split] = _predicted(model, X_test).T
        new[:, :, split] = _predicted(model, X_new).T
    return full, list(zip(own, new, strict=True)), None


def _fitted(pipeline: Any, sample: PipelineSample, rows: Array, where: str) -> Any:
    params = {"sample_weight": sample.s} if sample.weighted else {}
    params = select_params(sample.X, metadata_of_fit(pipeline, params), rows)
    X, y = split_rows(pipeline, sample.X, sample.y, rows)
    try:
        return clone(pipeline).fit(X, y, **params)
    except Exception as error:
        raise ValueError(
            f"{type(pipeline).__name__} cannot be fitted to {where}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _predicted(model: Any, X: Any) -> Array:
    return np.asarray(model.predict(X), dtype=np.float64).reshape(n_rows(X), -1)


def check_pipeline(pipeline: Any, method: str, width: str) -> None:
    """Refuse intervals that are made from one kernel matrix of all rows."""
    if method == "full" or width == "local":
        what = "method='full'" if method == "full" else "width='local'"
        raise ValueError(
            f"{what} needs one kernel matrix of all rows, and a {type(pipeline).__name__} has one "
            "per split; use method='cv+' with width='constant'"
        )
