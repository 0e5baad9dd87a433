"""Sums that precede features: sizes of folds, means and variances, and the classes.

Means and variances of parts are joined by Chan, Golub and LeVeque's formula [1]_, which subtracts
no two large numbers: with D the difference of the means of two parts of weights a and b,

    mean = mean_a + D b/(a + b),    M = M_a + M_b + D^2 a b/(a + b),    M = sum s (x - mean)^2.

References
----------
.. [1] T. F. Chan, G. H. Golub, R. J. LeVeque, "Algorithms for computing the sample variance", The
   American Statistician 37, 1983.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit._validation import DataError
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = [
    "DistinctLabels",
    "Spread",
    "Survey",
    "Surveyed",
    "class_totals",
    "reweighted",
    "spread_over",
]


@dataclass(frozen=True)
class Spread:
    """Weight, mean and M of some columns, their extremes, and whether they are labels -1 and +1."""

    weight: float
    mean: Array
    M: Array
    low: Array
    high: Array
    labels: Array

    @classmethod
    def of(cls, values: Array, s: Array) -> Spread:
        """The spread of some rows, (m, q)."""
        weight, q = float(s.sum()), values.shape[1]
        if weight == 0.0:
            end = np.full(q, np.inf)
            return cls(0.0, np.zeros(q), np.zeros(q), end, -end, np.ones(q, dtype=bool))
        values = values.astype(np.float64, copy=False)
        mean, some = s @ values / weight, values[s > 0]
        ends = some.min(axis=0), some.max(axis=0)
        labels = (np.abs(some) == 1.0).all(axis=0)
        return cls(weight, mean, s @ np.square(values - mean), *ends, labels)

    def join(self, other: Spread) -> Spread:
        """The spread of both sets of rows."""
        weight = self.weight + other.weight
        if weight == 0.0:
            return self
        share, D = other.weight / weight, other.mean - self.mean
        return Spread(
            weight,
            self.mean + D * share,
            self.M + other.M + np.square(D) * (self.weight * share),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            self.labels & other.labels,
        )

    @property
    def variance(self) -> Array:
        """M over the weight; 0 of a constant."""
        return np.where(self.low == self.high, 0.0, self.M / self.weight)


@dataclass(frozen=True)
class Surveyed:
    """Sizes of folds, and spreads of targets and features.

    Attributes
    ----------
    rows : (k,) array of int
        Number of rows in each fold.
    targets : list of Spread
        The targets of each fold.
    entries : Spread
        All entries of X as one column.
    """

    rows: Array
    targets: list[Spread] = field(repr=False)
    entries: Spread = field(repr=False)

    @property
    def weights(self) -> Array:
        """The weight of each fold."""
        return np.array([one.weight for one in self.targets])

    @property
    def variances(self) -> Array:
        """Variances of the targets of each fold, (k, q); NaN for a fold of one row."""
        found = np.array([one.variance for one in self.targets])
        return np.where(self.rows[:, None] < 2, np.nan, found)

    @property
    def whole(self) -> Spread:
        """The targets of all rows."""
        return self.without(-1)

    def without(self, k: int) -> Spread:
        """The targets of all folds but one."""
        others = [one for i, one in enumerate(self.targets) if i != k]
        found = others[0]
        for one in others[1:]:
            found = found.join(one)
        return found

    @property
    def scale(self) -> Array:
        """The unit of errors, as in :func:`onefit.proof.norms.target_scale`."""
        whole = self.whole
        size = np.maximum(np.abs(whole.low), np.abs(whole.high))
        spread = np.where(whole.low == whole.high, size, np.sqrt(whole.variance))
        return np.where(whole.labels | (size == 0.0), 1.0, spread)


@dataclass(frozen=True)
class Survey(Accumulator[Surveyed, Surveyed]):
    """The accumulator of ``Surveyed``, for k folds and q targets."""

    folds: int
    targets: int

    def init(self) -> Surveyed:
        none = Spread.of(np.empty((0, self.targets)), np.empty(0))
        entry = Spread.of(np.empty((0, 1)), np.empty(0))
        return Surveyed(np.zeros(self.folds, dtype=np.int64), [none] * self.folds, entry)

    def update(self, state: Surveyed, chunk: Chunk) -> Surveyed:
        folds = [chunk.fold == k for k in range(self.folds)]
        targets = [Spread.of(chunk.Y[own], chunk.s[own]) for own in folds]
        weights = np.repeat(chunk.s, chunk.X.shape[1])
        entries = Spread.of(np.asarray(linalg.to_host(chunk.X)).reshape(-1, 1), weights)
        rows = np.array([own.sum() for own in folds])
        return self.merge(state, Surveyed(rows, targets, entries))

    def merge(self, one: Surveyed, other: Surveyed) -> Surveyed:
        targets = [a.join(b) for a, b in zip(one.targets, other.targets, strict=True)]
        return Surveyed(one.rows + other.rows, targets, one.entries.join(other.entries))


@dataclass(frozen=True)
class DistinctLabels(Accumulator[list[Any], Array]):
    """The accumulator of the sorted labels.

    Parameters
    ----------
    most : int
        Largest number of labels; more are numbers or ids, and are refused.
    """

    most: int = 1000

    def init(self) -> list[Any]:
        return []

    def update(self, state: list[Any], chunk: Chunk) -> list[Any]:
        return self.merge(state, chunk.Y.ravel().tolist())

    def merge(self, one: list[Any], other: list[Any]) -> list[Any]:
        try:
            found = sorted({*one, *other})
        except TypeError as error:
            raise DataError(
                f"the target has labels of several types ({error}); store all of them as one"
            ) from error
        if len(found) > self.most:
            raise ValueError(
                f"the target has more than {self.most} different values; a classifier needs classes"
            )
        return found

    def finish(self, state: list[Any]) -> Array:
        return np.array(state)


def spread_over(survey: Surveyed, count: int) -> Surveyed:
    """The same survey for several columns, each with the spread of the first target.

    The columns are levels of one target, or pairs of classes, which are labels.
    """
    first = np.zeros(count, dtype=np.intp)
    names = ("mean", "M", "low", "high", "labels")

    def wider(one: Spread) -> Spread:
        return replace(one, **{name: getattr(one, name)[first] for name in names})

    return replace(survey, targets=[wider(one) for one in survey.targets])


def class_totals(survey: Surveyed) -> Array:
    """The weight of every class in every fold, (k, classes)."""
    means = np.array([one.mean for one in survey.targets])
    shares = (1.0 + means) / 2.0
    shares = np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares
    return np.asarray(survey.weights[:, None] * shares)


def reweighted(survey: Surveyed, weights: Array) -> Surveyed:
    """The same survey with the weights of the folds under class weights; the rest is unchanged."""
    totals = class_totals(survey) @ weights
    targets = [
        replace(one, weight=float(total)) for one, total in zip(survey.targets, totals, strict=True)
    ]
    return replace(survey, targets=targets)
