"""Row groups of Parquet files, read one at a time, and only the columns that are needed.

The footer of a file has the number of rows of each row group, so rows are numbered without reading
any: files in the order of their names, row groups in the order of the file. A filter leaves out row
groups by their statistics and rows by their values; the other rows keep their numbers. pyarrow
evaluates it, as a column, and finds the columns that it needs. Rows themselves are read by
``ParquetFile``, whose memory does not grow with the row group, as that of a scanner does. Folders
may be partitioned in Hive's way (``year=2024/...``), and paths may be addresses of other file
systems, ``s3://...``. Errors name file and row group; pages with checksums are checked.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from onefit._describe import describe, digest
from onefit._types import Array
from onefit._validation import DataError
from onefit.rows.chunks import BlockReader, RowBlock
from onefit.rows.columns import ColumnRoles, RowArrays
from onefit.rows.hash_folds import HashKFold
from onefit.rows.source import Source, needed

__all__ = ["ParquetPiece", "open_dataset", "parquet_source"]

#: bytes read at a time; a row group's columns are read side by side
READ_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class RowFilter:
    """A checked filter of rows.

    Attributes
    ----------
    expression : pyarrow.dataset.Expression
    schema : pyarrow.Schema
        Of all files together.
    """

    expression: Any
    schema: Any = field(repr=False)

    @classmethod
    def of(cls, filter: Any, dataset: Any) -> RowFilter | None:
        """From an argument of :func:`onefit.rows.open_rows`."""
        import pyarrow as pa
        from pyarrow import parquet

        if filter is None:
            return None
        try:
            listed = isinstance(filter, (list, tuple))
            expression = parquet.filters_to_expression(filter) if listed else filter
            found = dataset.scanner(columns={_KEPT: expression}).projected_schema.field(_KEPT)
            if not pa.types.is_boolean(found.type):
                raise TypeError(f"it gives values of type {found.type}, not true or false")
        except (pa.ArrowException, TypeError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(
                f"filter={filter!r} does not fit the columns: {reason}; give an expression of "
                "pyarrow, or a list of (column, operator, value)"
            ) from error
        return cls(expression, dataset.schema)

    def mask(self, part: Any) -> Array:
        """Whether each row of a fragment is taken; a comparison with a missing value is false."""
        import pyarrow.compute as pc

        table = part.to_table(self.schema, columns={_KEPT: self.expression}, use_threads=False)
        mask: Array = pc.fill_null(table.column(_KEPT), False).to_numpy()
        return mask


#: name of the filter's column, which no file has
_KEPT = "\0kept"


@dataclass(frozen=True)
class ParquetPiece:
    """A row group.

    Attributes
    ----------
    where : str
        File and row group, in words.
    part : pyarrow.dataset.ParquetFileFragment
        Of this row group alone.
    stamp : tuple
        Size of the file in bytes and time of its last change.
    columns : ColumnRoles
    given : RowArrays
        Of the rows of the piece.
    kept : RowFilter or None
    """

    start: int
    rows: int
    where: str
    part: Any = field(repr=False)
    stamp: tuple[Any, Any]
    columns: ColumnRoles = field(repr=False)
    given: RowArrays = field(repr=False)
    kept: RowFilter | None = field(repr=False)

    def blocks(self, rows: int) -> Iterator[RowBlock]:
        """The rows in blocks of at most ``rows`` rows."""
        if _stamp(self.part) != self.stamp:
            raise DataError(
                f"{self.where} cannot be read: the file was changed or removed since it was "
                "opened; restore it, or open the rows again"
            )
        mask = None
        if self.kept is not None:
            with self._clear_errors():
                mask = self.kept.mask(self.part)
            if not mask.any():
                return
        done = 0
        for batch in self._batches(rows):
            some = np.arange(done, done + batch.num_rows)
            done += batch.num_rows
            if mask is not None:
                batch, some = batch.filter(mask[some]), some[mask[some]]
            if some.size:
                parts = self.columns.split(batch, self.given.take(some))
                yield RowBlock(self.start + some, *parts, self.where, self.start)
        if done != self.rows:
            raise DataError(f"{self.where} has {done} rows, but its footer lists {self.rows}")

    def _batches(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import dataset, parquet

        constants = dataset.get_partition_keys(self.part.partition_expression)
        stored, (group,) = _stored(self.part, self.columns), self.part.row_groups
        with (
            self._clear_errors(),
            parquet.ParquetFile(
                self.part.path,
                filesystem=self.part.filesystem,
                buffer_size=READ_BUFFER_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
            ) as file,
        ):
            for batch in file.iter_batches(rows, [group.id], stored, use_threads=False):
                for name in self.columns.read:
                    if name in constants:
                        value = pa.array([constants[name]] * batch.num_rows)
                        batch = batch.append_column(name, value)
                yield batch

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Turn errors of reading into one that names the place."""
        import pyarrow as pa

        try:
            yield
        except (pa.ArrowException, OSError, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(
                f"{self.where} (rows {self.start} to {self.start + self.rows - 1}) cannot be read: "
                f"{reason}; restore the file, or leave it out"
            ) from error


def parquet_source(
    path: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    cv: HashKFold,
    *,
    features: Any = None,
    drop: Any = (),
    filter: Any = None,
    numeric: bool = True,
) -> Source:
    """The source of Parquet files; see :func:`onefit.rows.open_rows`."""
    dataset, root = open_dataset(path)
    columns, given = ColumnRoles.resolve(
        dataset.schema.names, y, sample_weight, groups, features, drop
    )
    if numeric:
        _check_types(dataset.schema, columns)
    kept = RowFilter.of(filter, dataset)
    files = _files(dataset)
    pieces, rows = [], 0
    for fragment, stamp in files:
        _check_columns(fragment, dataset.schema, columns)
        found, rows = _pieces(fragment, stamp, rows, root, columns, given, kept)
        pieces += found
    given.check(rows)
    if not pieces:
        raise DataError(f"{path} has no rows" + (" that pass the filter" if kept else ""))
    about = {
        "X": _about([fragment for fragment, _ in files], root),
        "columns": describe((columns, given)),
        "filter": "None" if kept is None else str(kept.expression),
        "cv": describe(cv),
    }
    reading = BlockReader(cv, len(columns.X or ()), columns.X)
    return Source(pieces, reading, columns.target_shape(given), about, anywhere=True)


def open_dataset(path: Any) -> tuple[Any, str]:
    """A dataset of pyarrow, and the folder to which messages name its files."""
    needed("pyarrow", "tables", "Parquet files")
    import pyarrow as pa
    from pyarrow import dataset

    several = isinstance(path, (list, tuple))
    paths = [str(one) for one in path] if several else [str(path)]
    files, places = _file_system(paths)
    try:
        found = dataset.dataset(
            places if several else places[0],
            format=dataset.ParquetFileFormat(
                default_fragment_scan_options=dataset.ParquetFragmentScanOptions(
                    page_checksum_verification=True
                )
            ),
            filesystem=files,
            partitioning="hive",
        )
    except FileNotFoundError as error:
        raise DataError(f"there is no file or folder {str(path)!r}") from error
    except (pa.ArrowException, OSError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{str(path)!r} cannot be read as Parquet: {reason}") from error
    if not found.files:
        raise DataError(f"{str(path)!r} holds no Parquet file")
    return found, posixpath.dirname(found.files[0]) if several else places[0]


def _file_system(paths: list[str]) -> tuple[Any, list[str]]:
    """File system and paths on it: of pyarrow, or else of fsspec."""
    import pyarrow as pa
    from pyarrow import fs

    if "://" not in paths[0]:
        return fs.LocalFileSystem(), [Path(one).absolute().as_posix() for one in paths]
    try:
        files = fs.FileSystem.from_uri(paths[0])[0]
        return files, [fs.FileSystem.from_uri(one)[1] for one in paths]
    except pa.ArrowInvalid:
        needed("fsspec", None, f"addresses such as {paths[0]!r}")
        from fsspec.core import url_to_fs

        try:
            files = fs.PyFileSystem(fs.FSSpecHandler(url_to_fs(paths[0])[0]))
            return files, [url_to_fs(one)[1] for one in paths]
        except ValueError as error:
            raise DataError(
                f"{paths[0]!r} is on no file system that pyarrow or fsspec knows: {error}"
            ) from error


def _check_types(schema: Any, columns: ColumnRoles) -> None:
    for name in columns.X or ():
        kind = schema.field(name).type
        if _kind(kind) != "numbers":
            raise DataError(
                f"column {name!r} holds values of type {kind}, and streamed columns must be "
                "numbers; encode it, or leave it out with drop=..."
            )


def _check_columns(fragment: Any, schema: Any, columns: ColumnRoles) -> None:
    """Refuse a file without a column, or with values of another kind in it than other files."""
    own = fragment.physical_schema
    for name in _stored(fragment, columns):
        if name not in own.names:
            raise DataError(f"{fragment.path} has no column {name!r}, which other files have")
        kinds = own.field(name).type, schema.field(name).type
        if len({_kind(one) for one in kinds} - {"null"}) > 1:
            raise DataError(
                f"column {name!r} holds values of type {kinds[0]} in {fragment.path}, but of type "
                f"{kinds[1]} in other files; write it as one type in all"
            )


def _stored(fragment: Any, columns: ColumnRoles) -> list[str]:
    """Columns to read from a file; others are constants in the name of its folder."""
    from pyarrow import dataset

    constants = dataset.get_partition_keys(fragment.partition_expression)
    return [name for name in columns.read if name not in constants]


def _kind(type: Any) -> str:
    """The kind of a type; files may have different types of one kind in a column."""
    from pyarrow import types

    if types.is_dictionary(type):
        return _kind(type.value_type)
    numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    if any(test(type) for test in numbers):
        return "numbers"
    texts = (types.is_string, types.is_large_string)
    return "texts" if any(test(type) for test in texts) else str(type)


def _files(dataset: Any) -> list[tuple[Any, tuple[Any, Any]]]:
    """The files by name, with their footers read, and their stamps."""
    import pyarrow as pa

    def read(fragment: Any) -> tuple[Any, tuple[Any, Any]]:
        try:
            fragment.ensure_complete_metadata()
            return fragment, _stamp(fragment)
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{fragment.path} cannot be read as Parquet: {reason}") from error

    found = sorted(dataset.get_fragments(), key=lambda one: str(one.path))
    with ThreadPoolExecutor() as pool:  # the files may be on a network
        return list(pool.map(read, found))


def _stamp(fragment: Any) -> tuple[Any, Any]:
    """Size of the file in bytes and time of its last change; None if unknown."""
    found = fragment.filesystem.get_file_info(fragment.path)
    return found.size, found.mtime_ns


def _pieces(
    fragment: Any,
    stamp: tuple[Any, Any],
    start: int,
    root: str,
    columns: ColumnRoles,
    given: RowArrays,
    kept: RowFilter | None,
) -> tuple[list[ParquetPiece], int]:
    """The row groups of a file that may have rows to keep, and the number of the next row."""
    expression, schema = (None, None) if kept is None else (kept.expression, kept.schema)
    # the schema of a file lacks the columns in the names of folders
    parts = fragment.split_by_row_group(expression, schema)
    by_group = {group.id: part for part in parts for group in part.row_groups}
    pieces = []
    for group in fragment.row_groups:
        stop = start + group.num_rows
        if group.id in by_group and stop > start:
            where, part = f"{_name(fragment.path, root)}, row group {group.id}", by_group[group.id]
            place, beside = (start, group.num_rows, where), given.take(slice(start, stop))
            pieces.append(ParquetPiece(*place, part, stamp, columns, beside, kept))
        start = stop
    return pieces, start


def _name(path: str, root: str) -> str:
    return posixpath.relpath(path, root) if path != root else posixpath.basename(path)


def _about(fragments: list[Any], root: str) -> str:
    """The number of files, and a digest of their names and footers, which have statistics."""
    import pyarrow as pa

    parts = []
    for fragment in fragments:
        sink = pa.BufferOutputStream()
        fragment.metadata.write_metadata_file(sink)
        parts += [_name(fragment.path, root).encode(), sink.getvalue().to_pybytes()]
    return f"{len(fragments)} Parquet files ({digest(*parts)})"
