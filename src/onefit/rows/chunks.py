"""From the blocks of a source to checked chunks of numbers.

A block has features, targets, weights and keys in the types in which they are stored, the numbers
of their rows, and the place they come from. A chunk has floating-point numbers, weights (one
without sample_weight) and folds by hash. A value that is not a finite number is refused with the
name of its file, row group, row and column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit._validation import DataError, first_not_finite
from onefit.rows.accumulate import Chunk
from onefit.rows.columns import as_array
from onefit.rows.hash_folds import HashKFold

__all__ = ["BlockReader", "RowBlock"]

Map = Callable[[Any], Array]

#: kinds of types that NumPy would convert to floating point: complex numbers, times, texts, records
NO_NUMBER_KINDS = "cmMSUV"


@dataclass(frozen=True)
class RowBlock:
    """Some rows of a source.

    Attributes
    ----------
    row : (m,) array of int
        Numbers of the rows in the whole sample.
    X : array or data frame
    y, s, key : array or None
        Targets, weights, and keys of the folds; without keys, the numbers of the rows.
    where : str
        The place they come from, in words.
    first : int
        Number of the first row of that place.
    """

    row: Array
    X: Any
    y: Any = None
    s: Any = None
    key: Any = None
    where: str = "X"
    first: int = 0

    def at(self, i: int) -> str:
        """The place of the i-th row, in words."""
        row = int(self.row[i])
        return f"row {row} ({self.where}, row {row - self.first} of it)"


@dataclass(frozen=True)
class BlockReader:
    """The conversion of blocks to chunks.

    Attributes
    ----------
    cv : HashKFold
    n_features : int
    names : tuple of str or None
        Of the features.
    clean : callable or None
        Applied first to stored targets.
    encode : callable or None
        From targets to numbers, (m,) or (m, q); None if they are numbers.
    transform : callable or None
        From stored features to numbers, (m, p); None if they are numbers.
    raw : bool
        Whether to leave features and targets as they are stored; only missing targets are refused.
    """

    cv: HashKFold
    n_features: int
    names: tuple[str, ...] | None = None
    clean: Map | None = None
    encode: Map | None = None
    transform: Map | None = None
    raw: bool = False

    def chunk(self, block: RowBlock) -> Chunk:
        """The rows of a block, checked."""
        X = self._features(block)
        Y = self._targets(block)
        s = self._weights(block)
        keys = block.row if block.key is None else block.key
        try:
            fold = self.cv.fold_of(keys)
        except DataError as error:
            raise DataError(f"{block.where}, from row {block.row[0]} on: {error}") from error
        return Chunk(X, Y, s, fold, block.row)

    def _features(self, block: RowBlock) -> Any:
        if self.raw:
            return block.X
        X = block.X if self.transform is None else self._transformed(block, self.transform)
        elsewhere = linalg.is_elsewhere(X)
        if not elsewhere:
            X = self._numbers(X, block, "X")
        if tuple(X.shape) != (block.row.size, self.n_features):
            raise DataError(
                f"X has shape {tuple(X.shape)} in {block.where} from row {block.row[0]} on, but "
                f"{(block.row.size, self.n_features)} was expected; give all parts of it the same "
                "columns"
            )
        if elsewhere:
            return self._on_device(X, block)
        self._check_finite(X, block)
        return X

    def _on_device(self, X: Any, block: RowBlock) -> Any:
        """Rows on a device, which are copied to the host only to name a wrong value."""
        xp = linalg.arrays_of(X)
        X = xp.astype(X, np.float64)
        if not bool(xp.lib.all(xp.lib.isfinite(X))):
            self._check_finite(xp.host(X), block)
        return X

    def _check_finite(self, X: Array, block: RowBlock) -> None:
        bad = first_not_finite(X) if not np.isfinite(X).all() else None
        if bad is not None:
            row, column = bad
            name = repr(self.names[column]) if self.names else column
            _refuse(block, row, f"column {name}", X[row, column])

    def _targets(self, block: RowBlock) -> Array:
        if block.y is None:
            return np.empty((block.row.size, 0), dtype=np.float64)
        y = block.y if self.clean is None else self.clean(block.y)
        if self.raw:
            return _present(block, y)
        y = y if self.encode is None else self.encode(y)
        Y = self._numbers(y, block, "the target")
        Y = Y.reshape(block.row.size, -1)
        bad = np.argwhere(~np.isfinite(Y))
        if bad.size:
            _refuse(block, bad[0, 0], "the target", Y[tuple(bad[0])])
        return Y

    def _transformed(self, block: RowBlock, transform: Map) -> Array:
        try:
            return transform(block.X)
        except DataError as error:
            raise DataError(f"{block.where}, from row {block.row[0]} on: {error}") from error

    def _weights(self, block: RowBlock) -> Array:
        if block.s is None:
            return np.ones(block.row.size, dtype=np.float64)
        s = self._numbers(block.s, block, "sample_weight").reshape(-1)
        bad = np.flatnonzero(~(np.isfinite(s) & (s >= 0)))
        if bad.size:
            _refuse(block, bad[0], "sample_weight", s[bad[0]])
        return s

    def _numbers(self, values: Any, block: RowBlock, what: str) -> Array:
        try:
            found = as_array(values)
            if found.dtype.kind in NO_NUMBER_KINDS:
                raise TypeError(f"values of type {found.dtype} are not real numbers")
            return found.astype(np.float64, copy=False)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{what} holds a value that is not a number, {block.at(0)} or after it: {error}; "
                "streamed columns must be numeric, so encode or leave out the others"
            ) from error


def _present(block: RowBlock, y: Any) -> Array:
    """Targets of any type; missing ones are refused."""
    Y: Array = np.asarray(y).reshape(block.row.size, -1)
    for column in Y.T:
        missing = [
            i for i, one in enumerate(column.tolist()) if one is None or (one == one) is not True
        ]
        if missing:
            _refuse(block, missing[0], "the target", column[missing[0]])
    return Y


def _refuse(block: RowBlock, i: int, what: str, value: Any) -> None:
    raise DataError(
        f"{what} holds {value} in {block.at(int(i))}; correct it, fill it in, or leave the row out"
    )
