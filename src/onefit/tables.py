"""Tables from files: CSV, Parquet and LIBSVM, read with one clear sentence for whatever is wrong.

A table becomes features and a target. Numbers stay numbers, everything else becomes text, so that a
column means the same when a model is made and when it is used. What looks like a mistake (a column
of numbers with one word in it, a text that is different in every row) is used, and said in a
warning.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import suggest
from onefit.plan.memory import GIB, available_memory
from onefit.scan import BROKEN, PACKED, PIECE, Counts, open_unpacked, scan

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]
CheckRows = Callable[[int], None] | None

__all__ = ["DataError", "Table", "is_libsvm", "read_features", "read_table", "shortened", "shown"]

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
LIBSVM = (".libsvm", ".svmlight", ".svm")
#: what a file that was read with the wrong delimiter shows in its header
DELIMITERS = {";": ";", "\t": "\\t", "|": "|", ",": ","}
#: what stands for a missing value beside pandas's own list
GAPS = ["?"]
#: beyond these, squares and their sums are no finite numbers any more, or zero
LARGEST, SMALLEST = 1e150, 1e-150
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
DATES = "holds dates or times; turn it into numbers (days since a date, say)"
DATE = re.compile(
    r"(\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4})([ T]\d.*)?|\d{1,2}:\d\d(:\d.*)?"
)


#: characters of a column's name, on average
LONGEST_NAME = 10_000
#: characters of a value that a message quotes
QUOTED = 60


class DataError(ValueError):
    """Data that cannot be read or used; the message says what to do about it."""


def shown(value: Any) -> str:
    """A value as messages quote it: its beginning only, where it is long."""
    if isinstance(value, str) and len(value) > QUOTED:
        return f"{value[:QUOTED]!r}... ({len(value):,} characters)"
    return shortened(repr(value.item() if isinstance(value, np.generic) else value))


def shortened(text: str, most: int = 2 * QUOTED) -> str:
    """The beginning of a text, where it is long: what another library says may quote anything."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


@dataclass(frozen=True)
class Table:
    """Features and target of a file.

    Attributes
    ----------
    X : DataFrame, or sparse matrix for LIBSVM
    y : (n,) array
    target : str
        Name of the target.
    """

    X: Any = field(repr=False)
    y: Array = field(repr=False)
    target: str

    def sample(self, rows: int, seed: int) -> Table:
        """A random sample of so many rows, in their order; the table itself if it has no more."""
        n = self.X.shape[0]
        if rows >= n:
            return self
        kept = np.sort(np.random.default_rng(seed).choice(n, rows, replace=False))
        X = self.X[kept] if is_sparse(self.X) else self.X.iloc[kept].reset_index(drop=True)
        return Table(X, self.y[kept], self.target)


def is_sparse(X: Any) -> bool:
    """Whether the features are a sparse matrix, not a data frame."""
    return not hasattr(X, "columns")


def is_libsvm(path: Path) -> bool:
    """Whether a file's name says LIBSVM, which has its target in the first column."""
    return _suffix(path) in LIBSVM


def read_table(
    path: Path,
    target: str | None,
    delimiter: str | None = None,
    drop: tuple[str, ...] = (),
    check_rows: CheckRows = None,
) -> Table:
    """Read a file and split off its target.

    Parameters
    ----------
    path : Path
        ``.csv``, ``.tsv``, ``.txt``, ``.parquet``, ``.pq``, ``.libsvm``, ``.svmlight`` or ``.svm``;
        all but Parquet may be packed (``.gz``, ``.bz2``).
    target : str or None
        The column to predict; None for LIBSVM.
    delimiter : str, default=None
        Of a CSV file; a comma, or a tab for ``.tsv``, by default.
    drop : tuple of str
        Columns to leave out.
    check_rows : callable, default=None
        Given the number of rows, or fewer, before they are read; raises where that is too many.
    """
    if is_libsvm(path):
        if drop or target not in (None, "label"):
            raise DataError(
                f"{path.name} is LIBSVM, which has its target first in each line and names no "
                "column; leave out --target and --drop"
            )
        X, y = _read_libsvm(path, check_rows=check_rows)
        return Table(X, check_target(y, "label"), "label")
    if target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    frame = _read_frame(path, delimiter, check_rows)
    for name in (target, *drop):
        _check_column(frame, name, path)
    if target in drop:
        raise DataError(f"--drop {shown(target)} leaves out the target itself; name other columns")
    if not len(frame):
        raise DataError(f"{path.name} has a header and no row; add rows to learn from")
    y = check_target(frame[target], target)
    frame = frame.drop(columns=list({target, *drop}))
    if frame.shape[1] == 0:
        raise DataError(
            f"{path.name} has no column beside the target {shown(target)} to predict it by"
        )
    _check_filled(frame)
    X = as_features(frame)
    _warn_of_mistakes(X)
    return Table(X, y, target)


