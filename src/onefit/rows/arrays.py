"""Pieces of tables: arrays and data frames in memory, or arrays mapped from a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from onefit._describe import describe
from onefit._types import Array
from onefit._validation import DataError
from onefit.rows.chunks import BlockReader, RowBlock
from onefit.rows.columns import ColumnRoles, RowArrays, as_array
from onefit.rows.hash_folds import HashKFold
from onefit.rows.source import Source

__all__ = ["TablePiece", "mapped", "read_npy", "table_source"]

#: rows of a piece: enough that summing a piece costs more than merging its state
PIECE_ROWS = 131_072


@dataclass(frozen=True)
class Mapped:
    """An array in a file that is opened for each read.

    Attributes
    ----------
    stamp : tuple of int
        Size of the file in bytes and time of its last change.
    """

    path: str
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    stamp: tuple[int, int]

    @classmethod
    def of(cls, X: np.memmap[Any, Any]) -> Mapped:
        """A memory map, or a part of one."""
        root = X
        while isinstance(root.base, np.memmap):
            root = root.base
        offset = X.ctypes.data - root.ctypes.data + root.offset
        path = Path(str(X.filename)).resolve()
        return cls(str(path), X.dtype, X.shape, X.strides, offset, _stamp(path))

    def __getitem__(self, rows: slice) -> Array:
        """A copy of some rows."""
        path = Path(self.path)
        if not path.exists() or _stamp(path) != self.stamp:
            raise DataError(
                f"{path.name} was changed or removed since it was opened; open it again"
            )
        data = np.memmap(path, dtype=np.uint8, mode="r")
        whole: Array = np.ndarray(self.shape, self.dtype, data, self.offset, self.strides)
        return whole[rows].copy()

    @property
    def about(self) -> str:
        """Type and shape of the array; name, size and time of the file."""
        size, time = self.stamp
        name = Path(self.path).name
        return f"{self.dtype} array of shape {self.shape} in {name} ({size} bytes, {time})"


def _stamp(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def mapped(X: Any) -> Any:
    """A memory map as a ``Mapped``, which other processes can open; another array itself."""
    # copies of a memory map have no file, and changes of a private map ("c") are not in its file
    in_file = isinstance(X, np.memmap) and X.filename is not None and X.mode != "c"
    return Mapped.of(X) if in_file else X


def read_npy(path: Any) -> Any:
    """The array of an .npy file, mapped."""
    try:
        return np.load(path, mmap_mode="r")
    except FileNotFoundError as error:
        raise DataError(f"there is no file {str(path)!r}") from error
    except (OSError, EOFError, ValueError) as error:
        raise DataError(
            f"{str(path)!r} cannot be read as an array: {error}; write it by numpy.save, without "
            "Python objects"
        ) from error


@dataclass(frozen=True)
class TablePiece:
    """Adjacent rows of an array or data frame.

    Attributes
    ----------
    table : array, Mapped or data frame
        A ``Mapped`` has all rows of the array, any other table only those of the piece.
    columns : ColumnRoles
    given : RowArrays
        Of the rows of the piece.
    where : str
        The table, in words.
    first : int
        Number of the first row of ``where``.
    """

    table: Any = field(repr=False)
    columns: ColumnRoles = field(repr=False)
    given: RowArrays = field(repr=False)
    start: int
    rows: int
    where: str
    first: int = 0

    def blocks(self, rows: int) -> Iterator[RowBlock]:
        """The rows in blocks of at most ``rows`` rows."""
        offset = self.start if isinstance(self.table, Mapped) else 0
        for a in range(0, self.rows, rows):
            b = min(self.rows, a + rows)
            part = _taken(self.table, slice(offset + a, offset + b))
            parts = self.columns.split(part, self.given.take(slice(a, b)))
            row = np.arange(self.start + a, self.start + b)
            yield RowBlock(row, *parts, self.where, self.first)


def _taken(table: Any, some: slice) -> Any:
    if hasattr(table, "iloc"):
        return table.iloc[some]
    # arrays on a device need an index for every dimension
    return table[some] if isinstance(table, Mapped) else table[some, ...]


def table_source(X: Any, columns: ColumnRoles, given: RowArrays, cv: HashKFold) -> Source:
    """The source of a two-dimensional array or pandas data frame."""
    if issparse(X):
        raise ValueError("sparse rows cannot be streamed; pass them in memory to fit, or densify")
    place, where = X, "X"
    if columns.X is None:
        place = mapped(X) if isinstance(X, np.ndarray) and not np.ma.is_masked(X) else as_array(X)
        if len(place.shape) != 2:
            raise ValueError(f"X must have two dimensions, got shape {place.shape}")
    n, inside = place.shape[0], isinstance(place, Mapped)
    if inside:
        where = f"X of {Path(place.path).name}"
    given.check(n)
    pieces = []
    for a in range(0, n, PIECE_ROWS):
        some = slice(a, min(n, a + PIECE_ROWS))
        part = place if inside else _taken(place, some)
        pieces.append(TablePiece(part, columns, given.take(some), a, some.stop - a, where))
    beside = {"y": given.y, "sample_weight": given.s, "groups": given.key, "cv": cv}
    about = {name: describe(value) for name, value in beside.items()}
    about["X"] = place.about if inside else describe(place)
    width = place.shape[1] if columns.X is None else len(columns.X)
    reading = BlockReader(cv, width, columns.X)
    return Source(pieces, reading, columns.target_shape(given), about, anywhere=inside)
