"""The common metrics for every lambda and every split at once.

A scorer call costs about a third of a millisecond, and a search makes thousands. These functions
take the held-out values of a whole path of lambdas, (L, N, q), and return one score a lambda,
split and target, (L, k, q): the numbers that scikit-learn's metrics give, split by split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

Array = NDArray[Any]

__all__ = ["FAST", "Truth", "hits"]


@dataclass(frozen=True)
class Truth:
    """What the held-out values are compared with.

    Attributes
    ----------
    y : (N, q) array
        Targets of the test rows, one split after the other; class numbers in a single column.
    starts : (k,) array
        Where each split begins.
    weights : (N,) array
    """

    y: Array = field(repr=False)
    starts: Array = field(repr=False)
    weights: Array = field(repr=False)

    def mean(self, values: Array) -> Array:
        """Weighted mean of every split, along the axis of the rows (the last but one)."""
        totals = np.add.reduceat(self.weights, self.starts)
        sums = np.add.reduceat(values * self.weights[:, None], self.starts, axis=-2)
        return np.asarray(sums / totals[:, None])

    def mean_of_classes(self, values: Array) -> Array:
        """The mean over the classes that a split has of the mean over their rows; y holds codes."""
        sums = np.add.reduceat(values * self._members, self.starts, axis=-2)
        totals = np.add.reduceat(self._members, self.starts, axis=0)
        there = totals > 0.0
        means = np.where(there, sums, 0.0) / np.where(there, totals, 1.0)
        return np.asarray(means.sum(axis=-1, keepdims=True) / there.sum(axis=-1, keepdims=True))

    @cached_property
    def _members(self) -> Array:
        """The weights of the rows, in the columns of their classes."""
        return np.asarray(self.weights[:, None] * (self.y == np.arange(int(self.y.max()) + 1)))

    def spread(self, values: Array) -> Array:
        """Each split's numbers, once for each of its rows."""
        return np.repeat(values, self.sizes, axis=-2)

    @cached_property
    def sizes(self) -> Array:
        """Test rows of each split."""
        return np.diff([*self.starts, self.y.shape[0]])


def squared_error(truth: Truth, u: Array) -> Array:
    """Mean of (y - u)^2."""
    return truth.mean(np.square(truth.y - u))


def root_squared_error(truth: Truth, u: Array) -> Array:
    """Root of the mean of (y - u)^2, each target by itself."""
    return np.asarray(np.sqrt(squared_error(truth, u)))


def absolute_error(truth: Truth, u: Array) -> Array:
    """Mean of |y - u|."""
    return truth.mean(np.abs(truth.y - u))


def determination(truth: Truth, u: Array) -> Array:
    """R^2 = 1 - mean (y - u)^2 / mean (y - mean y)^2.

    Of a constant y it is 1 if that is met and else 0, of a single row it is not defined.
    """
    error = squared_error(truth, u)
    variance = truth.mean(np.square(truth.y - truth.spread(truth.mean(truth.y))))
    largest, smallest = (f.reduceat(truth.y, truth.starts) for f in (np.maximum, np.minimum))
    constant = largest == smallest
    ratio = error / np.where(constant, 1.0, variance)
    scores = np.where(constant, (error == 0.0).astype(float), 1.0 - ratio)
    scores[:, truth.sizes < 2] = np.nan
    return scores


def hits(y: Array, u: Array) -> Array:
    """Whether the class of a row has the largest decision value."""
    predicted = u > 0 if u.shape[-1] == 1 else u.argmax(axis=-1)[..., None]
    return np.asarray(predicted == y, dtype=float)


def accuracy(truth: Truth, u: Array) -> Array:
    """Share of rows whose class has the largest decision value."""
    return truth.mean(hits(truth.y, u))


def balanced_accuracy(truth: Truth, u: Array) -> Array:
    """The mean of the classes' shares of such rows, of those classes that a split has."""
    return truth.mean_of_classes(hits(truth.y, u))


Metric = Callable[[Truth, Array], Array]

#: scikit-learn's metric -> (what computes it for all splits, the task it is for)
FAST: dict[Any, tuple[Metric, str]] = {
    metrics.mean_squared_error: (squared_error, "regression"),
    metrics.root_mean_squared_error: (root_squared_error, "regression"),
    metrics.mean_absolute_error: (absolute_error, "regression"),
    metrics.r2_score: (determination, "regression"),
    metrics.accuracy_score: (accuracy, "classification"),
    metrics.balanced_accuracy_score: (balanced_accuracy, "classification"),
}
