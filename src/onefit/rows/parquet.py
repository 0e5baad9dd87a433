"""Row groups of Parquet files: read one at a time, and of them only the columns that are needed.

A footer says how many rows each row group has, so rows are numbered without reading any: files in
the order of their names, row groups as they lie. A filter leaves out row groups by their statistics
and rows by their values; those that stay keep their numbers. Folders may be partitioned in Hive's
way (``year=2024/...``), and paths may be addresses of other file systems, ``s3://...``. What cannot
be read is named by file and row group; pages that were written with checksums are checked.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onefit._describe import describe, digest
from onefit._types import Array
from onefit._validation import DataError
from onefit.rows.chunks import BlockReader, RowBlock
from onefit.rows.columns import ColumnRoles
from onefit.rows.hash_folds import HashKFold
from onefit.rows.source import RowArrays, Source, needed, numbered

__all__ = ["ParquetPiece", "open_dataset", "parquet_source"]

#: bytes read at a time; a row group's columns are read side by side
READ_BUFFER_BYTES = 1 << 20
#: footers read side by side, which takes long on a network only
FOOTER_THREADS = 16


@dataclass(frozen=True)
class ParquetPiece:
    """A row group.

    Attributes
    ----------
    path : str
    files : file system of pyarrow's
    group : int
    stored : list of str
        Columns to read.
    constants : dict
        Values of the columns that the file's folder tells.
    columns : ColumnRoles
    given : RowArrays
    filter : pyarrow expression or None
    """

    start: int
    rows: int
    where: str
    path: str
    files: Any = field(repr=False)
    group: int
    stored: list[str] = field(repr=False)
    constants: dict[str, Any]
    columns: ColumnRoles = field(repr=False)
    given: RowArrays = field(repr=False)
    filter: Any = field(repr=False)

    def blocks(self, rows: int) -> Iterator[RowBlock]:
        """Read them in blocks of at most ``rows`` rows."""
        start = self.start
        for batch in self._batches(rows):
            given = self.given.take(start - self.start, start - self.start + batch.num_rows)
            row = numbered(start, batch.num_rows)
            start += batch.num_rows
            batch, row, given = self._kept(batch, row, given)
            if row.size:
                yield self._block(batch, row, given)
        if start != self.start + self.rows:
            raise DataError(
                f"{self.where} no longer has the rows that its footer lists; open it again"
            )

    def _batches(self, rows: int) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import parquet

        try:
            with parquet.ParquetFile(
                self.path,
                filesystem=self.files,
                buffer_size=READ_BUFFER_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
            ) as file:
                for batch in file.iter_batches(rows, [self.group], self.stored, use_threads=False):
                    yield self._with_constants(batch)
        except (pa.ArrowException, OSError, KeyError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(
                f"{self.where} (rows {self.start} to {self.start + self.rows - 1}) cannot be read: "
                f"{reason}; restore the file, or leave it out"
            ) from error

    def _with_constants(self, batch: Any) -> Any:
        import pyarrow as pa

        for name, value in self.constants.items():
            batch = batch.append_column(name, pa.array([value] * batch.num_rows))
        return batch

    def _kept(self, batch: Any, row: Array, given: RowArrays) -> tuple[Any, Array, RowArrays]:
        """The rows that the filter keeps."""
        if self.filter is None:
            return batch, row, given
        import pyarrow as pa

        table = pa.table(batch).append_column(_PLACE, pa.array(row - row[0]))
        table = table.filter(self.filter)
        kept = table.column(_PLACE).to_numpy()
        return table, row[kept], given.filter(kept)

    def _block(self, batch: Any, row: Array, given: RowArrays) -> RowBlock:
        columns = self.columns
        y = given.y
        if columns.y:
            y = _values(batch, columns.y[0]) if columns.single else batch.select(list(columns.y))
        s = _values(batch, columns.s[0]) if columns.s else given.s
        key = _values(batch, columns.key[0]) if columns.key else given.key
        return RowBlock(batch.select(list(columns.X)), y, s, key, row, self.where, self.start)


#: name of a column that no file has
_PLACE = "\0place"


def _values(batch: Any, name: str) -> Array:
    column = batch.column(name)
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)  # categories
    values: Array = column.to_numpy(zero_copy_only=False)
    return values


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
    """Rows of a Parquet file, or of all files in a folder.

    Parameters
    ----------
    path : str, Path, or list of them
    y, sample_weight, groups : names of columns, arrays, or None
    cv : HashKFold
    features, drop : names of columns
        Those to take, all that have no other role by default; those to leave out of them.
    filter : pyarrow expression, or pyarrow's lists of (column, operator, value)
    numeric : bool
        Whether to refuse features that are not numbers.
    """
    dataset, root = open_dataset(path)
    columns = ColumnRoles.resolve(dataset.schema.names, y, sample_weight, groups, features, drop)
    if numeric:
        _check_types(dataset.schema, columns)
    expression = _expression(filter)
    needed = {*columns.read, *_columns_of(expression, dataset.schema)}
    wanted = [name for name in dataset.schema.names if name in needed]
    fragments = _fragments(dataset)
    pieces, rows = [], 0
    for fragment in fragments:
        # columns that folders tell are in no file's own schema
        kept = fragment.split_by_row_group(expression, dataset.schema)
        found, rows = _pieces(fragment, kept, rows, root, wanted, columns, expression)
        pieces += found
    columns.given.check(rows)
    if not pieces:
        raise DataError(f"{path} has no rows" + (" that pass the filter" if filter else ""))
    about = {
        "X": _about(fragments, root),
        "columns": describe(columns),
        "filter": str(expression),
        "cv": describe(cv),
    }
    reading = BlockReader(cv, columns.X)
    shape = columns.target_shape
    return Source(pieces, reading, columns.X, len(columns.X), shape, about, anywhere=True)


def open_dataset(path: Any) -> tuple[Any, str]:
    """A dataset of pyarrow, and the folder that the names of its files are relative to."""
    needed("pyarrow", "tables", "Parquet files")
    import pyarrow as pa
    from pyarrow import dataset

    several = isinstance(path, (list, tuple))
    paths = [str(one) for one in path] if several else [str(path)]
    files, places = _file_system(paths)
    try:
        found = dataset.dataset(
            places if several else places[0],
            format="parquet",
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
    """File system and paths on it: pyarrow's own, or else what fsspec knows."""
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


