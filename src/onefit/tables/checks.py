"""Checks of the target, and notes on columns that probably should not be used."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit._frames import all_match, columns_of, filled, listed, may_hold_text, place_of, shown
from onefit._validation import DataError
from onefit.written import (
    DATE,
    DATES,
    cells_at,
    check_sizes,
    holds_numbers,
    odd_cells,
    read_numbers,
    refuse_nested,
    units,
)

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["check_target", "mistakes", "names_the_rows"]

#: names of columns that number or name the rows
ID = re.compile(r"(.*[_ .-])?(id|ids|index|idx|key|uuid|nr|no)|row|row_?number|.*[a-z]I[Dd]", re.I)
#: from this number of rows, a column 1, 2, 3 ... numbers them, whatever its name
MIN_COUNTED_ROWS = 50
#: from this number of rows, a column may name them
MIN_NAMED_ROWS = 11


def check_target(values: Any, name: str) -> Array:
    """The target as numbers or labels; refuses gaps, a single value, and texts without repeats."""
    import pandas as pd

    y = pd.Series(np.asarray(values), index=getattr(values, "index", None))
    what = f"the target {shown(name)}"
    refuse_nested(filled(y), what)
    gaps = np.flatnonzero(y.isna().to_numpy())
    if gaps.size == y.size:
        raise DataError(f"{what} has no value in any row; name another with --target")
    if gaps.size:
        raise DataError(
            f"{what} has no value in {gaps.size} of {y.size} rows (the first is "
            f"{place_of(y.index, gaps[0])}); remove these rows"
        )
    if y.nunique() < 2:
        raise DataError(f"{what} has the value {shown(y.iloc[0])} only; there is nothing to learn")
    if holds_numbers(y.dtype) and not pd.api.types.is_bool_dtype(y):
        numbers = y.to_numpy(dtype=float)
        check_sizes(numbers[:, None], [name], y.index, "the target", "remove that row")
        return y.to_numpy() if y.dtype.kind in "iu" else numbers
    labels = y.astype(str).to_numpy(dtype=object)
    if y.dtype.kind in "mM" or all_match(DATE, labels):
        raise DataError(f"{what} {DATES}")
    found = read_numbers(labels) if len(set(labels)) > 2 else None
    if found is not None:
        warnings.warn(f"{what} is read as numbers: {found.how}", stacklevel=3)
        return found.numbers
    _check_labels(labels, what, y.index)
    return labels


def _check_labels(labels: Array, what: str, index: Any) -> None:
    """Refuse text that was meant to be numbers, and text that hardly repeats."""
    odd, different = odd_cells(labels), len(set(labels))
    if odd.size:
        raise DataError(
            f"{what} holds numbers but for {cells_at(labels, index, odd)}; correct it, or remove "
            "that row"
        )
    if different > 0.5 * labels.size and labels.size > 10:
        found = units(labels)
        why = f", with the units {listed(found)}" if len(found) > 1 else ""
        raise DataError(
            f"{what} holds {different} different texts in {labels.size} rows ({shown(labels[0])}, "
            f"say), neither classes nor numbers{why}; write amounts as plain numbers, such as "
            "1234.5"
        )


def mistakes(X: pd.DataFrame) -> list[str]:
    """A note for each column that probably should not be used."""
    notes = [
        f"a column without a name is used as {name!r}; drop it if it numbers the rows"
        for name in X.columns
        if str(name).startswith("Unnamed: ")
    ]
    notes += [
        f"column {shown(name)} looks like a number of the row, which says nothing about new rows, "
        "and is used; drop it if it is one"
        for name in _counting(X)
    ]
    return notes + [
        f"column {shown(name)} holds another text in every row and is used by the letters that "
        "its texts share; drop it if it names the rows"
        for name in _different(X)
    ]


def names_the_rows(X: pd.DataFrame) -> list[Any]:
    """Columns that number or name the rows."""
    return [*_counting(X), *_different(X)]


def _different(X: pd.DataFrame) -> list[Any]:
    """Columns with another text in every row, except numbers with a word among them."""
    names = X.columns[columns_of(X, may_hold_text)] if len(X) >= MIN_NAMED_ROWS else ()
    found = [name for name in names if len(set(filled(X[name]))) == len(X)]
    return [name for name in found if not odd_cells(filled(X[name])).size]


def _counting(X: pd.DataFrame) -> list[Any]:
    """Columns of whole numbers that differ in every row: named like an id, or counting by one."""
    if len(X) < MIN_NAMED_ROWS:
        return []
    floats = X.columns[columns_of(X, lambda kind: kind.kind == "f")]
    # the first values exclude most of what may be a hundred thousand columns
    begun = (np.diff(X[floats].iloc[:3].to_numpy(), axis=0) == 1.0).all(axis=0)
    found = []
    for name, counts in zip(floats, begun, strict=True):
        named = ID.fullmatch(str(name))
        if not (named or (counts and len(X) >= MIN_COUNTED_ROWS)):
            continue
        values = X[name].to_numpy()
        whole = bool((values == np.round(values)).all())
        steps = values[0] in (0.0, 1.0) and bool((np.diff(values) == 1.0).all())
        if whole and (np.unique(values).size == len(X) if named else steps):
            found.append(name)
    return found