def read_features(path: Path, columns: list[str] | int, delimiter: str | None = None) -> Any:
    """The named columns of a file, or the LIBSVM matrix with so many columns."""
    if isinstance(columns, int):
        if not is_libsvm(path):
            raise DataError(f"the model was made from LIBSVM data; {path.name} must be LIBSVM too")
        return _read_libsvm(path, columns)[0]
    frame = _read_frame(path, delimiter)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise DataError(
            f"{path.name} lacks {', '.join(map(shown, missing[:5]))}"
            f"{' and others' if len(missing) > 5 else ''}, which the model was made with; add "
            f"{'it' if len(missing) == 1 else 'them'}, empty where unknown"
        )
    return as_features(frame[columns])


def check_target(values: Any, name: str) -> Array:
    """A target without gaps that has two values at least; dates and the like are refused."""
    import pandas as pd

    y, what = pd.Series(np.asarray(values)), f"the target {shown(name)}"
    _refuse_nested(_filled(y), what)
    gaps = np.flatnonzero(y.isna().to_numpy())
    if gaps.size == y.size:
        raise DataError(f"{what} has no value in any row; name another with --target")
    if gaps.size:
        raise DataError(
            f"{what} has no value in {gaps.size} of {y.size} rows (the first is row {gaps[0]}); "
            "remove these rows"
        )
    if y.nunique() < 2:
        raise DataError(f"{what} has the value {shown(y.iloc[0])} only; there is nothing to learn")
    if pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y):
        numbers = y.to_numpy(dtype=float)
        _check_sizes(numbers[:, None], lambda _: what, "remove that row")
        return y.to_numpy() if y.dtype.kind in "iu" else numbers
    labels = y.astype(str).to_numpy(dtype=object)
    if y.dtype.kind in "mM" or _all_match(DATE, labels):
        raise DataError(f"{what} {DATES}")
    _check_labels(labels, what)
    return labels


def _filled(column: pd.Series) -> Array:
    """The values of a column that are there."""
    values: Array = column.dropna().to_numpy(dtype=object)
    return values


def _check_labels(labels: Array, what: str) -> None:
    """Refuse text that was meant to be numbers, or names nothing twice."""
    odd, different = _odd_word(labels), len(set(labels))
    if odd is not None:
        raise DataError(
            f"{what} holds numbers but for {shown(labels[odd])} in row {odd}; correct it, or "
            "remove that row"
        )
    if different > 0.5 * labels.size and labels.size > 10:
        raise DataError(
            f"{what} holds {different} different texts in {labels.size} rows ({shown(labels[0])}, "
            "say), neither classes nor numbers; write amounts as plain numbers, such as 1234.5"
        )


def _odd_word(texts: Array) -> int | None:
    """The place of the first text that is no number, where nearly all the others are."""
    import pandas as pd

    words = np.flatnonzero(pd.isna(pd.to_numeric(texts, errors="coerce")))
    return int(words[0]) if 0 < words.size <= 0.1 * texts.size else None


def _check_sizes(numbers: Array, name: Callable[[int], str], remedy: str) -> None:
    """Refuse columns with numbers that are infinite, or whose squares would be."""
    # the largest of each column without a matrix of sizes
    high, low = (
        reduce(numbers, axis=0, initial=0.0) for reduce in (np.fmax.reduce, np.fmin.reduce)
    )
    sizes = np.maximum(high, -low)
    wrong = np.flatnonzero((sizes > LARGEST) | ((sizes > 0.0) & (sizes < SMALLEST)))
    if wrong.size == 0:
        return
    column, what = int(wrong[0]), name(int(wrong[0]))
    if sizes[column] < SMALLEST:
        raise DataError(f"{what} is too small everywhere; change its unit")
    found = np.abs(numbers[:, column])
    infinite = bool(np.isinf(found).any())
    row = int(np.flatnonzero(np.isinf(found) if infinite else found > LARGEST)[0])
    word, hint = ("infinite", remedy) if infinite else ("too large", "change its unit")
    raise DataError(f"{what} is {word} in row {row}; {hint}")


