"""Columns that are used, and probably should not be: each gets a note."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.files import columns_of, filled, may_hold_text, shown
from onefit.tables.values import odd_cells

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["mistakes", "names_the_rows"]

#: names of columns that number or name the rows, and rows from which 1, 2, 3 ... do so by any name
ID = re.compile(r"(.*[_ .-])?(id|ids|index|idx|key|uuid|nr|no)|row|row_?number|.*[a-z]I[Dd]", re.I)
COUNTED = 50


def mistakes(X: pd.DataFrame) -> list[str]:
    """Columns that are used, and probably should not be: a sentence for each."""
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
        f"column {shown(name)} holds another text in every row, which says nothing about new rows; "
        "drop it"
        for name in _different(X)
    ]


def names_the_rows(X: pd.DataFrame) -> list[Any]:
    """Columns that number or name the rows."""
    return [*_counting(X), *_different(X)]


def _different(X: pd.DataFrame) -> list[Any]:
    """Columns with another text in every row, but for numbers with a word among them."""
    names = X.columns[columns_of(X, may_hold_text)] if len(X) > 10 else ()
    found = [name for name in names if len(set(filled(X[name]))) == len(X)]
    return [name for name in found if not odd_cells(filled(X[name])).size]


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
