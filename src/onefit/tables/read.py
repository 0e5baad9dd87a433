"""Read a file, and split it into features, target, and columns that are neither."""

from __future__ import annotations

import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit._frames import MAX_QUOTED, listed, place_of, shown
from onefit._validation import DataError, suggest
from onefit.files import CheckRows, is_libsvm, read_frame, read_libsvm
from onefit.tables.reader import WrittenColumn
from onefit.tables.target import read_target
from onefit.written import holds_numbers

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

__all__ = ["Roles", "Table", "read_features", "read_table"]


@dataclass(frozen=True)
class Roles:
    """The columns of a file that are not features, and how its dates are read.

    Attributes
    ----------
    target : str or None
        The column to predict; None for LIBSVM.
    drop : tuple of str
        Columns to leave out.
    groups, sample_weight, time : str or None
        Rows of one group stay on one side of a split; weights are for fits and scores; time puts
        rows in order.
    dayfirst : bool or None
        For the column of times, see :class:`WrittenNumbers`.
    """

    target: str | None = None
    drop: tuple[str, ...] = ()
    groups: str | None = None
    sample_weight: str | None = None
    time: str | None = None
    dayfirst: bool | None = None

    @property
    def named(self) -> list[tuple[str, str]]:
        """Columns other than the target, each with the option that names it."""
        roles = [("--groups", self.groups), ("--sample-weight", self.sample_weight),
                 ("--time", self.time)]  # fmt: skip
        found = [(option, name) for option, name in roles if name is not None]
        return [*(("--drop", name) for name in self.drop), *found]


@dataclass(frozen=True)
class Table:
    """Features and target of a file.

    Attributes
    ----------
    X : DataFrame as it is in the file, or sparse matrix for LIBSVM
        The index of a table from a CSV file is called "line", and has the lines of the file.
    y : (n,) array
    target : str
        Name of the target.
    groups, sample_weight : (n,) arrays or None
    ordered : bool
        Whether the rows are in order of time, which the splits have to keep.
    """

    X: Any = field(repr=False)
    y: Array = field(repr=False)
    target: str
    groups: Array | None = field(default=None, repr=False)
    sample_weight: Array | None = field(default=None, repr=False)
    ordered: bool = False


def read_table(path: Path, roles: Roles, check_rows: CheckRows = None) -> Table:
    """Read a file and split off its target.

    Parameters
    ----------
    path : Path
        ``.csv``, ``.tsv``, ``.txt``, ``.xlsx``, ``.parquet``, ``.pq``, ``.libsvm``, ``.svmlight``
        or ``.svm``; text may be packed (``.gz``, ``.bz2``).
    roles : Roles
    check_rows : callable, default=None
        Given the number of rows, or fewer, before they are read; raises where that is too many.
    """
    target, others = roles.target, [name for _, name in roles.named]
    if is_libsvm(path):
        if others or target not in (None, "label"):
            flags = {option for option, _ in roles.named} | ({"--target"} if target else set())
            raise DataError(
                f"{path.name} is LIBSVM, which has its target first in each line and names no "
                f"column; leave out {', '.join(sorted(flags))}"
            )
        X, y = read_libsvm(path, check_rows=check_rows)
        return Table(X, read_target(y, "label"), "label")
    if target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    frame = read_frame(path, check_rows)
    for name in (target, *others):
        _check_column(frame, name, path)
    for flag, name in roles.named:
        if name == target:
            raise DataError(f"{flag} {shown(name)} is the target itself; name another column")
    if len(frame) < 2:
        count = "no row" if frame.empty else "one row"
        raise DataError(f"{path.name} has a header and {count}; add rows to learn from")
    y = read_target(frame[target])
    there = _with_target(frame, y, target)
    frame, y = frame[there], y[there]
    beside = _roles(frame, roles)
    features = frame.drop(columns=[target, *others])
    if features.shape[1] == 0:
        raise DataError(
            f"{path.name} has no column beside the target {shown(target)} to predict it by"
        )
    time = beside.pop("time", None)
    if time is None:
        return Table(features, y, target, **beside)
    rows = np.argsort(time, kind="stable")
    beside = {name: one[rows] for name, one in beside.items()}
    return Table(features.iloc[rows], y[rows], target, ordered=True, **beside)


def _check_column(frame: pd.DataFrame, name: str, path: Path) -> None:
    if name in frame.columns:
        return
    near = suggest(name, (str(one) for one in frame.columns if len(str(one)) <= MAX_QUOTED))
    has = f"It has {listed(frame.columns)}"
    if frame.shape[1] == 1:
        has += " alone; values are to be separated by comma, semicolon, tab or |"
    raise DataError(f"{path.name} has no column {shown(name)}{near} {has}")


def _with_target(frame: pd.DataFrame, y: Array, target: str) -> Array:
    """Which rows have a target; a warning says how many have none."""
    there = np.asarray(y == y)
    skipped = int((~there).sum())
    if skipped:
        are, they = ("is", "it has") if skipped == 1 else ("are", "they have")
        warnings.warn(
            f"{skipped} of {len(frame)} rows {are} left out, because {they} no value of the target "
            f"{shown(target)} (the first is {place_of(frame.index, int(np.argmin(there)))})",
            stacklevel=3,
        )
    return there


def _roles(frame: pd.DataFrame, roles: Roles) -> dict[str, Any]:
    """Groups, weights and times of the rows."""
    found: dict[str, Any] = {}
    for flag, name in roles.named:
        if flag == "--drop":
            continue
        column = WrittenColumn(frame[name], f"column {shown(name)}", [])
        if flag != "--groups":
            how, values = column.learn(roles.dayfirst)
        else:  # numbers in their order, in which Python numbers them too
            is_number = holds_numbers(frame[name].dtype)
            values = frame[name].to_numpy(float, na_value=np.nan) if is_number else column.labels
        gaps = np.flatnonzero(values != values)
        if gaps.size:
            row = place_of(frame.index, int(gaps[0]))
            raise DataError(f"{flag} {shown(name)} has no value in {row}; fill it in")
        if flag == "--groups":
            found["groups"] = np.unique(values, return_inverse=True)[1]
        elif flag == "--time":
            if how["kind"] == "text":
                raise DataError(
                    f"--time {shown(name)} holds neither numbers nor dates such as 2021-03-05; "
                    "write it in one of these ways"
                )
            found["time"] = values
        else:
            if how["kind"] != "number" or bool((values < 0).any()):
                raise DataError(f"--sample-weight {shown(name)} must hold numbers of at least 0")
            found["sample_weight"] = values
    return found


def read_features(
    path: Path, width: int | None = None, texts: Collection[str] = ()
) -> tuple[Any, Any]:
    """The columns of a file, and those of them beside the features; or a LIBSVM matrix and labels.

    Parameters
    ----------
    path : Path
    width : int, default=None
        Number of columns of the LIBSVM data that the model was made from.
    texts : collection of str
        Columns that are read as they are written, see :func:`onefit.files.read_frame`.
    """
    if width is None:
        frame = read_frame(path, texts=texts)
        return frame, frame
    if not is_libsvm(path):
        raise DataError(f"the model was made from LIBSVM data; {path.name} must be LIBSVM too")
    X, y = read_libsvm(path, width)
    return X, {"label": y}
