"""Parquet files that are streamed: selections that never hold the rows, predictions as they come.

Columns are encoded by what a uniform sample of the rows tells (scales, medians, categories), the
rows themselves as they are read. A category that the sample has not met counts as a rare one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit.cli.encode import as_trained, describe
from onefit.cli.model import load_model, make_model, save_model
from onefit.cli.options import Options
from onefit.cli.recipe import Recipe, make_recipe
from onefit.cli.run import Diary, Outputs, check_level, predictions
from onefit.cli.show import progress
from onefit.cli.spreadsheet import write_csv
from onefit.cli.summary import summarise, write_results
from onefit.files import DataError, is_parquet
from onefit.report import write_report
from onefit.stream import Chunk, HashKFold, open_rows, run
from onefit.stream.sample import row_hash
from onefit.stream.source import Source
from onefit.tables import Table, as_features, check_target

Array = NDArray[Any]

__all__ = ["is_streamed", "predict_to_file", "select_streamed"]

#: rows that columns are encoded by, and rows that are predicted at once
SAMPLE, CHUNK = 20_000, 65_536


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
        found = Drawn(_frame(chunk.X), chunk.Y, row_hash(self.seed, chunk.row), chunk.row)
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
    target: str | None,
    drop: tuple[str, ...],
    options: Options,
    outputs: Outputs,
    diary: Diary,
) -> dict[str, Any]:
    """Select on the rows of Parquet files, write the files asked for, and return the summary."""
    diary.check()
    outputs.check()
    _check(options, outputs, target, path)
    start = perf_counter()
    cv = HashKFold(options.folds, random_state=options.seed)
    source = open_rows(path, target, drop=drop, cv=cv, numeric=False)
    table = _sample(source, str(target), options.seed)
    recipe = make_recipe(table, options)
    recipe.search.set_params(cv=cv, journal=diary.path)
    rows = _encoded(source, recipe.encoder, recipe.Z.shape[1], recipe.y)
    with diary.told(), progress(recipe.search):
        recipe.search.fit(rows)
    seconds = perf_counter() - start
    recipe.reasons.append(_about(source, len(table.y)))
    data = {"file": path.name, "rows": source.n_rows, "columns": len(source.names or ())}
    data |= {"target": str(target), "seed": options.seed}
    summary = summarise(recipe, data, seconds)
    _write_files(recipe, table, path.name, outputs)
    return summary


def _write_files(recipe: Recipe, table: Table, source: str, outputs: Outputs) -> None:
    search = recipe.search
    if outputs.results is not None:
        write_results(search, outputs.results, outputs.keep_formulas)
    if outputs.model is not None:
        save_model(make_model(recipe.encoder, recipe.machine, table, None), outputs.model)
    if outputs.report is not None:
        held = getattr(search, "heldout_", None)
        y = None if held is None else held.targets
        title = f"{source}: {table.target}"
        about = {"preprocessing": describe(recipe.encoder), "task": recipe.task}
        write_report(
            search, outputs.report, y=y, title=title, target=table.target, about=about,
            command=outputs.command,
        )  # fmt: skip


def _check(options: Options, outputs: Outputs, target: str | None, path: Path) -> None:
    if target is None:
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


def _sample(source: Source, target: str, seed: int) -> Table:
    drawn = run(FrameSample(SAMPLE, seed), source.raw)
    return Table(as_features(drawn.frame), check_target(drawn.Y[:, 0], target), target)


def _about(source: Source, rows: int) -> str:
    if rows == source.n_rows:
        return "rows were streamed"
    return (
        "rows were streamed; scales and categories of the columns are those of a uniform sample "
        f"of {rows:,} of them"
    )


def _encoded(source: Source, encoder: Any, width: int, y: Array) -> Source:
    """The rows as the encoder makes them, targets of the type that the sample has."""
    clean = partial(_cleaned, y.dtype.kind)
    return source.transformed(partial(_numbers, encoder), width, clean)


def _numbers(encoder: Any, X: Any) -> Array:
    frame = as_trained(encoder, as_features(_frame(X)))
    return np.ascontiguousarray(encoder.transform(frame), dtype=np.float64)


def _cleaned(kind: str, y: Any) -> Array:
    """Labels as texts or whole numbers, amounts as they are."""
    values = np.asarray(y)
    if kind == "O":
        return values.astype(str).astype(object)
    return values.astype(np.int64) if kind in "iu" and values.dtype.kind == "f" else values


def _frame(X: Any) -> Any:
    """Rows of pyarrow's as a data frame."""
    return X.to_pandas(date_as_object=False) if hasattr(X, "to_pandas") else X


def predict_to_file(
    model: Path, data: Path, output: Path, level: float, keep_formulas: bool
) -> int | None:
    """Write predictions for the rows of Parquet files as they come; how many there were.

    None where that cannot be done: intervals are made from training rows, which takes as long for
    a few rows as for all of them.
    """
    if not (data.is_dir() or is_parquet(data)):
        return None
    found = load_model(model)
    if isinstance(found.columns, int):
        return None
    if found.y is not None and level > 0:
        if data.is_dir():
            raise ValueError("intervals need all rows at once; predict a folder with --level 0")
        return None
    check_level(found, level)
    source = open_rows(data, features=found.columns, numeric=False)
    parts = (
        predictions(found, as_trained(found.encoder, as_features(_frame(block.X))), 0.0)
        for piece in source.pieces
        for block in piece.blocks(CHUNK)
    )
    return _write(parts, output, keep_formulas)


def _write(parts: Iterator[Any], output: Path, keep_formulas: bool) -> int:
    """Write frames one after the other; the file is there when the last one is."""
    new = output.with_name(f"{output.name}.part")
    write = _write_csv if output.suffix.lower() == ".csv" else _write_parquet
    try:
        rows = write(parts, new, keep_formulas)
        os.replace(new, output)
    finally:
        new.unlink(missing_ok=True)
    return rows


def _write_csv(parts: Iterator[Any], path: Path, keep_formulas: bool) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for part in parts:
            text = write_csv(part, keep_formulas=keep_formulas) or ""
            # the header once
            file.write(text if rows == 0 else text[text.index("\n") + 1 :])
            rows += len(part)
    return rows


def _write_parquet(parts: Iterator[Any], path: Path, _: bool) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    rows, file = 0, None
    try:
        for part in parts:
            table = pa.Table.from_pandas(part, preserve_index=False)
            file = file or parquet.ParquetWriter(path, table.schema)
            file.write_table(table)
            rows += len(part)
    finally:
        if file is not None:
            file.close()
    return rows
