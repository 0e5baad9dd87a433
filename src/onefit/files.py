"""Files as they are: CSV, Excel, Parquet and LIBSVM, read, or refused with the reason.

How large a file is is found out before it is read: it may be packed, and unpack to anything.
"""

from __future__ import annotations

import codecs
import csv
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit import excel
from onefit._format import GIB
from onefit._validation import DataError, suggest
from onefit.plan.memory import available_memory
from onefit.scan import BROKEN, PACKED, READ_BYTES, Counts, open_unpacked, records, scan, too_long

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
CheckRows = Callable[[int], None] | None

__all__ = [
    "QUOTED",
    "CheckRows",
    "DataError",
    "all_match",
    "columns_of",
    "filled",
    "is_libsvm",
    "is_parquet",
    "listed",
    "may_hold_text",
    "place_of",
    "read_frame",
    "read_libsvm",
    "shortened",
    "shown",
]

CSV = (".csv", ".tsv", ".txt")
EXCEL = (".xlsx",)
PARQUET = (".parquet", ".pq")
LIBSVM = (".libsvm", ".svmlight", ".svm")
#: byte order marks and the encoding that each stands for; that of UTF-16 begins that of UTF-32
MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
#: for text that has no mark and is not UTF-8; it reads Latin-1 too
WESTERN = "cp1252"
#: what may separate values; of equally frequent ones the first counts
DELIMITERS = (",", ";", "\t", "|")
QUOTES = re.compile(r'"[^"]*"')
#: what stands for a missing value beside pandas's own list
GAPS = ["?"]
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
#: characters of a column's name, on average
LONGEST_NAME = 10_000
#: characters of a value that a message quotes
QUOTED = 60
#: name of an index that holds the lines of a file
LINE = "line"


def shown(value: Any) -> str:
    """A value as messages quote it: its beginning only, where it is long."""
    if isinstance(value, str) and len(value) > QUOTED:
        return f"{value[:QUOTED]!r}... ({len(value):,} characters)"
    return shortened(repr(value.item() if isinstance(value, np.generic) else value))


def shortened(text: str, most: int = 2 * QUOTED) -> str:
    """The beginning of a text, where it is long: what another library says may quote anything."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def listed(names: Any, most: int = 8) -> str:
    """The first of some names, and how many more there are."""
    first = ", ".join(shown(str(name)) for name in list(names)[:most])
    return first if len(names) <= most else f"{first} and {len(names) - most} more"


def place_of(rows: Any, position: int) -> str:
    """Where a row of a table, or of its index, is: the line of the file it was read from.

    The first line of a file is line 1, be it a header or not, and a row that spans several lines
    begins at its line. Rows of other tables are counted from 0.
    """
    index = getattr(rows, "index", rows)
    if not hasattr(index, "name"):
        return f"row {position}"
    return f"{'line' if index.name == LINE else 'row'} {index[position]}"


def is_libsvm(path: Path) -> bool:
    """Whether a file's name says LIBSVM, which has its target in the first column."""
    return _suffix(path) in LIBSVM


def is_parquet(path: Path) -> bool:
    """Whether a file's name says Parquet."""
    return _suffix(path) in PARQUET


def filled(column: pd.Series) -> Array:
    """The values of a column that are there."""
    values: Array = column.dropna().to_numpy(dtype=object)
    return values


def columns_of(frame: pd.DataFrame, test: Callable[[Any], bool]) -> Array:
    """Which columns have a type of one sort; of many columns, each type is tested once."""
    known = {kind: test(kind) for kind in set(frame.dtypes)}
    return np.array([known[kind] for kind in frame.dtypes], dtype=bool)


def may_hold_text(kind: Any) -> bool:
    """Whether a column of this type may hold text."""
    return kind.kind in "OU" or str(kind) in ("str", "string")


def all_match(pattern: re.Pattern[str], values: Array) -> bool:
    """Whether there are values, and all of them texts of one pattern."""
    matches = (isinstance(one, str) and pattern.fullmatch(one) for one in values)
    return bool(values.size) and all(matches)


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return name.suffix.lower()


