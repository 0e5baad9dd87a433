"""Parquet files that are streamed: selections that never hold the rows.

Scales, medians and categories come from a uniform sample of the rows; every row is encoded as it is
read. A category that is not in the sample is encoded like an unknown one.
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
from sklearn.base import is_classifier

from onefit._frames import as_frame, shown
from onefit._validation import DataError
from onefit.auto.run import Selection
from onefit.cli.output import Outputs
from onefit.cli.progress import progress
from onefit.cli.select import Selected, auto_for, write_files
from onefit.files import is_parquet
from onefit.losses.base import resolved
from onefit.rows import Accumulator, Chunk, HashKFold, open_rows, run
from onefit.rows.parquet import open_dataset
from onefit.rows.sample import row_hash
from onefit.rows.source import Source
from onefit.tables import Roles, read_target

Array = NDArray[Any]

__all__ = ["is_streamed", "select_streamed"]

#: rows of the sample from which columns are encoded
FRAME_SAMPLE_ROWS = 20_000
#: names of internal columns, which no file has
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
    roles: Roles,
    parameters: dict[str, Any],
    outputs: Outputs,
    notes: list[str],
) -> Selected:
    """Select on the rows of Parquet files, and write the files asked for."""
    _check(roles, parameters, path)
    start, target = perf_counter(), str(roles.target)
    gaps, filter = _gaps(path, target)
    cv = HashKFold(parameters["cv"])
    source = open_rows(
        path, target, sample_weight=roles.sample_weight, groups=roles.groups,
        drop=roles.drop, cv=cv, filter=filter, numeric=False,
    )  # fmt: skip
    used = source.n_rows - gaps
    drawn = run(FrameSample(FRAME_SAMPLE_ROWS), source.raw)
    written = drawn.pop(TARGET).to_numpy()
    y = read_target(written, target)
    if y.dtype.kind == "f" and any(isinstance(one, str) for one in written):
        raise DataError(
            f"the target {shown(target)} holds numbers as text ({shown(written[0])}, say), and the "
            "target of streamed rows is not converted; write it as a column of numbers"
        )
    auto, y = auto_for(y, roles.dayfirst, parameters | {"cv": cv})
    if is_classifier(auto) and len(y) < used:  # a label of many rows may be once in the sample
        _, place, counts = np.unique(y, return_inverse=True, return_counts=True)
        drawn, y = drawn[counts[place] > 1], y[counts[place] > 1]
    planned = auto._plan(drawn, y, None, None)
    loss = planned.search.estimator.spec().loss
    if getattr(loss, "relative", False):  # a width in units of the targets, from the sample
        known = resolved(loss, y[:, None], np.ones((len(y), 1)))
        planned.search.set_params(estimator__loss=known)
    with outputs.on_interrupt(), progress(planned.search):
        planned.search.fit(_encoded(source, planned))
    planned.note_columns()
    planned.reasons.append(_about(used, len(y)))
    auto._keep(planned)
    columns, seconds = len(source.names or ()), perf_counter() - start
    data = {"file": path.name, "rows": used, "columns": columns, "target": target}
    return write_files(auto, data, seconds, outputs, notes)


def _check(roles: Roles, parameters: dict[str, Any], path: Path) -> None:
    if roles.time is not None:
        raise ValueError(
            "--time puts rows in order in memory, and these are streamed; leave it out"
        )
    if roles.target is None:
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
        "rows were streamed; the target, scales and categories above are those of a uniform "
        f"sample of {rows:,} of them"
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
        return np.strings.strip(values.astype(str)).astype(object)  # as those of the sample
    return values.astype(np.int64) if kind in "iu" and values.dtype.kind == "f" else values
