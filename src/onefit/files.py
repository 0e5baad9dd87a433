"""Files as they are: CSV, Excel, Parquet and LIBSVM, read, or refused with the reason.

pandas, openpyxl, pyarrow and scikit-learn read them. Before that a text file is counted in chunks:
it may be packed, and unpack to a thousand times its size, and a reader takes several times that.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit._format import GIB
from onefit._frames import (
    LINE,
    all_match,
    as_frame,
    check_names,
    columns_of,
    filled,
    listed,
    may_hold_text,
    place_of,
    shortened,
    shown,
)
from onefit._validation import DataError, suggest
from onefit.plan.memory import available_memory
from onefit.written import gaps_read, is_gap

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
CheckRows = Callable[[int], None] | None

__all__ = ["CheckRows", "is_libsvm", "is_parquet", "read_frame", "read_libsvm"]

CSV = (".csv", ".tsv", ".txt")
EXCEL = (".xlsx",)
PARQUET = (".parquet", ".pq")
LIBSVM = (".libsvm", ".svmlight", ".svm")
PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
#: exceptions of files that cannot be read or unpacked, and of Excel files
BROKEN = (OSError, EOFError, zlib.error)
NOT_EXCEL = (zipfile.BadZipFile, KeyError, ValueError, OSError)
#: byte order marks and their encodings; that of UTF-16 is the start of that of UTF-32
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: for text that has no mark and is not UTF-8; it includes Latin-1
WESTERN = "cp1252"
#: separators of values; of equally frequent ones the first counts
DELIMITERS = (",", ";", "\t", "|")
#: codes of missing values in addition to those of pandas
GAPS = ["?"]
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
#: bytes read together
READ_BYTES = 2**20
#: largest mean number of characters of a column's name
MAX_NAME_CHARACTERS = 10_000


def is_libsvm(path: Path) -> bool:
    """Whether a file's name ends as LIBSVM, which has its target in the first column."""
    return _suffix(path) in LIBSVM


def is_parquet(path: Path) -> bool:
    """Whether a file's name ends as Parquet."""
    return _suffix(path) in PARQUET


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return name.suffix.lower()


def read_frame(
    path: Path, check_rows: CheckRows = None, texts: Collection[str] = ()
) -> pd.DataFrame:
    """The table in a CSV, Excel or Parquet file; ``check_rows`` may refuse its number of rows.

    Columns in ``texts`` are read as they are written, whatever else the column holds: 007, which is
    7 in a column of numbers. What was assumed about the file is a warning.
    """
    _check_file(path)
    if _suffix(path) in PARQUET:
        return _read_parquet(path, check_rows)
    for endings, read in ((EXCEL, _read_excel), (CSV, _read_text)):
        if _suffix(path) in endings:
            return read(path, check_rows, texts)
    known = ", ".join((*CSV, *EXCEL, *PARQUET, *LIBSVM))
    raise DataError(f"{path.name} has none of the known endings ({known}); rename or convert it")


