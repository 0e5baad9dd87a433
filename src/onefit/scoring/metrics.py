"""scikit-learn's metrics that are functions of means over rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from sklearn import metrics

from onefit._types import Array
from onefit.scoring.metric import Metric

__all__ = ["ROW_METRICS", "loss_metric"]

Ends = tuple[Array, Array]


def squared(y: Array, u: Array) -> Array:
    """(y - u)^2."""
    return np.asarray(np.square(y - u))


def squared_ends(y: Array, u: Array, e: Array) -> Ends:
    """(|y - u| -+ e)^2, at least 0."""
    least, largest = absolute_ends(y, u, e)
    return np.square(least), np.square(largest)


def absolute(y: Array, u: Array) -> Array:
    """|y - u|."""
    return np.asarray(np.abs(y - u))


def absolute_ends(y: Array, u: Array, e: Array) -> Ends:
    """|y - u| -+ e, at least 0."""
    r = np.abs(y - u)
    return np.maximum(r - e, 0.0), r + e


def hits(y: Array, u: Array) -> Array:
    """Whether the class of a row has the largest decision value."""
    predicted = u > 0 if u.shape[-1] == 1 else u.argmax(axis=-1)[..., None]
    return np.asarray(predicted == y, dtype=float)


def hits_ends(y: Array, u: Array, e: Array) -> Ends:
    """Rows in doubt miss, or hit: those with |u| <= e, or whose own value and the largest of the
    other classes are within 2 e.
    """
    if u.shape[-1] == 1:
        margin, reach = np.abs(u), e
    else:
        own = np.arange(u.shape[-1]) == y
        others = np.where(own, -np.inf, u).max(axis=-1, keepdims=True)
        margin = np.abs(np.where(own, u, -np.inf).max(axis=-1, keepdims=True) - others)
        reach = 2.0 * e
    right, certain = hits(y, u), margin > reach
    return right * certain, np.maximum(right, ~certain)


def members_of_classes(y: Array, q: int) -> Array:
    """The rows of each class; decision values of two classes have one column."""
    return np.asarray(y == np.arange(max(q, 2)), dtype=float)


def root(means: Array, variance: Array) -> Array:
    """sqrt(m)."""
    return np.asarray(np.sqrt(means))


def determination(means: Array, variance: Array) -> Array:
    """1 - m / v; of constant targets 1 if they are met and else 0, of a single row undefined."""
    constant = variance == 0.0
    ratio = means / np.where(constant, 1.0, variance)
    return np.where(constant, (means == 0.0).astype(float), 1.0 - ratio)


def mean_of_classes(means: Array, variance: Array) -> Array:
    """The mean over the classes that there are."""
    there = ~np.isnan(means)
    count = there.sum(axis=-1, keepdims=True)
    total = np.where(there, means, 0.0).sum(axis=-1, keepdims=True)
    none = np.full(total.shape, np.nan)
    return np.asarray(np.divide(total, count, out=none, where=count > 0))


def loss_statistic(y: Array, u: Array, loss: Any) -> Array:
    """The mean over the columns of u of a loss, elementwise."""
    return np.asarray(loss(y, u).mean(axis=-1, keepdims=True))


def loss_metric(name: str, loss: Any) -> Metric:
    """The mean loss of a model with several columns for one target: levels of quantiles."""
    return Metric(name, "regression", partial(loss_statistic, loss=loss))


_REGRESSION = (
    Metric(
        "mean_squared_error", "regression", squared, ends=squared_ends,
        loss="squared", sklearn=metrics.mean_squared_error,
    ),
    Metric(
        "root_mean_squared_error", "regression", squared, root, squared_ends,
        loss="squared", sklearn=metrics.root_mean_squared_error,
    ),
    Metric(
        "mean_absolute_error", "regression", absolute, ends=absolute_ends,
        loss="absolute", sklearn=metrics.mean_absolute_error,
    ),
    Metric(
        "r2", "regression", squared, determination, squared_ends, rising=False,
        greater_is_better=True, range=(-np.inf, 1.0), needs_variance=True, loss="squared",
        sklearn=metrics.r2_score,
    ),
)  # fmt: skip
_CLASSIFICATION = (
    Metric(
        "accuracy", "classification", hits, ends=hits_ends, greater_is_better=True,
        range=(0.0, 1.0), loss="zero_one", sklearn=metrics.accuracy_score,
    ),
    Metric(
        "balanced_accuracy", "classification", hits, mean_of_classes, hits_ends,
        greater_is_better=True, range=(0.0, 1.0), members=members_of_classes,
        sklearn=metrics.balanced_accuracy_score,
    ),
)  # fmt: skip

#: scikit-learn's function -> the metric
ROW_METRICS: dict[Any, Metric] = {one.sklearn: one for one in _REGRESSION + _CLASSIFICATION}
