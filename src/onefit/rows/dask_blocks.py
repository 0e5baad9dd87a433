"""Blocks of Dask collections as pieces of a source.

A block is some rows of an array with all columns, or a partition of a data frame. If a collection
does not know the number of rows of its blocks, these are counted first, on the cluster. Targets,
weights and keys are columns of the frame, other collections with the same blocks, or arrays in
memory, which are divided.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from onefit._describe import describe
from onefit._validation import DataError
from onefit.rows.arrays import TablePiece
from onefit.rows.chunks import BlockReader, RowBlock
from onefit.rows.columns import ROLES, ColumnRoles, RowArrays, as_array, named
from onefit.rows.dask_recipe import BlockRecipe, recipes
from onefit.rows.hash_folds import HashKFold
from onefit.rows.source import Source, needed

__all__ = ["BlockPiece", "dask_source"]


@dataclass(frozen=True)
class BlockPiece:
    """A block.

    Attributes
    ----------
    where : str
        The block, in words.
    parts : list
        Features, targets, weights and keys: Delayed objects until a worker computes them.
    columns : ColumnRoles
    recipe : BlockRecipe
        How a worker computes the parts from the inputs.
    inputs : list
        What Dask provides, that of the features first: Delayed objects, and futures of data that
        workers hold.
    kept : list of futures
        All data of the collection that workers hold. Graphs have only the keys, so these references
        keep the data there.
    """

    start: int
    rows: int
    where: str
    parts: list[Any] = field(repr=False)
    columns: ColumnRoles = field(repr=False)
    recipe: BlockRecipe = field(repr=False)
    inputs: list[Any] = field(repr=False)
    kept: list[Any] = field(repr=False)

    @property
    def held(self) -> list[Any]:
        """Futures of the inputs that workers hold."""
        from dask.base import is_dask_collection

        return [one for one in self.inputs if not is_dask_collection(one)]

    @property
    def unmade(self) -> BlockPiece:
        """The piece without what Dask provides."""
        known = zip(self.parts, self.recipe.parts, strict=True)
        parts = [one if key is None else None for one, key in known]
        return replace(self, parts=parts, inputs=[], kept=[])

    def made(self, values: Sequence[Any]) -> BlockPiece:
        """The piece with its parts, from the values of the inputs."""
        both = zip(self.parts, self.recipe.make(values), strict=True)
        return replace(self, parts=[one if own is None else own for one, own in both])

    def blocks(self, rows: int) -> Iterator[RowBlock]:
        """The rows in blocks of at most ``rows`` rows."""
        X, *given = self.parts
        self._check(X, given)
        beside = RowArrays(*(None if one is None else as_array(one) for one in given))
        place = self.start, self.rows, self.where, self.start
        yield from TablePiece(X, self.columns, beside, *place).blocks(rows)

    def _check(self, X: Any, given: list[Any]) -> None:
        for name, one in zip(("X", *ROLES), (X, *given), strict=True):
            if one is not None and one.shape[0] != self.rows:
                raise DataError(
                    f"{name} has {one.shape[0]} rows in {self.where}, but {self.rows} were "
                    "counted; give all roles the same blocks, for example as columns of one frame"
                )


def dask_source(
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    cv: HashKFold,
    *,
    features: Any = None,
    drop: Any = (),
) -> Source:
    """The source of a dask.array or dask.dataframe."""
    needed("dask", "dask", "Dask collections")
    given = (y, sample_weight, groups)
    if hasattr(X, "npartitions") and hasattr(X, "columns"):
        return _frame_source(X, given, cv, features, drop)
    columns, _ = ColumnRoles.resolve(None, features=features, drop=drop)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}")
    X = X.rechunk({1: X.shape[1]})
    sizes = _sizes(X, X.chunks[0])
    return _source(X, [one[0] for one in X.to_delayed()], given, sizes, cv, columns)


def _frame_source(
    X: Any, given: tuple[Any, ...], cv: HashKFold, features: Any, drop: Any
) -> Source:
    # values that are not names are divided into blocks
    y, s, key = (one if named(one) else None for one in given)
    columns, _ = ColumnRoles.resolve(list(X.columns), y, s, key, features, drop)
    beside = tuple(None if named(one) else one for one in given)
    X = X[columns.read]
    sizes = _sizes(X, (math.nan,) * X.npartitions)
    return _source(X, X.to_delayed(), beside, sizes, cv, columns)


def _source(
    X: Any,
    blocks: list[Any],
    given: tuple[Any, ...],
    sizes: list[int],
    cv: HashKFold,
    columns: ColumnRoles,
) -> Source:
    from dask.base import tokenize

    starts = np.cumsum([0, *sizes]).tolist()
    beside = [_cut(one, starts, name) for one, name in zip(given, ROLES, strict=True)]
    parts = [list(own) for own in zip(blocks, *beside, strict=True)]
    futures = _futures(tuple(one for one in (X, *given) if hasattr(one, "__dask_graph__")))
    made, kept = list(recipes(parts, futures)), list(futures.values())
    what = "block" if columns.X is None else "partition"
    pieces = [
        BlockPiece(
            starts[i],
            sizes[i],
            f"{what} {i} of the Dask collection",
            parts[i],
            columns,
            *made[i],
            kept,
        )
        for i in range(len(sizes))
        if sizes[i]
    ]
    width = X.shape[1] if columns.X is None else len(columns.X)
    about = {"X": f"{tokenize(X)} of {sum(sizes)} rows"}
    about |= {name: _words(one) for name, one in zip(ROLES, given, strict=True)}
    about |= {"columns": describe(columns), "cv": describe(cv)}
    shape = columns.target_shape(RowArrays()) if given[0] is None else _target_shape(given[0])
    return Source(pieces, BlockReader(cv, width, columns.X), shape, about, lazy=True)


def _futures(collections: tuple[Any, ...]) -> dict[Any, Any]:
    """Futures of data that workers hold of the collections or their inputs, by keys."""
    if "distributed" not in sys.modules:
        return {}
    from distributed import futures_of

    return {future.key: future for one in collections for future in futures_of(one)}


def _target_shape(y: Any) -> tuple[int, ...]:
    if hasattr(y, "columns"):
        return (len(y.columns),)
    return tuple(np.shape(y)[1:]) if not hasattr(y, "ndim") else tuple(y.shape[1 : y.ndim])


def _words(value: Any) -> str:
    name = getattr(value, "name", None) if hasattr(value, "__dask_graph__") else None
    return str(name) if name is not None else describe(value)


def _sizes(X: Any, known: tuple[float, ...]) -> list[int]:
    """Number of rows of each block, counted if unknown."""
    if not any(math.isnan(one) for one in known):
        return [int(one) for one in known]
    import dask

    counted = dask.compute(*[dask.delayed(len)(one) for one in np.ravel(X.to_delayed())])
    return [int(one) for one in counted]


def _cut(value: Any, starts: list[int], name: str) -> list[Any]:
    """The values of a role, block by block: Delayed objects, slices of an array, or None."""
    count = len(starts) - 1
    if value is None:
        return [None] * count
    if not hasattr(value, "__dask_graph__"):
        whole = as_array(value)
        if whole.shape[0] != starts[-1]:
            raise ValueError(f"{name} has {whole.shape[0]} rows, but X has {starts[-1]}")
        return [whole[a:b] for a, b in pairwise(starts)]
    if hasattr(value, "chunks") and not any(math.isnan(one) for one in value.chunks[0]):
        if value.shape[0] != starts[-1]:
            raise ValueError(f"{name} has {value.shape[0]} rows, but X has {starts[-1]}")
        rows = tuple(b - a for a, b in pairwise(starts))
        value = value.rechunk({0: rows, **dict.fromkeys(range(1, value.ndim), -1)})
    blocks = list(np.ravel(value.to_delayed()))
    if len(blocks) != count:
        raise ValueError(
            f"{name} has {len(blocks)} blocks, but X has {count}; give both the same, or make "
            f"{name} a column of X"
        )
    return blocks
