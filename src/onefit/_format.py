"""Numbers, times, sizes and parameters as a reader expects them: the formatter of all output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = [
    "GIB",
    "MAX_CELL",
    "aligned",
    "cell",
    "count",
    "decimals",
    "duration",
    "is_missing",
    "labels",
    "memory",
    "number",
    "percent",
    "settings",
    "shorten",
]

#: missing values of Python, NumPy and pandas, in words
NO_VALUE = ("None", "nan", "NaT", "<NA>")
#: largest number of characters of a text in a table
MAX_CELL = 60
#: numbers outside this range have an exponent
MIN_PLAIN, MAX_PLAIN = 1e-4, 1e9
#: numbers of a column above this multiple of the first do not determine its decimals
MAX_SPREAD = 1e3
#: bytes of a gibibyte
GIB = 1024.0**3


def number(value: Any, digits: int = 3) -> str:
    """A number in a few digits, with thousands separators; other values as text.

    Examples
    --------
    >>> number(17634.2), number(0.04642), number(1e-5), number(1234567), number(float("nan"))
    ('17,600', '0.0464', '1e-05', '1,234,567', '–')
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.number)):
        return "–" if value is None else str(value)
    if isinstance(value, (int, np.integer)):
        return f"{value:,}"
    if not np.isfinite(value):
        return "–" if np.isnan(value) else str(float(value))
    short = f"{value:.{digits}g}"
    size = abs(float(short))
    if size >= MAX_PLAIN or 0.0 < size < MIN_PLAIN:
        return short
    return f"{float(short):,.0f}" if size >= 10.0 ** (digits - 1) else short


def decimals(values: Sequence[float] | np.ndarray, digits: int = 4) -> list[str]:
    """Numbers of a column with as many decimals as the first needs; outliers of it as they are.

    Examples
    --------
    >>> decimals([0.514, 0.51389, -7e9]), decimals([17634.2, 812.0])
    (['0.5140', '0.5139', '-7e+09'], ['17,634', '812'])
    """
    first = abs(values[0]) if len(values) else np.nan
    if not MIN_PLAIN <= first < MAX_PLAIN:
        return [number(one, digits) for one in values]
    places = max(0, digits - 1 - int(np.floor(np.log10(first))))
    return [
        f"{one:,.{places}f}" if abs(one) < MAX_SPREAD * first else number(one, digits)
        for one in values
    ]


def percent(share: float) -> str:
    """A share of one as a percentage, 96.0 %, that no line break divides."""
    return f"{100.0 * share:.1f}\N{NO-BREAK SPACE}%"


def settings(params: Mapping[str, Any]) -> str:
    """Parameters in words: 'kernel=rbf, lam=0.01'."""
    return ", ".join(f"{name}={shorten(number(v), MAX_CELL)}" for name, v in params.items())


def labels(values: Sequence[Any]) -> list[str]:
    """Labels of values, in enough digits to differ."""
    short = [number(value) for value in values]
    return short if len(set(short)) == len(short) else [str(value) for value in values]


def shorten(text: Any, most: int = 24) -> str:
    """The beginning of a text."""
    text = str(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def is_missing(value: Any) -> bool:
    """Whether a value is that of an empty cell, of whatever library."""
    return not isinstance(value, str) and str(value) in NO_VALUE


def cell(value: Any, plain: bool = False) -> str:
    """A value of the user's table: dates without an empty time, ids and years as they are."""
    if is_missing(value):
        return "–"
    if hasattr(value, "isoformat") or isinstance(value, np.datetime64):
        return str(value).replace("T", " ").removesuffix(" 00:00:00")
    if isinstance(value, (float, np.floating)):
        whole = float(value).is_integer() and abs(float(value)) < MAX_PLAIN
        return cell(int(value), plain) if whole else number(value, 4)
    if isinstance(value, (int, np.integer)) and plain:
        return str(value)
    return shorten(number(value), MAX_CELL)


def count(times: int, noun: str, several: str = "") -> str:
    """How many of something: '1 kernel', '2 matrices'."""
    return f"{times:,} {noun if times == 1 else several or noun + 's'}"


def memory(nbytes: float) -> str:
    """Bytes in the unit that suits them."""
    return f"{nbytes / GIB:.2f} GiB" if nbytes >= 0.1 * GIB else f"{nbytes / 1024**2:.1f} MiB"


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 1.0:
        return f"{1e3 * seconds:.3g} ms"
    for unit, name in ((60.0, "s"), (3600.0, "min")):
        if seconds < 2.0 * unit:
            return f"{seconds / (unit / 60.0):.3g} {name}"
    return f"{seconds / 3600.0:.3g} h" if seconds < 3.6e6 else f"{seconds / 3600.0:.1e} h"


def aligned(head: list[str], rows: list[list[str]]) -> list[str]:
    """Lines of a table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:],
                                                                    strict=True))])
        for row in (head, *rows)
    ]  # fmt: skip
