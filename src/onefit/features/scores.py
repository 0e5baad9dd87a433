"""Held-out scores as sums over rows: every row is predicted by the models without its fold.

A metric that is a function of means over the test rows of a split (:class:`onefit.scoring.Metric`)
and its interval need no held-out values: the sums of the statistic, and of its least and largest
value within the bounds of the held-out values, are enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.features.maps import FeatureMap
from onefit.rows.accumulate import Accumulator, Chunk
from onefit.rows.survey import Surveyed
from onefit.scoring import Metric, RowSums
from onefit.spec.coding import class_codes

__all__ = ["Scores", "finished", "of_models"]


@dataclass(frozen=True)
class Scores(Accumulator[tuple[RowSums, ...], tuple[RowSums, ...]]):
    """The accumulator of the row sums of some metrics, each over the test rows of every fold.

    The sums of a metric have axes (3, k, L, c): of the statistic, its least and largest value; the
    folds; the models of a fold.

    Attributes
    ----------
    features : FeatureMap
    W : (k, m, L, q) array
        The models of every fold, trained without it.
    b : (k, L, q) array
    reach : (k, L) array
        Bounds on the errors of held-out values.
    metrics : tuple of Metric
    by_class : callable or None
        From values (n, q) of pairs of classes to decision values of the classes.
    """

    features: FeatureMap
    W: Array = field(repr=False)
    b: Array = field(repr=False)
    reach: Array = field(repr=False)
    metrics: tuple[Metric, ...]
    by_class: Any = None

    def init(self) -> tuple[RowSums, ...]:
        k, L, q = self.b.shape
        like = self._sums(0, np.zeros((1, q)), np.zeros((L, 1, q)), np.ones(1))
        return tuple(
            RowSums(
                np.zeros((len(one.top), k, *one.top.shape[1:])), np.zeros((k, *one.below.shape))
            )
            for one in like
        )

    def update(self, state: tuple[RowSums, ...], chunk: Chunk) -> tuple[RowSums, ...]:
        for k, own in chunk.by_fold():
            X = linalg.arrays_of(chunk.X).rows(chunk.X, own)
            u = self.features.evaluate(X, self._coefficients[k]).reshape(-1, *self.b.shape[1:])
            u = np.moveaxis(np.asarray(u, dtype=np.float64) + self.b[k], 1, 0)
            for one, more in zip(state, self._sums(k, chunk.Y[own], u, chunk.s[own]), strict=True):
                one.top[:, k] += more.top
                one.below[k] += more.below
        return state

    def _sums(self, k: int, Y: Array, u: Array, s: Array) -> list[RowSums]:
        """Sums of the metrics over rows of fold k with (L, n, q) values."""
        if self.by_class is not None:
            u = np.stack([self.by_class(one) for one in u])
        e, found = self.reach[k][:, None, None], []
        for metric in self.metrics:
            y = class_codes(Y)[:, None] if metric.task == "classification" else Y
            shares = metric.shares(y, s, u.shape[-1])
            with np.errstate(over="ignore", invalid="ignore"):
                ends = () if metric.ends is None else metric.ends(y, u, e)
                parts = np.stack([metric.statistic(y, u), *ends])
                found.append(RowSums.of(parts, shares, _over_rows))
        return found

    @cached_property
    def _coefficients(self) -> list[Array]:
        """The factors of products with features, fold by fold."""
        return [self.features.coefficients(W.reshape(W.shape[0], -1)) for W in self.W]


def _over_rows(values: Array) -> Array:
    """Sums along the last axis but one; (1, c) of (n, c) shares."""
    return np.asarray(values.sum(axis=-2, keepdims=values.ndim == 2))


def of_models(sums: tuple[RowSums, ...], some: slice) -> tuple[RowSums, ...]:
    """The sums of some of the models."""
    return tuple(RowSums(one.top[:, :, some], one.below) for one in sums)


def finished(metric: Metric, sums: RowSums, survey: Surveyed) -> tuple[Array, Array]:
    """The metric, and its least and largest value if it has intervals.

    Returns
    -------
    by fold : (1 or 3, k, L) array
    pooled : (1 or 3, L) array
    """
    all_rows = RowSums(sums.top.sum(axis=1), sums.below.sum(axis=0))
    pairs = (sums, survey.variances[:, None]), (all_rows, survey.whole.variance)
    order = [0, 1, 2] if metric.rising else [0, 2, 1]
    by_fold, pooled = (
        metric.finish(one.means, variance).mean(axis=-1)[order[: len(one.top)]]
        for one, variance in pairs
    )
    return by_fold, pooled
