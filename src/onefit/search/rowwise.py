"""Metrics that are a function of a mean over rows, for all candidates at once.

With l_i the loss of row i (its squared error, its absolute error, whether its label is right) and m
their weighted mean over all held-out rows, such a metric is g(m): the root mean squared error has
g(m) = sqrt(m), R^2 has g(m) = 1 - m / variance of y. It is *pooled*: a mean of g over splits is
another number, and a smaller one the smaller the splits are, since the root is concave (of single
rows, the mean of the roots is the mean absolute error).

From the l_i of every candidate follow, without another prediction,

- the standard error of the pooled metric, by the jackknife: leave out one block of rows (a single
  row, or rows that belong together) after the other; with theta_b what is left, of B blocks,

      standard error^2 = (B - 1) / B sum_b (theta_b - mean theta)^2;

- the *optimism* of the winner, whose score is the best of many on the same rows. Draw as many rows
  as there are, with repetition; take the candidate that is best on them; look at its score on the
  rows that were not drawn. The mean over draws is what a winner chosen so scores on rows that did
  not choose it (bootstrap bias corrected cross-validation; Tsamardinos, Greasidou and Borboudakis,
  Machine Learning 107, 2018), and the optimism is what the best score lies above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import factorial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.search import metrics
from onefit.search.metrics import Metric, Truth

Array = NDArray[Any]

__all__ = ["ROWWISE", "RowLosses", "jackknife_error", "optimism_of_splits"]

#: draws of rows for the optimism; its own noise is then a tenth of the spread of one draw
DRAWS = 100
#: rows beyond which each is drawn by itself
MANY = 200_000
#: the counts of a Poisson distribution of mean one that 2^16 equally likely numbers stand for
POISSON = np.searchsorted(
    np.cumsum(np.exp(-1.0) / np.array([factorial(k) for k in range(12)])),
    (np.arange(2**16) + 0.5) / 2**16,
).astype(np.uint8)
#: numbers of a block of draws
BLOCK = 2**24


#: metric -> (loss of a row, from the mean and the variance of y to the metric)
ROWWISE: dict[Metric, tuple[Callable[[Array, Array], Array], Callable[[Array, Array], Array]]] = {
    metrics.squared_error: (lambda y, u: np.square(y - u), lambda m, v: m),
    metrics.root_squared_error: (lambda y, u: np.square(y - u), lambda m, v: np.sqrt(m)),
    metrics.absolute_error: (lambda y, u: np.abs(y - u), lambda m, v: m),
    metrics.determination: (lambda y, u: np.square(y - u), lambda m, v: 1.0 - m / v),
    metrics.accuracy: (metrics.hits, lambda m, v: m),
}


@dataclass(frozen=True)
class RowLosses:
    """The losses of all held-out rows by every candidate.

    Attributes
    ----------
    losses : (C, N, q) array
        NaN for candidates without held-out values.
    y : (N, q) array
        Centred.
    weights : (N,) array
    finish : from means and variances to the metric
    sign : 1 or -1
        What makes the metric a score, the larger the better.
    """

    losses: Array = field(repr=False)
    y: Array = field(repr=False)
    weights: Array = field(repr=False)
    finish: Callable[[Array, Array], Array] = field(repr=False)
    sign: int

    @classmethod
    def of(
        cls, metric: Metric, sign: int, truth: Truth, values: Iterable[tuple[Any, Array]], C: int
    ) -> RowLosses | None:
        """From (candidates, their (L, N, q) held-out values); None for other metrics."""
        if metric not in ROWWISE:
            return None
        loss, finish = ROWWISE[metric]
        losses = np.full((C, *truth.y.shape), np.nan, dtype=np.float32)
        for indices, found in values:
            losses[list(indices)] = loss(truth.y, found.astype(np.float64, copy=False))
        centred = truth.y - np.average(truth.y, axis=0, weights=truth.weights)
        return cls(losses, centred, truth.weights, finish, sign)

    def scores(self, weights: Array | None = None, candidates: Any = slice(None)) -> Array:
        """Pooled scores, (B, C), with (B, N) weights of the rows; (1, C) with their own.

        The variance of y is that of all rows with their own weights: of a few rows it may be zero.
        """
        own = self.weights[None]
        W = own if weights is None else weights
        flat = self._flat(candidates)
        means = (W.astype(flat.dtype) @ flat / W.sum(axis=1)[:, None]).reshape(
            len(W), -1, self.y.shape[1]
        )
        return self._finish(means, *(own @ self.y**power / own.sum() for power in (1, 2)))

    def _flat(self, candidates: Any) -> Array:
        """(N, C q): the rows down, candidates and targets across."""
        return np.asarray(self.losses[candidates].transpose(1, 0, 2).reshape(len(self.y), -1))

    def _finish(self, means: Array, first: Array, second: Array) -> Array:
        """From (B, C, q) means of losses, and (B, q) moments of y, to the (B, C) scores."""
        variance = np.maximum(second - np.square(first), np.finfo(float).tiny)
        with np.errstate(over="ignore"):
            found = self.finish(means.astype(np.float64), variance[:, None])
        return np.asarray(self.sign * found.mean(axis=-1))

    def without(self, blocks: Array, candidates: Any = slice(None)) -> Array:
        """Pooled scores without each block of rows, (B, C)."""
        w, flat = self.weights[:, None], self._flat(candidates).astype(np.float64)
        total = _left(w, blocks)
        means = (_left(w * flat, blocks) / total).reshape(len(total), -1, self.y.shape[1])
        moments = (_left(w * self.y**power, blocks) / total for power in (1, 2))
        return self._finish(means, *moments)

    def errors(self, blocks: Array) -> Array:
        """Standard error of every candidate's pooled score, (C,), by the jackknife."""
        size = max(1, BLOCK // 8 // self.y.size)
        parts = [slice(i, i + size) for i in range(0, len(self.losses), size)]
        return np.concatenate([jackknife_error(self.without(blocks, part)) for part in parts])

    def optimism(self, rows: Array, random: np.random.Generator) -> float:
        """By how much the best score flatters its candidate; 0 where there is but one.

        ``rows`` names the row of each of the N test rows: one that several splits test is drawn,
        or not, as a whole.
        """
        known = np.flatnonzero(np.isfinite(self.losses[:, 0, 0]))
        if known.size < 2:
            return 0.0
        place = np.unique(rows, return_inverse=True)[1]
        size, found = max(1, BLOCK // rows.size), []
        for start in range(0, DRAWS, size):
            drawn = _draws(int(place.max()) + 1, min(size, DRAWS - start), random)[:, place]
            inside, outside = drawn * self.weights, (drawn == 0) * self.weights
            both = inside.any(axis=1) & outside.any(axis=1)
            taken = self.scores(inside[both], known).argmax(axis=1)[:, None]
            found.append(np.take_along_axis(self.scores(outside[both], known), taken, axis=1))
        best = float(self.scores(candidates=known)[0].max())
        spared = np.concatenate(found)
        return max(0.0, best - float(spared.mean())) if spared.size else 0.0


def _left(values: Array, blocks: Array) -> Array:
    """Sums over all rows less those over each block, (B, columns)."""
    B = int(blocks.max()) + 1
    if len(values) == B:
        sums = np.empty_like(values)
        sums[blocks] = values
    else:
        sums = np.zeros((B, values.shape[1]))
        np.add.at(sums, blocks, values)
    return np.asarray(values.sum(axis=0) - sums)


def _draws(n: int, times: int, random: np.random.Generator) -> Array:
    """How often each of n things is drawn in n draws with repetition, (times, n).

    Of very many, as many as a Poisson distribution of mean one says, each by itself: counts that
    add up to n on average only, for a tenth of the time.
    """
    if n > MANY:
        return POISSON[random.integers(POISSON.size, size=(times, n), dtype=np.uint16)]
    drawn = random.integers(n, size=(times, n)) + n * np.arange(times)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * times).reshape(times, n)


def jackknife_error(left: Array) -> Array:
    """Standard errors from what is left without each of B blocks, (B, ...)."""
    B = left.shape[0]
    if B < 2:
        return np.full(left.shape[1:], np.nan)
    spread = np.square(left - left.mean(axis=0)).sum(axis=0)
    return np.asarray(np.sqrt((B - 1) / B * spread))


def optimism_of_splits(scores: Array, random: np.random.Generator) -> float:
    """The same from the (C, k) scores of the splits, for any metric: splits are drawn, not rows."""
    known = scores[np.isfinite(scores).all(axis=1)]
    C, k = known.shape
    if C < 2 or k < 3:
        return 0.0
    drawn = _draws(k, DRAWS, random)
    drawn = drawn[(drawn == 0).any(axis=1)]
    inside = drawn @ known.T / k
    spared = (drawn == 0).astype(float)
    outside = spared @ known.T / spared.sum(axis=1)[:, None]
    taken = np.take_along_axis(outside, inside.argmax(axis=1)[:, None], axis=1)
    return max(0.0, float(known.mean(axis=1).max() - taken.mean()))
