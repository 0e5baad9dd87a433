"""Parquet files that are streamed: selections that never hold the rows.

Columns are encoded by what a uniform sample of the rows tells (scales, medians, categories), the
rows themselves as they are read. A category that the sample has not met counts as a rare one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit.auto.data_checks import warn_of_columns
from onefit.auto.estimator import make_auto
from onefit.auto.run import Planned
from onefit.cli.arguments import ColumnOptions
from onefit.cli.model import save_model
from onefit.cli.progress import progress
from onefit.cli.run import Outputs, Selected, with_labels
from onefit.files import DataError, is_parquet, shown
from onefit.prepare import TablePreparer
from onefit.rows import Chunk, HashKFold, open_rows, run
from onefit.rows.parquet import open_dataset
from onefit.rows.sample import row_hash
from onefit.rows.source import Source
from onefit.tables import as_frame, check_target

Array = NDArray[Any]

__all__ = ["is_streamed", "select_streamed"]

#: rows that columns are encoded by
SAMPLE_ROWS = 20_000


def is_streamed(path: Path, approximation: str | None) -> bool:
    """Whether a selection reads its rows as they come."""
    return approximation is not None and (path.is_dir() or is_parquet(path))


class SampledRows(NamedTuple):
    """Rows as they are stored: features as a data frame, targets, hashes and numbers."""

    frame: Any
    Y: Array
    hashes: Array
    row: Array

    def take(self, places: Array) -> SampledRows:
        """Some of them."""
        frame = self.frame.iloc[places].reset_index(drop=True)
        return SampledRows(frame, *(one[places] for one in self[1:]))

    def join(self, other: SampledRows) -> SampledRows:
        """Both together."""
        import pandas as pd

        frame = pd.concat([self.frame, other.frame], ignore_index=True)
        pairs = zip(self[1:], other[1:], strict=True)
        return SampledRows(frame, *(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class FrameSample:
    """The accumulator of a uniform sample, the rows with the smallest hashes, in their order."""

    size: int
    seed: int

    def init(self) -> SampledRows | None:
        return None

    def update(self, state: SampledRows | None, chunk: Chunk) -> SampledRows:
        found = SampledRows(as_frame(chunk.X), chunk.Y, row_hash(self.seed, chunk.row), chunk.row)
        found = self._smallest(found)
        return found if state is None else self._smallest(state.join(found))

    def _smallest(self, drawn: SampledRows) -> SampledRows:
        return drawn.take(np.argsort(drawn.hashes)[: self.size])

    def merge(self, one: SampledRows | None, other: SampledRows | None) -> SampledRows | None:
        if one is None or other is None:
            return one if other is None else other
        return self._smallest(one.join(other))

    def finish(self, state: SampledRows | None) -> SampledRows:
        assert state is not None  # sources without rows are refused
        return state.take(np.argsort(state.row))


def select_streamed(
    path: Path, columns: ColumnOptions, parameters: dict[str, Any], outputs: Outputs
) -> Selected:
    """Select on the rows of Parquet files, and write the files asked for."""
    _check(columns, parameters, path)
    start, target, seed = perf_counter(), str(columns.target), parameters["random_state"]
    gaps, filter, notes = _gaps(path, target)
    cv = HashKFold(parameters["cv"], random_state=seed)
    source = open_rows(
        path, target, sample_weight=columns.sample_weight, groups=columns.groups,
        drop=tuple(columns.drop or ()), cv=cv, filter=filter, numeric=False,
    )  # fmt: skip
    used = source.n_rows - gaps
    drawn = run(FrameSample(SAMPLE_ROWS, seed), source.raw)
    y = check_target(drawn.Y[:, 0], target)
    given = parameters | {"cv": cv, "prepare": TablePreparer(dayfirst=columns.dayfirst)}
    auto, y = make_auto(y, **with_labels(given, y))
    planned = auto._plan(drawn.frame, y, None, None)
    with outputs.on_interrupt(), progress(planned.search):
        planned.search.fit(_encoded(source, planned))
    planned.notes[:0] = notes
    planned.notes += warn_of_columns(planned.strong, planned.search, planned.y, planned.task)
    planned.reasons.append(_about(used, len(y)))
    auto._keep(planned)
    seconds = perf_counter() - start
    if outputs.model is not None:
        save_model(auto, outputs.model, target)
    if outputs.report is not None:
        held = getattr(planned.search, "heldout_", None)
        auto.report(
            outputs.report,
            y=None if held is None else held.targets,
            title=f"{path.name}: {target}",
            target=target,
            command=outputs.command,
        )
    width = len(source.names or ())
    return Selected(auto, path.name, target, used, width, seconds, outputs.written)


def _check(columns: ColumnOptions, parameters: dict[str, Any], path: Path) -> None:
    if columns.time is not None:
        raise ValueError(
            "--time puts rows in order in memory, and these are streamed; leave it out"
        )
    if columns.target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    if "minutes" in parameters:
        raise ValueError(
            "minutes is for rows in memory; streamed rows have features already: leave it out"
        )


def _gaps(path: Path, target: str) -> tuple[int, Any, list[str]]:
    """How many rows have no target, a filter that leaves them out, and a note."""
    from pyarrow import compute

    dataset, _ = open_dataset(path)
    if target not in dataset.schema.names:
        return 0, None, []  # which is refused with the other names
    empty = compute.field(target).is_null(nan_is_null=True)
    gaps, rows = dataset.count_rows(filter=empty), dataset.count_rows()
    if gaps == 0:
        return 0, None, []
    if gaps == rows:
        raise DataError(
            f"the target {shown(target)} has no value in any row; name another with --target"
        )
    note = (
        f"{gaps} of {rows} rows are left out, because they have no value of the target "
        f"{shown(target)}"
    )
    warnings.warn(note, stacklevel=2)
    return gaps, ~empty, [note]


def _about(used: int, rows: int) -> str:
    if rows == used:
        return "rows were streamed"
    return (
        "rows were streamed; scales and categories of the columns are those of a uniform sample "
        f"of {rows:,} of them"
    )


def _encoded(source: Source, planned: Planned) -> Source:
    """The rows as the preparer makes them, targets of the type that the sample has."""
    clean = partial(_cleaned, planned.y.dtype.kind)
    numbers = partial(_numbers, planned.preparer)
    return source.transformed(numbers, planned.Z.shape[1], clean)


def _numbers(preparer: Any, X: Any) -> Array:
    return np.ascontiguousarray(preparer.transform(as_frame(X)), dtype=np.float64)


def _cleaned(kind: str, y: Any) -> Array:
    """Labels as texts or whole numbers, amounts as they are."""
    values = np.asarray(y)
    if kind == "O":
        return values.astype(str).astype(object)
    return values.astype(np.int64) if kind in "iu" and values.dtype.kind == "f" else values
