"""A metric as a function of means over rows, defined once.

With t_i the *statistic* of row i (its squared error, whether its label is right), w_i its weight
and v the variance of the targets, a metric is

    finish(m, v),    m = sum_i w_i t_i / sum_i w_i,

of each column: the root mean squared error has finish = sqrt(m), R^2 has 1 - m / v. The balanced
accuracy has a mean for each class, over the rows that are *members* of it.

Every use differs only in the sets of rows over which sums are taken: the rows of each split, all
rows, all rows but some (the jackknife), rows drawn with repetition (the bootstrap), rows that come
in chunks (streams). What held-out values of limited accuracy leave open is ``finish`` at both
``ends`` of the statistic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from onefit._types import Array

__all__ = ["Metric", "RowSums", "Truth"]


@dataclass(frozen=True)
class RowSums:
    """Sums over sets of rows, linear in the weights of the rows.

    Attributes
    ----------
    top : (..., c) array
        Of weight times statistic.
    below : array that broadcasts to ``top``
        Of weights.
    """

    top: Array
    below: Array

    @classmethod
    def of(cls, statistic: Array, shares: Array, reduce: Callable[[Array], Array]) -> RowSums:
        """Sums of (..., N, c) statistics with (N, c) weights; ``reduce`` sums along the rows."""
        return cls(reduce(statistic * shares), reduce(shares))

    def __add__(self, other: RowSums) -> RowSums:
        return RowSums(self.top + other.top, self.below + other.below)

    @property
    def means(self) -> Array:
        """NaN where there is no weight."""
        none = np.full(self.top.shape, np.nan)
        return np.asarray(np.divide(self.top, self.below, out=none, where=self.below > 0.0))


@dataclass(frozen=True)
class Truth:
    """Targets and weights that held-out values are compared with.

    Attributes
    ----------
    y : (N, q) array, or (..., N, q)
        Targets of the test rows, one split after the other; class numbers in a single column.
        Further axes in front go with those of the held-out values.
    starts : (k,) array
        Where each split begins.
    weights : (N,) array, or (..., N)
    """

    y: Array = field(repr=False)
    starts: Array = field(repr=False)
    weights: Array = field(repr=False)

    def sums(self, values: Array) -> Array:
        """Over the rows (the last axis but one) of each split."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=-2))

    @cached_property
    def variance(self) -> Array:
        """Variance of the targets of each split, (k, q): 0 if constant, NaN for a single row."""
        w = self.weights[..., None]
        sizes = np.diff([*self.starts, self.y.shape[-2]])
        total = self.sums(w)
        mean = np.repeat(self.sums(w * self.y) / total, sizes, axis=-2)
        found = self.sums(w * np.square(self.y - mean)) / total
        weightless = w == 0.0
        highest = np.maximum.reduceat(np.where(weightless, -np.inf, self.y), self.starts, axis=-2)
        lowest = np.minimum.reduceat(np.where(weightless, np.inf, self.y), self.starts, axis=-2)
        found = np.where(highest == lowest, 0.0, found)
        return np.where(sizes[:, None] < 2, np.nan, found)


def class_numbers(classes: Array, y: Any) -> Array:
    """The number of the class of every label, refused where there is no such class."""
    labels = np.asarray(y).ravel()
    numbers = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    unknown = labels[classes[numbers] != labels]
    if unknown.size:
        raise ValueError(
            f"y has the label {unknown.tolist()[0]!r}, but the classes of the fit are "
            f"{classes.tolist()!r}; leave its rows out, or fit a model that knows it"
        )
    return numbers


def identity(means: Array, variance: Array) -> Array:
    """The mean itself."""
    return means


