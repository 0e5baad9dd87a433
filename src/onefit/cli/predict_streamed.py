"""Predictions of a model for the rows of Parquet files, written as the rows come."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onefit.auto.familiar import Unfamiliar
from onefit.cli.model import Model, load_model
from onefit.cli.predict import New, check_level, predictions, put_ids, put_notes, tally_of
from onefit.cli.scores import Amounts, Labels
from onefit.cli.spreadsheet import write_csv
from onefit.files import is_parquet
from onefit.rows import open_rows
from onefit.rows.parquet import open_dataset
from onefit.tables import as_frame

__all__ = ["predict_to_file"]

#: rows that are predicted at once
CHUNK = 65_536


def predict_to_file(
    model: Path, new: New, output: Path
) -> tuple[int, Amounts | Labels, Unfamiliar] | None:
    """Write predictions for the rows of Parquet files as they come; how many, how good, how odd.

    None where that cannot be done: intervals are made from training rows, which takes as long for
    a few rows as for all of them.
    """
    data = new.data
    if not (data.is_dir() or is_parquet(data)):
        return None
    found = load_model(model)
    if isinstance(found.columns, int):
        return None
    if found.training is not None and new.level > 0:
        if data.is_dir():
            raise ValueError("intervals need all rows at once; predict a folder with --level 0")
        return None
    check_level(found, new.level)
    tally, odd = tally_of(found), Unfamiliar(found.familiar)
    return _write(_predicted(found, new, tally, odd), output), tally, odd


def _predicted(model: Model, new: New, tally: Amounts | Labels, odd: Unfamiliar) -> Iterator[Any]:
    """Predictions for some rows after the other, scored on the way."""
    names, columns = open_dataset(new.data)[0].schema.names, list(model.columns)  # type: ignore[arg-type]
    new.check_id(names)
    read = columns if new.id in (None, *columns) else [*columns, new.id]
    target = model.target if model.target in names else None
    source = open_rows(new.data, target, features=read, numeric=False)
    for piece in source.pieces:
        for block in piece.blocks(CHUNK):
            frame = as_frame(block.X)
            frame.index = block.row
            rows = model.preparer.read(frame[columns], new.dayfirst)
            found = predictions(model, rows, 0.0)
            put_notes(found, odd, rows)
            if target is not None:
                tally.add(block.y, found["prediction"].to_numpy())
            if new.id is not None:
                put_ids(found, new.id, frame[new.id].to_numpy())
            yield found


def _write(parts: Iterator[Any], output: Path) -> int:
    """Write frames one after the other; the file is there when the last one is."""
    new = output.with_name(f"{output.name}.part")
    write = _write_csv if output.suffix.lower() == ".csv" else _write_parquet
    try:
        rows = write(parts, new)
        os.replace(new, output)
    finally:
        new.unlink(missing_ok=True)
    return rows


def _write_csv(parts: Iterator[Any], path: Path) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for part in parts:
            text = write_csv(part) or ""
            # the header once
            file.write(text if rows == 0 else text[text.index("\n") + 1 :])
            rows += len(part)
    return rows


def _write_parquet(parts: Iterator[Any], path: Path) -> int:
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
