"""What features and targets have in common: sizes that fit, texts that are meant as numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.files import DataError, place_of, shown
from onefit.tables.dates import MONTH_NAME
from onefit.written import number_parts

Array = NDArray[Any]

__all__ = [
    "DATE",
    "DATES",
    "LABELS",
    "cells_at",
    "check_sizes",
    "holds_numbers",
    "odd_cells",
    "refuse_nested",
]

#: beyond these, squares and their sums are no finite numbers any more, or zero
MAX_SIZE, MIN_SIZE = 1e150, 1e-150
#: whole numbers with more values than this are quantities, not labels
LABELS = 20
#: numbers with at most this share of other words among them were meant as numbers
ODD_SHARE = 0.1
#: cells that a message names
NAMED_CELLS = 5
DATE = re.compile(
    r"(\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4})([ T]\d.*)?|\d{1,2}:\d\d(:\d.*)?"
    rf"|\d{{1,4}}[-/ .]{{0,2}}{MONTH_NAME}[-/ ,]{{1,2}}\d{{1,4}}([ T]\d.*)?",
    re.I,
)
DATES = "holds dates or times; turn it into numbers (days since a date, say)"


def holds_numbers(kind: Any) -> bool:
    """Whether a column of this type holds numbers or truth values."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind))


def cells_at(texts: Array, index: Any, places: Array) -> str:
    """The first of some cells, each with its place, and how many more there are."""
    said = ", ".join(f"{shown(texts[i])} in {place_of(index, i)}" for i in places[:NAMED_CELLS])
    more = len(places) - NAMED_CELLS
    return said if more <= 0 else f"{said} and {more} more"


def check_sizes(numbers: Array, name: Callable[[int], str], remedy: str, index: Any) -> None:
    """Refuse columns with numbers that are infinite, or whose squares would be."""
    # the largest of each column without a matrix of sizes
    high, low = (
        reduce(numbers, axis=0, initial=0.0) for reduce in (np.fmax.reduce, np.fmin.reduce)
    )
    sizes = np.maximum(high, -low)
    wrong = np.flatnonzero((sizes > MAX_SIZE) | ((sizes > 0.0) & (sizes < MIN_SIZE)))
    if wrong.size == 0:
        return
    column, what = int(wrong[0]), name(int(wrong[0]))
    if sizes[column] < MIN_SIZE:
        raise DataError(f"{what} is too small everywhere; change its unit")
    found = np.abs(numbers[:, column])
    infinite = bool(np.isinf(found).any())
    row = int(np.flatnonzero(np.isinf(found) if infinite else found > MAX_SIZE)[0])
    word, hint = ("infinite", remedy) if infinite else ("too large", "change its unit")
    raise DataError(f"{what} is {word} in {place_of(index, row)}; {hint}")


def refuse_nested(values: Array, what: str, remedy: str = "") -> None:
    """Refuse a column of lists and the like."""
    if values.size and isinstance(values[0], (list, tuple, dict, np.ndarray)):
        raise DataError(
            f"{what} is nested; spread it over plain columns, one number or text each{remedy}"
        )


def odd_cells(texts: Array) -> Array:
    """The places of the few texts that are no numbers, or no dates, where the others are.

    Empty where there is none, and where they are more than a tenth: then these are words.
    """
    import pandas as pd

    if texts.size == 0:
        return np.empty(0, dtype=np.intp)
    plain = ~pd.isna(pd.to_numeric(texts, errors="coerce"))
    units = [None if (one := number_parts(str(text))) is None else one[2] for text in texts]
    known = [one for one in units if one is not None]
    common = max(set(known), key=known.count) if known else ""
    written = np.array([one == common for one in units], dtype=bool)
    dated = np.array([DATE.fullmatch(str(text)) is not None for text in texts], dtype=bool)
    for good in (plain, written | plain, dated):
        odd = np.flatnonzero(~good)
        if 0 < odd.size <= ODD_SHARE * texts.size:
            return odd
    return np.empty(0, dtype=np.intp)
