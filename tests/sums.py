"""Small accumulators, for tests of whoever feeds them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit.rows import Chunk


@dataclass(frozen=True)
class FoldSums:
    """Per fold: rows, weight, X'sX, X'sY; and over all rows a sum of row numbers."""

    folds: int
    p: int
    q: int = 1

    def init(self) -> dict[str, Any]:
        k, p, q = self.folds, self.p, self.q
        return {
            "rows": np.zeros(k, dtype=np.int64),
            "weight": np.zeros(k),
            "G": np.zeros((k, p, p)),
            "R": np.zeros((k, p, q)),
            "row": np.zeros(k),
        }

    def update(self, state: dict[str, Any], chunk: Chunk) -> dict[str, Any]:
        for k in range(self.folds):
            own = chunk.fold == k
            X, Y, s = chunk.X[own], chunk.Y[own], chunk.s[own]
            state["rows"][k] += own.sum()
            state["weight"][k] += s.sum()
            state["G"][k] += X.T @ (s[:, None] * X)
            state["R"][k] += X.T @ (s[:, None] * Y)
            state["row"][k] += chunk.row[own].sum()
        return state

    def merge(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        for name, value in other.items():
            one[name] += value
        return one

    def finish(self, state: dict[str, Any]) -> dict[str, Any]:
        return state


@dataclass(frozen=True)
class SlowOnOne(FoldSums):
    """The same, but slow on one worker of a cluster: the others come to look for work."""

    address: str = ""

    def update(self, state: dict[str, Any], chunk: Chunk) -> dict[str, Any]:
        from distributed import get_worker

        if get_worker().address == self.address:
            time.sleep(0.2)
        return super().update(state, chunk)


@dataclass(frozen=True)
class Smallest:
    """State of the smallest row numbers: as a dataclass that is None without rows."""

    size: int

    def init(self) -> Taken | None:
        return None

    def update(self, state: Taken | None, chunk: Chunk) -> Taken | None:
        return self.merge(state, Taken(chunk.row.copy(), chunk.Y.copy()))

    def merge(self, one: Taken | None, other: Taken | None) -> Taken | None:
        if one is None or other is None:
            return other if one is None else one
        row, Y = np.concatenate([one.row, other.row]), np.concatenate([one.Y, other.Y])
        order = np.argsort(row)[: self.size]
        return Taken(row[order], Y[order])

    def finish(self, state: Taken | None) -> Taken | None:
        return state


@dataclass(frozen=True)
class Taken:
    row: Any
    Y: Any
