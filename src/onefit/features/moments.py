"""Sums of products of features and targets, fold by fold, for the squared loss.

For the rows of a fold k, with weights s,

    G_k = sum s phi phi',    B_k = sum s phi (y, 1)',    T_k = sum s (y, 1)(y, 1)'.

A model trained on some folds needs the sums over these folds and nothing else. With an intercept,
products of means are subtracted from G and B; so that this costs no digits, constants near their
means are subtracted from features and targets, and added to the intercept of the model again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.features.maps import FeatureMap
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = ["Centre", "MomentSums", "Moments", "Sums", "chunk_rows"]


def chunk_rows(features: int) -> int:
    """Rows of a chunk whose features fit into memory."""
    return max(256, linalg.CHUNK_ELEMENTS // max(1, features))


@dataclass(frozen=True)
class Centre:
    """Offsets subtracted from features (m,) and targets (q,)."""

    phi: Array = field(repr=False)
    y: Array

    @classmethod
    def zero(cls, m: int, q: int) -> Centre:
        """A centre of zeros: nothing is subtracted."""
        return cls(np.zeros(m), np.zeros(q))

    @classmethod
    def of(cls, features: FeatureMap, X: object, Y: Array) -> Centre:
        """The means over some rows."""
        phi: Array = linalg.to_host(features.apply(X))
        return cls(phi.mean(axis=0), Y.astype(np.float64).mean(axis=0))


@dataclass
class Sums:
    """Sums over rows: G (lower triangle, column-major), B, T, and the number of rows.

    G and B are where the rows are. ``terms`` is the number of rows whose order of addition is not
    known (onefit.proof.precise.summation).
    """

    G: Any = field(repr=False)
    B: Any = field(repr=False)
    T: Array = field(repr=False)
    rows: int = 0
    terms: int = linalg.HOST.terms

    @classmethod
    def zero(cls, m: int, q: int, xp: linalg.Arrays = linalg.HOST) -> Sums:
        """Sums over no rows; G and B are allocated where the rows are."""
        G, B = xp.zeros((m, m), np.float64), xp.zeros((m, q + 1), np.float64)
        return cls(G.T, B, np.zeros((q + 1, q + 1)))

    def __iadd__(self, other: Sums) -> Sums:
        """Become the sum of both."""
        self.G += other.G
        self.B += other.B
        self.T += other.T
        self.rows += other.rows
        self.terms = max(self.terms, other.terms)
        return self

    @property
    def arrays(self) -> linalg.Arrays:
        """The array library of the sums."""
        return linalg.arrays_of(self.G)

    @property
    def weight(self) -> float:
        """sum s."""
        return float(self.T[-1, -1])

    @property
    def means(self) -> tuple[Array, Array]:
        """Means of features and targets, relative to the offsets subtracted from them."""
        weight = self.weight or 1.0
        return self.arrays.host(self.B[:, -1]) / weight, self.T[:-1, -1] / weight

    def centred(self, fit_intercept: bool) -> tuple[Any, Any]:
        """A (lower triangle) and r of onefit.features.ridge; G is overwritten."""
        xp = self.arrays
        A, r = self.G, xp.fortran_copy(self.B[:, :-1])
        if fit_intercept:
            phi, y = map(xp.asarray, self.means)
            A -= self.weight * (phi[:, None] * phi[None, :])
            r -= self.weight * (phi[:, None] * y[None, :])
        return A, r


@dataclass(frozen=True)
class Moments:
    """The sums of every fold."""

    folds: dict[int, Sums] = field(repr=False)
    centre: Centre

    def without(self, removed: Iterable[int]) -> Sums:
        """Sums of all other folds, added up because a difference would lose digits."""
        m, q = self.centre.phi.size, self.centre.y.size
        xp = next((sums.arrays for sums in self.folds.values()), linalg.HOST)
        total, gone = Sums.zero(m, q, xp), set(removed)
        for name in sorted(set(self.folds) - gone):
            total += self.folds[name]
        return total


@dataclass(frozen=True)
class MomentSums(Accumulator[dict[int, Sums], Moments]):
    """The accumulator of the moments.

    Parameters
    ----------
    features : FeatureMap
    centre : Centre
    """

    features: FeatureMap
    centre: Centre

    def init(self) -> dict[int, Sums]:
        return {}

    def update(self, state: dict[int, Sums], chunk: Chunk) -> dict[int, Sums]:
        m, xp = self.features.size, linalg.arrays_of(chunk.X)
        most = min(chunk_rows(m), max(1, chunk.row.size))
        room = np.empty((most, m)) if xp.on_host else None
        for name, own in chunk.by_fold():
            if name not in state:
                state[name] = Sums.zero(m, self.centre.y.size, xp)
            for first in range(0, own.size, most):
                rows = own[first : first + most]
                Phi = self.features.apply(xp.rows(chunk.X, rows), room)
                self._add(state[name], Phi, chunk.Y[rows], chunk.s[rows].astype(np.float64))
        return state

    def _add(self, sums: Sums, Phi: Any, Y: Array, s: Array) -> None:
        """Add some rows of a fold; their features are overwritten."""
        xp = linalg.arrays_of(Phi)
        Phi -= xp.asarray(self.centre.phi)
        targets = np.ones((s.size, self.centre.y.size + 1))
        targets[:, :-1] = Y - self.centre.y
        if (s != 1.0).any():
            root = np.sqrt(s)[:, None]
            Phi *= xp.asarray(root)
            targets *= root
        xp.add_gram(sums.G, Phi.T)
        sums.B += xp.matmul(Phi.T, xp.asarray(targets))
        sums.T += targets.T @ targets
        sums.rows += s.size
        sums.terms = max(sums.terms, xp.terms or s.size)

    def finish(self, state: dict[int, Sums]) -> Moments:
        return Moments(state, self.centre)