def _check_file(path: Path) -> None:
    if not path.exists():
        near = [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else []
        raise DataError(f"there is no file {str(path)!r}{suggest(path.name, near)}")
    if path.is_dir():
        raise DataError(
            f"{str(path)!r} is a folder; name one file in it, or stream the Parquet files in it "
            "with --approximation nystrom"
        )


def _check_room(path: Path, holds: str, needed: float, room: float) -> None:
    if needed > room:
        raise MemoryError(
            f"{path.name} {holds}; to read it takes at least {needed / GIB:.3g} GiB, and "
            f"{max(room, 0.0) / GIB:.3g} GiB are available; nothing was read: leave out rows or "
            "columns, or split it"
        )


def _with_decimal_commas(frame: pd.DataFrame, texts: Collection[str]) -> pd.DataFrame:
    """Numbers written as 1,5 as numbers, where the comma does not separate columns."""
    for name in frame.columns[columns_of(frame, may_hold_text)].difference(list(texts), sort=False):
        rows, cells = np.flatnonzero(frame[name].notna()), filled(frame[name])
        gaps = np.array([isinstance(one, str) and is_gap(one) for one in cells], dtype=bool)
        if not all_match(DECIMAL_COMMA, cells[~gaps]):
            continue
        numbers = np.full(len(frame), np.nan)
        numbers[rows[~gaps]] = [float(one.replace(",", ".")) for one in cells[~gaps]]
        frame[name] = numbers
        if gaps.any():
            first = int(rows[np.argmax(gaps)])
            text = gaps_read(f"column {shown(str(name))}", cells[gaps], frame.index, first)
            warnings.warn(text, stacklevel=5)
    return frame


class Counts(NamedTuple):
    """The lines of a text file, and whether it has quotes, within which a value may have lines."""

    lines: int
    quotes: bool


def open_unpacked(path: Path, encoding: str = "utf-8") -> Any:
    """The bytes of a file, unpacked by its name; text in another encoding as UTF-8."""
    file = PACKED.get(path.suffix.lower(), open)(path, "rb")
    return file if encoding == "utf-8" else codecs.EncodedFile(file, "utf-8", encoding)


def _check_text(
    path: Path,
    separator: str,
    cost: Callable[[int, int], float],
    check_rows: CheckRows,
    encoding: str = "utf-8",
) -> Counts:
    """Count the contents of a file, until its bytes and values cost more than there is room for.

    Refuses a file that is too large to be read, or holds NUL bytes, where a value would end.
    """
    room = available_memory()
    nbytes = lines = values = 0
    quotes, last = False, b""
    with open_unpacked(path, encoding) as file:
        while cost(nbytes, values) <= room and (chunk := file.read(READ_BYTES)):
            before, nul, _ = chunk.partition(b"\0")
            # a line ends in \n, \r\n or \r
            ends = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
            lines += ends - (last == b"\r" and before[:1] == b"\n")
            if nul:
                raise DataError(
                    f"{path.name} holds a NUL byte in line {lines + 1}: it is damaged, or not "
                    "UTF-8 text; save it as UTF-8"
                )
            nbytes += len(before)
            values += before.count(separator.encode()) + ends
            quotes |= b'"' in before
            last = before[-1:]
    what = "unpacks to" if path.suffix.lower() in PACKED else "holds"
    _check_room(path, f"{what} {nbytes / 2**20:,.0f} MiB or more", cost(nbytes, values), room)
    lines += last not in (b"\n", b"\r")
    if check_rows is not None and not quotes:
        check_rows(max(0, lines - 1))
    return Counts(lines, quotes)


def _read_text(path: Path, check_rows: CheckRows, texts: Collection[str]) -> pd.DataFrame:
    try:
        with open_unpacked(path) as file:
            begin = file.read(4)
        encoding = next((name for mark, name in MARKS.items() if begin.startswith(mark)), "utf-8")
        delimiter = _delimiter(path, encoding)
        # pandas takes at least the text, where each value begins, and the numbers
        cost = lambda nbytes, values: nbytes + 16.0 * values  # noqa: E731
        found = _check_text(path, delimiter, cost, check_rows, encoding)
    except (UnicodeError, *BROKEN) as error:
        raise DataError(f"{path.name} cannot be read as CSV: {shortened(str(error))}") from error
    try:
        frame = _read_csv(path, delimiter, encoding, texts)
    except UnicodeDecodeError:
        try:
            encoding, frame = WESTERN, _read_csv(path, delimiter, WESTERN, texts)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path.name} is text in an unknown encoding, not UTF-8, UTF-16 or UTF-32 with a "
                "byte order mark, or Windows-1252; save it as UTF-8"
            ) from error
        warnings.warn(
            f"{path.name} is not UTF-8 text and was read as Windows-1252 (Western European, which "
            f"includes Latin-1){_mixed(path)}; if letters with accents look wrong, save it as "
            "UTF-8",
            stacklevel=4,
        )
    _number_lines(frame, path, delimiter, found, encoding)
    if found.quotes:
        _warn_of_open_quotes(frame)
    return frame if delimiter == "," else _with_decimal_commas(frame, texts)


