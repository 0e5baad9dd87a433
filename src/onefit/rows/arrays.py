"""Pieces of arrays: in memory, or mapped from a file that no one has to hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from onefit._describe import describe
from onefit._types import Array
from onefit.rows.chunks import BlockReader, RowBlock
from onefit.rows.columns import ColumnRoles, as_array
from onefit.rows.hash_folds import HashKFold
from onefit.rows.source import RowArrays, Source, cut, numbered

__all__ = ["array_source", "frame_source", "mapped"]

#: rows of a piece: enough for the sums of a piece to cost more than joining them to others
PIECE_ROWS = 131_072


@dataclass(frozen=True)
class Mapped:
    """An array in a file, which is opened for each read and closed at once."""

    path: str
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @classmethod
    def of(cls, X: np.memmap[Any, Any]) -> Mapped:
        """A memory map, or a part of one."""
        root = X
        while isinstance(root.base, np.memmap):
            root = root.base
        offset = X.ctypes.data - root.ctypes.data + root.offset
        return cls(str(Path(str(X.filename)).resolve()), X.dtype, X.shape, X.strides, offset)

    def __getitem__(self, rows: slice) -> Array:
        """A copy of some rows."""
        data = np.memmap(self.path, dtype=np.uint8, mode="r")
        whole: Array = np.ndarray(self.shape, self.dtype, data, self.offset, self.strides)
        return whole[rows].copy()

    @property
    def about(self) -> str:
        """The file by name, size and time."""
        found = Path(self.path).stat()
        return (
            f"{self.dtype} array of shape {self.shape} in {Path(self.path).name} "
            f"({found.st_size} bytes, {found.st_mtime_ns})"
        )


def mapped(X: Any) -> Any:
    """An array that can be sent to another process by name, if it is one."""
    # a map of nothing has no file
    return Mapped.of(X) if isinstance(X, np.memmap) and X.filename is not None else X


@dataclass(frozen=True)
class ArrayPiece:
    """Adjacent rows of an array; ``X`` is the whole one where it is mapped, else only these."""

    X: Any = field(repr=False)
    given: RowArrays = field(repr=False)
    start: int
    rows: int
    where: str

    def blocks(self, rows: int) -> Iterator[RowBlock]:
        """Read them in blocks of at most ``rows`` rows."""
        offset = self.start if isinstance(self.X, Mapped) else 0
        for a in range(0, self.rows, rows):
            b = min(self.rows, a + rows)
            X = self.X[offset + a : offset + b]
            y, s, key = self.given.take(a, b).values
            yield RowBlock(X, y, s, key, numbered(self.start + a, b - a), self.where, 0)


def array_source(X: Any, y: Any, sample_weight: Any, groups: Any, cv: HashKFold) -> Source:
    """Rows of an array of two dimensions."""
    if issparse(X):
        raise ValueError("sparse rows cannot be streamed; pass them in memory to fit, or densify")
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got shape {X.shape}")
    given = RowArrays(
        *(None if one is None else as_array(one) for one in (y, sample_weight, groups))
    )
    given.check(X.shape[0])
    place = mapped(X)
    inside = isinstance(place, Mapped)
    where = f"X of {Path(place.path).name}" if inside else "X"
    pieces = [
        ArrayPiece(place if inside else X[a:b], given.take(a, b), a, b - a, where)
        for a, b in _cuts(X.shape[0])
    ]
    about = {"X": place.about if inside else describe(X), **_about(given, cv)}
    shape = None if given.y is None else given.y.shape[1:]
    return Source(pieces, BlockReader(cv), None, X.shape[1], shape, about, anywhere=inside)


@dataclass(frozen=True)
class FramePiece:
    """Adjacent rows of a data frame."""

    frame: Any = field(repr=False)
    columns: ColumnRoles
    given: RowArrays = field(repr=False)
    start: int
    rows: int
    where: str

    def blocks(self, rows: int) -> Iterator[RowBlock]:
        """Read them in blocks of at most ``rows`` rows."""
        X, y, s, key = self.columns.split(self.frame, self.given)
        block = RowBlock(X, y, s, key, numbered(self.start, self.rows), self.where, self.start)
        yield from cut(block, rows)


def frame_source(frame: Any, columns: ColumnRoles, cv: HashKFold) -> Source:
    """Rows of a pandas data frame."""
    columns.given.check(len(frame))
    pieces = [
        FramePiece(frame.iloc[a:b], columns, columns.given.take(a, b), a, b - a, "X")
        for a, b in _cuts(len(frame))
    ]
    about = {"X": describe(frame), **_about(columns.given, cv)}
    reading, width = BlockReader(cv, columns.X), len(columns.X)
    return Source(pieces, reading, columns.X, width, columns.target_shape, about)


def _cuts(n: int) -> list[tuple[int, int]]:
    return [(a, min(n, a + PIECE_ROWS)) for a in range(0, n, PIECE_ROWS)]


def _about(given: RowArrays, cv: HashKFold) -> dict[str, str]:
    """The fingerprint of what stands beside the rows."""
    values = {"y": given.y, "sample_weight": given.s, "groups": given.key, "cv": cv}
    return {name: describe(value) for name, value in values.items()}
