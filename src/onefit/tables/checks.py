"""Notes on columns that probably should not be used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from onefit._frames import columns_of, filled, listed, may_hold_text, shown
from onefit.written import odd_cells

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["mistakes", "names_the_rows"]

#: names of columns that number or name the rows
ID = re.compile(r"(.*[_ .-])?(id|ids|index|idx|key|uuid|nr|no)|row|row_?number|.*[a-z]I[Dd]", re.I)
#: numbers that often stand for a missing value
NUMBERS_FOR_MISSING = (-99.0, -999.0, -9999.0, -99999.0, 9999.0, 99999.0, 999999.0)
#: from this number of rows, a column 1, 2, 3 ... numbers them, whatever its name
MIN_COUNTED_ROWS = 50
#: from this number of rows, a column may name them
MIN_NAMED_ROWS = 11


def mistakes(X: pd.DataFrame) -> list[str]:
    """A note for each column that probably should not be used."""
    notes = [
        f"a column without a name is used as {name!r}; drop it if it numbers the rows"
        for name in X.columns
        if str(name).startswith("Unnamed: ")
    ]
    empty = X.columns[X.isna().all().to_numpy()]
    if len(empty):
        hold, are = ("holds", "is") if len(empty) == 1 else ("hold", "are")
        notes.append(f"{listed(empty)} {hold} no value in any row, and {are} not used")
    notes += [
        f"column {shown(name)} holds {code:g} in {count} rows, far from its other values; if that "
        "stands for a missing value, leave these cells empty"
        for name, code, count in _sentinels(X)
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


def _sentinels(X: pd.DataFrame) -> list[tuple[Any, float, int]]:
    """Columns whose smallest or largest value is a repeated code, further away than their range."""
    found, names = [], X.columns[columns_of(X, lambda kind: kind.kind == "f")].tolist()
    for end in (np.fmin, np.fmax):
        ends = end.reduce(X[names].to_numpy(), axis=0)
        for place in np.flatnonzero(np.isin(ends, NUMBERS_FOR_MISSING)).tolist():
            values, code = X[names[place]].to_numpy(), float(ends[place])
            others = values[~np.isnan(values) & (values != code)]
            count = int((values == code).sum())
            if count > 1 and others.size and np.abs(others - code).min() > np.ptp(others):
                found.append((names[place], code, count))
    return found


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