@dataclass(frozen=True)
class Metric:
    """A metric that is a function of means over rows; a scorer as well.

    Parameters
    ----------
    name : str
    task : {"regression", "classification"}
    statistic : callable
        ``statistic(y, u)`` of targets (N, q) and held-out values (..., N, q): (..., N, c). In a
        classification y has class numbers in a single column, and u has a column for each class,
        or one for two classes.
    finish : callable, default=the mean itself
        ``finish(means, variance)`` of the means (..., c) and the variances of the targets (..., q):
        (..., c'), whose mean is the metric. A variance is 0 if the targets are constant, and NaN
        for a single row; a mean is NaN for a class without rows.
    ends : callable, default=None
        ``ends(y, u, e)``: the least and the largest statistic of values within e, (..., N, 1), of
        u. None is a metric without intervals.
    rising : bool, default=True
        Whether ``finish`` rises with the means; if not, it falls.
    greater_is_better : bool, default=False
        If not, scores are negated, as in scikit-learn.
    range : (float, float), default=(0.0, inf)
        Of the metric.
    members : callable, default=None
        ``members(y, q)`` for values with q columns: the share (N, c) of each row in each mean. None
        has all rows in all means.
    needs_variance : bool, default=False
        Whether the metric is undefined where the variance is; splits of one row are then refused.
    loss : {"squared", "absolute", "zero_one", ""}, default=""
        The name of the statistic as a loss, for gradients and baselines.
    sklearn : callable, default=None
        scikit-learn's function.

    Examples
    --------
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> cubed = Metric("cubed_error", "regression", lambda y, u: np.abs(y - u) ** 3)
    >>> X = np.linspace(0.0, 6.0, 30)[:, None]
    >>> search = KernelSearchCV(KernelRegressor(), {"lam": [1e-4, 1.0]}, scoring=cubed)
    >>> search.fit(X, np.sin(X[:, 0])).best_params_
    {'lam': 0.0001}
    """

    name: str
    task: str
    statistic: Callable[[Array, Array], Array] = field(repr=False)
    finish: Callable[[Array, Array], Array] = field(default=identity, repr=False)
    ends: Callable[[Array, Array, Array], tuple[Array, Array]] | None = field(
        default=None, repr=False
    )
    rising: bool = field(default=True, repr=False)
    greater_is_better: bool = field(default=False, repr=False)
    range: tuple[float, float] = field(default=(0.0, np.inf), repr=False)
    members: Callable[[Array, int], Array] | None = field(default=None, repr=False)
    needs_variance: bool = field(default=False, repr=False)
    loss: str = field(default="", repr=False)
    sklearn: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.task not in ("regression", "classification"):
            raise ValueError(f"task must be 'regression' or 'classification', got {self.task!r}")

    @property
    def sign(self) -> int:
        """Factor that makes the metric a score, the larger the better."""
        return 1 if self.greater_is_better else -1

    def shares(self, y: Array, weights: Array, q: int) -> Array:
        """The weight of each row in each mean, (N, c) or (N, 1), for values with q columns."""
        own = weights[..., None]
        return own if self.members is None else own * self.members(y, q)

    def values(self, truth: Truth, u: Array) -> Array:
        """The metric of (L, N, q) held-out values, for each split and column: (L, k, c)."""
        return self._of(truth, u.shape[-1], self.statistic(truth.y, u))

    def interval(self, truth: Truth, u: Array, e: Array) -> tuple[Array, Array]:
        """The least and the largest of these, for values within ``e``, (L, N, 1)."""
        assert self.ends is not None
        e = np.where(truth.weights[..., None] > 0.0, e, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            ends = self.ends(truth.y, u, e)
            low, high = (self._of(truth, u.shape[-1], one) for one in ends)
        return (low, high) if self.rising else (high, low)

    def _of(self, truth: Truth, q: int, statistic: Array) -> Array:
        sums = RowSums.of(statistic, self.shares(truth.y, truth.weights, q), truth.sums)
        return self.finish(sums.means, truth.variance)

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The score of a fitted estimator, as a scorer of scikit-learn gives it."""
        y = np.asarray(y)
        if self.task == "classification":
            u = np.asarray(estimator.decision_function(X), dtype=float)
            y = class_numbers(estimator.classes_, y)
        else:
            u = np.asarray(estimator.predict(X), dtype=float)
        w = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        truth = Truth(y.reshape(len(y), -1), np.zeros(1, dtype=np.intp), w)
        return float(self.sign * self.values(truth, u.reshape(len(y), -1)).mean())
