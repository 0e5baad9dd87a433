"""The sample as a search sees it: rows of a fold side by side, splits as complements.

Held-out methods want the rows that a split removes to be adjacent. A search permutes the sample
once, before any kernel matrix is built, so that no kernel matrix need ever be permuted. The splits
keep the order of their test rows, so that held-out values, stacked split after split, are the same
numbers in the same places as without the permutation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._types import Indices
from onefit.folds import Folds

Array = NDArray[Any]

__all__ = ["FoldedSample", "arrange", "compact"]


@dataclass(frozen=True)
class FoldedSample:
    """Rows, targets, weights and splits, in one order; rows of a pipeline are not known yet."""

    X: Any = field(repr=False)
    Y: Array = field(repr=False)
    s: Array = field(repr=False)
    folds: Folds


def compact(folds: Folds) -> Folds:
    """The same splits, with training sets kept as complements."""
    pairs = zip(folds.test, folds.removed, strict=True)
    disjoint = [np.array_equal(a, b) or bool(np.isin(a, b).all()) for a, b in pairs]
    return Folds.from_removed(folds.n, folds.removed, list(folds.test), disjoint)


def arrange(X: Any, Y: Array, s: Array, folds: Folds, precomputed: bool) -> FoldedSample:
    """The sample in an order that makes the rows that a split removes adjacent, if there is one."""
    order = _adjacent(folds)
    if np.array_equal(order, np.arange(folds.n)):
        return FoldedSample(X, Y, s, folds)
    place = np.empty_like(order)
    place[order] = np.arange(folds.n)
    moved = Folds.from_removed(
        folds.n,
        [np.sort(place[rows]) for rows in folds.removed],
        [place[rows] for rows in folds.test],
        folds.disjoint,
    )
    X = X[np.ix_(order, order)] if precomputed else X[order]
    return FoldedSample(X, np.asfortranarray(Y[order]), s[order], moved)


def _adjacent(folds: Folds) -> Indices:
    taken = np.concatenate(folds.removed)
    if np.unique(taken).size < taken.size:
        return np.arange(folds.n)
    rest = np.setdiff1d(np.arange(folds.n), taken, assume_unique=True)
    return np.concatenate([taken, rest])