def _expression(filter: Any) -> Any:
    from pyarrow import parquet

    return parquet.filters_to_expression(filter) if isinstance(filter, (list, tuple)) else filter


def _check_types(schema: Any, columns: ColumnRoles) -> None:
    from pyarrow import types

    for name in columns.X:
        kind = schema.field(name).type
        if not any(
            test(kind)
            for test in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        ):
            raise DataError(
                f"column {name!r} holds values of type {kind}, and streamed columns must be "
                "numbers; encode it, or leave it out with drop=..."
            )


def _fragments(dataset: Any) -> list[Any]:
    """The files by name, with their footers read."""
    import pyarrow as pa

    def read(fragment: Any) -> Any:
        try:
            fragment.ensure_complete_metadata()
        except (pa.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0]
            raise DataError(f"{fragment.path} cannot be read as Parquet: {reason}") from error
        return fragment

    found = sorted(dataset.get_fragments(), key=lambda one: str(one.path))
    with ThreadPoolExecutor(FOOTER_THREADS) as pool:
        return list(pool.map(read, found))


def _pieces(
    fragment: Any,
    parts: list[Any],
    start: int,
    root: str,
    wanted: list[str],
    columns: ColumnRoles,
    expression: Any,
) -> tuple[list[ParquetPiece], int]:
    """The row groups of a file that may have rows to keep, and the number of the next row."""
    from pyarrow import dataset

    constants = dataset.get_partition_keys(fragment.partition_expression)
    stored = [name for name in wanted if name not in constants]
    for name in stored:
        if name not in fragment.physical_schema.names:
            raise DataError(f"{fragment.path} has no column {name!r}, which other files have")
    kept = {group.id for part in parts for group in part.row_groups}
    pieces = []
    for group in fragment.row_groups:
        rows = group.num_rows
        if group.id in kept and rows:
            where = f"{_name(fragment.path, root)}, row group {group.id}"
            given = columns.given.take(start, start + rows)
            place = (fragment.path, fragment.filesystem, group.id, stored, constants)
            pieces.append(ParquetPiece(start, rows, where, *place, columns, given, expression))
        start += rows
    return pieces, start


def _columns_of(expression: Any, schema: Any) -> list[str]:
    """Columns that a filter needs: those without which pyarrow cannot bind it."""
    import pyarrow as pa

    def can_do_without(name: str) -> bool:
        try:
            rows.drop_columns([name]).filter(expression)
        except pa.ArrowInvalid:
            return False
        return True

    rows = schema.empty_table()
    return (
        []
        if expression is None
        else [name for name in rows.column_names if not can_do_without(name)]
    )


def _name(path: str, root: str) -> str:
    return posixpath.relpath(path, root) if path != root else posixpath.basename(path)


def _about(fragments: list[Any], root: str) -> str:
    """Files by name and by a digest of their footers, which have sizes and statistics."""
    import pyarrow as pa

    parts = []
    for fragment in fragments:
        sink = pa.BufferOutputStream()
        fragment.metadata.write_metadata_file(sink)
        parts += [_name(fragment.path, root).encode(), sink.getvalue().to_pybytes()]
    return f"{len(fragments)} Parquet files ({digest(*parts)})"