def _mixed(path: Path) -> str:
    """Describe the lines of a text that are UTF-8 while others are not; empty if all agree."""
    first: dict[bool, int] = {}
    with open_unpacked(path) as file:
        for place, line in enumerate(file, 1):
            if not line.isascii():
                first.setdefault(_is_utf8(line), place)
    if len(first) < 2:
        return ""
    return f", although it mixes encodings: line {first[True]} is UTF-8, line {first[False]} is not"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(path: Path, encoding: str) -> str:
    """The most frequent separator of the first line; refuses a file without names."""
    with open_unpacked(path, encoding) as file:
        begin = file.read(READ_BYTES).decode("utf-8", "replace").lstrip("\r\n")
    if not begin:
        raise DataError(f"{path.name} is empty; it needs a header and rows")
    header = begin.splitlines()[0]
    names = re.sub(r'"[^"]*"', "", header)
    delimiter = max(DELIMITERS, key=names.count)
    if len(header) > MAX_NAME_CHARACTERS * (names.count(delimiter) + 1):
        raise DataError(
            f"the header of {path.name} has {len(header):,} characters or more for "
            f"{names.count(delimiter) + 1:,} names; give each column a name of at most "
            f"{MAX_NAME_CHARACTERS:,} characters"
        )
    return delimiter


def _read_csv(path: Path, delimiter: str, encoding: str, texts: Collection[str]) -> pd.DataFrame:
    import pandas as pd

    try:
        # as they are in the file: pandas would rename equal ones
        names = next((names for _, names in _records(path, delimiter, encoding)), [])
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            frame = pd.read_csv(
                path, sep=delimiter, encoding=encoding, skipinitialspace=True, na_values=GAPS,
                low_memory=False, index_col=False,
                dtype={name: str for name in names if name.strip() in texts},
            )  # fmt: skip
    except UnicodeDecodeError:
        raise
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"the rows of {path.name} hold more values than its header has names"
            f"{_too_long(path, delimiter, encoding)}; name every column in the first line, and "
            "remove a title or comments above it"
        ) from error
    except (pd.errors.ParserError, csv.Error, ValueError, *BROKEN) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        if reason.startswith("Expected "):
            reason = _too_long(path, delimiter, encoding).strip(" ()") or reason
        hint = ""
        if isinstance(error, csv.Error):
            hint = "; close the quotes in its header, or shorten its names"
        elif "line" in reason:
            hint = "; correct that line (a value that holds the delimiter needs quotes)"
        raise DataError(f"{path.name} cannot be read as CSV: {shortened(reason)}{hint}") from error
    check_names([name.strip() for name in names if name], path.name)
    # a copy has the columns of a kind in one array, which is faster by far if they are many
    joined: pd.DataFrame = frame.copy()
    joined.columns = frame.columns.str.strip()
    return joined


