"""What features and targets have in common: sizes that fit, texts that are meant as numbers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.files import DataError, place_of

Array = NDArray[Any]

__all__ = [
    "DATE",
    "DATES",
    "check_sizes",
    "holds_numbers",
    "odd_word",
    "refuse_nested",
    "say_how",
]

#: beyond these, squares and their sums are no finite numbers any more, or zero
LARGEST, SMALLEST = 1e150, 1e-150
DATE = re.compile(
    r"(\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4})([ T]\d.*)?|\d{1,2}:\d\d(:\d.*)?"
)
DATES = "holds dates or times; turn it into numbers (days since a date, say)"


def holds_numbers(kind: Any) -> bool:
    """Whether a column of this type holds numbers or truth values."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind))


def check_sizes(numbers: Array, name: Callable[[int], str], remedy: str, rows: Any = None) -> None:
    """Refuse columns with numbers that are infinite, or whose squares would be.

    ``rows`` is the table that they are from, which knows the lines of its file.
    """
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
    raise DataError(f"{what} is {word} in {place_of(rows, row)}; {hint}")


def refuse_nested(values: Array, what: str, remedy: str = "") -> None:
    """Refuse a column of lists and the like."""
    if values.size and isinstance(values[0], (list, tuple, dict, np.ndarray)):
        raise DataError(
            f"{what} is nested; spread it over plain columns, one number or text each{remedy}"
        )


def odd_word(texts: Array) -> int | None:
    """The place of the first text that is no number, where nearly all the others are."""
    import pandas as pd

    words = np.flatnonzero(pd.isna(pd.to_numeric(texts, errors="coerce")))
    return int(words[0]) if 0 < words.size <= 0.1 * texts.size else None


def say_how(what: str, how: str) -> None:
    """Warn that a column of texts is read as numbers."""
    warnings.warn(f"{what} is read as numbers: {how}", stacklevel=4)
