"""Parquet files that are streamed: selections that never hold the rows.

Columns are encoded by what a uniform sample of the rows tells (scales, medians, categories), the
rows themselves as they are read. A category that the sample has not met counts as a rare one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit.choose.data_checks import about_notes, warn_of_columns
from onefit.choose.encode import describe
from onefit.choose.familiar import Familiar, columns_with_gaps
from onefit.choose.options import Options
from onefit.choose.recipe import Recipe, make_recipe
from onefit.cli.arguments import Columns, Text
from onefit.cli.model import make_model, save_model
from onefit.cli.run import JournalOption, Outputs
from onefit.cli.show import progress
from onefit.cli.summary import summarise, write_results
from onefit.files import DataError, is_parquet, shown
from onefit.report import write_report
from onefit.stream import Chunk, HashKFold, open_rows, run
from onefit.stream.parquet import open_dataset
from onefit.stream.sample import row_hash
from onefit.stream.source import Source
from onefit.tables import ColumnReader, Table, as_frame, check_target

Array = NDArray[Any]

__all__ = ["is_streamed", "select_streamed"]

#: rows that columns are encoded by
SAMPLE = 20_000


def is_streamed(path: Path, approximation: str | None) -> bool:
    """Whether a selection reads its rows as they come."""
    return approximation is not None and (path.is_dir() or is_parquet(path))


class Drawn(NamedTuple):
    """Rows as they are stored: features as a data frame, targets, hashes and numbers."""

    frame: Any
    Y: Array
    hashes: Array
    row: Array

    def take(self, places: Array) -> Drawn:
        """Some of them."""
        frame = self.frame.iloc[places].reset_index(drop=True)
        return Drawn(frame, *(one[places] for one in self[1:]))

    def join(self, other: Drawn) -> Drawn:
        """Both together."""
        import pandas as pd

        frame = pd.concat([self.frame, other.frame], ignore_index=True)
        pairs = zip(self[1:], other[1:], strict=True)
        return Drawn(frame, *(np.concatenate(pair) for pair in pairs))


@dataclass(frozen=True)
class FrameSample:
    """The accumulator of a uniform sample, the rows with the smallest hashes, in their order."""

    size: int
    seed: int

    def init(self) -> Drawn | None:
        return None

    def update(self, state: Drawn | None, chunk: Chunk) -> Drawn:
        found = Drawn(as_frame(chunk.X), chunk.Y, row_hash(self.seed, chunk.row), chunk.row)
        found = self._smallest(found)
        return found if state is None else self._smallest(state.join(found))

    def _smallest(self, drawn: Drawn) -> Drawn:
        return drawn.take(np.argsort(drawn.hashes)[: self.size])

    def merge(self, one: Drawn | None, other: Drawn | None) -> Drawn | None:
        if one is None or other is None:
            return one if other is None else other
        return self._smallest(one.join(other))

    def finish(self, state: Drawn | None) -> Drawn:
        assert state is not None  # sources without rows are refused
        return state.take(np.argsort(state.row))


def select_streamed(
    path: Path,
    columns: Columns,
    text: Text,
    options: Options,
    outputs: Outputs,
    journal: JournalOption,
) -> dict[str, Any]:
    """Select on the rows of Parquet files, write the files asked for, and return the summary."""
    journal.check()
    outputs.check()
    target = str(columns.target)
    _check(options, columns, path)
    start = perf_counter()
    gaps, filter = _gaps(path, target)
    cv = HashKFold(options.folds, random_state=options.seed)
    drop = (*columns.left_out, *([] if columns.id is None else [columns.id]))
    source = open_rows(
        path, target, sample_weight=columns.weights, groups=columns.groups, drop=drop, cv=cv,
        filter=filter, numeric=False,
    )  # fmt: skip
    used = source.n_rows - gaps
    table = _sample(source, target, options.seed, text)
    recipe = make_recipe(table, replace(options, folds=cv))
    recipe.search.set_params(journal=journal.path)
    rows = _encoded(source, recipe)
    with journal.on_interrupt(), progress(recipe.search):
        recipe.search.fit(rows)
    recipe.notes.extend(warn_of_columns(recipe.strong, recipe.search, recipe.y, recipe.task))
    seconds = perf_counter() - start
    recipe.reasons.append(_about(used, len(table.y)))
    data = {"file": path.name, "rows": used, "columns": len(source.names or ())}
    data |= {"target": target, "seed": options.seed}
    summary = summarise(recipe, data, seconds)
    _write_files(recipe, replace(table, id=columns.id), path.name, outputs)
    return summary


def _write_files(recipe: Recipe, table: Table, source: str, outputs: Outputs) -> None:
    search = recipe.search
    if outputs.results is not None:
        write_results(search, outputs.results, outputs.keep_formulas)
    if outputs.model is not None:
        machine, gaps = recipe.model, columns_with_gaps(table.X)
        familiar = Familiar.of_landmarks(machine, recipe.encoder, gaps)
        model = make_model(recipe.encoder, machine, table, familiar, None, id=table.id)
        save_model(model, outputs.model)
    if outputs.report is not None:
        held = getattr(search, "heldout_", None)
        y = None if held is None else held.targets
        title = f"{source}: {table.target}"
        about = {"preprocessing": describe(recipe.encoder), "task": recipe.task}
        about |= about_notes(recipe.notes)
        write_report(
            search, outputs.report, y=y, title=title, target=table.target, about=about,
            command=outputs.command,
        )  # fmt: skip


def _check(options: Options, columns: Columns, path: Path) -> None:
    if columns.time is not None:
        raise ValueError(
            "--time puts rows in order in memory, and these are streamed; use --rows N, or leave "
            "--time out"
        )
    if columns.target is None:
        raise DataError(f"{path.name} has no target yet; name the column to predict with --target")
    if options.compare:
        raise ValueError(
            "--compare evaluates criteria on rows in memory, and these are streamed; use --rows N "
            "to compare on a random sample of N rows, or leave --compare out"
        )
    if options.minutes is not None:
        raise ValueError(
            "--minutes is for rows in memory; streamed rows have features already: leave it out"
        )


def _gaps(path: Path, target: str) -> tuple[int, Any]:
    """How many rows have no target, which is said, and a filter that leaves them out."""
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


def _sample(source: Source, target: str, seed: int, text: Text) -> Table:
    drawn = run(FrameSample(SAMPLE, seed), source.raw)
    reader = ColumnReader(text.dayfirst, "command")
    X, y = reader.fit_transform(drawn.frame), check_target(drawn.Y[:, 0], target)
    for note in reader.notes_:
        warnings.warn(note, stacklevel=2)
    return Table(X, y, target, reader=reader, notes=tuple(reader.notes_))


def _about(used: int, rows: int) -> str:
    if rows == used:
        return "rows were streamed"
    return (
        "rows were streamed; scales and categories of the columns are those of a uniform sample "
        f"of {rows:,} of them"
    )


def _encoded(source: Source, recipe: Recipe) -> Source:
    """The rows as the encoder makes them, targets of the type that the sample has."""
    clean = partial(_cleaned, recipe.y.dtype.kind)
    numbers = partial(_numbers, recipe.reader, recipe.encoder)
    return source.transformed(numbers, recipe.Z.shape[1], clean)


def _numbers(reader: Any, encoder: Any, X: Any) -> Array:
    rows = reader.transform(as_frame(X))
    return np.ascontiguousarray(encoder.transform(rows), dtype=np.float64)


def _cleaned(kind: str, y: Any) -> Array:
    """Labels as texts or whole numbers, amounts as they are."""
    values = np.asarray(y)
    if kind == "O":
        return values.astype(str).astype(object)
    return values.astype(np.int64) if kind in "iu" and values.dtype.kind == "f" else values
