"""Numbers as people write them: 152,000.00, 1.234,5, $151,000, 151.0 mg.

A column is read as a whole. All its values must have the same unit, and the same use of comma and
point: 1,500 beside 1,250.75 is one thousand five hundred, beside 1,5 it is one and a half. Where a
column leaves that open, the comma separates thousands; whoever reads it says so.

A gap code (n.a., -, NULL) among numbers or dates is a missing value; among words it is a word.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["Read", "is_gap", "number_parts", "read_as", "read_numbers", "units"]

#: what people write instead of a number or a date that is missing, in lower case
GAP_CODES = frozenset({
    "", "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "?", "??", "*", "na", "n/a", "n.a.",
    "n.a", "n. a.", "#n/a", "#na", "<na>", "nan", "null", "none", "nil", "nd", "n/d", "n.d.",
    "k.a.", "k. a.", "missing", "(missing)", "unknown", "not available", "not applicable",
    "no data", "empty", "(empty)", "#value!", "#div/0!", "#ref!", "#name?", "#num!", "#null!",
})  # fmt: skip

PARTS = re.compile(r"([$€£¥]?)\s*([+-]?)\s*([$€£¥]?)\s*([\d.,]*\d)\s*([A-Za-zµ°%€£¥/²³]{0,8})")
PLAIN = re.compile(r"\d*\.?\d+")
THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
COMMA = re.compile(r"\d+(,\d+)?")
POINTS = re.compile(r"\d{1,3}(\.\d{3})+(,\d+)?")


class Read(NamedTuple):
    """The numbers of a column, and how they were written.

    ``comma`` says whether the comma is the decimal mark; None where no value has a comma, or
    points between thousands, to tell by.
    """

    numbers: Array
    how: str
    comma: bool | None
    unit: str


def is_gap(text: str) -> bool:
    """Whether a text is a gap code, should its column hold numbers or dates."""
    return text.strip().lower() in GAP_CODES


def number_parts(text: str) -> tuple[str, str, str] | None:
    """Sign, digits with their commas and points, and unit; None for anything else."""
    found = PARTS.fullmatch(text.strip())
    if found is None:
        return None
    before, sign, after, digits, unit = found.groups()
    return sign, digits, (before or after) + unit


def read_numbers(texts: Array) -> Read | None:
    """The numbers that texts stand for; None if one of them stands for none, or units differ."""
    found = [number_parts(str(one)) for one in texts]
    parts = [one for one in found if one is not None]
    if not parts or len(parts) < len(texts) or len({unit for _, _, unit in parts}) > 1:
        return None
    digits = [one for _, one, _ in parts]
    comma: bool | None = None
    if not _all(digits, PLAIN):
        comma = not _all(digits, PLAIN, THOUSANDS)
        if comma and not _all(digits, COMMA, POINTS):
            return None
    signs = np.array([-1.0 if sign == "-" else 1.0 for sign, _, _ in parts])
    numbers = signs * np.array([_number(one, bool(comma)) for one in digits])
    how = f"{str(texts[0]).strip()!r} as {numbers[0]:.15g}"
    return Read(numbers, how, comma, parts[0][2])


def read_as(text: str, comma: bool, unit: str) -> float | None:
    """One number, written as those of a column that is known; None where it is not.

    Another unit than the known one is refused; none at all is not.
    """
    parts = number_parts(text)
    if parts is None:
        return None if comma else _plain(text)
    sign, digits, found = parts
    if found and unit and found != unit:
        return None
    if not _all([digits], *((COMMA, POINTS) if comma else (PLAIN, THOUSANDS))):
        return None
    return (-1.0 if sign == "-" else 1.0) * _number(digits, comma)


def _plain(text: str) -> float | None:
    """A number such as 1.5e-3, as computers write them."""
    try:
        return float(text)
    except ValueError:
        return None


def _all(values: list[str], *patterns: re.Pattern[str]) -> bool:
    return all(any(one.fullmatch(value) for one in patterns) for value in values)


def _number(digits: str, comma: bool) -> float:
    if comma:
        return float(digits.replace(".", "").replace(",", "."))
    return float(digits.replace(",", ""))


def units(texts: Array) -> list[str]:
    """The units in a column of numbers; none if one of the texts is no number with a unit."""
    found = [number_parts(str(one)) for one in texts]
    if any(one is None for one in found):
        return []
    return sorted({one[2] for one in found if one is not None})
