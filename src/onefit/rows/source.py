"""Sources of rows: lists of pieces, each with the number of its first row.

A piece is adjacent rows that are read in one go: a slice of an array, a row group of a Parquet
file, a block of a Dask collection. It has ``start``, the number of its first row, ``rows``, their
number, and ``blocks(rows)``, an iterator over its rows in a :class:`onefit.rows.chunks.RowBlock`
of at most ``rows`` rows each. It can be sent to another process and read there. Rows are numbered
in the whole sample before anything is read, so their folds and every sum are the same however the
rows are cut into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

from onefit._describe import describe
from onefit._validation import DataError
from onefit.rows.chunks import BlockReader, Map
from onefit.rows.hash_folds import HashKFold

__all__ = ["Source", "groups_of", "needed"]


@dataclass(frozen=True)
class Source:
    """Rows to stream, and how to read them.

    Attributes
    ----------
    pieces : sequence of pieces
        In the order of their rows.
    reading : BlockReader
    target_shape : tuple of int, or None
        Of a row's target: empty for a number, (q,) for q of them; None without a target.
    about : dict
        The fingerprint of the rows, in words, which a journal compares.
    anywhere : bool
        Whether any process can read the pieces, which are small to send.
    lazy : bool
        Whether pieces hold Dask objects, which only Dask reads.
    """

    pieces: Sequence[Any] = field(repr=False)
    reading: BlockReader
    target_shape: tuple[int, ...] | None = None
    about: dict[str, str] = field(default_factory=dict, repr=False)
    anywhere: bool = False
    lazy: bool = False

    def __post_init__(self) -> None:
        if not any(piece.rows for piece in self.pieces):
            raise DataError("there are no rows to stream")
        if self.n_features == 0:
            raise DataError("there are no features to stream: X has no columns, or all have a role")

    @property
    def n_rows(self) -> int:
        """Rows of the whole sample, before any filter."""
        return int(self.pieces[-1].start + self.pieces[-1].rows)

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return self.reading.n_features

    @property
    def names(self) -> tuple[str, ...] | None:
        """Of the features."""
        return self.reading.names

    def split_by(self, cv: HashKFold) -> Source:
        """The same rows with other folds."""
        about = self.about | {"cv": describe(cv)}
        return replace(self, reading=replace(self.reading, cv=cv), about=about)

    @property
    def raw(self) -> Source:
        """The same rows, with features and targets as they are stored."""
        return replace(self, reading=replace(self.reading, raw=True))

    def encoded(self, encode: Map) -> Source:
        """The same rows, with targets mapped to numbers."""
        return replace(self, reading=replace(self.reading, encode=encode))

    def transformed(self, transform: Map, n_features: int, clean: Map | None = None) -> Source:
        """The same rows, with features mapped to ``n_features`` numbers, and cleaned targets."""
        reading = replace(
            self.reading, names=None, n_features=n_features, transform=transform, clean=clean
        )
        return replace(self, reading=reading)


def groups_of(pieces: Sequence[Any], rows: int) -> list[list[Any]]:
    """Join adjacent pieces until each has at least ``rows`` rows."""
    groups: list[list[Any]] = []
    held = rows
    for piece in pieces:
        if held >= rows:
            groups.append([])
            held = 0
        groups[-1].append(piece)
        held += piece.rows
    return groups


def needed(package: str, extra: str | None, what: str) -> None:
    """Raise if a package is missing; ``extra`` is the extra of onefit that has it, if any."""
    if find_spec(package) is None:
        name = package if extra is None else f"'onefit[{extra}]'"
        raise ImportError(f"{what} need {package}, which is not installed: pip install {name}")
