"""A kernel matrix of low rank, K ~ Phi Phi', of rows in memory, which is never formed.

It replaces the kernel matrix of a problem. Passes read the rows in chunks. Features are kept from
pass to pass if they fit into memory, and recomputed otherwise. They are where the rows are; on a
device they may take a share of the free memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.features.maps import FeatureMap, HeldMap
from onefit.features.moments import Centre, chunk_rows
from onefit.gram import DenseGram, Gram
from onefit.kernels.distances import CENTRE_SAMPLE_ROWS
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = ["MAX_HELD_ELEMENTS", "FeatureGram", "run"]

State = TypeVar("State")
Result = TypeVar("Result")

#: largest number of elements of features that are kept
MAX_HELD_ELEMENTS = 2**27
#: share of the free memory of a device that features may take
MAX_SHARE_OF_FREE_MEMORY = 0.4


def run(accumulator: Accumulator[State, Result], parts: Iterable[Chunk]) -> Result:
    """One pass over chunks, one after the other."""
    state = accumulator.init()
    for chunk in parts:
        state = accumulator.update(state, chunk)
    return accumulator.finish(state)


@dataclass(frozen=True)
class FeatureGram(Gram):
    """K ~ Phi Phi' of some rows.

    Attributes
    ----------
    X : (n, p) array or sparse matrix
    features : FeatureMap
    landmarks : (M,) array of int, or None
        Rows of the landmarks; -1 for a landmark that is not one of these rows.
    keep_landmarks : bool
        Whether landmarks may be in held-out folds.
    keep_features : bool
        Whether features are kept if they fit into memory.
    """

    X: Any = field(repr=False)
    features: FeatureMap
    landmarks: Indices | None = field(default=None, repr=False)
    keep_landmarks: bool = False
    keep_features: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        n = int(self.X.shape[0])
        return n, n

    @property
    def dtype(self) -> Any:
        """Double precision."""
        return np.dtype(np.float64)

    @property
    def diagonal(self) -> Array:
        """Squared lengths, at least those of the features."""
        return np.square(self.features.lengths(self.X))

    @property
    def held(self) -> bool:
        return False

    @property
    def matrix(self) -> Any:
        raise RuntimeError("features replace the kernel matrix, which is never formed")

    def hold(self) -> Gram:
        """Phi Phi' as a matrix, for small samples."""
        return DenseGram(self.block(np.arange(self.shape[0])))

    def matmul(self, V: Array, precise: bool = False) -> Array:
        """Phi (Phi' V)."""
        Phi = self._matrix_of(np.arange(self.shape[0]))
        return linalg.matmul(Phi, linalg.matmul(Phi.T, V))

    def block(self, rows: Indices, columns: Indices | None = None) -> Array:
        left = self._matrix_of(rows)
        return linalg.matmul(left, (left if columns is None else self._matrix_of(columns)).T)

    def astype(self, dtype: Any) -> FeatureGram:
        """Return self: features are in double precision."""
        return self

    def _matrix_of(self, rows: Indices) -> Array:
        """The features of some rows, on the host."""
        xp = linalg.arrays_of(self.X)
        return np.asarray(xp.host(self.features.apply(xp.rows(self.X, rows))))

    @property
    def size(self) -> int:
        """Rows of a chunk."""
        return chunk_rows(self.features.size)

    @property
    def room(self) -> float:
        """Largest number of elements of features that are kept."""
        device: Any = linalg.arrays_of(self.X)
        return (
            float(MAX_HELD_ELEMENTS)
            if device.on_host
            else MAX_SHARE_OF_FREE_MEMORY * device.room() / 8.0
        )

    @cached_property
    def kept(self) -> tuple[Any, FeatureMap]:
        """The rows and their map; or their features and a ``HeldMap``, if these are kept."""
        n, m, xp = self.shape[0], self.features.size, linalg.arrays_of(self.X)
        if n * m > self.room or not self.keep_features:
            return self.X, self.features
        Phi = xp.empty((n, m), np.float64)
        for first in range(0, n, self.size):
            some = slice(first, min(n, first + self.size))
            if xp.on_host:
                self.features.apply(self.X[some], Phi[some])
            else:
                Phi[some, :] = self.features.apply(xp.rows(self.X, some))
        return Phi, HeldMap(self.features)

    @cached_property
    def lengths(self) -> Array:
        """Bounds on the lengths of the features, row by row."""
        X, features = self.kept
        return features.lengths(X)

    def chunks(self, Y: Array, s: Array, fold: Indices, size: int | None = None) -> Iterator[Chunk]:
        """All rows in chunks of ``size`` rows, for an accumulator of ``kept[1]``."""
        X, row, size = self.kept[0], np.arange(Y.shape[0]), size or self.size
        for first in range(0, row.size, size):
            some = slice(first, first + size)
            yield Chunk(linalg.arrays_of(X).rows(X, some), Y[some], s[some], fold[some], row[some])

    def lost(self, removed: Indices) -> Array:
        """Functions that a split without these rows may not use, (m, d)."""
        if self.keep_landmarks or self.landmarks is None:
            return np.empty((self.features.size, 0))
        return self.features.lost(np.flatnonzero(np.isin(self.landmarks, removed)))

    def take(self, rows: Indices) -> FeatureGram:
        """Features of some rows."""
        # the last entry is the place of a landmark that is not one of these rows
        place = np.full(self.shape[0] + 1, -1, dtype=np.intp)
        place[rows] = np.arange(rows.size)
        landmarks = None if self.landmarks is None else place[self.landmarks]
        xp = linalg.arrays_of(self.X)
        other = replace(self, X=xp.rows(self.X, rows), landmarks=landmarks)
        if "kept" in vars(self) and isinstance(self.kept[1], HeldMap):
            vars(other)["kept"] = xp.rows(self.kept[0], rows), self.kept[1]
        return other

    def centre(self, Y: Array, s: Array, fit_intercept: bool) -> Centre:
        """Means of features and targets over a few rows; zero without an intercept."""
        if not fit_intercept:
            return Centre.zero(self.features.size, Y.shape[1])
        rows = np.flatnonzero(s > 0)
        rows = rows[
            np.linspace(0, rows.size - 1, min(CENTRE_SAMPLE_ROWS, rows.size)).astype(np.intp)
        ]
        X, features = self.kept
        return Centre.of(features, linalg.arrays_of(X).rows(X, rows), Y[rows])

    def values(self, rows: Indices, W: Array) -> Array:
        """phi'W of some rows, (n, L, q) for weights (m, L, q)."""
        X, features = self.kept
        coefficients = features.coefficients(W.reshape(W.shape[0], -1))
        out, xp = np.empty((rows.size, coefficients.shape[1])), linalg.arrays_of(X)
        for first in range(0, rows.size, self.size):
            some = slice(first, first + self.size)
            out[some] = features.evaluate(xp.rows(X, rows[some]), coefficients)
        return out.reshape(rows.size, *W.shape[1:])
