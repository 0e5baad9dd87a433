"""One pass over rows, wherever they lie: init, update with a chunk, merge, finish.

What cross-validation in feature space needs of the data are sums over rows (theory, "Feature
space"). An accumulator says how such a sum begins, grows by a chunk of rows, is joined with that of
other rows, and becomes a result. It is a pure description: it keeps no state of its own and knows
nothing of files, processes or clusters, so that the same one runs in memory, over the row groups of
a Parquet folder, or as the tree reduction of a cluster. Merging is associative up to rounding; the
order in which chunks arrive must not matter beyond that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from onefit._types import Array

__all__ = ["Accumulator", "Chunk"]

State = TypeVar("State")
Result = TypeVar("Result", covariant=True)


@dataclass(frozen=True)
class Chunk:
    """Some rows.

    Attributes
    ----------
    X : (m, p) array
        Of NumPy's, or of PyTorch's or CuPy's where rows lie on a device; all else is NumPy's.
    Y : (m, q) array
        Targets.
    s : (m,) array
        Weights.
    fold : (m,) array of int
        The fold that each row is held out in.
    row : (m,) array of int
        Numbers of the rows in the whole sample.
    """

    X: Any
    Y: Array
    s: Array
    fold: Array
    row: Array


class Accumulator(Protocol[State, Result]):
    """A sum over rows."""

    def init(self) -> State:
        """Of no rows."""

    def update(self, state: State, chunk: Chunk) -> State:
        """With the rows of a chunk; the state that is passed may be reused for the result."""

    def merge(self, one: State, other: State) -> State:
        """Of both; either may be reused for the result."""

    def finish(self, state: State) -> Result:
        """What the sum was taken for."""
