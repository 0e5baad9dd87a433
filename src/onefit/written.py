"""Numbers as people write them: 152,000.00, 1.234,5, $151,000, 151.0 mg.

A column is read as a whole. All its values must have the same unit, and the same use of comma and
point: 1,500 beside 1,250.75 is one thousand five hundred, beside 1,5 it is one and a half. Where a
column leaves that open, the comma separates thousands; whoever reads it says so.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

__all__ = ["Read", "read_numbers", "units"]

PARTS = re.compile(r"([$€£¥]?)\s*([+-]?)\s*([$€£¥]?)\s*([\d.,]*\d)\s*([A-Za-zµ°%€£¥/²³]{0,8})")
PLAIN = re.compile(r"\d*\.?\d+")
THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(\.\d+)?")
COMMA = re.compile(r"\d+(,\d+)?")
POINTS = re.compile(r"\d{1,3}(\.\d{3})+(,\d+)?")


class Read(NamedTuple):
    """The numbers of a column, and how they were written."""

    numbers: Array
    how: str


def read_numbers(texts: Array) -> Read | None:
    """The numbers that texts stand for; None if one of them stands for none, or units differ."""
    found = [PARTS.fullmatch(str(one).strip()) for one in texts]
    parts = [one.groups() for one in found if one is not None]
    if not parts or len(parts) < len(texts):
        return None
    if len({(before or after, unit) for before, _, after, _, unit in parts}) > 1:
        return None
    digits, comma = [one[3] for one in parts], False
    if not _all(digits, PLAIN, THOUSANDS):
        if not _all(digits, COMMA, POINTS):
            return None
        comma = True
    signs = np.array([-1.0 if one[1] == "-" else 1.0 for one in parts])
    numbers = signs * np.array([_number(one, comma) for one in digits])
    return Read(numbers, f"{str(texts[0]).strip()!r} as {numbers[0]:.15g}")


def _all(values: list[str], *patterns: re.Pattern[str]) -> bool:
    return all(any(one.fullmatch(value) for one in patterns) for value in values)


def _number(digits: str, comma: bool) -> float:
    if comma:
        return float(digits.replace(".", "").replace(",", "."))
    return float(digits.replace(",", ""))


def units(texts: Array) -> list[str]:
    """The units in a column of numbers; none if one of the texts is no number with a unit."""
    found = [PARTS.fullmatch(str(one).strip()) for one in texts]
    if any(one is None for one in found):
        return []
    return sorted({one[1] or one[3] or one[5] for one in found if one is not None})
