"""Parts of the rows in memory, from which the training rows of every split are put together.

Rows that the same splits remove are one part, and sums over the rows that a split trains on are
sums over the parts that it does not remove. The k folds of a k-fold are k parts, and k splits of a
time series need k + 1. Splits that cut across each other, as repetitions do, would need too many
parts: they are divided into groups with parts of their own, and a pass over the rows for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array, Indices
from onefit.folds import Folds

__all__ = ["MAX_MOMENT_ELEMENTS", "RowParts", "partitions"]

#: largest number of elements of the matrices of all parts in a pass
MAX_MOMENT_ELEMENTS = 2**28


@dataclass(frozen=True)
class RowParts:
    """Parts of the rows, each of which some splits remove or keep as a whole.

    Attributes
    ----------
    label : (n,) array of int
        The part of every row.
    splits : list of int
    removed : list of index arrays
        The parts that each of the splits removes.
    """

    label: Indices = field(repr=False)
    splits: list[int]
    removed: list[Indices]

    @classmethod
    def whole(cls, n: int) -> RowParts:
        """One part, and no split."""
        return cls(np.zeros(n, dtype=np.intp), [], [])

    def extended(self, split: int, rows: Indices) -> RowParts:
        """The parts for one more split; parts of which it removes only some rows are divided."""
        outside = np.ones(self.label.size, dtype=np.intp)
        outside[rows] = 0
        pairs, label = np.unique(2 * self.label + outside, return_inverse=True)
        old, kept = np.divmod(pairs, 2)
        removed = [np.flatnonzero(np.isin(old, parts)) for parts in self.removed]
        return RowParts(label, [*self.splits, split], [*removed, np.flatnonzero(kept == 0)])

    @property
    def parts(self) -> int:
        """Number of parts."""
        return int(self.label.max()) + 1

    @property
    def train(self) -> Array:
        """The parts that each split and, last, all rows are trained on, (parts, splits + 1)."""
        mask = np.ones((self.parts, len(self.splits) + 1), dtype=bool)
        for column, removed in enumerate(self.removed):
            mask[removed, column] = False
        return mask


def partitions(folds: Folds, most: int) -> list[RowParts]:
    """Groups of splits, in order, none with more than one part a split (and one), or ``most``."""
    found: list[RowParts] = []
    current = RowParts.whole(folds.n)
    for split, rows in enumerate(folds.removed):
        wider = current.extended(split, rows)
        if current.splits and (wider.parts > len(wider.splits) + 1 or wider.parts > most):
            found.append(current)
            wider = RowParts.whole(folds.n).extended(split, rows)
        current = wider
    return [*found, current]
