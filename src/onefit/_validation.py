"""Checks shared by every door into the package; each error names what, where and what to do."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_positive", "suggest"]


def suggest(name: str, known: Iterable[str]) -> str:
    """'; did you mean ...?' when one of the known names is near, else a full stop."""
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else "."


def check_choice(name: str, value: Any, known: Iterable[str]) -> None:
    """Check that ``value`` is one of the ``known`` strings."""
    options = list(known)
    if value not in options:
        listed = ", ".join(repr(option) for option in options)
        raise ValueError(f"{name}={value!r} is not known{suggest(value, options)} Known: {listed}")


def check_positive(name: str, value: Any, hint: str) -> float:
    """Check that ``value`` is one finite positive number, and return it as a float."""
    ok = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    if not ok or not np.isfinite(value) or not value > 0:
        raise ValueError(f"{name} must be a positive finite number, got {value!r}; {hint}")
    return float(value)
