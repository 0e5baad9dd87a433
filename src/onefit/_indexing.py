"""Rows of whatever an estimator takes: how many there are, and some of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags, indexable

from onefit._types import Array

__all__ = [
    "draw_rows", "last_step", "n_rows", "select_params", "select_rows", "split_rows", "transformed",
]  # fmt: skip

#: minimal number of rows of each class in a sample, or all of a smaller class
MIN_CLASS_ROWS = 20


def n_rows(X: Any) -> int:
    """Rows of an array, a data frame, a sparse matrix or a list."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X)
    if not len(shape):
        raise TypeError(f"rows are needed, got a single value {X!r}")
    return int(shape[0])


def select_rows(X: Any, rows: Array) -> Any:
    """A selection of rows of an array, a data frame, a sparse matrix or a list; None for None."""
    if X is None:
        return None
    (X,) = indexable(X)
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows]


def split_rows(
    model: Any, X: Any, y: Any, rows: Array, train: Array | None = None
) -> tuple[Any, Any]:
    """A selection of rows of X and y; of a precomputed kernel also the training columns."""
    if not get_tags(model).input_tags.pairwise:
        return select_rows(X, rows), select_rows(y, rows)
    if not hasattr(X, "shape") or X.shape[0] != X.shape[1]:
        raise ValueError("X must be a square array of kernel values")
    return X[np.ix_(rows, rows if train is None else train)], select_rows(y, rows)


def select_params(X: Any, params: dict[str, Any], rows: Array) -> dict[str, Any]:
    """Parameters of a fit or a score, cut to some rows if they have a value per row of X."""
    n = n_rows(X)

    def by_row(value: Any) -> bool:
        listed = hasattr(value, "__len__") or hasattr(value, "shape") or issparse(value)
        if not listed or isinstance(value, (str, bytes, dict, set)):
            return False
        return getattr(value, "shape", None) != () and n_rows(value) == n

    return {
        name: select_rows(value, rows) if by_row(value) else value for name, value in params.items()
    }


def transformed(pipeline: Any, X: Any) -> Any:
    """Rows after all steps of a fitted pipeline but the last.

    Not ``pipeline[:-1].transform(X)``, which scikit-learn refuses for a step without fitted
    attributes.
    """
    for _, step in pipeline.steps[:-1]:
        X = X if step is None or step == "passthrough" else step.transform(X)
    return X


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """The estimator at the end of a fitted pipeline or of nested ones, and the rows it is given."""
    while isinstance(model, Pipeline):
        X, model = transformed(model, X), model.steps[-1][1]
    return model, X


def draw_rows(labels: Any, n: int, size: int, seed: int = 0) -> Array:
    """A random sample of n rows, in their order; with ``labels`` some of every class."""
    random = np.random.default_rng(seed)
    chosen = np.zeros(n, dtype=bool)
    chosen[random.permutation(n)[:size]] = True
    if labels is not None:
        labels = np.asarray(labels)
        for label in np.unique(labels):
            mine = random.permutation(np.flatnonzero(labels == label))
            missing = min(MIN_CLASS_ROWS, mine.size) - int(chosen[mine].sum())
            chosen[mine[~chosen[mine]][: max(missing, 0)]] = True
    return np.flatnonzero(chosen)