def _check_file(path: Path) -> None:
    if not path.exists():
        near = [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else []
        raise DataError(f"there is no file {str(path)!r}{suggest(path.name, near)}")
    if path.is_dir():
        raise DataError(
            f"{str(path)!r} is a folder; name one file in it, or stream the Parquet files in it "
            "with --approximation nystrom"
        )


def read_frame(path: Path, check_rows: CheckRows = None) -> pd.DataFrame:
    """The table in a CSV, Excel or Parquet file; ``check_rows`` may refuse its number of rows.

    What was assumed about the file is a warning, and in ``attrs["notes"]`` of the table.
    """
    _check_file(path)
    kind = _suffix(path)
    if kind in PARQUET:
        return _read_parquet(path, check_rows)
    if kind in EXCEL:
        return _read_excel(path, check_rows)
    if kind not in CSV:
        known = ", ".join((*CSV, *EXCEL, *PARQUET, *LIBSVM))
        raise DataError(
            f"{path.name} has none of the known endings ({known}); rename or convert it"
        )
    encoding = _encoding(path)
    delimiter = _delimiter(path, encoding)
    found = _check_text(path, delimiter, "CSV", _csv_bytes, check_rows, encoding)
    _check_header(found, path)
    try:
        frame = _read_csv(path, delimiter, encoding)
    except UnicodeDecodeError:
        encoding, frame = WESTERN, _read_western(path, delimiter)
    _number_lines(frame, path, delimiter, found, encoding)
    if found.quotes:
        _warn_of_open_quotes(frame)
    return frame if delimiter == "," else _with_decimal_commas(frame)


def _encoding(path: Path) -> str:
    """The encoding that the first bytes of a file say; UTF-8 without a byte order mark."""
    try:
        with open_unpacked(path) as file:
            begin = file.read(4)
    except BROKEN:
        return "utf-8"  # reading it says what is wrong
    return next((name for mark, name in MARKS.items() if begin.startswith(mark)), "utf-8")


def _delimiter(path: Path, encoding: str) -> str:
    """What separates the names in the first line: the most frequent of comma, ; tab and |."""
    try:
        with open_unpacked(path, encoding) as file:
            line = file.read(READ_BYTES).decode("utf-8", "replace").lstrip("\r\n")
    except (UnicodeError, *BROKEN):
        return ","  # reading it says what is wrong
    outside = QUOTES.sub("", line.splitlines()[0] if line else "")
    return max(DELIMITERS, key=outside.count)


def _read_western(path: Path, delimiter: str) -> pd.DataFrame:
    """The table in a CSV file that is not UTF-8 text."""
    try:
        frame = _read_csv(path, delimiter, WESTERN)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path.name} is text in an unknown encoding, not UTF-8, UTF-16 or UTF-32 with a byte "
            "order mark, or Windows-1252; save it as UTF-8"
        ) from error
    return _with_note(
        frame,
        f"{path.name} is not UTF-8 text and was read as Windows-1252 (Western European, which "
        "includes Latin-1); if letters with accents look wrong, save it as UTF-8",
    )


def _with_note(frame: pd.DataFrame, note: str) -> pd.DataFrame:
    warnings.warn(note, stacklevel=5)
    frame.attrs["notes"] = (*frame.attrs.get("notes", ()), note)
    return frame


def _check_header(found: Counts, path: Path) -> None:
    """Refuse a file without a first line, or with one that names nothing."""
    if found.first == 0:
        raise DataError(f"{path.name} is empty; it needs a header and rows")
    if found.first > LONGEST_NAME * found.columns:
        raise DataError(
            f"the header of {path.name} has {found.first:,} characters and {found.columns:,} "
            f"names; give each column a name of at most {LONGEST_NAME:,} characters"
        )


def _read_csv(path: Path, delimiter: str, encoding: str) -> pd.DataFrame:
    import pandas as pd

    options: dict[str, Any] = {"sep": delimiter, "skipinitialspace": True, "na_values": GAPS}
    options["encoding"] = encoding
    try:
        header = _header(path, delimiter, encoding)
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            frame = pd.read_csv(path, **options, low_memory=False, index_col=False)
    except UnicodeDecodeError:
        raise
    except pd.errors.ParserWarning as error:
        raise DataError(
            f"the rows of {path.name} hold more values than its header has names"
            f"{too_long(path, delimiter, encoding)}; name every column"
        ) from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path.name} is empty; it needs a header and rows") from error
    except (pd.errors.ParserError, csv.Error, ValueError, *BROKEN) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        if reason.startswith("Expected "):
            reason = too_long(path, delimiter, encoding).strip(" ()") or reason
        hint = ""
        if isinstance(error, csv.Error):
            hint = "; close the quotes in its header, or shorten its names"
        elif "line" in reason:
            hint = "; correct that line (a value that holds the delimiter needs quotes)"
        raise DataError(f"{path.name} cannot be read as CSV: {shortened(reason)}{hint}") from error
    _check_names(pd.Series([name.strip() for name in header if name], dtype=object), path)
    # a copy has the columns of a kind in one array, which is faster by far if they are many
    joined: pd.DataFrame = frame.copy()
    joined.columns = frame.columns.str.strip()
    return joined


def _header(path: Path, delimiter: str, encoding: str) -> list[str]:
    """The names of the columns as they stand in the file: pandas would tell equal ones apart."""
    return next((names for _, names in records(path, delimiter, encoding)), [])


