"""Tables from files: CSV, Parquet and LIBSVM, read with one clear sentence for whatever is wrong.

A table becomes features and a target. Numbers stay numbers, everything else becomes text, so that a
column means the same when a model is made and when it is used. What looks like a mistake (a column
of numbers with one word in it, a text that is different in every row) is used, and said in a
warning.
"""

from __future__ import annotations

import bz2
import gzip
import re
import warnings
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import suggest

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["DataError", "Table", "is_libsvm", "read_features", "read_table"]

CSV = (".csv", ".tsv", ".txt")
PARQUET = (".parquet", ".pq")
LIBSVM = (".libsvm", ".svmlight", ".svm")
PACKED = (".gz", ".bz2")
#: what a file raises that cannot be read, or unpacked
BROKEN = (OSError, EOFError, zlib.error)
#: what a file that was read with the wrong delimiter shows in its header
DELIMITERS = {";": ";", "\t": "\\t", "|": "|", ",": ","}
#: what stands for a missing value beside pandas's own list
GAPS = ["?"]
#: beyond these, squares and their sums are no finite numbers any more, or zero
LARGEST, SMALLEST = 1e150, 1e-150
DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
DATE = re.compile(
    r"(\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4})([ T]\d.*)?|\d{1,2}:\d\d(:\d.*)?"
)


class DataError(ValueError):
    """Data that cannot be read or used; the message says what to do about it."""


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
    path: Path, target: str | None, delimiter: str | None = None, drop: tuple[str, ...] = ()
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
    """
    if is_libsvm(path):
        if drop or target not in (None, "label"):
            raise DataError(
                f"{path.name} is LIBSVM, which has its target first in each line and names no "
                "column; leave out --target and --drop"
            )
        X, y = _read_libsvm(path)
        return Table(X, check_target(y, "label"), "label")
    if target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    frame = _read_frame(path, delimiter)
    for name in (target, *drop):
        _check_column(frame, name, path)
    if target in drop:
        raise DataError(f"--drop {target!r} leaves out the target itself; name other columns")
    if not len(frame):
        raise DataError(f"{path.name} has a header and no row; add rows to learn from")
    y = check_target(frame[target], target)
    frame = frame.drop(columns=list({target, *drop}))
    if frame.shape[1] == 0:
        raise DataError(f"{path.name} has no column beside the target {target!r} to predict it by")
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
            f"{path.name} lacks {', '.join(map(repr, missing[:5]))}"
            f"{' and others' if len(missing) > 5 else ''}, which the model was made with; add "
            f"{'it' if len(missing) == 1 else 'them'}, empty where unknown"
        )
    return as_features(frame[columns])


def check_target(values: Any, name: str) -> Array:
    """A target without gaps that has two values at least; dates and the like are refused."""
    import pandas as pd

    y = pd.Series(np.asarray(values))
    _refuse_nested(y, f"the target {name!r}")
    gaps = np.flatnonzero(y.isna().to_numpy())
    if gaps.size == y.size:
        raise DataError(f"the target {name!r} has no value in any row; name another with --target")
    if gaps.size:
        raise DataError(
            f"the target {name!r} has no value in {gaps.size} of {y.size} rows (the first is row "
            f"{gaps[0]}); remove these rows"
        )
    if y.nunique() < 2:
        raise DataError(
            f"the target {name!r} has the value {_plain(y.iloc[0])!r} only; there is nothing to "
            "learn"
        )
    if pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y):
        _check_size(y.to_numpy(dtype=float), f"the target {name!r}", "remove that row")
        return y.to_numpy() if y.dtype.kind in "iu" else y.to_numpy(dtype=float)
    _refuse_dates(y, f"the target {name!r}")
    _check_labels(y, name)
    return y.astype(str).to_numpy(dtype=object)


def _check_labels(y: pd.Series, name: str) -> None:
    """Refuse text that was meant to be numbers, or names nothing twice."""
    odd = _odd_words(y)
    if odd is not None:
        raise DataError(
            f"the target {name!r} holds numbers but for {y[odd]!r} in row {odd}; correct it, or "
            "remove that row"
        )
    if y.nunique() > 0.5 * y.size and y.size > 10:
        raise DataError(
            f"the target {name!r} holds {y.nunique()} different texts in {y.size} rows "
            f"({y.iloc[0]!r}, say), neither classes nor numbers; write amounts as plain numbers, "
            "such as 1234.5"
        )


def _odd_words(column: pd.Series) -> int | None:
    """The first row of a text column that is no number, where nearly all the others are."""
    import pandas as pd

    filled = column[column.notna()]
    words = pd.to_numeric(filled, errors="coerce").isna()
    few = 0 < int(words.sum()) <= 0.1 * filled.size
    return int(words.index[words][0]) if few else None


def _check_size(numbers: Array, what: str, remedy: str) -> None:
    """Refuse numbers that are infinite, or whose squares would be."""
    for wrong, word in ((np.isinf(numbers), "infinite"), (np.abs(numbers) > LARGEST, "too large")):
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            hint = remedy if word == "infinite" else "change its unit"
            raise DataError(f"{what} is {word} in row {row}; {hint}")
    if 0.0 < np.nanmax(np.abs(numbers), initial=0.0) < SMALLEST:
        raise DataError(f"{what} is too small everywhere; change its unit")


def _plain(value: Any) -> Any:
    """A number without NumPy's name around it."""
    return value.item() if isinstance(value, np.generic) else value


