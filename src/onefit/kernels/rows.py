"""Rows of any kind: a table of numbers, or objects for a user's function."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["as_rows", "is_objects", "is_table", "number_type"]


def is_objects(X: Any) -> bool:
    """Whether `X` is an array of anything but numbers: strings, graphs, sequences."""
    return isinstance(X, np.ndarray) and X.dtype.kind not in "fiubc"


def number_type(X: Any) -> Any:
    """The precision of values computed from points: float32 if they are, else float64."""
    return np.dtype(np.float32 if "float32" in str(X.dtype) else np.float64)


def as_rows(X: Any) -> Any:
    """`X` as it is if it is a table of numbers, else its rows as an array of objects.

    An array or a data frame of strings keeps its columns; any other sequence becomes an array with
    one object for each row.
    """
    if sp.issparse(X):
        return X
    if hasattr(X, "to_numpy") and not is_table(X):
        X = X.to_numpy()
    if is_table(X) or is_objects(X):
        return X
    if not hasattr(X, "__len__"):
        raise TypeError(f"X must be a sequence of rows, got {X!r}.")
    rows = np.empty(len(X), dtype=object)
    for i, row in enumerate(X):
        rows[i] = row
    return rows


def is_table(X: Any) -> bool:
    """Whether `X` is a table (or a column) of numbers, those of an array of objects included."""
    try:
        found = np.asarray(X.tolist() if is_objects(X) else X)
    except Exception:  # an object may raise anything when it is read as a sequence
        return False
    return bool(found.ndim in (1, 2) and not is_objects(found))
