"""What the squared loss needs of the rows: sums of products of features, fold by fold.

For the rows of a fold k, with weights s,

    G_k = sum s phi phi',    B_k = sum s phi (y, 1)',    T_k = sum s (y, 1)(y, 1)'.

A machine trained on some folds needs the sums over these folds and nothing else, and sums of rows
add up wherever they were taken. The intercept subtracts products of means from G and B; so that
this costs no digits, features and targets are taken less some constants near their means, which the
intercept of the machine takes back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.stream.accumulate import Chunk
from onefit.stream.features import FeatureMap

__all__ = ["Centre", "Gram", "Moments", "Sums"]


@dataclass(frozen=True)
class Centre:
    """Constants that features (m,) and targets (q,) are taken less of."""

    phi: Array = field(repr=False)
    y: Array

    @classmethod
    def zero(cls, m: int, q: int) -> Centre:
        """None at all."""
        return cls(np.zeros(m), np.zeros(q))

    @classmethod
    def of(cls, features: FeatureMap, X: object, Y: Array) -> Centre:
        """The means over some rows."""
        return cls(features.apply(X).mean(axis=0), Y.astype(np.float64).mean(axis=0))


@dataclass
class Sums:
    """Of some rows: G (lower triangle, column-major), B, T, and the number of rows."""

    G: Array = field(repr=False)
    B: Array = field(repr=False)
    T: Array = field(repr=False)
    rows: int = 0

    @classmethod
    def zero(cls, m: int, q: int) -> Sums:
        """Of no rows."""
        return cls(np.zeros((m, m), order="F"), np.zeros((m, q + 1)), np.zeros((q + 1, q + 1)))

    def add(self, other: Sums) -> Sums:
        """Become the sum of both."""
        self.G += other.G
        self.B += other.B
        self.T += other.T
        self.rows += other.rows
        return self

    @property
    def weight(self) -> float:
        """sum s."""
        return float(self.T[-1, -1])


@dataclass(frozen=True)
class Moments:
    """The sums of every fold."""

    folds: dict[int, Sums] = field(repr=False)
    centre: Centre

    def without(self, removed: Iterable[int]) -> Sums:
        """Of all folds but some: the others are added up, since a difference would lose digits."""
        m, q = self.centre.phi.size, self.centre.y.size
        total, gone = Sums.zero(m, q), set(removed)
        for name in sorted(set(self.folds) - gone):
            total.add(self.folds[name])
        return total


@dataclass(frozen=True)
class Gram:
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
        # rows of a fold side by side, before there are features to move
        order = np.argsort(chunk.fold, kind="stable")
        order = order[chunk.s[order] > 0]
        if order.size == 0:
            return state
        root = np.sqrt(chunk.s[order].astype(np.float64))[:, None]
        Phi = self.features.apply(chunk.X[order])
        Phi -= self.centre.phi
        targets = np.ones((order.size, self.centre.y.size + 1))
        targets[:, :-1] = chunk.Y[order] - self.centre.y
        if (root != 1.0).any():
            Phi *= root
            targets *= root
        names, starts = np.unique(chunk.fold[order], return_index=True)
        for name, first, last in zip(names, starts, [*starts[1:], order.size], strict=True):
            sums = state.setdefault(int(name), Sums.zero(Phi.shape[1], self.centre.y.size))
            _add_rows(sums, Phi[first:last], targets[first:last])
        return state

    def merge(self, one: dict[int, Sums], other: dict[int, Sums]) -> dict[int, Sums]:
        for name, sums in other.items():
            one[name] = one[name].add(sums) if name in one else sums
        return one

    def finish(self, state: dict[int, Sums]) -> Moments:
        return Moments(state, self.centre)


def _add_rows(sums: Sums, Phi: Array, targets: Array) -> None:
    linalg.add_gram(sums.G, Phi.T)
    sums.B += linalg.matmul(Phi.T, targets)
    sums.T += targets.T @ targets
    sums.rows += Phi.shape[0]
