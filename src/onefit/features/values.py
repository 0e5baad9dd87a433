"""Held-out values of one model, row by row, if a few numbers per row fit into memory.

Scores need sums only (onefit.features.scores). Out-of-fold predictions need one more pass, after
the winner is known: the model without its fold predicts every row, and its number, target, weight,
fold and value are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.features.maps import FeatureMap
from onefit.folds import Folds
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = ["MAX_KEPT_ELEMENTS", "Kept", "Values", "numbers"]

#: largest number of elements that are kept of all rows
MAX_KEPT_ELEMENTS = 2**24


def numbers(rows: int, targets: int) -> int:
    """Number of elements that are kept of all rows."""
    return rows * (2 * targets + 4)


@dataclass(frozen=True)
class Kept:
    """Held-out values and targets of some rows.

    Attributes
    ----------
    row, fold, s : (n,) arrays
    Y, u : (n, q) arrays
        Targets, and held-out values.
    """

    row: Array = field(repr=False)
    fold: Array = field(repr=False)
    s: Array = field(repr=False)
    Y: Array = field(repr=False)
    u: Array = field(repr=False)

    def folds(self, k: int) -> Folds:
        """The splits, with rows numbered in their order."""
        test = [np.flatnonzero(self.fold == one) for one in range(k)]
        return Folds.from_removed(self.row.size, test, test, [True] * k)


@dataclass(frozen=True)
class Values(Accumulator[list[Kept], Kept]):
    """The accumulator of held-out values.

    Attributes
    ----------
    features : FeatureMap
    W : (k, m, q) array
        The models of every fold, trained without it.
    b : (k, q) array
    """

    features: FeatureMap
    W: Array = field(repr=False)
    b: Array = field(repr=False)

    def init(self) -> list[Kept]:
        return []

    def update(self, state: list[Kept], chunk: Chunk) -> list[Kept]:
        u = np.empty((chunk.row.size, self.b.shape[1]))
        for k in np.unique(chunk.fold).tolist():
            own = np.flatnonzero(chunk.fold == k)
            X = linalg.arrays_of(chunk.X).rows(chunk.X, own)
            u[own] = self.features.evaluate(X, self._coefficients[k]) + self.b[k]
        return [*state, Kept(chunk.row, chunk.fold, chunk.s, chunk.Y, u)]

    @cached_property
    def _coefficients(self) -> list[Array]:
        """The factors of products with features, fold by fold."""
        return [self.features.coefficients(W) for W in self.W]

    def finish(self, state: list[Kept]) -> Kept:
        names = ("row", "fold", "s", "Y", "u")
        found = [np.concatenate([getattr(one, name) for one in state]) for name in names]
        order = np.argsort(found[0], kind="stable")
        return Kept(*(one[order] for one in found))
