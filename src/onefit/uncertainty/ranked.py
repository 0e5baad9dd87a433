"""Held-out residuals with the weights they have in a prediction interval.

A residual belongs to a split and to a row that the split tests. Its weight is its share in the rank
of the ends of the interval; a new row counts as one unit, see :mod:`onefit.uncertainty.intervals`:

- rows are the units: row i has weight s_i (its sample weight), shared by the splits that test it;
- groups are the units: the rows of a group share weight 1, in proportion to s_i.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold

from onefit._types import Array, Indices
from onefit.folds import Folds, leave_one_out

__all__ = ["Ranked", "choose_folds", "group_codes", "rounding", "whole_groups"]

#: folds of "cv+" if neither the caller nor a search gives a number
DEFAULT_FOLDS = 10


def rounding(weights: Array) -> float:
    """Relative rounding of sums of weights: sums that are equal but for it count as equal."""
    return float(8.0 * np.finfo(float).eps * weights.size)


@dataclass(frozen=True)
class Ranked:
    """Pairs of a split and a row that it tests.

    Attributes
    ----------
    split, row : (N,) arrays of int
    weight : (N,) array
        Positive; its sum is the number of units.
    unit : {"rows", "groups"}
    """

    split: Indices = field(repr=False)
    row: Indices = field(repr=False)
    weight: Array = field(repr=False)
    unit: str

    @classmethod
    def of(cls, folds: Folds, s: Array, groups: Indices | None) -> Ranked:
        """All pairs of the splits; ``s`` holds positive sample weights."""
        row, split = folds.rows, np.repeat(np.arange(len(folds)), np.diff(folds.offsets))
        weight = s.astype(np.float64)[row] / np.bincount(row, minlength=folds.n)[row]
        if groups is not None:
            weight = weight / np.bincount(groups[row], weights=weight)[groups[row]]
        return cls(split, row, weight, "rows" if groups is None else "groups")

    @property
    def units(self) -> float:
        """Number of rows or groups with which the new one is compared."""
        return float(self.weight.sum())

    def rank(self, alpha: float) -> float:
        """(1 - alpha)(units + 1), reduced by rounding, so that a whole product stays whole."""
        return (1.0 - alpha) * (self.units + 1.0) * (1.0 - rounding(self.weight))

    def check(self, alpha: Any) -> float:
        """``alpha``, if there are enough units for it."""
        if not isinstance(alpha, (float, int)) or not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha must lie between 0 and 1, got {alpha!r}; 0.1 asks for 90 %")
        if self.rank(alpha) > self.units * (1.0 + rounding(self.weight)):
            # rounded up, so that the number in the message is enough
            least = np.ceil(1e4 / (self.units + 1.0)) / 1e4
            more = "more rows (with sample_weight, its sum counts)"
            if self.unit == "groups":
                more = (
                    "more groups. A new group is compared with groups, however many rows they "
                    "have; for new rows of the same groups pass best_estimator_ of the search"
                )
            raise ValueError(
                f"alpha={alpha:g} asks for more than {self.units:g} {self.unit} allow: use alpha "
                f"of at least {least:.4g}, or {more}"
            )
        return float(alpha)

    def ends(
        self, low: Array, high: Array, residual: Array, alpha: float, width: Array | None = None
    ) -> tuple[Array, Array]:
        """Ends of the intervals: below ``low`` and above ``high``, (m, splits) or (m, 1) arrays.

        Parameters
        ----------
        low, high : predictions for the new rows
            The same ones, or those of two quantiles.
        residual : (N,) array
            Held-out residuals of the pairs.
        alpha : float
        width : (m, splits) or (m, 1) array, default=None
            The unit of residuals at the new rows; 1 by default.
        """
        rank = self.rank(alpha)
        reach = residual if width is None else residual * self._by_pair(width)
        lower = -self._at(rank, reach - self._by_pair(low))
        return lower, self._at(rank, reach + self._by_pair(high))

    def _by_pair(self, u: Array) -> Array:
        """Values of the split of each pair, or those for all of them."""
        return u[:, self.split] if u.shape[1] > 1 else u

    def _at(self, rank: float, values: Array) -> Array:
        """In every row, the smallest value at which the cumulative weight reaches the rank."""
        order = np.argsort(values, axis=1)
        reached = np.cumsum(self.weight[order], axis=1) >= rank
        first = np.where(reached.any(axis=1), reached.argmax(axis=1), self.weight.size - 1)
        return np.take_along_axis(values, order, axis=1)[np.arange(len(values)), first]


def choose_folds(
    method: str, cv: Any, X: Any, y: Any, groups: Indices | None, random_state: Any
) -> Folds:
    """The splits whose held-out residuals make the intervals."""
    n = int(X.shape[0]) if hasattr(X, "shape") else len(X)
    if method == "jackknife+":
        return leave_one_out(n) if groups is None else _one_group_out(groups)
    most, what = (n, "rows") if groups is None else (int(groups.max()) + 1, "groups")
    if cv is None:
        cv = min(DEFAULT_FOLDS, most)
    if isinstance(cv, (int, np.integer)):
        if not 2 <= cv <= most:
            raise ValueError(
                f"cv must be at least 2 and at most the number of {what} ({most}), got {cv}"
            )
        kind = KFold if groups is None else GroupKFold
        cv = kind(int(cv), shuffle=True, random_state=random_state)
    folds = Folds.draw(cv, X, y, groups)
    if not all(folds.disjoint):
        raise ValueError("cv has a split that tests rows it trains on; held-out rows are needed")
    if groups is not None:
        _check_apart(folds, groups)
    return folds


def _one_group_out(groups: Indices) -> Folds:
    count = int(groups.max()) + 1
    if count < 2:
        raise ValueError("all rows are of one group; intervals for new groups need at least two")
    removed = [np.flatnonzero(groups == g) for g in range(count)]
    return Folds.from_removed(groups.size, removed, removed, [True] * count)


def _check_apart(folds: Folds, groups: Indices) -> None:
    """Refuse splits that train on rows of a group that they test."""
    for k, (train, test) in enumerate(folds):
        both = np.intersect1d(groups[train], groups[test])
        if both.size:
            raise ValueError(
                f"split {k} of cv trains on rows of a group that it tests (the group of row "
                f"{int(test[np.isin(groups[test], both)][0])}), so that its residuals are not "
                "those of new groups; use an int or GroupKFold for cv"
            )


def whole_groups(folds: Folds, groups: Any) -> Indices | None:
    """Groups as whole numbers from 0, if every split keeps each on one side; else None."""
    codes = group_codes(groups, folds.n)
    whole = all(not np.isin(codes[test], codes[train]).any() for train, test in folds)
    return codes if whole else None


def group_codes(groups: Any, n: int) -> Indices:
    """Groups as whole numbers from 0."""
    values = np.asarray(groups)
    if values.shape != (n,):
        raise ValueError(f"groups must have shape ({n},), one for each row, got {values.shape}")
    codes: Indices = np.unique(values, return_inverse=True)[1]
    return codes
