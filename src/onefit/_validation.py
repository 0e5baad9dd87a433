"""Checks shared by every door into the package; each error names what, where and what to do."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from inspect import signature
from typing import Any, cast

import numpy as np
from scipy.sparse import coo_array, issparse
from sklearn.utils import check_array

from onefit._types import Array

__all__ = [
    "DataError",
    "check_choice",
    "check_positive",
    "check_weights",
    "first_not_finite",
    "suggest",
    "takes_weight",
]


class DataError(ValueError):
    """Data that cannot be read or used; the message says what to do about it."""


def suggest(name: str, known: Iterable[str]) -> str:
    """'; did you mean ...?' when one of the known names is near, else a full stop."""
    spelled = {one.lower(): one for one in known}
    near = difflib.get_close_matches(str(name).lower(), spelled, n=1)
    return f"; did you mean {spelled[near[0]]!r}?" if near else "."


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


def first_not_finite(X: Any) -> tuple[int, int] | None:
    """Row and column of the first NaN or infinity in a table of numbers; None if there is none."""
    if issparse(X):
        coo: Any = coo_array(cast(Any, X))
        bad = np.flatnonzero(~np.isfinite(coo.data))
        pairs = sorted(zip(coo.row[bad].tolist(), coo.col[bad].tolist(), strict=True))
        return pairs[0] if pairs else None
    try:
        values = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if values.ndim != 2:
        return None
    where = np.argwhere(~np.isfinite(values))
    return (int(where[0, 0]), int(where[0, 1])) if where.size else None


def check_weights(sample_weight: Any, X: Any, least: int = 2) -> Array:
    """Sample weights, ones by default: finite, not negative, positive in ``least`` rows or more."""
    n, dtype = X.shape[0], X.dtype if X.dtype == np.float32 else np.float64
    if sample_weight is None:
        return np.ones(n, dtype=dtype)
    dimensions = np.asarray(sample_weight).ndim
    if dimensions != 1:
        raise ValueError(f"sample_weight must be 1D, a weight per row, got {dimensions} dimensions")
    s: Array = check_array(sample_weight, dtype=dtype, ensure_2d=False, input_name="sample_weight")
    if s.shape != (n,):
        raise ValueError(f"sample_weight.shape == {s.shape}, expected {(n,)}!")
    if least and not s.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    if (s < 0).any():
        worst = int(np.argmin(s))
        raise ValueError(
            f"sample_weight must not be negative, found {s[worst]:g} in row {worst}; "
            "use 0 to leave a row out"
        )
    if np.count_nonzero(s) < least:
        raise ValueError("sample_weight is positive in fewer than 2 rows; a fit needs at least two")
    return s


def takes_weight(scorer: Any) -> bool:
    """Whether a scorer takes sample weights: its metric does, or its estimator's score."""
    func = getattr(scorer, "_score_func", None)
    func = getattr(getattr(scorer, "_estimator", None), "score", scorer) if func is None else func
    return "sample_weight" in signature(func).parameters
