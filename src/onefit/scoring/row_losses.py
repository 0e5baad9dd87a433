"""Pooled metrics of all candidates, from the statistics of the rows.

A *pooled* metric (:class:`onefit.scoring.Metric`) is that of all held-out rows at once. It differs
from the mean over splits: for the root mean squared error, that mean decreases with the size of
the splits, since the root is concave (for single rows it is the mean absolute error).

From the statistics of the rows of every candidate follow, without another prediction,

- the standard error of the pooled metric, by the jackknife: leave out one block of rows (a single
  row, or rows that belong together) after the other; with theta_b what is left, of B blocks,

      standard error^2 = (B - 1) / B sum_b (theta_b - mean theta)^2;

- the *optimism* of the winner, whose score is the best of many on the same rows. Draw n of the n
  rows, with repetition; take the candidate with the best score on them; compute its score on the
  rows that were not drawn. The mean of these over many draws estimates the score of such a winner
  on rows that did not choose it (bootstrap bias corrected cross-validation; Tsamardinos, Greasidou
  and Borboudakis, Machine Learning 107, 2018). The optimism is the best score minus this mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import factorial
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.scoring.metric import Metric, RowSums, Truth

__all__ = ["RowLosses", "jackknife_error", "optimism_of_splits"]

#: draws of rows for the optimism; its own noise is then a tenth of the spread of one draw
BOOTSTRAP_DRAWS = 100
#: rows beyond which the count of each is drawn independently
MIN_POISSON_ROWS = 200_000
#: quantiles of a Poisson distribution of mean one, at the midpoints of 2^16 equal intervals
POISSON = np.searchsorted(
    np.cumsum(np.exp(-1.0) / np.array([factorial(k) for k in range(12)])),
    (np.arange(2**16) + 0.5) / 2**16,
).astype(np.uint8)


@dataclass(frozen=True)
class RowLosses:
    """The statistics of all held-out rows by every candidate.

    Attributes
    ----------
    metric : Metric
    sign : 1 or -1
        What makes the metric a score, the larger the better.
    truth : Truth
        Of all rows as one split.
    losses : (C, N, c) array
        NaN for candidates without held-out values.
    columns : int
        Of the held-out values.
    """

    metric: Metric
    sign: int
    truth: Truth
    losses: Array = field(repr=False)
    columns: int

    @classmethod
    def of(
        cls, metric: Metric, sign: int, truth: Truth, values: Iterable[tuple[Any, Array]], C: int
    ) -> RowLosses:
        """The losses of (candidates, their (L, N, q) held-out values)."""
        truth = replace(truth, starts=np.zeros(1, dtype=np.intp))
        losses, q = np.empty(0), 0
        for indices, found in values:
            statistic = metric.statistic(truth.y, found.astype(np.float64, copy=False))
            if not q:
                q = found.shape[-1]
                losses = np.full((C, *statistic.shape[1:]), np.nan)
            losses[list(indices)] = statistic
        return cls(metric, sign, truth, losses, q)

    def scores(self, weights: Array | None = None, candidates: Any = slice(None)) -> Array:
        """Pooled scores, (B, C), with (B, N) weights of the rows; (1, C) with their own.

        The variance of y is that of all rows with their own weights: of a few rows it may be zero.
        """
        W = self.truth.weights[None] if weights is None else weights

        def drawn(values: Array, rows: Any, share: Any) -> Array:
            own = W if share is None else W[:, rows] * share
            return np.asarray(own @ values[rows])

        return self._finish(self._sums(drawn, candidates), self.truth.variance)

    def without(self, blocks: Array, candidates: Any = slice(None)) -> Array:
        """Pooled scores without each block of rows, (B, C)."""
        B, w = int(blocks.max()) + 1, self.truth.weights

        def left(values: Array, rows: Any, share: Any) -> Array:
            own = w if share is None else w[rows] * share
            return _without(own[:, None] * values[rows], blocks[rows], B)

        return self._finish(self._sums(left, candidates), self._variance_without(blocks)[:, None])

    def _sums(self, reduce: Callable[[Array, Any, Any], Array], candidates: Any) -> RowSums:
        """Sums over B sets of rows, (B, C, c); ``reduce`` is given (N, columns) values, and the
        rows that a mean is over with their shares in it.
        """
        chosen = self.losses[candidates]
        C, N, c = chosen.shape
        flat, ones = chosen.transpose(1, 0, 2).reshape(N, -1), np.ones((N, 1))
        top = [reduce(flat, *part).reshape(-1, C, c) for part in self._parts]
        below = [reduce(ones, *part)[:, None] for part in self._parts]
        return RowSums(np.concatenate(top, axis=-1), np.concatenate(below, axis=-1))

    @cached_property
    def _parts(self) -> list[tuple[Any, Any]]:
        """The rows of each mean with their shares in it; None where all rows count alike."""
        if self.metric.members is None:
            return [(slice(None), None)]
        members = self.metric.members(self.truth.y, self.columns)
        return [(rows, one[rows]) for one in members.T for rows in [np.flatnonzero(one)]]

    def _finish(self, sums: RowSums, variance: Array) -> Array:
        """Scores (B, C) from sums over B sets of rows."""
        with np.errstate(over="ignore"):
            return np.asarray(self.sign * self.metric.finish(sums.means, variance).mean(axis=-1))

    def _variance_without(self, blocks: Array) -> Array:
        """Variance of the targets without each block, (B, q), as in ``Truth.variance``.

        Sums are over the other blocks, not differences of sums, and of targets less their median:
        an outlier that is left out leaves no trace.
        """
        y, w, B = self.truth.y.astype(np.float64), self.truth.weights[:, None], int(blocks.max())
        y = y - np.median(y, axis=0)
        over = partial(_without, blocks=blocks, B=B + 1)
        total, there = over(w), w > 0.0
        one, two = (RowSums(over(w * y**power), total).means for power in (1, 2))
        highest = over(np.where(there, y, -np.inf), how=np.maximum)
        lowest = -over(np.where(there, -y, -np.inf), how=np.maximum)
        found = np.where(highest == lowest, 0.0, np.maximum(two - np.square(one), 0.0))
        return np.where(over(np.ones_like(w)) < 2, np.nan, found)

    def errors(self, blocks: Array) -> Array:
        """Standard error of every candidate's pooled score, (C,), by the jackknife."""
        size = max(1, linalg.CHUNK_ELEMENTS // 8 // (self.losses[0].size * len(self._parts)))
        parts = [slice(i, i + size) for i in range(0, len(self.losses), size)]
        return np.concatenate([jackknife_error(self.without(blocks, part)) for part in parts])

    def optimism(self, rows: Array, random: np.random.Generator) -> float:
        """Optimism of the best score; 0 for a single candidate.

        ``rows`` names the row of each of the N test rows: one that several splits test is drawn,
        or not, as a whole.
        """
        known = np.flatnonzero(np.isfinite(self.losses[:, 0, 0]))
        if known.size < 2:
            return 0.0
        place = np.unique(rows, return_inverse=True)[1]
        size, found, w = max(1, linalg.CHUNK_ELEMENTS // rows.size), [], self.truth.weights
        for start in range(0, BOOTSTRAP_DRAWS, size):
            drawn = _draws(int(place.max()) + 1, min(size, BOOTSTRAP_DRAWS - start), random)[
                :, place
            ]
            inside, outside = drawn * w, (drawn == 0) * w
            both = inside.any(axis=1) & outside.any(axis=1)
            taken = self.scores(inside[both], known).argmax(axis=1)[:, None]
            found.append(np.take_along_axis(self.scores(outside[both], known), taken, axis=1))
        best = float(self.scores(candidates=known)[0].max())
        spared = np.concatenate(found)
        return max(0.0, best - float(spared.mean())) if spared.size else 0.0


def _without(values: Array, blocks: Array, B: int, how: Any = np.add) -> Array:
    """The sum, or maximum, over the rows that are not in each of B blocks, (B, columns)."""
    nothing = 0.0 if how is np.add else -np.inf
    order = np.argsort(blocks, kind="stable")
    starts = np.flatnonzero(np.diff(blocks[order], prepend=-1))
    own = np.full((B, values.shape[1]), nothing)
    own[blocks[order[starts]]] = how.reduceat(values[order], starts, axis=0)
    before, after = np.full((2, *own.shape), nothing)
    how.accumulate(own[:-1], axis=0, out=before[1:])
    how.accumulate(own[:0:-1], axis=0, out=after[-2::-1])
    return np.asarray(how(before, after, out=before))


def _draws(n: int, times: int, random: np.random.Generator) -> Array:
    """How often each of n things is drawn in n draws with repetition, (times, n).

    Beyond ``MIN_POISSON_ROWS`` things the counts are independent, from a Poisson distribution of
    mean one: their sum is n on average only, in a tenth of the time.
    """
    if n > MIN_POISSON_ROWS:
        return POISSON[random.integers(POISSON.size, size=(times, n), dtype=np.uint16)]
    drawn = random.integers(n, size=(times, n)) + n * np.arange(times)[:, None]
    return np.bincount(drawn.ravel(), minlength=n * times).reshape(times, n)


def jackknife_error(left: Array) -> Array:
    """Standard errors from the values without each of B blocks, (B, ...)."""
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
    drawn = _draws(k, BOOTSTRAP_DRAWS, random)
    drawn = drawn[(drawn == 0).any(axis=1)]
    inside = drawn @ known.T / k
    spared = (drawn == 0).astype(float)
    outside = spared @ known.T / spared.sum(axis=1)[:, None]
    taken = np.take_along_axis(outside, inside.argmax(axis=1)[:, None], axis=1)
    return max(0.0, float(known.mean(axis=1).max() - taken.mean()))