def as_features(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers and truth values as floats, everything else as text; gaps stay gaps."""
    import pandas as pd

    columns = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            _check_size(numbers, f"column {name!r}", "correct it, or leave it empty")
            columns[name] = pd.Series(numbers)
        else:
            what, remedy = f"column {name!r}", f", or leave it out with --drop {name!r}"
            _refuse_nested(column, what, remedy)
            text = column.reset_index(drop=True).astype(object)
            text = text.map(str).where(text.notna(), np.nan).astype(object)
            _refuse_dates(text if column.dtype.kind == "O" else column, what, remedy)
            columns[name] = text
    return pd.DataFrame(columns)


def _refuse_nested(column: Any, what: str, remedy: str = "") -> None:
    filled = column[column.notna()]
    if len(filled) and isinstance(filled.iloc[0], (list, tuple, dict, np.ndarray)):
        raise DataError(
            f"{what} is nested; spread it over plain columns, one number or text each{remedy}"
        )


def _refuse_dates(column: Any, what: str, remedy: str = "") -> None:
    if column.dtype.kind in "mM" or _all_match(DATE, column):
        raise DataError(
            f"{what} holds dates or times; turn it into numbers (days since a date, say){remedy}"
        )


def _all_match(pattern: re.Pattern[str], column: Any) -> bool:
    """Whether a column holds text, all of one pattern."""
    filled = column[column.notna()]
    return bool(
        filled.size and all(isinstance(one, str) and pattern.fullmatch(one) for one in filled)
    )


def _check_column(frame: pd.DataFrame, name: str, path: Path) -> None:
    if name in frame.columns:
        return
    raise DataError(
        f"{path.name} has no column {name!r}{suggest(name, map(str, frame.columns))} It has "
        f"{_listed(frame.columns)}"
    )


def _listed(names: Any, shown: int = 8) -> str:
    listed = ", ".join(repr(str(name)) for name in list(names)[:shown])
    return listed if len(names) <= shown else f"{listed} and {len(names) - shown} more"


def _check_filled(frame: pd.DataFrame) -> None:
    empty = [str(name) for name in frame.columns if frame[name].isna().all()]
    if empty:
        flags = " ".join(f"--drop {name!r}" for name in empty[:8])
        raise DataError(
            f"{_listed(empty)} {'holds' if len(empty) == 1 else 'hold'} no value at all; leave out "
            f"with {flags}"
        )


def _warn_of_mistakes(X: pd.DataFrame) -> None:
    """Say what was used as it stands, but was hardly meant so."""
    for name in X.columns:
        column = X[name]
        if str(name).startswith("Unnamed: "):
            warnings.warn(
                f"a column without a name is used as {name!r}; if it numbers the rows, leave it "
                f"out with --drop {name!r}",
                stacklevel=3,
            )
        if column.dtype.kind == "f":
            continue
        odd = _odd_words(column)
        if odd is not None:
            warnings.warn(
                f"column {name!r} holds numbers but for {column[odd]!r} in row {odd}, so it is "
                "used as text; correct it, or leave it empty",
                stacklevel=3,
            )
        elif column.nunique() == len(column) > 10:
            warnings.warn(
                f"column {name!r} holds another text in every row, which says nothing of new ones; "
                f"leave it out with --drop {name!r}",
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


def _read_frame(path: Path, delimiter: str | None) -> pd.DataFrame:
    _check_file(path)
    kind = _suffix(path)
    if kind in PARQUET:
        return _read_parquet(path)
    if kind not in CSV:
        known = ", ".join((*CSV, *PARQUET, *LIBSVM))
        raise DataError(f"{path.name} is none of the known kinds ({known}); rename or convert it")
    return _read_csv(path, ("\t" if kind == ".tsv" else ",") if delimiter is None else delimiter)


def _read_csv(path: Path, delimiter: str) -> pd.DataFrame:
    import pandas as pd

    if len(delimiter) != 1:
        raise DataError(f"--delimiter {delimiter!r} must be one character; '\\t' is a tab")
    options: dict[str, Any] = {"sep": delimiter, "skipinitialspace": True, "na_values": GAPS}
    _check_bytes(path)
    try:
        header = pd.read_csv(path, **options, header=None, nrows=1, dtype=str)
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
    except (pd.errors.ParserError, ValueError, *BROKEN) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        hint = _other_delimiter(_first_line(path), delimiter)
        if not hint and "line" in reason:
            hint = "; correct that line (a value that holds the delimiter needs quotes)"
        raise DataError(f"{path.name} cannot be read as CSV: {reason}{hint}") from error
    if frame.shape[1] == 1:
        hint = _other_delimiter(str(frame.columns[0]), delimiter)
        if hint:
            raise DataError(f"{path.name} has one column only, {str(frame.columns[0])!r}{hint}")
    _check_names(header.iloc[0].dropna().str.strip(), path)
    frame.columns = frame.columns.str.strip()
    _warn_of_open_quotes(frame)
    return frame if delimiter == "," else _with_decimal_commas(frame)


def _check_bytes(path: Path) -> None:
    """Refuse NUL bytes, at which a value would end without a word."""
    opened: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    try:
        with opened(path, "rb") as lines:
            for number, line in enumerate(lines, 1):
                if b"\0" in line:
                    raise DataError(
                        f"{path.name} holds a NUL byte in line {number}: it is damaged, or not "
                        "UTF-8 text; save it as UTF-8"
                    )
    except BROKEN:
        return  # said by whoever reads it


def _warn_of_open_quotes(frame: pd.DataFrame) -> None:
    """Rows between two quotes are one value, which was hardly meant so."""
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "OU" or str(column.dtype) in ("str", "string"):
            broken = column.astype(str).str.contains("\n", regex=False)
            if broken.any():
                warnings.warn(
                    f"a value of column {str(name)!r} in row {broken.idxmax()} spans several "
                    "lines; if a quote was left open there, the rows below it are lost: close it",
                    stacklevel=3,
                )


def _check_names(names: Any, path: Path) -> None:
    """Refuse two columns of one name."""
    twice = names[names.duplicated()]
    if len(twice):
        raise DataError(
            f"{path.name} has several columns named {str(twice.iloc[0])!r}; give each its own name"
        )


def _with_decimal_commas(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers written as 1,5 as numbers, where the comma does not separate columns."""
    for name in frame.columns:
        if _all_match(DECIMAL_COMMA, frame[name]):
            frame[name] = frame[name].str.replace(",", ".").astype(float)
    return frame


def _first_line(path: Path) -> str:
    if path.suffix.lower() in PACKED:
        return ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        return lines.readline()


def _other_delimiter(header: str, delimiter: str) -> str:
    """What to try when a header looks as if another delimiter separates it."""
    counts = {one: header.count(one) for one in DELIMITERS if one != delimiter}
    best = max(counts, key=lambda one: counts[one])
    if counts[best] <= header.count(delimiter):
        return ""
    return f"; its header suggests another delimiter: --delimiter '{DELIMITERS[best]}'"


def _read_parquet(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path.name} cannot be read as Parquet: {reason}") from error
    for place, column in enumerate(table.schema):
        if pa.types.is_decimal(column.type):
            numbers = table.column(place).cast(pa.float64())
            table = table.set_column(place, column.name, numbers)
    frame: pd.DataFrame = table.to_pandas(date_as_object=False).reset_index(drop=True)
    frame.columns = frame.columns.map(str)
    _check_names(frame.columns.to_series(), path)
    return frame


def _read_libsvm(path: Path, columns: int | None = None) -> tuple[Any, Array]:
    from sklearn.datasets import load_svmlight_file

    _check_file(path)
    try:
        X, y = load_svmlight_file(str(path), n_features=columns)
    except (ValueError, OSError, EOFError) as error:
        raise DataError(
            f"{path.name} cannot be read as LIBSVM ('label index:value ...' in each line"
            f"{'' if columns is None else f', index at most {columns}'}): {error}"
        ) from error
    if columns is None and (X.shape[0] < 2 or X.shape[1] == 0):
        raise DataError(
            f"{path.name} holds {X.shape[0]} rows and {X.shape[1]} features; a fit needs two rows "
            "and one feature at least"
        )
    return X, y
