"""Dates as people write them, as days since 1970: 2021-03-05, 5.3.2021, 5-Mar-2021 14:30.

A column is read as a whole. Where its dates end in the year, day or month may stand first: a number
above 12 in one of the two places settles that for the whole column, and so does a point between the
numbers, which everybody writes with the day first. A column such as 01/02/2021, 03/04/2021 leaves
it open and is refused, unless the caller says which it is, or the model that it is read for was
made from a column that settled it. A month that is named in English leaves nothing open.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.files import DataError, filled

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["MONTH_NAME", "day_first", "days", "is_dated"]

YEAR_FIRST = re.compile(r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})([ T]\d.*)?")
YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})([ T]\d.*)?")
MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
MONTH_NAME = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
NAMED = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"(?P<day>\d{{1,2}})[-/ .]{{0,2}}(?P<month>{MONTH_NAME})[-/ ,]{{1,2}}(?P<year>\d{{4}})"
        r"(?P<time>[ T]\d.*)?",
        rf"(?P<month>{MONTH_NAME}) ?(?P<day>\d{{1,2}}),? (?P<year>\d{{4}})(?P<time>[ T]\d.*)?",
        rf"(?P<year>\d{{4}})[-/ ](?P<month>{MONTH_NAME})[-/ ](?P<day>\d{{1,2}})"
        r"(?P<time>[ T]\d.*)?",
    )
)
MONTHS = len(MONTH_NAMES)
DAY = 86400.0


def day_first(column: pd.Series, asked: bool | None, what: str) -> bool | None:
    """Whether the day stands first in dates that end in the year; None where that is no question.

    ``asked`` counts where the column leaves it open; None refuses such a column.
    """
    values = filled(column)
    dates = _year_last(values)
    if not dates:
        return None
    with_day = next((one[0] for one in dates if int(one[1]) > MONTHS), None)
    with_month = next((one[0] for one in dates if int(one[3]) > MONTHS), None)
    if with_day and with_day == with_month:
        return None
    if with_day and with_month:
        raise DataError(
            f"{what} holds {with_day!r} and {with_month!r}, with day and month in different "
            "places; write dates in one way, as 2021-03-05, say"
        )
    if with_day or with_month or dates[0][2] == ".":
        return not with_month
    if asked is None:
        raise DataError(f"{what} {_open(dates)}; set dayfirst to say which")
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
    one = next((one for one in dates if int(one[1]) != int(one[3])), dates[0])
    first, second = int(one[1]), int(one[3])
    months = [name.capitalize() for name in MONTH_NAMES]
    return (
        f"holds dates such as {one[0]!r}, which is {first} {months[second - 1]} if the day stands "
        f"first, and {second} {months[first - 1]} if the month does"
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


def is_dated(column: pd.Series, dayfirst: bool | None) -> Array:
    """Which values are dates in this order."""
    return np.asarray(_moments(column, dayfirst).notna().to_numpy())


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
    named = next((found for one in NAMED if (found := one.fullmatch(text))), None)
    if match is not None:
        year, _, month, day, time = match.groups()
    elif named is not None:
        year, day, time, month = (*named.group("year", "day", "time"), _month(named["month"]))
    else:
        match = YEAR_LAST.fullmatch(text) if dayfirst is not None else None
        if match is None:
            return None
        day, _, month, year, time = match.groups()
        if not dayfirst:
            day, month = month, day
    if not month:
        return None
    # pandas would take 2021-13-05 for a date with the month last
    return f"{year}-{month:0>2}-{day:0>2}{time or ''}" if int(month) <= MONTHS else None


def _month(name: str) -> str:
    """The number of a month, by its name or the beginning of it; nothing for another word."""
    start = name.lower().rstrip(".")
    return next((str(i + 1) for i, one in enumerate(MONTH_NAMES) if one.startswith(start)), "")
