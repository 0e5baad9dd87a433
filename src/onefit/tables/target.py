"""The target of a table: numbers or labels, however it is written."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._frames import listed, shown
from onefit._validation import DataError
from onefit.tables.reader import WrittenColumn
from onefit.written import DATES, MAX_LABELS, check_sizes, holds_numbers, is_gap, units

Array = NDArray[Any]

__all__ = ["are_codes", "read_target"]


def read_target(y: Any, name: str | None = None) -> Array:
    """A target as numbers or labels, NaN where it has no value; several columns as they are.

    Text is read as the columns of a table are; codes of classes that are written as text stay text.
    Refused are dates, numbers with a few words among them, texts that hardly repeat, and a target
    with one value only.

    Parameters
    ----------
    y : array or Series
    name : str, default=None
        For messages; by default that of the series.
    """
    values, index = np.asarray(y), getattr(y, "index", None)
    index = index if hasattr(index, "name") else None  # lists have a method of that name
    if values.ndim == 0:
        raise DataError(
            f"y is {shown(values.item())}; it must have a value for each row (a name of a column "
            "is not looked up: pass the column itself, and leave it out of X)"
        )
    if values.size == 0:
        return values
    if values.ndim == 2 and values.shape[1] == 1:
        values, name = values[:, 0], name or getattr(y, "columns", [None])[0]
    name = name or getattr(y, "name", None)
    what = "y" if name is None else f"the target {shown(name)}"
    if values.ndim == 1 and values.dtype.kind not in "fiubc":
        values = _read_text(values, index, what)
    known = values[values == values] if values.dtype.kind in "fO" else values
    if known.size == 0:
        raise DataError(f"{what} has no value in any row")
    if (known == known.flat[0]).all():
        raise DataError(
            f"{what} has the value {shown(known.flat[0])} only; there is nothing to learn"
        )
    if values.dtype.kind == "f":
        check_sizes(values.reshape(len(values), -1), lambda _: what, index)
    return values


def _read_text(values: Array, index: Any, what: str) -> Array:
    """Numbers or labels of a column of texts, truth values or objects."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return values
    column = pd.Series(values, index=index).infer_objects()
    if holds_numbers(column.dtype):
        return np.asarray(column.to_numpy())
    notes = list[str]()
    written = WrittenColumn(column, what, notes, is_target=True)
    how, found = written.learn(dayfirst=True)
    if how["kind"] == "date":
        raise DataError(f"{what} {DATES}")
    if how["kind"] == "number" and not are_codes(found[~np.isnan(found)]):
        for note in notes:
            warnings.warn(note, stacklevel=4)
        return found
    _check_labels(written.texts, what)
    return written.labels


def are_codes(values: Array) -> bool:
    """Whether numbers are codes of classes.

    These are whole, each in two rows or more, and either two of them or all from 0 or 1 on.
    """
    different, counts = np.unique(values, return_counts=True)
    if not (different == np.round(different)).all() or counts.min() < 2:
        return False
    consecutive = different[-1] - different[0] == different.size - 1
    few = different.size <= MAX_LABELS and different[0] in (0, 1) and consecutive
    return bool(different.size <= 2 or few)


def _check_labels(labels: Array, what: str) -> None:
    """Refuse texts that hardly repeat; note labels that may stand for a missing value."""
    different = set(labels)
    if len(different) > 0.5 * labels.size and labels.size > 10:
        found = units(labels)
        why = f", with the units {listed(found)}" if len(found) > 1 else ""
        raise DataError(
            f"{what} holds {len(different)} different texts in {labels.size} rows "
            f"({shown(labels[0])}, say), neither classes nor numbers{why}; write amounts as plain "
            "numbers, such as 1234.5"
        )
    gaps = sorted(one for one in different if is_gap(one))
    if gaps:
        warnings.warn(
            f"{what} has the class {listed(gaps)}; if that stands for a missing value, leave the "
            "cell empty, and the row is left out",
            stacklevel=5,
        )
