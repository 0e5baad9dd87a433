"""Small accumulators, for tests of whoever feeds them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
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


def note_rows(rows: int) -> None:
    """Wait for as long as one environment variable says, and note the rows in the file of another.

    A journal knows a class by its code, which must be the same in all processes.
    """
    time.sleep(float(os.environ.get("TEST_PAUSE", "0")))
    if "TEST_ROWS_FILE" in os.environ:
        with open(os.environ["TEST_ROWS_FILE"], "a") as file:
            file.write(f"{rows}\n")


def noted_rows(path: Path) -> int:
    """The rows that were noted in a file, which is then empty."""
    rows = sum(map(int, path.read_text().split())) if path.exists() else 0
    path.write_text("")
    return rows


@dataclass(frozen=True)
class WatchedSums(FoldSums):
    """The same, noting the rows."""

    def update(self, state: dict[str, Any], chunk: Chunk) -> dict[str, Any]:
        note_rows(chunk.row.size)
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
