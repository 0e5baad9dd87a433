"""What criteria look at in a kernel matrix: its diagonal, sums of its rows, parts of it.

The matrix is NumPy's, or held on a device, and then sums are taken there; what has a number per row
is NumPy's in any case.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices

__all__ = ["diagonal_of", "on_host", "part_of", "sums_of_rows"]

_BLOCK = 512


def diagonal_of(K: Any) -> Array:
    """The diagonal."""
    return np.array(K.diagonal())


def sums_of_rows(K: Any, squared: bool = False) -> Array:
    """Of every row the sum of absolute values, or of squares."""
    if not isinstance(K, np.ndarray):
        found: Array = K.hold().row_sums(squared)
        return found
    if squared:
        return np.asarray(np.einsum("ij,ij->i", K, K))
    blocks = [np.abs(K[i : i + _BLOCK]).sum(axis=1) for i in range(0, K.shape[0], _BLOCK)]
    return np.concatenate(blocks)


def part_of(K: Any, rows: Indices, columns: Indices) -> Any:
    """Some rows and columns, where K is, column-major and not to be written to."""
    if isinstance(K, np.ndarray):
        return np.asfortranarray(K[np.ix_(rows, columns)])
    return K.part(rows, columns)


def on_host(K: Any) -> Array:
    """The matrix as NumPy's, a copy of one that is on a device."""
    return K if isinstance(K, np.ndarray) else linalg.arrays_of(K).host(K.hold().held)