def as_features(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers and truth values as floats, everything else as text; gaps stay gaps."""
    import pandas as pd

    numeric = _columns_of(frame, _holds_numbers)
    names = frame.columns[numeric]
    # all at once: a table may have a hundred thousand columns
    numbers = frame.loc[:, numeric].to_numpy(dtype=float, na_value=np.nan)
    remedy = "correct it, or leave it empty"
    _check_sizes(numbers, lambda place: f"column {shown(names[place])}", remedy)
    found = pd.DataFrame(numbers, columns=names)
    if numeric.all():
        return found
    texts = _as_texts(frame.loc[:, ~numeric])
    return pd.concat([found, texts], axis=1)[list(frame.columns)]


def _as_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns as objects, texts or gaps; dates and nested values are refused."""
    import pandas as pd

    values, filled = frame.to_numpy(dtype=object, copy=True), frame.notna().to_numpy()
    values[~filled] = np.nan
    for place, name in enumerate(frame.columns):
        what, remedy = f"column {shown(name)}", f", or leave it out with --drop {shown(name)}"
        column, rows = values[:, place], np.flatnonzero(filled[:, place])
        _refuse_nested(column[rows], what, remedy)
        column[rows] = [str(value) for value in column[rows]]
        if frame.dtypes.iloc[place].kind in "mM" or _all_match(DATE, column[rows]):
            raise DataError(f"{what} {DATES}{remedy}")
    return pd.DataFrame(values, columns=frame.columns, dtype=object)


def _columns_of(frame: pd.DataFrame, test: Callable[[Any], bool]) -> Array:
    """Which columns have a type of one sort; of many columns, each type is tested once."""
    known = {kind: test(kind) for kind in set(frame.dtypes)}
    return np.array([known[kind] for kind in frame.dtypes], dtype=bool)


def _holds_numbers(kind: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind))


def _may_hold_text(kind: Any) -> bool:
    return kind.kind in "OU" or str(kind) in ("str", "string")


def _refuse_nested(values: Array, what: str, remedy: str = "") -> None:
    if values.size and isinstance(values[0], (list, tuple, dict, np.ndarray)):
        raise DataError(
            f"{what} is nested; spread it over plain columns, one number or text each{remedy}"
        )


def _all_match(pattern: re.Pattern[str], values: Array) -> bool:
    """Whether there are values, and all of them texts of one pattern."""
    matches = (isinstance(one, str) and pattern.fullmatch(one) for one in values)
    return bool(values.size) and all(matches)


def _check_column(frame: pd.DataFrame, name: str, path: Path) -> None:
    if name in frame.columns:
        return
    near = suggest(name, (str(one) for one in frame.columns if len(str(one)) <= QUOTED))
    raise DataError(
        f"{path.name} has no column {shown(name)}{near} It has {_listed(frame.columns)}"
    )


def _listed(names: Any, most: int = 8) -> str:
    listed = ", ".join(shown(str(name)) for name in list(names)[:most])
    return listed if len(names) <= most else f"{listed} and {len(names) - most} more"


def _check_filled(frame: pd.DataFrame) -> None:
    empty = [str(name) for name in frame.columns[frame.isna().all().to_numpy()]]
    if empty:
        flags = " ".join(f"--drop {shown(name)}" for name in empty[:8])
        raise DataError(
            f"{_listed(empty)} {'holds' if len(empty) == 1 else 'hold'} no value at all; leave out "
            f"with {flags}"
        )


def _warn_of_mistakes(X: pd.DataFrame) -> None:
    """Say what was used as it stands, but was hardly meant so."""
    for name in X.columns:
        if str(name).startswith("Unnamed: "):
            warnings.warn(
                f"a column without a name is used as {name!r}; if it numbers the rows, leave it "
                f"out with --drop {name!r}",
                stacklevel=3,
            )
    for name in X.columns[_columns_of(X, _may_hold_text)]:
        texts, rows = _filled(X[name]), np.flatnonzero(X[name].notna().to_numpy())
        odd = _odd_word(texts)
        if odd is not None:
            warnings.warn(
                f"column {shown(name)} holds numbers but for {shown(texts[odd])} in row "
                f"{rows[odd]}, so it is used as text; correct it, or leave it empty",
                stacklevel=3,
            )
        elif len(set(texts)) == len(X) > 10:
            warnings.warn(
                f"column {shown(name)} holds another text in every row, which says nothing of new "
                f"ones; leave it out with --drop {shown(name)}",
                stacklevel=3,
            )


