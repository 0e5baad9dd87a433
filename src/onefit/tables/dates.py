"""Dates as people write them, as days since 1970: 2021-03-05, 5.3.2021, 03/05/2021 14:30.

A column is read as a whole. Where its dates end in the year, day or month may stand first: a number
above 12 in one of the two places settles that for the whole column, and so does a point between the
numbers, which everybody writes with the day first. A column such as 01/02/2021, 03/04/2021 leaves
it open and is refused, unless the caller says which it is, or the model that it is read for was
made from a column that settled it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit.files import DataError, columns_of, filled, may_hold_text, shown

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["COMMAND", "PYTHON", "Dates", "Words", "days", "first_undated"]

YEAR_FIRST = re.compile(r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})([ T]\d.*)?")
YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})([ T]\d.*)?")
MONTHS = 12
DAY = 86400.0


class Words(NamedTuple):
    """What to do about a column, in the words of the caller; {} stands for the column's name."""

    leave_out: str
    which: str


COMMAND = Words("leave it out with --drop {}", "--dayfirst or --monthfirst")
PYTHON = Words("leave that column out", "dayfirst=True or dayfirst=False")


@dataclass(frozen=True)
class Dates:
    """What is known of columns whose dates end in the year.

    Attributes
    ----------
    known : dict
        Whether the day stands first, by the name of the column.
    asked : bool or None
        The same for columns that are not known and leave it open; None refuses those.
    """

    known: Mapping[Any, bool] = field(default_factory=dict)
    asked: bool | None = None

    def of(self, name: Any, column: pd.Series, words: Words = COMMAND) -> bool | None:
        """Whether the day stands first; None where that is no question."""
        if name in self.known:
            return self.known[name]
        return _order(filled(column), self.asked, f"column {shown(name)}", words)

    def settled(self, frame: pd.DataFrame, words: Words = COMMAND) -> Dates:
        """The same of all columns of a table for which it is a question."""
        names = frame.columns[columns_of(frame, may_hold_text)]
        orders = {name: self.of(name, frame[name], words) for name in names}
        return Dates({name: one for name, one in orders.items() if one is not None})


def _order(values: Array, asked: bool | None, what: str, words: Words) -> bool | None:
    dates = _year_last(values)
    if not dates:
        return None
    day_first = next((one[0] for one in dates if int(one[1]) > MONTHS), None)
    month_first = next((one[0] for one in dates if int(one[3]) > MONTHS), None)
    if day_first and day_first == month_first:
        return None
    if day_first and month_first:
        raise DataError(
            f"{what} holds {day_first!r} and {month_first!r}, with day and month in different "
            "places; write dates in one way, as 2021-03-05, say"
        )
    if day_first or month_first or dates[0][2] == ".":
        return not month_first
    if asked is None:
        raise DataError(f"{what} {_open(dates)}; say which with {words.which}")
    return asked


def _year_last(values: Array) -> list[re.Match[str]]:
    """The dates that values are; none if one of them is no date that ends in the year."""
    found = []
    for value in values:
        match = YEAR_LAST.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            return []
        found.append(match)
    return found


def _open(dates: list[re.Match[str]]) -> str:
    """The two readings of a column's dates, by one of them that makes a difference."""
    import calendar

    one = next((one for one in dates if int(one[1]) != int(one[3])), dates[0])
    first, second = int(one[1]), int(one[3])
    months = calendar.month_name
    return (
        f"holds dates such as {one[0]!r}, which is {first} {months[second]} if the day stands "
        f"first, and {second} {months[first]} if the month does"
    )


def days(column: pd.Series, dayfirst: bool | None = None) -> Array | None:
    """Days since 1970 of a column of dates, NaN for gaps; None if it holds no dates.

    Parameters
    ----------
    column : Series
    dayfirst : bool, default=None
        Of dates that end in the year; None takes none of these.
    """
    import pandas as pd

    if getattr(column.dtype, "kind", "") != "M":
        first = next(iter(filled(column)), None)
        if _rewritten(first, dayfirst) is None:
            return None
    moments = _moments(column, dayfirst)
    if moments.notna().sum() < column.notna().sum():
        return None
    since = (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return np.asarray(since.to_numpy(dtype=float) / DAY)


def first_undated(column: pd.Series, dayfirst: bool) -> int:
    """The place of the first value that is no date in this order."""
    undated = _moments(column, dayfirst).isna().to_numpy()
    return int(np.argmax(undated & column.notna().to_numpy()))


def _moments(column: pd.Series, dayfirst: bool | None) -> Any:
    """Dates as pandas has them; what is none becomes a gap."""
    import pandas as pd

    if getattr(column.dtype, "kind", "") == "M":
        return pd.to_datetime(column, utc=True)
    texts = [_rewritten(one, dayfirst) for one in column.to_numpy(dtype=object)]
    # "mixed": the time may be written in several ways, 2:30 PM or 14:30:05
    return pd.to_datetime(pd.Series(texts, dtype=object), format="mixed", utc=True, errors="coerce")


def _rewritten(text: Any, dayfirst: bool | None) -> str | None:
    """A date as year-month-day, whatever its own order; None for anything else."""
    if not isinstance(text, str):
        return None
    match = YEAR_FIRST.fullmatch(text)
    if match is not None:
        year, _, month, day, time = match.groups()
    else:
        match = YEAR_LAST.fullmatch(text) if dayfirst is not None else None
        if match is None:
            return None
        day, _, month, year, time = match.groups()
        if not dayfirst:
            day, month = month, day
    # pandas would take 2021-13-05 for a date with the month last
    return f"{year}-{month:0>2}-{day:0>2}{time or ''}" if int(month) <= MONTHS else None