def _number_lines(
    frame: pd.DataFrame, path: Path, delimiter: str, found: Counts, encoding: str
) -> None:
    """Give the rows their lines of the file, where these can be told."""
    import pandas as pd

    n = len(frame)
    if not found.quotes and found.blank == 0 and found.ended in (n + 1, n):
        lines = list(range(2, 2 + n))
    else:
        try:
            # as pandas, which passes over lines of blanks
            whole = [line for line, one in records(path, delimiter, encoding) if one != [""]]
        except csv.Error:  # a value that is too long for it
            return
        lines = whole[1:]
    if len(lines) == n:
        frame.index = pd.Index(lines, name=LINE)


def _check_text(
    path: Path,
    separator: str,
    kind: str,
    cost: Callable[[Counts], float],
    check_rows: CheckRows = None,
    encoding: str = "utf-8",
) -> Counts:
    """Refuse a file that is too large to be read, or holds NUL bytes, where a value would end."""
    room = available_memory()
    try:
        found = scan(path, separator, cost, room, encoding)
    except (UnicodeError, *BROKEN) as error:
        raise DataError(f"{path.name} cannot be read as {kind}: {shortened(str(error))}") from error
    if found.nul is not None:
        raise DataError(
            f"{path.name} holds a NUL byte in line {found.nul}: it is damaged, or not UTF-8 text; "
            "save it as UTF-8"
        )
    what = "unpacks to" if path.suffix.lower() in PACKED else "holds"
    _check_room(path, f"{what} {found.nbytes / 2**20:,.0f} MiB or more", cost(found), room)
    if check_rows is not None:
        check_rows(found.rows)
    return found


def _check_room(path: Path, holds: str, needed: float, room: float) -> None:
    if needed > room:
        raise MemoryError(
            f"{path.name} {holds}; to read it takes at least {needed / GIB:.3g} GiB, and "
            f"{max(room, 0.0) / GIB:.3g} GiB are available; nothing was read: leave out rows or "
            "columns, or split it"
        )


def _csv_bytes(found: Counts) -> float:
    """What pandas takes at least: the text, where each value begins, the numbers, and columns."""
    return found.nbytes + 16.0 * found.values + 1000.0 * found.columns


def _libsvm_bytes(found: Counts) -> float:
    """What scikit-learn takes at least: a number and its column for every value."""
    return 12.0 * found.separators


def _warn_of_open_quotes(frame: pd.DataFrame) -> None:
    """Rows between two quotes are one value, which was hardly meant so."""
    for name in frame.columns[columns_of(frame, may_hold_text)]:
        values = frame[name].to_numpy(dtype=object)
        broken = (row for row, one in enumerate(values) if isinstance(one, str) and "\n" in one)
        row = next(broken, None)
        if row is not None:
            place = place_of(frame, row)
            warnings.warn(
                f"a value of column {shown(str(name))} in {place} spans several lines; if a quote "
                "was left open there, the rows below it are lost: close it",
                stacklevel=4,
            )


def _check_names(names: Any, path: Path) -> None:
    """Refuse two columns of one name."""
    twice = names[names.duplicated()]
    if len(twice):
        raise DataError(
            f"{path.name} has several columns named {shown(str(twice.iloc[0]))}; give each its own "
            "name"
        )


def _with_decimal_commas(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers written as 1,5 as numbers, where the comma does not separate columns."""
    for name in frame.columns[columns_of(frame, may_hold_text)]:
        if all_match(DECIMAL_COMMA, filled(frame[name])):
            frame[name] = frame[name].str.replace(",", ".").astype(float)
    return frame


def _read_excel(path: Path, check_rows: CheckRows = None) -> pd.DataFrame:
    nbytes = excel.unpacked_bytes(path)
    _check_room(path, f"unpacks to {nbytes / 2**20:,.0f} MiB", nbytes, available_memory())
    frame, first, others = excel.read_sheet(path, GAPS, LINE)
    if check_rows is not None:
        check_rows(len(frame))
    _check_names(frame.columns.to_series(), path)
    frame = _with_decimal_commas(frame)
    if not others:
        return frame
    return _with_note(
        frame,
        f"the first sheet of {path.name}, {shown(first)}, was read; not read: {listed(others)}",
    )


def _read_parquet(path: Path, check_rows: CheckRows = None) -> pd.DataFrame:
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
    for place, column in enumerate(table.schema):
        if pa.types.is_decimal(column.type):
            numbers = table.column(place).cast(pa.float64())
            table = table.set_column(place, column.name, numbers)
    frame: pd.DataFrame = table.to_pandas(date_as_object=False).reset_index(drop=True)
    frame.columns = frame.columns.map(str)
    _check_names(frame.columns.to_series(), path)
    return frame


def read_libsvm(
    path: Path, columns: int | None = None, check_rows: CheckRows = None
) -> tuple[Any, Array]:
    """Features, as a sparse matrix of so many columns, and target of a LIBSVM file."""
    from sklearn.datasets import load_svmlight_file

    _check_file(path)
    _check_text(path, ":", "LIBSVM", _libsvm_bytes, check_rows)
    try:
        X, y = load_svmlight_file(str(path), n_features=columns)
    except (ValueError, OSError, EOFError) as error:
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