def _suffix(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in PACKED else path
    return name.suffix.lower()


def _check_file(path: Path) -> None:
    if not path.exists():
        near = [one.name for one in path.parent.glob("*")] if path.parent.is_dir() else []
        raise DataError(f"there is no file {str(path)!r}{suggest(path.name, near)}")
    if path.is_dir():
        raise DataError(f"{str(path)!r} is a folder; name one file in it")


def _read_frame(path: Path, delimiter: str | None, check_rows: CheckRows = None) -> pd.DataFrame:
    _check_file(path)
    kind = _suffix(path)
    if kind in PARQUET:
        return _read_parquet(path, check_rows)
    if kind not in CSV:
        known = ", ".join((*CSV, *PARQUET, *LIBSVM))
        raise DataError(f"{path.name} is none of the known kinds ({known}); rename or convert it")
    if delimiter is None:
        delimiter = "\t" if kind == ".tsv" else ","
    if len(delimiter) != 1:
        raise DataError(f"--delimiter {shown(delimiter)} must be one character; '\\t' is a tab")
    found = _check_text(path, delimiter, "CSV", _csv_bytes, check_rows)
    _check_header(found, path)
    frame = _read_csv(path, delimiter)
    if found.quotes:
        _warn_of_open_quotes(frame)
    return frame if delimiter == "," else _with_decimal_commas(frame)


def _check_header(found: Counts, path: Path) -> None:
    """Refuse a file without a first line, or with one that names nothing."""
    if found.first == 0:
        raise DataError(f"{path.name} is empty; it needs a header and rows")
    if found.first > LONGEST_NAME * found.columns:
        raise DataError(
            f"the header of {path.name} has {found.first:,} characters and {found.columns:,} "
            f"names; give each column a name of at most {LONGEST_NAME:,} characters"
        )


def _read_csv(path: Path, delimiter: str) -> pd.DataFrame:
    import pandas as pd

    options: dict[str, Any] = {"sep": delimiter, "skipinitialspace": True, "na_values": GAPS}
    try:
        header = _header(path, delimiter)
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            frame = pd.read_csv(path, **options, low_memory=False, index_col=False)
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8") from (
            error
        )
    except pd.errors.ParserWarning as error:
        hint = _other_delimiter(_first_line(path), delimiter) or "; name every column"
        raise DataError(
            f"the rows of {path.name} hold more values than its header has names{hint}"
        ) from error
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path.name} is empty; it needs a header and rows") from error
    except (pd.errors.ParserError, csv.Error, ValueError, *BROKEN) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        hint = _other_delimiter(_first_line(path), delimiter)
        if isinstance(error, csv.Error):
            hint = "; close the quotes in its header, or shorten its names"
        elif not hint and "line" in reason:
            hint = "; correct that line (a value that holds the delimiter needs quotes)"
        raise DataError(f"{path.name} cannot be read as CSV: {shortened(reason)}{hint}") from error
    if frame.shape[1] == 1:
        hint = _other_delimiter(str(frame.columns[0]), delimiter)
        if hint:
            raise DataError(f"{path.name} has one column only, {shown(frame.columns[0])}{hint}")
    _check_names(pd.Series([name.strip() for name in header if name], dtype=object), path)
    # a copy has the columns of a kind in one array, which is faster by far if they are many
    joined: pd.DataFrame = frame.copy()
    joined.columns = frame.columns.str.strip()
    return joined


def _header(path: Path, delimiter: str) -> list[str]:
    """The names of the columns as they stand in the file: pandas would tell equal ones apart."""
    with open_unpacked(path) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        lines = csv.reader(text, delimiter=delimiter, skipinitialspace=delimiter != " ")
        return next((names for names in lines if names), [])


def _check_text(
    path: Path,
    separator: str,
    kind: str,
    cost: Callable[[Counts], float],
    check_rows: CheckRows = None,
) -> Counts:
    """Refuse a file that is too large to be read, or holds NUL bytes, where a value would end."""
    room = available_memory()
    try:
        found = scan(path, separator, cost, room)
    except BROKEN as error:
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
    for name in frame.columns[_columns_of(frame, _may_hold_text)]:
        values = frame[name].to_numpy(dtype=object)
        broken = (row for row, one in enumerate(values) if isinstance(one, str) and "\n" in one)
        row = next(broken, None)
        if row is not None:
            warnings.warn(
                f"a value of column {shown(str(name))} in row {row} spans several lines; if a "
                "quote was left open there, the rows below it are lost: close it",
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
    for name in frame.columns[_columns_of(frame, _may_hold_text)]:
        if _all_match(DECIMAL_COMMA, _filled(frame[name])):
            frame[name] = frame[name].str.replace(",", ".").astype(float)
    return frame


def _first_line(path: Path) -> str:
    if path.suffix.lower() in PACKED:
        return ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        return lines.readline(PIECE)


def _other_delimiter(header: str, delimiter: str) -> str:
    """What to try when a header looks as if another delimiter separates it."""
    counts = {one: header.count(one) for one in DELIMITERS if one != delimiter}
    best = max(counts, key=lambda one: counts[one])
    if counts[best] <= header.count(delimiter):
        return ""
    return f"; its header suggests another delimiter: --delimiter '{DELIMITERS[best]}'"


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


def _read_libsvm(
    path: Path, columns: int | None = None, check_rows: CheckRows = None
) -> tuple[Any, Array]:
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