def _records(path: Path, delimiter: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """The values of each row of a CSV file, header included, and the line where it begins."""
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    with open_unpacked(path) as file, io.TextIOWrapper(file, codec, newline="") as text:
        lines = csv.reader(text, delimiter=delimiter, skipinitialspace=True)
        begins = 1
        for values in lines:
            if values:
                yield begins, values
            begins = lines.line_num + 1


def _too_long(path: Path, delimiter: str, encoding: str) -> str:
    """The first row with more values than the header, in brackets."""
    try:
        rows = _records(path, delimiter, encoding)
        _, header = next(rows)
        for line, values in rows:
            if len(values) > len(header):
                return f" (line {line} holds {len(values)} values, expected {len(header)})"
    except (csv.Error, StopIteration, UnicodeError, *BROKEN):
        pass
    return ""


def _number_lines(
    frame: pd.DataFrame, path: Path, delimiter: str, found: Counts, encoding: str
) -> None:
    """Give the rows their lines of the file, if these can be known."""
    import pandas as pd

    n = len(frame)
    lines: Any = range(2, 2 + n)
    if found.quotes or found.lines != n + 1:  # empty lines, or rows of several
        try:
            # like pandas, without lines of blanks
            whole = [line for line, one in _records(path, delimiter, encoding) if one != [""]]
        except csv.Error:  # a value that is too long for it
            return
        lines = whole[1:]
    if len(lines) == n:
        frame.index = pd.Index(list(lines), name=LINE)


def _warn_of_open_quotes(frame: pd.DataFrame) -> None:
    """Rows between two quotes are one value, which is probably a mistake."""
    for name in frame.columns[columns_of(frame, may_hold_text)]:
        values = frame[name].to_numpy(dtype=object)
        broken = (row for row, one in enumerate(values) if isinstance(one, str) and "\n" in one)
        row = next(broken, None)
        if row is not None:
            warnings.warn(
                f"a value of column {shown(str(name))} in {place_of(frame, row)} spans several "
                "lines; if a quote was left open there, the rows below it are lost: close it",
                stacklevel=4,
            )


def _read_excel(path: Path, check_rows: CheckRows, texts: Collection[str]) -> pd.DataFrame:
    """The table in the first sheet; its first row that is not empty is the header."""
    import pandas as pd

    try:
        with zipfile.ZipFile(path) as parts:
            nbytes = sum(one.file_size for one in parts.infolist())
        _check_room(path, f"unpacks to {nbytes / 2**20:,.0f} MiB", nbytes, available_memory())
        with pd.ExcelFile(path, engine="openpyxl") as book:
            sheet, *others = map(str, book.sheet_names)
            cells = pd.read_excel(book, sheet_name=sheet, header=None, na_values=GAPS)
    except ImportError as error:
        raise DataError(
            f"reading {path.name} needs openpyxl; pip install 'onefit[tables]', or save the sheet "
            "as CSV"
        ) from error
    except NOT_EXCEL as error:
        raise DataError(
            f"{path.name} cannot be read as Excel ({str(error)[:120]}); save it as .xlsx or CSV "
            "again"
        ) from error
    cells.index = pd.Index(range(1, 1 + len(cells)), name=LINE)
    cells = cells.dropna(how="all").dropna(how="all", axis="columns")
    if cells.empty:
        raise DataError(f"sheet {sheet!r} of {path.name} is empty; it needs a header and rows")
    names = cells.iloc[0]
    if names.isna().any():
        raise DataError(
            f"row {cells.index[0]} of sheet {sheet!r} of {path.name} has no name for column "
            f"{int(cells.columns[int(np.argmax(names.isna()))]) + 1}; its first row must name "
            "every column"
        )
    frame = cells.iloc[1:].infer_objects()
    frame.columns = pd.Index([str(name).strip() for name in names])
    if check_rows is not None:
        check_rows(len(frame))
    check_names(frame.columns, path.name)
    if others:
        warnings.warn(
            f"the first sheet of {path.name}, {shown(sheet)}, was read; not read: {listed(others)}",
            stacklevel=4,
        )
    return _with_decimal_commas(frame, texts)


def _read_parquet(path: Path, check_rows: CheckRows) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            rows, columns = file.metadata.num_rows, file.metadata.num_columns
            holds = f"holds {rows:,} rows and {columns:,} columns"
            _check_room(path, holds, 8.0 * rows * columns, available_memory())
            if check_rows is not None:
                check_rows(rows)
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        reason = shortened(str(error).splitlines()[0])
        raise DataError(f"{path.name} cannot be read as Parquet: {reason}") from error
    frame = as_frame(table).reset_index(drop=True)
    frame.columns = frame.columns.map(str)
    check_names(frame.columns, path.name)
    return frame


def read_libsvm(
    path: Path, columns: int | None = None, check_rows: CheckRows = None
) -> tuple[Any, Array]:
    """Features, as a sparse matrix with ``columns`` columns, and target of a LIBSVM file."""
    from sklearn.datasets import load_svmlight_file

    _check_file(path)
    try:
        # scikit-learn takes at least a number and its column for every value
        _check_text(path, ":", lambda nbytes, values: 12.0 * values, check_rows)
        X, y = load_svmlight_file(str(path), n_features=columns)
    except DataError:
        raise
    except (ValueError, *BROKEN) as error:
        raise DataError(
            f"{path.name} cannot be read as LIBSVM ('label index:value ...' in each line"
            f"{'' if columns is None else f', index at most {columns}'}): {shortened(str(error))}"
        ) from error
    # rows may be empty, but every column has a scale
    _check_room(path, f"names column {X.shape[1]:,}", 16.0 * X.shape[1], available_memory())
    if columns is None and (X.shape[0] < 2 or X.shape[1] == 0):
        raise DataError(
            f"{path.name} holds {X.shape[0]} rows and {X.shape[1]} features; a fit needs two rows "
            "and one feature at least"
        )
    return X, y
