"""A uniform sample of rows that does not depend on the chunks or their order.

Every row has a hash of its number and of a seed. The rows with the m smallest hashes are a uniform
sample without replacement. The smallest of two sets of rows are the smallest of the smallest of
each, so the sample is an accumulator.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from onefit import linalg
from onefit._types import Array, Indices
from onefit.rows.accumulate import Accumulator, Chunk
from onefit.rows.hashing import spread

__all__ = ["DrawnRows", "RowSampler", "row_hash"]


def row_hash(seed: int, rows: Array) -> Array:
    """64 bits for every row number, different ones for different rows.

    Folds are hashes of row numbers, too. Here the seed enters in another way: with equal hashes,
    all landmarks could be in one fold.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    start = np.uint64((0xD1342543DE82EF95 * (int(seed) + 1)) % 2**64)
    return spread(np.asarray(rows).astype(np.uint64) * step + start)


@dataclass(frozen=True)
class DrawnRows:
    """Rows that were drawn, in the order of their hashes.

    Attributes
    ----------
    X : (m, p) array or sparse matrix
    Y : (m, q) array
    fold : (m,) array of int
    row : (m,) array of int
    hashes : (m,) array of uint64
    """

    X: Any = field(repr=False)
    Y: Array = field(repr=False)
    fold: Indices = field(repr=False)
    row: Indices = field(repr=False)
    hashes: Array = field(repr=False)

    def take(self, places: Any) -> DrawnRows:
        """A subset of the drawn rows."""
        parts = (self.X, self.Y, self.fold, self.row, self.hashes)
        return DrawnRows(*(part[places] for part in parts))

    def smallest(self, size: int) -> DrawnRows:
        """The first in the order of hashes, which differ from row to row."""
        return self.take(np.argsort(self.hashes)[:size])

    def join(self, other: DrawnRows) -> DrawnRows:
        """Both together."""
        X: Any = (vstack if issparse(self.X) else np.concatenate)([self.X, other.X])
        names = ("Y", "fold", "row", "hashes")
        rest = (np.concatenate([getattr(self, name), getattr(other, name)]) for name in names)
        return DrawnRows(X.tocsr() if hasattr(X, "tocsr") else X, *rest)


@dataclass(frozen=True)
class RowSampler(Accumulator["DrawnRows | None", DrawnRows]):
    """The accumulator of a uniform sample of the rows of positive weight.

    Parameters
    ----------
    size : int
    seed : int
    """

    size: int
    seed: int

    def init(self) -> DrawnRows | None:
        return None

    def update(self, state: DrawnRows | None, chunk: Chunk) -> DrawnRows | None:
        hashes = row_hash(self.seed, chunk.row)
        some = np.flatnonzero(chunk.s > 0)
        if some.size > self.size:
            some = some[np.argpartition(hashes[some], self.size - 1)[: self.size]]
        if some.size == 0:
            return state
        X = linalg.to_host(linalg.arrays_of(chunk.X).rows(chunk.X, some))
        found = DrawnRows(X, chunk.Y[some], chunk.fold[some], chunk.row[some], hashes[some])
        return self.merge(state, found)

    def merge(self, one: DrawnRows | None, other: DrawnRows | None) -> DrawnRows | None:
        if one is None or other is None:
            return one if other is None else other.smallest(self.size)
        return one.join(other).smallest(self.size)

    def finish(self, state: DrawnRows | None) -> DrawnRows:
        if state is None:
            raise ValueError("there is no row of positive weight to draw landmarks from")
        return state.smallest(self.size)
