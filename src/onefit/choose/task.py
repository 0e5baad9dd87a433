"""Regression or classification, by the values of the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from onefit._validation import check_choice
from onefit.auto.rules import are_codes
from onefit.choose.options import Options
from onefit.files import DataError, shown
from onefit.tables import LABELS, Table

Array = NDArray[Any]

__all__ = ["LABELS", "as_targets", "choose_task", "targets"]

TASKS = ("auto", "regression", "classification")


def choose_task(table: Table, options: Options) -> tuple[str, str]:
    """The task, and why.

    Text and truth values are labels, and so are two different whole numbers, and the codes 0, 1,
    ..., k - 1 or 1, 2, ..., k of at most 20 classes, each of which has two rows at least. All other
    numbers are amounts: whole numbers that begin elsewhere or leave values out, such as grades
    from 3 to 8 and counts, are a scale whose order means something.
    """
    check_choice(options.word("task"), options.task, TASKS)
    y, name = table.y, shown(table.target)
    regression = options.said("task", "regression")
    _check_shape(y, options)
    numeric = y.dtype.kind in "fiu"
    if y.ndim == 2:
        return "regression", f"regression: the target {name} has {y.shape[1]} columns of numbers"
    values, counts = np.unique(y, return_counts=True)
    if options.task == "regression" and not numeric:
        raise DataError(
            f"the target {name} holds text ({shown(values[0])}, say), which {regression} "
            f"cannot take; use {options.said('task', 'classification')}"
        )
    if options.task != "auto":
        return options.task, f"{options.task}, as asked"
    if not numeric:
        return "classification", (
            f"classification: the target {name} holds {values.size} labels, such as "
            f"{shown(values[0])}"
        )
    whole = bool((values == np.round(values)).all())
    if whole and counts.min() > 1 and are_codes(values):
        return "classification", (
            f"classification: the target {name} holds {values.size} different whole numbers, which "
            f"look like codes of classes ({regression} if they are amounts)"
        )
    if whole and values.size <= LABELS:
        return "regression", (
            f"regression: the target {name} holds {values.size} whole numbers from "
            f"{values[0]:g} to {values[-1]:g}, which look like an ordered scale "
            f"({options.said('task', 'classification')} if they are codes of classes)"
        )
    return "regression", f"regression: the target {name} holds {values.size} different numbers"


def _check_shape(y: Array, options: Options) -> None:
    """Several columns of numbers are several amounts; of anything else there is one column."""
    if y.ndim == 1:
        return
    kind = type_of_target(y)
    if y.dtype.kind not in "fiu" or kind == "multilabel-indicator":
        raise ValueError(
            f"y has {y.shape[1]} columns that look like labels ({kind}); call select for each "
            "column, or give numbers for a regression"
        )
    if options.task == "classification":
        raise ValueError(f"y has {y.shape[1]} columns; call select for each column of labels")


def as_targets(y: Array, task: str) -> Array:
    """Amounts as floats, whole numbers that are labels as integers, other labels as they are."""
    if task == "regression":
        return np.asarray(y.astype(np.float64))
    whole = y.dtype.kind == "f" and bool((y == np.round(y)).all())
    return np.asarray(y.astype(np.int64)) if whole else y


def targets(table: Table, task: str) -> Array:
    """The targets of a table; a label needs two rows at least."""
    y = as_targets(table.y, task)
    if task == "regression":
        return y
    values, counts = np.unique(y, return_counts=True)
    rare = values[counts < 2]
    if rare.size:
        raise DataError(
            f"class {shown(rare[0])} of the target {shown(table.target)} has one row only, so it "
            "cannot be held out; remove it, or join it with another class"
        )
    return y
