"""Columns as people write them: 152,000.00, 1.234,5, 152 000, $151,000, (12.50), 12 %, 26-May-1994.

Functions of texts; :class:`onefit.tables.WrittenNumbers` applies them to the columns of a table.

- **Numbers.** All values of a column have the same unit and the same use of comma and point: 1,500
  beside 1,250.75 is one thousand five hundred, beside 1,5 it is one and a half. If the column does
  not decide it, the comma separates thousands, and a note says so. Brackets are a minus sign.
- **Dates** become days since 1970. If they end in the year, day or month may come first: a number
  above 12 in one of the two places decides it for the whole column, and so does a point between the
  numbers, which always means day first. Otherwise the column is refused without ``dayfirst``.
- **Gap codes** (n.a., -, NULL) are missing values among numbers or dates, and words among words.
- Everything else is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit._frames import place_of, shown
from onefit._validation import DataError

Array = NDArray[Any]

__all__ = [
    "DATE", "DATES", "MAX_LABELS", "UNREAD_DATES", "Read", "cells_at", "check_sizes", "date_order",
    "days", "gaps_read", "holds_numbers", "is_gap", "odd_cells", "read_as", "read_numbers", "units",
]  # fmt: skip

#: written for a missing number or date, in lower case
GAP_CODES = frozenset({
    "", "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "?", "??", "*", "na", "n/a", "n.a.",
    "n.a", "n. a.", "#n/a", "#na", "<na>", "nan", "null", "none", "nil", "nd", "n/d", "n.d.",
    "k.a.", "k. a.", "missing", "(missing)", "unknown", "not available", "not applicable",
    "no data", "empty", "(empty)", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!",
})  # fmt: skip
WRITTEN_NUMBER = re.compile(
    r"([$€£¥]|[A-Z]{3}(?= ))?\s*([+\-\u2212]?)\s*([$€£¥]?)\s*([\d.,]*\d)\s*([A-Za-zµ°%€£¥/²³]{0,8})"
)
#: a blank or an apostrophe between groups of three digits
GROUPED = re.compile(r"(?<!\d)[1-9]\d{0,2}([ '\u2019\u00a0\u2009\u202f]\d{3})+(?!\d)")
#: digits with a decimal point, and with a decimal comma; thousands do not begin with 0
POINT = re.compile(r"\d*\.?\d+|[1-9]\d{0,2}(,\d{3})+(\.\d+)?")
COMMA = re.compile(r"\d+(,\d+)?|[1-9]\d{0,2}(\.\d{3})+(,\d+)?")
PLAIN = re.compile(r"\d*\.?\d+")
#: beyond these sizes, squares and their sums overflow or underflow
MAX_SIZE, MIN_SIZE = 1e150, 1e-150
#: at most this share of other words among numbers are mistakes; with more they are all words
MAX_ODD_SHARE = 0.1
#: different values up to which numbers may be labels
MAX_LABELS = 20
#: cells that a message names
MAX_NAMED_CELLS = 5

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
          "october", "november", "december")  # fmt: skip
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
CLOCK = r"(?P<time>[ T]\d.*)?"
#: day and month may be swapped where both are numbers and the year comes last
YEAR_LAST = re.compile(r"(?P<day>\d{1,2})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<year>\d{4})"
                       + CLOCK)  # fmt: skip
ORDERED = tuple(
    re.compile(pattern + CLOCK, re.I)
    for pattern in (
        r"(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        r"(?P<year>\d{4})-(?P<month>\d{2})(?P<day>)(?! |T)",
        rf"(?P<day>\d{{1,2}})[-/ .]{{0,2}}(?P<month>{MONTH})[-/ ,]{{1,2}}(?P<year>\d{{4}})",
        rf"(?P<month>{MONTH}) ?(?P<day>\d{{1,2}}),? (?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}})[-/ ](?P<month>{MONTH})[-/ ](?P<day>\d{{1,2}})",
    )
)
#: anything that looks like a date or a time, also those that are refused
DATE = re.compile(
    r"(\d{1,4}[-/]\d{1,2}[-/]\d{1,4}|\d{1,2}\.\d{1,2}\.\d{4})([ T]\d.*)?|\d{1,2}:\d\d(:\d.*)?"
    rf"|\d{{1,4}}[-/ .]{{0,2}}{MONTH}[-/ ,]{{1,2}}\d{{1,4}}([ T]\d.*)?",
    re.I,
)
DATES = "holds dates or times; turn it into numbers (days since a date, say)"
UNREAD_DATES = (
    "holds dates or times in a form that is not read; write dates as 2021-03-05, times as numbers "
    "(hours, say)"
)


# --------------------------------------------------------------------------- numbers


class Read(NamedTuple):
    """The numbers of a column, and how they are written.

    ``comma`` is whether the comma is the decimal mark; None if no value decides it.
    """

    numbers: Array
    how: str
    comma: bool | None
    unit: str


def is_gap(text: str) -> bool:
    """Whether a text is a gap code, in a column of numbers or dates."""
    return text.strip().lower() in GAP_CODES


def _parts(text: str) -> tuple[float, str, str] | None:
    """Sign, digits with their commas and points, and unit; None for anything else."""
    text = text.strip()
    if text[:1] == "(" and text[-1:] == ")":  # as accountants write losses
        text = f"-{text[1:-1]}"
    text = GROUPED.sub(lambda found: re.sub(r"\D", "", found[0]), text)
    found = WRITTEN_NUMBER.fullmatch(text)
    if found is None:
        return None
    before, sign, after, digits, unit = found.groups()
    return -1.0 if sign in ("-", "\u2212") else 1.0, digits, (before or after or "") + unit


def _value(digits: str, comma: bool) -> float:
    return float(digits.replace(".", "").replace(",", ".") if comma else digits.replace(",", ""))


def read_numbers(texts: Array) -> Read | None:
    """The numbers written as text; None if a text is not a number, or units differ."""
    parts = [_parts(str(one)) for one in texts]
    known = [one for one in parts if one is not None]
    if not known or len(known) < len(parts) or len({unit for *_, unit in known}) > 1:
        return None
    digits, comma = [one for _, one, _ in known], None
    if not all(map(PLAIN.fullmatch, digits)):
        comma = not all(map(POINT.fullmatch, digits))
        if comma and not all(map(COMMA.fullmatch, digits)):
            return None
    numbers = np.array([sign * _value(one, bool(comma)) for sign, one, _ in known])
    telling = next((i for i, one in enumerate(texts) if not PLAIN.fullmatch(str(one))), 0)
    how = f"{str(texts[telling]).strip()!r} as {numbers[telling]:.15g}"
    return Read(numbers, how, comma, known[0][2])


def read_as(text: str, comma: bool, unit: str) -> float | None:
    """One number, written as those of a known column; it may have no unit, but no other one."""
    parts = _parts(text)
    if parts is None:
        try:  # 1.5e-3
            return None if comma else float(text)
        except ValueError:
            return None
    sign, digits, found = parts
    if (found and found != unit) or not (COMMA if comma else POINT).fullmatch(digits):
        return None
    return sign * _value(digits, comma)


def units(texts: Array) -> list[str]:
    """The units in a column of numbers; empty if one of the texts is not a number with a unit."""
    found = [_parts(str(one)) for one in texts]
    return [] if None in found else sorted({one[2] for one in found if one is not None})


# --------------------------------------------------------------------------- dates


def date_order(texts: Array, asked: bool | None, what: str) -> bool | None:
    """Whether the day comes first in dates that end in the year; None for other dates.

    ``asked`` is used if the column does not decide it; None refuses such a column.
    """
    found = []
    for text in texts:
        match = YEAR_LAST.fullmatch(text)
        if match is None:
            return None
        found.append(match)
    with_day = next((one[0] for one in found if int(one["day"]) > len(MONTHS)), None)
    with_month = next((one[0] for one in found if int(one["month"]) > len(MONTHS)), None)
    if not found or (with_day and with_day == with_month):
        return None
    if with_day and with_month:
        raise DataError(
            f"{what} holds {with_day!r} and {with_month!r}, with day and month in different "
            "places; write dates in one way, as 2021-03-05, say"
        )
    if with_day or with_month or all(one["mark"] == "." for one in found):
        return not with_month
    if asked is None:
        one = next((one for one in found if int(one["day"]) != int(one["month"])), found[0])
        first, second = int(one["day"]), int(one["month"])
        names = [name.capitalize() for name in MONTHS]
        raise DataError(
            f"{what} holds dates such as {one[0]!r}, which is {first} {names[second - 1]} if the "
            f"day comes first, and {second} {names[first - 1]} if the month does; set dayfirst to "
            "say which"
        )
    return asked


def days(texts: Array, dayfirst: bool | None = None) -> Array:
    """Days since 1970 of dates, NaN for other texts and, without ``dayfirst``, ambiguous dates."""
    import pandas as pd

    if getattr(texts, "dtype", None) is not None and texts.dtype.kind == "M":
        moments = pd.to_datetime(pd.Series(texts), utc=True)
    else:
        iso = pd.Series([_iso(one, dayfirst) for one in texts], dtype=object)
        # "mixed": the time may be written in several ways, 2:30 PM or 14:30:05
        moments = pd.to_datetime(iso, format="mixed", utc=True, errors="coerce")
    since = (moments - pd.Timestamp(0, tz="UTC")).dt.total_seconds()
    return np.asarray(since.to_numpy(dtype=float) / 86400.0)


def _iso(text: str, dayfirst: bool | None) -> str | None:
    """A date as year-month-day, whatever its own order; None for anything else."""
    match = next((found for one in ORDERED if (found := one.fullmatch(text))), None)
    if match is None and dayfirst is not None:
        match = YEAR_LAST.fullmatch(text)
    if match is None:
        return None
    year, month, day = match["year"], match["month"], match["day"]
    if match.re is YEAR_LAST and not dayfirst:
        month, day = day, month
    if not month.isdigit():
        word = month.lower().rstrip(".")
        month = next((str(i + 1) for i, one in enumerate(MONTHS) if one.startswith(word)), "")
    # pandas would read 2021-13-05 as a date with the month last
    if not month or int(month) > len(MONTHS):
        return None
    return f"{year}-{month:0>2}-{day or 1:0>2}{match['time'] or ''}"


# --------------------------------------------------------------------------- cells


def holds_numbers(kind: Any) -> bool:
    """Whether a column of this type holds numbers or truth values."""
    import pandas as pd

    return bool(pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind))


def cells_at(texts: Array, index: Any, places: Array) -> str:
    """The first of some cells, each with its place, and how many more there are."""
    first = ", ".join(
        f"{shown(texts[i])} in {place_of(index, i)}" for i in places[:MAX_NAMED_CELLS]
    )
    more = len(places) - MAX_NAMED_CELLS
    return first if more <= 0 else f"{first} and {more} more"


def gaps_read(what: str, codes: Array, index: Any, first: int) -> str:
    """A sentence about the cells of a column that hold gap codes."""
    cells = "1 cell is" if codes.size == 1 else f"{codes.size} cells are"
    different = ", ".join(shown(one) for one in sorted(set(codes)))
    return f"{what}: {cells} read as missing ({different}; the first in {place_of(index, first)})"


def check_sizes(numbers: Array, what: Callable[[int], str], index: Any) -> None:
    """Refuse columns with numbers that are infinite, or whose squares would be.

    ``what`` names a column by its place.
    """
    # the largest of each column without a matrix of sizes
    high, low = np.fmax.reduce(numbers, 0, initial=0.0), np.fmin.reduce(numbers, 0, initial=0.0)
    sizes = np.maximum(high, -low)
    wrong = np.flatnonzero((sizes > MAX_SIZE) | ((sizes > 0.0) & (sizes < MIN_SIZE)))
    if wrong.size == 0:
        return
    place = int(wrong[0])
    if sizes[place] < MIN_SIZE:
        raise DataError(f"{what(place)} is too small everywhere; change its unit")
    found = np.abs(numbers[:, place])
    infinite = bool(np.isinf(found).any())
    row = int(np.flatnonzero(np.isinf(found) if infinite else found > MAX_SIZE)[0])
    word, hint = ("infinite", "correct it, or leave it empty") if infinite else (
        "too large", "change its unit")  # fmt: skip
    raise DataError(f"{what(place)} is {word} in {place_of(index, row)}; {hint}")


def odd_cells(texts: Array) -> Array:
    """The places of the few texts that are not numbers, or not dates, where the others are."""
    import pandas as pd

    plain = ~np.isnan(np.asarray(pd.to_numeric(texts, errors="coerce"), dtype=float))
    parts = [None if (one := _parts(str(text))) is None else one[2] for text in texts]
    known = [one for one in parts if one is not None]
    common = max(set(known), key=known.count) if known else ""
    written = np.array([one == common for one in parts], dtype=bool)
    dated = np.array([DATE.fullmatch(str(text)) is not None for text in texts], dtype=bool)
    for good in (plain, written | plain, dated):
        odd = np.flatnonzero(~good)
        if 0 < odd.size <= MAX_ODD_SHARE * texts.size:
            return odd
    return np.empty(0, dtype=np.intp)
