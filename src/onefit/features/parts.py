"""The splits of rows in memory as sums of parts.

Rows that the same splits remove are one part, and sums over the rows that a split trains on are
sums over the parts that it does not remove. The k folds of a k-fold are k parts, and k splits of a
time series are k + 1. Splits that cut across each other, as repetitions do, have too many parts in
common: they are grouped, and each group gets parts of its own, and a pass over the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array, Indices
from onefit.folds import Folds

__all__ = ["MAX_MOMENT_ELEMENTS", "Partition", "partitions"]

#: numbers in the matrices of all parts that a pass adds up
MAX_MOMENT_ELEMENTS = 2**28


@dataclass(frozen=True)
class Partition:
    """Parts of the rows that some splits remove or keep as wholes.

    Attributes
    ----------
    label : (n,) array of int
        The part of every row.
    splits : list of int
        The splits that are served.
    removed : list of index arrays
        The parts that each of these removes.
    """

    label: Indices = field(repr=False)
    splits: list[int]
    removed: list[Indices]

    @classmethod
    def whole(cls, n: int) -> Partition:
        """One part, and no split."""
        return cls(np.zeros(n, dtype=np.intp), [], [])

    def extended(self, split: int, rows: Indices) -> Partition:
        """A partition with one more split; parts that it removes in part are divided."""
        outside = np.ones(self.label.size, dtype=np.intp)
        outside[rows] = 0
        pairs, label = np.unique(2 * self.label + outside, return_inverse=True)
        old, kept = np.divmod(pairs, 2)
        removed = [np.flatnonzero(np.isin(old, parts)) for parts in self.removed]
        return Partition(label, [*self.splits, split], [*removed, np.flatnonzero(kept == 0)])

    @property
    def parts(self) -> int:
        """Number of parts."""
        return int(self.label.max()) + 1

    @property
    def train(self) -> Array:
        """The parts that each split is trained on, (parts, splits)."""
        mask = np.ones((self.parts, len(self.splits)), dtype=bool)
        for column, removed in enumerate(self.removed):
            mask[removed, column] = False
        return mask


def partitions(folds: Folds, most: int) -> list[Partition]:
    """Groups of splits, in order, none with more than one part a split (and one), or ``most``."""
    found: list[Partition] = []
    current = Partition.whole(folds.n)
    for split, rows in enumerate(folds.removed):
        wider = current.extended(split, rows)
        if current.splits and (wider.parts > len(wider.splits) + 1 or wider.parts > most):
            found.append(current)
            wider = Partition.whole(folds.n).extended(split, rows)
        current = wider
    return [*found, current]
