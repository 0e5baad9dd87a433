"""Sums over rows, wherever they lie: init, update with a chunk, merge, finish.

Cross-validation in feature space needs sums over rows (theory, "Feature space"). An accumulator
defines such a sum: how it begins, grows by a chunk of rows, is joined with that of other rows, and
becomes a result. It keeps no state of its own and knows nothing of files, processes or clusters, so
the same one runs in memory, over the row groups of a Parquet folder, or as the tree reduction of a
cluster. Merging is associative up to rounding; the order in which chunks arrive must not matter
beyond that.

Accumulators are made of others. Several share a pass (`Joint`). Models of several kinds read the
same rows, each with columns of its own, one for each pair of classes or each level of a target, and
with class weights of its own, which belong to the fit and not to the scores: `OfModel` applies both
to every chunk of a model's sums.

A state is arrays, numbers and texts, and tuples, lists, dicts and dataclasses of these.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.spec.coding import class_codes

__all__ = [
    "Accumulator",
    "Chunk",
    "Joint",
    "OfModel",
    "nbytes",
    "to_host",
]

State = TypeVar("State")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Chunk:
    """Some rows.

    Attributes
    ----------
    X : (m, p) array
        Of PyTorch or CuPy if the rows are on a device; all other arrays are of NumPy.
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

    def by_fold(self) -> Iterator[tuple[int, Indices]]:
        """The rows of positive weight of every fold that has any, in ascending order."""
        order = np.argsort(self.fold, kind="stable")
        order = order[self.s[order] > 0]
        names, starts = np.unique(self.fold[order], return_index=True)
        yield from zip(names.tolist(), np.split(order, starts)[1:], strict=True)


class Accumulator(ABC, Generic[State, Result]):
    """A sum over rows."""

    @abstractmethod
    def init(self) -> State:
        """The state of no rows."""

    @abstractmethod
    def update(self, state: State, chunk: Chunk) -> State:
        """Add the rows of a chunk; the state passed may be reused for the result."""

    def merge(self, one: State, other: State) -> State:
        """The sum of both states, entry by entry of tuples and dicts.

        Either may be reused for the result. A dict may lack entries, which count as zero.
        """
        return _sum(one, other)  # type: ignore[no-any-return]

    def finish(self, state: State) -> Result:
        """The result of the sum: the state."""
        return state  # type: ignore[return-value]


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, tuple):
        return tuple(_sum(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return one | {name: _sum(one[name], b) if name in one else b for name, b in other.items()}
    one += other
    return one


@dataclass(frozen=True)
class Joint(Accumulator[tuple[Any, ...], tuple[Any, ...]]):
    """Several accumulators in one pass; state and result are tuples, one entry for each."""

    parts: tuple[Accumulator[Any, Any], ...]

    def init(self) -> tuple[Any, ...]:
        return tuple(part.init() for part in self.parts)

    def update(self, state: tuple[Any, ...], chunk: Chunk) -> tuple[Any, ...]:
        return tuple(p.update(one, chunk) for p, one in zip(self.parts, state, strict=True))

    def merge(self, one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
        both = zip(self.parts, one, other, strict=True)
        return tuple(part.merge(a, b) for part, a, b in both)

    def finish(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(p.finish(one) for p, one in zip(self.parts, state, strict=True))


@dataclass(frozen=True)
class OfModel(Accumulator[Any, Any]):
    """An accumulator with the target columns and class weights of one model.

    Attributes
    ----------
    base : Accumulator
    columns : callable or None
        From the targets of a chunk to the columns of the model.
    weights : (classes,) array or None
        Weights of the classes.
    """

    base: Accumulator[Any, Any]
    columns: Callable[[Array], Array] | None = field(repr=False, default=None)
    weights: Array | None = field(repr=False, default=None)

    def init(self) -> Any:
        return self.base.init()

    def update(self, state: Any, chunk: Chunk) -> Any:
        Y = chunk.Y if self.columns is None else self.columns(chunk.Y)
        s = chunk.s if self.weights is None else chunk.s * self.weights[class_codes(chunk.Y)]
        return self.base.update(state, replace(chunk, Y=Y, s=s))

    def merge(self, one: Any, other: Any) -> Any:
        return self.base.merge(one, other)

    def finish(self, state: Any) -> Any:
        return self.base.finish(state)


def nbytes(state: Any) -> int:
    """Bytes of all arrays in a state."""
    if hasattr(state, "nbytes"):
        return int(state.nbytes)
    return sum(map(nbytes, _inside(state)))


def _inside(state: Any) -> Iterator[Any]:
    if isinstance(state, dict):
        yield from state.values()
    elif isinstance(state, (list, tuple)):
        yield from state
    elif is_dataclass(state):
        yield from (getattr(state, one.name) for one in fields(state))


def to_host(state: Any) -> Any:
    """A state with NumPy arrays only, which can be sent to any process."""
    if linalg.is_elsewhere(state):
        return linalg.to_host(state)
    if isinstance(state, dict):
        return {name: to_host(one) for name, one in state.items()}
    if isinstance(state, (list, tuple)):
        return type(state)(map(to_host, state))
    if is_dataclass(state) and not isinstance(state, type):
        return replace(
            state, **{one.name: to_host(getattr(state, one.name)) for one in fields(state)}
        )
    return state
