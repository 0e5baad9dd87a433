"""Predictions of a model for the rows of a file, all at once."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.base import is_classifier

from onefit.choose.familiar import Unfamiliar
from onefit.cli.arguments import Text
from onefit.cli.document import as_json
from onefit.cli.model import Model, Training, load_model
from onefit.cli.scores import Amounts, Labels
from onefit.cli.spreadsheet import write_csv
from onefit.cli.standard import check_place
from onefit.files import DataError
from onefit.tables import read_features

Array = NDArray[Any]

__all__ = [
    "Predicted",
    "check_level",
    "check_output",
    "predict_rows",
    "predictions",
    "put_ids",
    "put_notes",
    "show_scores",
    "show_unfamiliar",
    "tally_of",
]


@dataclass(frozen=True)
class Predicted:
    """Predictions, and how good they are where the truth is known.

    Attributes
    ----------
    frame : DataFrame
    tally : Amounts or Labels
        What they are scored by.
    unfamiliar : Unfamiliar
        Rows unlike the training rows.
    """

    frame: Any = field(repr=False)
    tally: Amounts | Labels
    unfamiliar: Unfamiliar

    def write(self, output: Path | None, as_document: bool, keep_formulas: bool) -> None:
        """To a file or stdout; how good they are goes to stderr."""
        frame, scores = self.frame, self.tally.scores
        if output is not None:
            write_predictions(frame, output, keep_formulas)
            typer.echo(f"{len(frame)} predictions written to {output}", err=True)
        elif as_document:
            found = {"predictions": frame.to_dict(orient="records")}
            found |= {"unfamiliar": self.unfamiliar.document}
            document = found | ({"scores": scores} if scores else {})
            typer.echo(json.dumps(as_json(document), indent=2, allow_nan=False, ensure_ascii=False))
        else:
            typer.echo(write_csv(frame, keep_formulas=keep_formulas), nl=False)
        show_unfamiliar(self.unfamiliar)
        show_scores(self.tally)


def show_unfamiliar(found: Unfamiliar) -> None:
    """On stderr, a sentence for whatever is unlike the training rows."""
    for sentence in found.told:
        typer.echo(f"warning: {sentence}", err=True)


def show_scores(tally: Amounts | Labels) -> None:
    """On stderr, where the truth is known."""
    if tally.scores:
        said = ", ".join(f"{name} {value:.4g}" for name, value in tally.scores.items())
        typer.echo(f"scored on the {tally.known} rows that have the target: {said}", err=True)


def predict_rows(model: Path, data: Path, text: Text, level: float = 0.9) -> Predicted:
    """Predictions for the rows of a file.

    The id of the row, where the model knows which column that is; the column ``prediction``; for
    amounts the ends of an interval of this level, ``lower`` and ``upper``, unless it is 0; for
    classes a decision value, or a probability where the loss gives one, for each; ``novelty``, the
    distance to the training rows (above 1 further than any of these from the others), and
    ``unfamiliar``, what is odd about the row, which is empty for most.

    Parameters
    ----------
    model, data : Path
    text : Text
        How the file is written; what is not said there is as in the model's own file.
    level : float, default=0.9
    """
    found = load_model(model)
    others = tuple(one for one in (found.target, found.id) if one is not None)
    X, beside = read_features(data, found.columns, text.reading(found.reading), others)
    if X.shape[0] == 0:
        raise DataError(f"{data.name} has no row to predict")
    check_level(found, level)
    rows = found.read(X, text.dayfirst)
    frame, unfamiliar = predictions(found, rows, level), Unfamiliar(found.familiar)
    put_notes(frame, unfamiliar, rows)
    tally = tally_of(found)
    if found.target in beside:
        tally.add(beside[found.target], frame["prediction"].to_numpy())
    if found.id is not None:
        if found.id not in beside:
            raise DataError(f"{data.name} has no column {found.id!r}, the id of the rows; add it")
        put_ids(frame, found.id, beside[found.id])
    return Predicted(frame, tally, unfamiliar)


def put_ids(frame: Any, name: str, ids: Any) -> None:
    """The ids as the first column of predictions."""
    frame.insert(0, name if name not in frame.columns else f"{name} (id)", ids)


def put_notes(frame: Any, unfamiliar: Unfamiliar, X: Any) -> None:
    """What is odd about rows as the last columns of their predictions."""
    novelty, notes = unfamiliar.add(X)
    if novelty is not None:
        frame["novelty"] = novelty
    frame["unfamiliar"] = notes


def tally_of(model: Model) -> Amounts | Labels:
    """What the predictions of a model are scored by."""
    return Labels() if is_classifier(model.machine) else Amounts()


def check_level(model: Model, level: float) -> None:
    """Say where there are no intervals because the model holds no training rows."""
    if level > 0 and model.training is None and not is_classifier(model.machine):
        warnings.warn(
            "the model holds landmarks in place of training rows, so there are no intervals; "
            "--level 0 says so",
            stacklevel=2,
        )


def predictions(model: Model, X: Any, level: float) -> Any:
    """Predictions for rows that :meth:`Model.read` gave, see :func:`predict_rows`."""
    import pandas as pd

    Z = model.encoder.transform(X)
    columns: dict[str, Any] = {"prediction": model.machine.predict(Z)}
    if is_classifier(model.machine):
        classes = model.machine.classes_
        if hasattr(model.machine, "predict_proba"):
            word, values = "probability", model.machine.predict_proba(Z)
        else:
            word, values = "decision", model.machine.decision_function(Z)
            classes = classes[1:] if values.ndim == 1 else classes
        values = np.asarray(values).reshape(X.shape[0], -1)
        columns |= {f"{word}_{one}": values[:, i] for i, one in enumerate(classes)}
    elif level > 0 and model.training is not None:
        columns |= _interval(model, model.training, Z, level)
    return pd.DataFrame(columns)


def _interval(model: Model, known: Training, Z: Any, level: float) -> dict[str, Any]:
    """Ends of the intervals; none, and a warning, where there are too few groups for the level."""
    from onefit.uncertainty import predict_interval

    if known.groups is not None and 1.0 - level < 1.0 / (known.groups.max() + 2):
        most = np.floor(1e3 - 1e3 / (known.groups.max() + 2)) / 1e3
        warnings.warn(
            "there are no intervals: new rows are taken to be of new groups, and the "
            f"{known.groups.max() + 1} groups of the training rows allow for a --level of "
            f"{most:g} at most",
            stacklevel=2,
        )
        return {}
    machine = model.machine
    found = predict_interval(
        machine, machine.X_fit_, known.y, Z, alpha=1.0 - level,
        cv=known.folds, sample_weight=known.weights, groups=known.groups,
    )  # fmt: skip
    return {"lower": found.lower, "upper": found.upper}


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
