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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._frames import as_frame, shown
from onefit._validation import DataError
from onefit.auto.estimator import make_auto
from onefit.auto.run import Selection
from onefit.cli.options import ColumnOptions, Outputs
from onefit.cli.progress import progress
from onefit.cli.select import Selected, with_labels
from onefit.files import is_parquet
from onefit.prepare import TablePreparer
from onefit.rows import Accumulator, Chunk, HashKFold, open_rows, run
from onefit.rows.parquet import open_dataset
from onefit.rows.sample import row_hash
from onefit.rows.source import Source
from onefit.tables import check_target

Array = NDArray[Any]

__all__ = ["is_streamed", "select_streamed"]

#: rows of the sample from which columns are encoded
FRAME_SAMPLE_ROWS = 20_000
#: names of columns other than features, which no file has
TARGET, HASH = "\0target", "\0hash"


def is_streamed(path: Path, approximation: str | None) -> bool:
    """Whether a selection reads its rows as they come."""
    return approximation is not None and (path.is_dir() or is_parquet(path))


@dataclass(frozen=True)
class FrameSample(Accumulator[Any, Any]):
    """The accumulator of a uniform sample: a frame of the rows with the smallest hashes."""

    size: int

    def init(self) -> Any:
        return None

    def update(self, state: Any, chunk: Chunk) -> Any:
        own = {TARGET: chunk.Y[:, 0], HASH: row_hash(0, chunk.row)}
        return self.merge(state, as_frame(chunk.X).set_axis(chunk.row).assign(**own))

    def merge(self, one: Any, other: Any) -> Any:
        import pandas as pd

        parts = [part for part in (one, other) if part is not None]
        return pd.concat(parts).nsmallest(self.size, HASH) if parts else None

    def finish(self, state: Any) -> Any:
        return state.sort_index().reset_index(drop=True).drop(columns=HASH)


def select_streamed(
    path: Path,
    columns: ColumnOptions,
    parameters: dict[str, Any],
    outputs: Outputs,
    notes: list[str],
) -> Selected:
    """Select on the rows of Parquet files, and write the files asked for."""
    _check(columns, parameters, path)
    start, target = perf_counter(), str(columns.target)
    gaps, filter = _gaps(path, target)
    cv = HashKFold(parameters["cv"])
    source = open_rows(
        path, target, sample_weight=columns.sample_weight, groups=columns.groups,
        drop=tuple(columns.drop or ()), cv=cv, filter=filter, numeric=False,
    )  # fmt: skip
    used = source.n_rows - gaps
    drawn = run(FrameSample(FRAME_SAMPLE_ROWS), source.raw)
    y = check_target(drawn.pop(TARGET).to_numpy(), target)
    given = parameters | {"cv": cv, "prepare": TablePreparer(dayfirst=columns.dayfirst)}
    auto, y = make_auto(y, **with_labels(given, y))
    planned = auto._plan(drawn, y, None, None)
    with outputs.on_interrupt(), progress(planned.search):
        planned.search.fit(_encoded(source, planned))
    planned.note_columns()
    planned.reasons.append(_about(used, len(y)))
    auto._keep(planned)
    seconds = perf_counter() - start
    shape = used, len(source.names or ())
    return Selected.of(auto, path.name, target, shape, seconds, outputs, notes)


def _check(columns: ColumnOptions, parameters: dict[str, Any], path: Path) -> None:
    if columns.time is not None:
        raise ValueError(
            "--time puts rows in order in memory, and these are streamed; leave it out"
        )
    if columns.target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    if parameters.get("stack"):
        raise ValueError(
            "stack averages models of the whole kernel, and streamed rows have features: leave it "
            "out"
        )
    if "minutes" in parameters:
        raise ValueError(
            "minutes is for rows in memory; streamed rows have features already: leave it out"
        )


def _gaps(path: Path, target: str) -> tuple[int, Any]:
    """Number of rows without a target, and a filter that leaves them out."""
    from pyarrow import compute

    dataset, _ = open_dataset(path)
    if target not in dataset.schema.names:
        return 0, None  # which is refused with the other names
    empty = compute.field(target).is_null(nan_is_null=True)
    gaps, rows = dataset.count_rows(filter=empty), dataset.count_rows()
    if gaps == 0:
        return 0, None
    if gaps == rows:
        raise DataError(
            f"the target {shown(target)} has no value in any row; name another with --target"
        )
    warnings.warn(
        f"{gaps} of {rows} rows are left out, because they have no value of the target "
        f"{shown(target)}",
        stacklevel=2,
    )
    return gaps, ~empty


def _about(used: int, rows: int) -> str:
    if rows == used:
        return "rows were streamed"
    return (
        "rows were streamed; scales and categories of the columns are those of a uniform sample "
        f"of {rows:,} of them"
    )


def _encoded(source: Source, planned: Selection) -> Source:
    """The rows as the preparer makes them, targets of the type that the sample has."""
    clean = partial(_cleaned, planned.data.y.dtype.kind)
    numbers = partial(_numbers, planned.preparer)
    return source.transformed(numbers, planned.data.X.shape[1], clean)


def _numbers(preparer: Any, X: Any) -> Array:
    return np.ascontiguousarray(preparer.transform(as_frame(X)), dtype=np.float64)


def _cleaned(kind: str, y: Any) -> Array:
    """Labels as texts or whole numbers, amounts as they are."""
    values = np.asarray(y)
    if kind == "O":
        return values.astype(str).astype(object)
    return values.astype(np.int64) if kind in "iu" and values.dtype.kind == "f" else values
