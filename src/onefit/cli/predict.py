"""Predictions of a model: for the rows of a file, all at once or as they come."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import is_classifier

from onefit.choose.encode import as_trained, number_columns
from onefit.cli.model import Model, load_model
from onefit.cli.run import check_place
from onefit.cli.spreadsheet import write_csv
from onefit.cli.streamed import as_frame
from onefit.cli.summary import as_json
from onefit.files import DataError, Reading, is_parquet
from onefit.stream import open_rows
from onefit.tables import as_features, read_features
from onefit.uncertainty import predict_interval
from onefit.written import read_numbers

Array = NDArray[Any]

__all__ = ["Predicted", "check_output", "predict_rows", "predict_to_file"]

#: rows that are predicted at once
CHUNK = 65_536


@dataclass(frozen=True)
class Predicted:
    """Predictions, and how good they are where the truth is known.

    Attributes
    ----------
    frame : DataFrame
    scores : dict
        By name; empty where the truth is not known.
    known : int
        Rows whose truth is.
    """

    frame: Any = field(repr=False)
    scores: dict[str, float] = field(default_factory=dict)
    known: int = 0

    def write(self, output: Path | None, as_document: bool, keep_formulas: bool) -> None:
        """To a file or stdout; how good they are goes to stderr."""
        frame = self.frame
        if output is not None:
            write_predictions(frame, output, keep_formulas)
            typer.echo(f"{len(frame)} predictions written to {output}", err=True)
        elif as_document:
            found = {"predictions": frame.to_dict(orient="records")}
            document = found | ({"scores": self.scores} if self.scores else {})
            typer.echo(json.dumps(as_json(document), indent=2, allow_nan=False, ensure_ascii=False))
        else:
            typer.echo(write_csv(frame, keep_formulas=keep_formulas), nl=False)
        if self.scores:
            said = ", ".join(f"{name} {value:.4g}" for name, value in self.scores.items())
            typer.echo(f"scored on the {self.known} rows that have the target: {said}", err=True)


def predict_rows(
    model: Path, data: Path, reading: Callable[[Reading], Reading], level: float = 0.9
) -> Predicted:
    """Predictions for the rows of a file.

    The id of the row, where the model knows which column that is; the column ``prediction``; for
    amounts the ends of an interval of this level, ``lower`` and ``upper``, unless it is 0; for
    classes a decision value, or a probability where the loss gives one, for each.

    Parameters
    ----------
    model, data : Path
    reading : callable
        From how the model's own file was read to how this one is.
    level : float, default=0.9
    """
    found = load_model(model)
    numbers = None if isinstance(found.columns, int) else _numbers(found)
    others = tuple(one for one in (found.target, found.id) if one is not None)
    rows, beside = read_features(data, found.columns, reading(found.reading), numbers, others)
    X = as_trained(found.encoder, rows)
    if X.shape[0] == 0:
        raise DataError(f"{data.name} has no row to predict")
    check_level(found, level)
    frame = predictions(found, X, level)
    scores, known = _scores(found, frame["prediction"].to_numpy(), beside.get(found.target))
    if found.id is not None:
        if found.id not in beside:
            raise DataError(f"{data.name} has no column {found.id!r}, the id of the rows; add it")
        name = found.id if found.id not in frame.columns else f"{found.id} (id)"
        frame.insert(0, name, beside[found.id])
    return Predicted(frame, scores, known)


def _numbers(model: Model) -> set[Any]:
    return number_columns(model.encoder, model.columns)


def _scores(model: Model, predicted: Array, truth: Array | None) -> tuple[dict[str, float], int]:
    """Root mean squared error and R^2 of amounts, accuracies of classes; of rows with a truth."""
    import pandas as pd

    if truth is None:
        return {}, 0
    there = ~np.asarray(pd.isna(truth))
    truth, predicted = truth[there], predicted[there]
    if truth.size == 0:
        return {}, 0
    if is_classifier(model.machine):
        labels, said = _as_labels(truth), _as_labels(predicted)
        share = float(metrics.accuracy_score(labels, said))
        with warnings.catch_warnings(action="ignore"):
            balanced = float(metrics.balanced_accuracy_score(labels, said))
        return {"accuracy": share, "balanced accuracy": balanced}, truth.size
    if truth.dtype.kind not in "fiu":
        read = read_numbers(truth)
        if read is None:
            return {}, 0
        truth = read.numbers
    error = float(metrics.root_mean_squared_error(truth, predicted))
    found = {"root mean squared error": error}
    if truth.size > 1:
        found["R²"] = float(metrics.r2_score(truth, predicted))
    return found, truth.size


def _as_labels(values: Array) -> Array:
    """Labels as texts, so that 1 and 1.0 are the same one."""
    if values.dtype.kind == "f" and bool((values == np.round(values)).all()):
        values = values.astype(np.int64)
    return np.asarray([str(one) for one in values], dtype=object)


def check_level(model: Model, level: float) -> None:
    """Say where there are no intervals because the model holds no training rows."""
    if level > 0 and model.y is None and not is_classifier(model.machine):
        warnings.warn(
            "the model holds landmarks in place of training rows, so there are no intervals; "
            "--level 0 says so",
            stacklevel=2,
        )


def predictions(model: Model, X: Any, level: float) -> Any:
    """Predictions for encoded rows, see :func:`predict_rows`."""
    import pandas as pd

    columns: dict[str, Any] = {"prediction": model.pipeline.predict(X)}
    if is_classifier(model.machine):
        classes = model.machine.classes_
        if hasattr(model.machine, "predict_proba"):
            word, values = "probability", model.pipeline.predict_proba(X)
        else:
            word, values = "decision", model.pipeline.decision_function(X)
            classes = classes[1:] if values.ndim == 1 else classes
        values = np.asarray(values).reshape(X.shape[0], -1)
        columns |= {f"{word}_{one}": values[:, i] for i, one in enumerate(classes)}
    elif level > 0 and model.y is not None:
        machine = model.machine
        Z = model.encoder.transform(X)
        found = predict_interval(machine, machine.X_fit_, model.y, Z, alpha=1.0 - level)
        columns |= {"lower": found.lower, "upper": found.upper}
    return pd.DataFrame(columns)


def check_output(path: Path | None) -> None:
    """Refuse a file that predictions cannot be written to, before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise ValueError(f"--output {path.name} must end in .csv or .parquet")
    check_place(path)


def write_predictions(frame: Any, path: Path, keep_formulas: bool = False) -> None:
    """Write predictions as CSV or Parquet, by the file's name."""
    if path.suffix.lower() == ".csv":
        write_csv(frame, path, keep_formulas)
    else:
        frame.to_parquet(path, index=False)


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
    columns = found.columns
    if isinstance(columns, int) or (found.id is not None and not data.is_dir()):
        return None
    if found.y is not None and level > 0:
        if data.is_dir():
            raise ValueError("intervals need all rows at once; predict a folder with --level 0")
        return None
    check_level(found, level)
    source = open_rows(data, features=columns, numeric=False)
    numbers = number_columns(found.encoder, columns)
    parts = (
        predictions(found, as_trained(found.encoder, as_features(as_frame(block.X), numbers)), 0.0)
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
