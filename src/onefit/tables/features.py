"""Features: numbers as floats, however they are written, dates as days, everything else as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.files import DataError, all_match, columns_of, place_of, shown
from onefit.tables.dates import COMMAND, Dates, Words, days, first_undated
from onefit.tables.values import (
    DATE,
    DATES,
    check_sizes,
    holds_numbers,
    refuse_nested,
    say_how,
)
from onefit.written import read_numbers

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["as_features"]


def as_features(
    frame: pd.DataFrame,
    numbers: set[Any] | None = None,
    words: Words = COMMAND,
    dates: Dates = Dates(),  # noqa: B008
) -> pd.DataFrame:
    """Numbers, truth values and dates as floats, everything else as text; gaps stay gaps.

    Parameters
    ----------
    frame : DataFrame
    numbers : set, default=None
        Names of the columns that are numbers, however they are written; None for those that look
        so, which is said in a warning.
    words : Words
        What to do with a column that cannot be used.
    dates : Dates
        Which columns of dates have the day first.
    """
    import pandas as pd

    numeric = columns_of(frame, holds_numbers)
    names = frame.columns[numeric]
    # all at once: a table may have a hundred thousand columns
    values = frame.loc[:, numeric].to_numpy(dtype=float, na_value=np.nan)
    remedy = "correct it, or leave it empty"
    check_sizes(values, lambda place: f"column {shown(names[place])}", remedy, frame)
    found = pd.DataFrame(values, columns=names, index=frame.index)
    if numeric.all():
        return found
    texts = _as_texts(frame.loc[:, ~numeric], numbers, words, dates)
    return pd.concat([found, texts], axis=1)[list(frame.columns)]


def _as_texts(
    frame: pd.DataFrame, numbers: set[Any] | None, words: Words, dates: Dates
) -> pd.DataFrame:
    """Columns as objects, texts or gaps, or as the numbers they stand for."""
    import pandas as pd

    there = frame.notna().to_numpy()
    columns: dict[Any, Any] = {}
    for place, name in enumerate(frame.columns):
        what, remedy = f"column {shown(name)}", f", or {words.leave_out.format(shown(name))}"
        column, rows = frame.iloc[:, place], np.flatnonzero(there[:, place])
        known = None if numbers is None else name in numbers
        found = None
        if known is not False:
            found = _as_numbers(column, rows, what, known, dates.of(name, column, words))
        if found is None:
            found = np.full(len(frame), np.nan, dtype=object)
            values = column.to_numpy(dtype=object)[rows]
            refuse_nested(values, what, remedy)
            found[rows] = [str(value) for value in values]
            if known is None and (column.dtype.kind == "m" or all_match(DATE, found[rows])):
                raise DataError(f"{what} {DATES}{remedy}")
        columns[name] = pd.Series(found, dtype=found.dtype, index=frame.index)
    return pd.DataFrame(columns, index=frame.index)


def _as_numbers(
    column: pd.Series, rows: Array, what: str, known: bool | None, dayfirst: bool | None
) -> Array | None:
    """Dates as days, and texts that are written numbers; None for anything else."""
    found = days(column, dayfirst)
    if found is not None:
        if known is None:
            order = {None: "", True: ", day first", False: ", month first"}[dayfirst]
            example = f"{column.iloc[rows[0]]}, say{order}"
            say_how(what, f"days since 1970, because it holds dates ({example})")
        return found
    if known and dayfirst is not None:
        place, first = first_undated(column, dayfirst), "day" if dayfirst else "month"
        raise DataError(
            f"{what} holds {shown(column.iloc[place])} in {place_of(column, place)}, which is no "
            f"date with the {first} first, as the model was made with; correct it, or say how it "
            "is written"
        )
    texts = column.to_numpy(dtype=object)[rows]
    if not all(isinstance(one, str) for one in texts):
        return None
    read = read_numbers(texts) if known or len(set(texts)) > 2 else None
    if read is None:
        return None
    if known is None:
        say_how(what, read.how)
    numbers = np.full(len(column), np.nan)
    numbers[rows] = read.numbers
    return numbers
