"""Tables from files, with one clear sentence for whatever is wrong.

A table becomes features and a target. Numbers stay numbers, also those that are written with units
or commas; dates become days since 1970; everything else becomes text, so that a column means the
same when a model is made and when it is used. What looks like a mistake (a column of numbers with
one word in it, a text that is different in every row) is used, and said in a warning.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from onefit._validation import suggest
from onefit.files import (
    QUOTED,
    CheckRows,
    DataError,
    Reading,
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
from onefit.written import days, read_numbers, units

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = [
    "Roles",
    "Table",
    "as_features",
    "check_target",
    "is_sparse",
    "read_features",
    "read_table",
]

#: beyond these, squares and their sums are no finite numbers any more, or zero
LARGEST, SMALLEST = 1e150, 1e-150
DATES = "holds dates or times; turn it into numbers (days since a date, say)"
#: how a column may be left out, in the words of the command line
LEAVE_OUT = "leave it out with --drop {}"
#: names of columns that number or name the rows, and rows from which 1, 2, 3 ... do so by any name
ID = re.compile(r"(.*[_ .-])?(id|ids|index|idx|key|uuid|nr|no)|row|row_?number|.*[a-z]I[Dd]", re.I)
COUNTED = 50
DATE = re.compile(
    r"(\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4})([ T]\d.*)?|\d{1,2}:\d\d(:\d.*)?"
)


@dataclass(frozen=True)
class Roles:
    """Columns that are neither features nor the target.

    Attributes
    ----------
    groups, weights, time, id : str or None
        Rows of one group stay on one side of a split; weights count in fits and scores; time puts
        rows in order; an id goes with the predictions.
    """

    groups: str | None = None
    weights: str | None = None
    time: str | None = None
    id: str | None = None

    @property
    def names(self) -> dict[str, str]:
        """The columns that have a role, by the option that gave it."""
        return {f"--{role}": name for role, name in vars(self).items() if name is not None}


@dataclass(frozen=True)
class Table:
    """Features and target of a file.

    Attributes
    ----------
    X : DataFrame, or sparse matrix for LIBSVM, or array
    y : (n,) array
    target : str
        Name of the target.
    groups, weights, ids : (n,) arrays or None
    id : str or None
        Name of the ids.
    ordered : bool
        Whether the rows are in the order of time, and splits have to keep it.
    """

    X: Any = field(repr=False)
    y: Array = field(repr=False)
    target: str
    groups: Array | None = field(default=None, repr=False)
    weights: Array | None = field(default=None, repr=False)
    ids: Array | None = field(default=None, repr=False)
    id: str | None = None
    ordered: bool = False

    def sample(self, rows: int, seed: int) -> Table:
        """A random sample of so many rows, in their order; the table itself if it has no more."""
        n = self.X.shape[0]
        if rows >= n:
            return self
        return self.take(np.sort(np.random.default_rng(seed).choice(n, rows, replace=False)))

    def take(self, rows: Array) -> Table:
        """Some of the rows."""
        framed = hasattr(self.X, "iloc")
        X = self.X.iloc[rows].reset_index(drop=True) if framed else self.X[rows]
        others = {name: getattr(self, name) for name in ("groups", "weights", "ids")}
        kept: Any = {name: one[rows] for name, one in others.items() if one is not None}
        return replace(self, X=X, y=self.y[rows], **kept)


def is_sparse(X: Any) -> bool:
    """Whether the features are a sparse matrix."""
    return bool(issparse(X))


def read_table(
    path: Path,
    target: str | None,
    reading: Reading = Reading(),  # noqa: B008
    drop: tuple[str, ...] = (),
    check_rows: CheckRows = None,
    roles: Roles = Roles(),  # noqa: B008
) -> Table:
    """Read a file and split off its target.

    Parameters
    ----------
    path : Path
        ``.csv``, ``.tsv``, ``.txt``, ``.parquet``, ``.pq``, ``.libsvm``, ``.svmlight`` or ``.svm``;
        all but Parquet may be packed (``.gz``, ``.bz2``).
    target : str or None
        The column to predict; None for LIBSVM.
    reading : Reading
        Delimiter, encoding and header of a CSV file.
    drop : tuple of str
        Columns to leave out.
    check_rows : callable, default=None
        Given the number of rows, or fewer, before they are read; raises where that is too many.
    roles : Roles
        Columns with groups, weights, times or ids, none of which is a feature.
    """
    if is_libsvm(path):
        if drop or roles.names or target not in (None, "label"):
            flags = ", ".join(roles.names) or "--target and --drop"
            raise DataError(
                f"{path.name} is LIBSVM, which has its target first in each line and names no "
                f"column; leave out {flags}"
            )
        X, y = read_libsvm(path, check_rows=check_rows)
        return Table(X, check_target(y, "label"), "label")
    if target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    frame = read_frame(path, reading, check_rows)
    for name in (target, *drop, *roles.names.values()):
        _check_column(frame, name, path)
    for flag, name in [*(("--drop", one) for one in drop), *roles.names.items()]:
        if name == target:
            raise DataError(f"{flag} {shown(name)} is the target itself; name another column")
    if not len(frame):
        raise DataError(f"{path.name} has a header and no row; add rows to learn from")
    frame = _in_order(_with_target(frame, target), roles.time)
    y = check_target(frame[target], target)
    others = {target, *drop, *roles.names.values()}
    features = frame.drop(columns=list(others))
    if features.shape[1] == 0:
        raise DataError(
            f"{path.name} has no column beside the target {shown(target)} to predict it by"
        )
    _check_filled(features)
    X = as_features(features)
    _warn_of_mistakes(X)
    return Table(X, y, target, **_roles(frame, roles))


def _with_target(frame: pd.DataFrame, target: str) -> pd.DataFrame:
    """The rows that have a target; how many have none is said."""
    there = frame[target].notna().to_numpy()
    skipped = int((~there).sum())
    if not 0 < skipped < len(frame):
        return frame
    warnings.warn(
        f"{skipped} of {len(frame)} rows are left out, because they have no value of the target "
        f"{shown(target)} (the first is row {int(np.argmin(there))})",
        stacklevel=3,
    )
    found: pd.DataFrame = frame[there].reset_index(drop=True)
    return found


def _in_order(frame: pd.DataFrame, time: str | None) -> pd.DataFrame:
    """The rows, in the order of a column of times."""
    if time is None:
        return frame
    moments: Any = frame[time]
    if not _holds_numbers(moments.dtype):
        found = days(moments)
        if found is None:
            raise DataError(
                f"--time {shown(time)} holds neither numbers nor dates such as 2021-03-05; write "
                "it in one of these ways"
            )
        moments = found
    moments = np.asarray(moments, dtype=float)
    if np.isnan(moments).any():
        row = int(np.argmax(np.isnan(moments)))
        raise DataError(f"--time {shown(time)} has no value in row {row}; remove that row")
    ordered: pd.DataFrame = frame.iloc[np.argsort(moments, kind="stable")].reset_index(drop=True)
    return ordered


def _roles(frame: pd.DataFrame, roles: Roles) -> dict[str, Any]:
    """Groups, weights and ids of the rows."""
    found: dict[str, Any] = {"ordered": roles.time is not None, "id": roles.id}
    if roles.id is not None:
        found["ids"] = frame[roles.id].to_numpy()
    if roles.groups is not None:
        found["groups"] = _labels(_complete(frame, roles.groups, "--groups"))
    if roles.weights is not None:
        weights = _complete(frame, roles.weights, "--weights")
        if not _holds_numbers(weights.dtype) or bool((weights < 0).any()):
            raise DataError(
                f"--weights {shown(roles.weights)} must hold numbers of at least 0, and does not"
            )
        found["weights"] = weights.to_numpy(dtype=float)
    return found


def _complete(frame: pd.DataFrame, name: str, flag: str) -> pd.Series:
    column = frame[name]
    gaps = np.flatnonzero(column.isna().to_numpy())
    if gaps.size:
        raise DataError(f"{flag} {shown(name)} has no value in row {gaps[0]}; fill it in")
    return column


def _labels(column: pd.Series) -> Array:
    return np.unique(column.astype(str).to_numpy(dtype=object), return_inverse=True)[1]


def read_features(
    path: Path,
    columns: list[str] | int,
    reading: Reading = Reading(),  # noqa: B008
    numbers: set[str] | None = None,
    others: tuple[str, ...] = (),
) -> tuple[Any, dict[str, Array]]:
    """The named columns of a file, or the LIBSVM matrix with so many columns; and other columns.

    Parameters
    ----------
    path : Path
    columns : list of str, or int
    reading : Reading
    numbers : set of str, default=None
        Those columns that hold numbers, however they are written; None for those that look so.
    others : tuple of str
        Further columns, which are returned as they are where the file has them.
    """
    if isinstance(columns, int):
        if not is_libsvm(path):
            raise DataError(f"the model was made from LIBSVM data; {path.name} must be LIBSVM too")
        X, y = read_libsvm(path, columns)
        return X, {"label": y} if "label" in others else {}
    frame = read_frame(path, reading)
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise DataError(
            f"{path.name} lacks {', '.join(map(shown, missing[:5]))}"
            f"{' and others' if len(missing) > 5 else ''}, which the model was made with; add "
            f"{'it' if len(missing) == 1 else 'them'}, empty where unknown"
        )
    beside = {name: frame[name].to_numpy() for name in others if name in frame.columns}
    return as_features(frame[columns], numbers), beside


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
    found = read_numbers(labels) if len(set(labels)) > 2 else None
    if found is not None:
        _say_how(what, found.how)
        return found.numbers
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
        found = units(labels)
        why = f", with the units {listed(found)}" if len(found) > 1 else ""
        raise DataError(
            f"{what} holds {different} different texts in {labels.size} rows ({shown(labels[0])}, "
            f"say), neither classes nor numbers{why}; write amounts as plain numbers, such as "
            "1234.5"
        )


def _say_how(what: str, how: str) -> None:
    warnings.warn(f"{what} is read as numbers: {how}", stacklevel=4)


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


def as_features(
    frame: pd.DataFrame, numbers: set[Any] | None = None, leave_out: str = LEAVE_OUT
) -> pd.DataFrame:
    """Numbers, truth values and dates as floats, everything else as text; gaps stay gaps.

    Parameters
    ----------
    frame : DataFrame
    numbers : set, default=None
        Names of the columns that are numbers, however they are written; None for those that look
        so, which is said in a warning.
    leave_out : str
        What to do with a column that cannot be used; {} stands for its name.
    """
    import pandas as pd

    numeric = columns_of(frame, _holds_numbers)
    names = frame.columns[numeric]
    # all at once: a table may have a hundred thousand columns
    values = frame.loc[:, numeric].to_numpy(dtype=float, na_value=np.nan)
    remedy = "correct it, or leave it empty"
    _check_sizes(values, lambda place: f"column {shown(names[place])}", remedy)
    found = pd.DataFrame(values, columns=names)
    if numeric.all():
        return found
    texts = _as_texts(frame.loc[:, ~numeric], numbers, leave_out)
    return pd.concat([found, texts], axis=1)[list(frame.columns)]


def _as_texts(frame: pd.DataFrame, numbers: set[Any] | None, leave_out: str) -> pd.DataFrame:
    """Columns as objects, texts or gaps, or as the numbers they stand for."""
    import pandas as pd

    there = frame.notna().to_numpy()
    columns: dict[Any, Any] = {}
    for place, name in enumerate(frame.columns):
        what, remedy = f"column {shown(name)}", f", or {leave_out.format(shown(name))}"
        rows = np.flatnonzero(there[:, place])
        known = None if numbers is None else name in numbers
        found = None if known is False else _as_numbers(frame.iloc[:, place], rows, what, known)
        if found is None:
            found = np.full(len(frame), np.nan, dtype=object)
            values = frame.iloc[:, place].to_numpy(dtype=object)[rows]
            _refuse_nested(values, what, remedy)
            found[rows] = [str(value) for value in values]
            if known is None and (frame.dtypes.iloc[place].kind == "m" or _dates(found[rows])):
                raise DataError(f"{what} {DATES}{remedy}")
        columns[name] = pd.Series(found, dtype=found.dtype)
    return pd.DataFrame(columns)


def _dates(texts: Array) -> bool:
    return all_match(DATE, texts)


def _as_numbers(column: pd.Series, rows: Array, what: str, known: bool | None) -> Array | None:
    """Dates as days, and texts that are written numbers; None for anything else."""
    found = days(column)
    if found is not None:
        if known is None:
            _say_how(what, f"days since 1970, because it holds dates ({column.iloc[rows[0]]}, say)")
        return found
    texts = column.to_numpy(dtype=object)[rows]
    if not all(isinstance(one, str) for one in texts):
        return None
    read = read_numbers(texts) if known or len(set(texts)) > 2 else None
    if read is None:
        return None
    if known is None:
        _say_how(what, read.how)
    numbers = np.full(len(column), np.nan)
    numbers[rows] = read.numbers
    return numbers


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
    for name in _counting(X):
        warnings.warn(
            f"column {shown(name)} looks like a number of the row, which says nothing of new ones, "
            f"and is used; if it is one, leave it out with --id {shown(name)}",
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
                f"ones; leave it out with --drop {shown(name)}, or --id if it names the rows",
                stacklevel=3,
            )


def _counting(X: pd.DataFrame) -> list[Any]:
    """Columns that number the rows; only those whose name or first values say so are looked at."""
    if len(X) <= 10:
        return []
    floats = X.columns[columns_of(X, lambda kind: kind.kind == "f")]
    steps = np.diff(X[floats].iloc[:3].to_numpy(), axis=0)
    begun = (steps == 1.0).all(axis=0)
    likely = (
        name
        for name, counts in zip(floats, begun, strict=True)
        if counts or ID.fullmatch(str(name))
    )
    return [name for name in likely if _numbers_the_rows(str(name), X[name].to_numpy())]


def _numbers_the_rows(name: str, values: Array) -> bool:
    """Whole numbers, another one in every row: named like an id, or counting up by one."""
    n = values.size
    if not bool((values == np.round(values)).all()):
        return False
    if ID.fullmatch(name):
        return bool(np.unique(values).size == n)
    return n >= COUNTED and values[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all())
