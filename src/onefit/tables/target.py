"""The target: numbers, or labels that name something twice; anything else is refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.files import DataError, all_match, filled, listed, place_of, shown
from onefit.tables.values import (
    DATE,
    DATES,
    cells_at,
    check_sizes,
    odd_cells,
    refuse_nested,
)
from onefit.written import read_numbers, units

Array = NDArray[Any]

__all__ = ["check_target"]


def check_target(values: Any, name: str) -> Array:
    """A target without gaps that has two values at least; dates and the like are refused."""
    import pandas as pd

    y = pd.Series(np.asarray(values), index=getattr(values, "index", None))
    what = f"the target {shown(name)}"
    refuse_nested(filled(y), what)
    gaps = np.flatnonzero(y.isna().to_numpy())
    if gaps.size == y.size:
        raise DataError(f"{what} has no value in any row; name another with --target")
    if gaps.size:
        raise DataError(
            f"{what} has no value in {gaps.size} of {y.size} rows (the first is "
            f"{place_of(y.index, gaps[0])}); remove these rows"
        )
    if y.nunique() < 2:
        raise DataError(f"{what} has the value {shown(y.iloc[0])} only; there is nothing to learn")
    if pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y):
        numbers = y.to_numpy(dtype=float)
        check_sizes(numbers[:, None], lambda _: what, "remove that row", y.index)
        return y.to_numpy() if y.dtype.kind in "iu" else numbers
    labels = y.astype(str).to_numpy(dtype=object)
    if y.dtype.kind in "mM" or all_match(DATE, labels):
        raise DataError(f"{what} {DATES}")
    found = read_numbers(labels) if len(set(labels)) > 2 else None
    if found is not None:
        warnings.warn(f"{what} is read as numbers: {found.how}", stacklevel=3)
        return found.numbers
    _check_labels(labels, what, y.index)
    return labels


def _check_labels(labels: Array, what: str, index: Any) -> None:
    """Refuse text that was meant to be numbers, or names nothing twice."""
    odd, different = odd_cells(labels), len(set(labels))
    if odd.size:
        raise DataError(
            f"{what} holds numbers but for {cells_at(labels, index, odd)}; correct it, or remove "
            "that row"
        )
    if different > 0.5 * labels.size and labels.size > 10:
        found = units(labels)
        why = f", with the units {listed(found)}" if len(found) > 1 else ""
        raise DataError(
            f"{what} holds {different} different texts in {labels.size} rows ({shown(labels[0])}, "
            f"say), neither classes nor numbers{why}; write amounts as plain numbers, such as "
            "1234.5"
        )
