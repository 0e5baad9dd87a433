"""Tables from files: CSV, Parquet and LIBSVM, read with one clear sentence for whatever is wrong.

A table becomes features and a target. Numbers stay numbers, everything else becomes text, so that a
column means the same when a model is made and when it is used.
"""

from __future__ import annotations

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
#: what a file that was read with the wrong delimiter shows in its header
DELIMITERS = {";": ";", "\t": "\\t", "|": "|", ",": ","}


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
        X, y = _read_libsvm(path)
        return Table(X, check_target(y, "label"), "label")
    if target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    frame = _read_frame(path, delimiter)
    for name in (target, *drop):
        _check_column(frame, name, path)
    y = check_target(frame[target].to_numpy(), target)
    frame = frame.drop(columns=list({target, *drop}))
    if frame.shape[1] == 0:
        raise DataError(f"{path.name} has no column beside the target {target!r} to predict it by")
    _check_filled(frame)
    return Table(as_features(frame), y, target)


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

    y = pd.Series(values)
    gaps = np.flatnonzero(y.isna().to_numpy())
    if gaps.size:
        raise DataError(
            f"the target {name!r} has no value in {gaps.size} of {y.size} rows (the first is row "
            f"{gaps[0]}); remove these rows"
        )
    if y.nunique() < 2:
        what = f"the value {y.iloc[0]!r} only" if y.size else "no row at all"
        raise DataError(f"the target {name!r} has {what}; there is nothing to learn")
    if pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y):
        found = y.to_numpy(dtype=float)
        if not np.isfinite(found).all():
            row = int(np.flatnonzero(~np.isfinite(found))[0])
            raise DataError(f"the target {name!r} is infinite in row {row}; remove that row")
        return y.to_numpy() if y.dtype.kind in "iu" else found
    _refuse_dates(y, name)
    return y.astype(str).to_numpy(dtype=object)


def as_features(frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers and truth values as floats, everything else as text; gaps stay gaps."""
    import pandas as pd

    columns = {}
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
            numbers = column.to_numpy(dtype=float, na_value=np.nan)
            if np.isinf(numbers).any():
                row = int(np.flatnonzero(np.isinf(numbers))[0])
                raise DataError(
                    f"column {name!r} is infinite in row {row}; correct it, or leave it empty"
                )
            columns[name] = pd.Series(numbers)
        else:
            _refuse_dates(column, str(name))
            text = column.reset_index(drop=True).astype(object)
            columns[name] = text.map(str).where(text.notna(), np.nan).astype(object)
    return pd.DataFrame(columns)


def _refuse_dates(column: Any, name: str) -> None:
    if column.dtype.kind in "mM":
        raise DataError(
            f"column {name!r} holds dates; turn it into numbers (days since a date, say), or leave "
            f"it out with --drop {name!r}"
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
    if frame.shape[0] < 2:
        raise DataError(f"the table has {frame.shape[0]} rows; a fit needs two at least")
    empty = [str(name) for name in frame.columns if frame[name].isna().all()]
    if empty:
        flags = " ".join(f"--drop {name!r}" for name in empty[:8])
        raise DataError(
            f"{_listed(empty)} {'holds' if len(empty) == 1 else 'hold'} no value at all; leave out "
            f"with {flags}"
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
    return _read_csv(path, delimiter or ("\t" if kind == ".tsv" else ","))


def _read_csv(path: Path, delimiter: str) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_csv(path, sep=delimiter, skipinitialspace=True, low_memory=False)
    except UnicodeDecodeError as error:
        raise DataError(f"{path.name} is not UTF-8 text ({error.reason}); save it as UTF-8") from (
            error
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OSError) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        hint = _other_delimiter(_first_line(path), delimiter)
        raise DataError(f"{path.name} cannot be read as CSV: {reason}{hint}") from error
    if frame.shape[1] == 1:
        hint = _other_delimiter(str(frame.columns[0]), delimiter)
        if hint:
            raise DataError(f"{path.name} has one column only, {str(frame.columns[0])!r}{hint}")
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
        schema = parquet.read_schema(path)
        for column in schema:
            if pa.types.is_nested(column.type):
                raise DataError(
                    f"column {column.name!r} of {path.name} is nested ({column.type}); spread it "
                    "over plain columns, one number or text each"
                )
        frame: pd.DataFrame = parquet.read_table(path).to_pandas()
        return frame
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path.name} cannot be read as Parquet: {reason}") from error


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
