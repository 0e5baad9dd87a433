"""Tables from files, with one clear sentence for whatever is wrong.

A table becomes features and a target. Numbers stay numbers, everything else becomes text, so that a
column means the same when a model is made and when it is used. What looks like a mistake (a column
of numbers with one word in it, a text that is different in every row) is used, and said in a
warning.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import suggest
from onefit.files import (
    QUOTED,
    CheckRows,
    DataError,
    all_match,
    columns_of,
    filled,
    is_libsvm,
    listed,
    may_hold_text,
    read_frame,
    read_libsvm,
    shown,
)

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["Table", "as_features", "check_target", "is_sparse", "read_features", "read_table"]

#: beyond these, squares and their sums are no finite numbers any more, or zero
LARGEST, SMALLEST = 1e150, 1e-150
DATES = "holds dates or times; turn it into numbers (days since a date, say)"
DATE = re.compile(
    r"(\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4})([ T]\d.*)?|\d{1,2}:\d\d(:\d.*)?"
)


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
        X, y = read_libsvm(path, check_rows=check_rows)
        return Table(X, check_target(y, "label"), "label")
    if target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    frame = read_frame(path, delimiter, check_rows)
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
        return read_libsvm(path, columns)[0]
    frame = read_frame(path, delimiter)
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
    _refuse_nested(filled(y), what)
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
    if y.dtype.kind in "mM" or all_match(DATE, labels):
        raise DataError(f"{what} {DATES}")
    _check_labels(labels, what)
    return labels


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

    numeric = columns_of(frame, _holds_numbers)
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
        if frame.dtypes.iloc[place].kind in "mM" or all_match(DATE, column[rows]):
            raise DataError(f"{what} {DATES}{remedy}")
    return pd.DataFrame(values, columns=frame.columns, dtype=object)


def _holds_numbers(kind: Any) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind))


def _refuse_nested(values: Array, what: str, remedy: str = "") -> None:
    if values.size and isinstance(values[0], (list, tuple, dict, np.ndarray)):
        raise DataError(
            f"{what} is nested; spread it over plain columns, one number or text each{remedy}"
        )


def _check_column(frame: pd.DataFrame, name: str, path: Path) -> None:
    if name in frame.columns:
        return
    near = suggest(name, (str(one) for one in frame.columns if len(str(one)) <= QUOTED))
    raise DataError(f"{path.name} has no column {shown(name)}{near} It has {listed(frame.columns)}")


def _check_filled(frame: pd.DataFrame) -> None:
    empty = [str(name) for name in frame.columns[frame.isna().all().to_numpy()]]
    if empty:
        flags = " ".join(f"--drop {shown(name)}" for name in empty[:8])
        raise DataError(
            f"{listed(empty)} {'holds' if len(empty) == 1 else 'hold'} no value at all; leave out "
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
    for name in X.columns[columns_of(X, may_hold_text)]:
        texts, rows = filled(X[name]), np.flatnonzero(X[name].notna().to_numpy())
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
