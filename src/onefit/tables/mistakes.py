"""Columns that are used as they stand, and were hardly meant so: each gets a warning."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.files import columns_of, filled, may_hold_text, place_of, shown
from onefit.tables.values import odd_word

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["warn_of_mistakes"]

#: names of columns that number or name the rows, and rows from which 1, 2, 3 ... do so by any name
ID = re.compile(r"(.*[_ .-])?(id|ids|index|idx|key|uuid|nr|no)|row|row_?number|.*[a-z]I[Dd]", re.I)
COUNTED = 50


def warn_of_mistakes(X: pd.DataFrame) -> None:
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
        odd = odd_word(texts)
        if odd is not None:
            warnings.warn(
                f"column {shown(name)} holds numbers but for {shown(texts[odd])} in "
                f"{place_of(X, rows[odd])}, so it is used as text; correct it, or leave it empty",
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
