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

from onefit.auto.familiar import Unfamiliar
from onefit.cli.document import as_json
from onefit.cli.model import Model, load_model
from onefit.cli.scores import Amounts, Labels
from onefit.cli.spreadsheet import write_csv
from onefit.cli.standard import check_place
from onefit.files import DataError
from onefit.tables import read_features

Array = NDArray[Any]

__all__ = [
    "New",
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
class New:
    """New rows, and what is asked for them.

    Attributes
    ----------
    data : Path
    id : str or None
        Column that names the rows, which predictions keep.
    level : float
        Of the intervals; 0 for none.
    dayfirst : bool or None
        For dates in another order than those of the training rows.
    """

    data: Path
    id: str | None = None
    level: float = 0.9
    dayfirst: bool | None = None

    def check_id(self, names: Any) -> None:
        """Refuse an id that the file does not have."""
        if self.id is not None and self.id not in names:
            raise DataError(f"{self.data.name} has no column {self.id!r}; name another with --id")


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

    def write(self, output: Path | None, as_document: bool) -> None:
        """To a file or stdout; how good they are goes to stderr."""
        frame, scores = self.frame, self.tally.scores
        if output is not None:
            write_predictions(frame, output)
            typer.echo(f"{len(frame)} predictions written to {output}", err=True)
        elif as_document:
            found = {"predictions": frame.to_dict(orient="records")}
            found |= {"unfamiliar": self.unfamiliar.document}
            document = found | ({"scores": scores} if scores else {})
            typer.echo(json.dumps(as_json(document), indent=2, allow_nan=False, ensure_ascii=False))
        else:
            typer.echo(write_csv(frame), nl=False)
        show_unfamiliar(self.unfamiliar)
        show_scores(self.tally)


def show_unfamiliar(found: Unfamiliar) -> None:
    """On stderr, a sentence for whatever is unlike the training rows."""
    for sentence in found.sentences:
        typer.echo(f"warning: {sentence}", err=True)


def show_scores(tally: Amounts | Labels) -> None:
    """On stderr, where the truth is known."""
    if tally.scores:
        text = ", ".join(f"{name} {value:.4g}" for name, value in tally.scores.items())
        typer.echo(f"scored on the {tally.known} rows that have the target: {text}", err=True)


def predict_rows(model: Path, new: New) -> Predicted:
    """Predictions for the rows of a file.

    The id of the row, if one is asked for; the column ``prediction``; for quantities the ends of an
    interval, ``lower`` and ``upper``; for classes a decision value, or a probability where the
    model gives one, for each; ``novelty``, the distance to the training rows (above 1 further than
    any of these from the others), and ``unfamiliar``, what is odd about the row, empty for most.
    """
    found = load_model(model)
    others = tuple(one for one in (found.target, new.id) if one is not None)
    X, beside = read_features(new.data, found.columns, others)
    if X.shape[0] == 0:
        raise DataError(f"{new.data.name} has no row to predict")
    new.check_id(beside)
    check_level(found, new.level)
    rows = found.preparer.read(X, new.dayfirst)
    frame, unfamiliar = predictions(found, rows, new.level), Unfamiliar(found.familiar)
    put_notes(frame, unfamiliar, rows)
    tally = tally_of(found)
    if found.target in beside:
        tally.add(beside[found.target], frame["prediction"].to_numpy())
    if new.id is not None:
        put_ids(frame, new.id, beside[new.id])
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
    return Labels() if is_classifier(model.estimator) else Amounts()


def check_level(model: Model, level: float) -> None:
    """Say where there are no intervals because the model holds no training rows."""
    if level > 0 and model.training is None and not is_classifier(model.estimator):
        warnings.warn(
            "the model holds features, no training rows, so there are no intervals; --level 0 "
            "asks for none",
            stacklevel=2,
        )


def predictions(model: Model, rows: Any, level: float) -> Any:
    """Predictions for rows that the preparer has read, see :func:`predict_rows`."""
    import pandas as pd

    Z, estimator = model.preparer.encode(rows), model.estimator
    columns: dict[str, Any] = {"prediction": estimator.predict(Z)}
    if is_classifier(estimator):
        classes = estimator.classes_
        if hasattr(estimator, "predict_proba"):
            word, values = "probability", estimator.predict_proba(Z)
        else:
            word, values = "decision", estimator.decision_function(Z)
            classes = classes[1:] if values.ndim == 1 else classes
        values = np.asarray(values).reshape(rows.shape[0], -1)
        columns |= {f"{word}_{one}": values[:, i] for i, one in enumerate(classes)}
    elif level > 0 and model.training is not None:
        columns |= _interval(model, Z, level)
    return pd.DataFrame(columns)


def _interval(model: Model, Z: Any, level: float) -> dict[str, Any]:
    """Ends of the intervals; none, and a warning, where there are too few groups for the level."""
    from onefit.uncertainty import predict_interval

    assert model.training is not None
    groups = model.training["groups"]
    count = None if groups is None else int(groups.max()) + 1
    if count is not None and 1.0 - level < 1.0 / (count + 1):
        most = np.floor(1e3 - 1e3 / (count + 1)) / 1e3
        warnings.warn(
            f"there are no intervals: new rows are taken to be of new groups, and the {count} "
            f"groups of the training rows allow for a --level of {most:g} at most",
            stacklevel=2,
        )
        return {}
    found = predict_interval(
        model.estimator, model.estimator.X_fit_, model.training["y"], Z, alpha=1.0 - level,
        cv=model.folds, sample_weight=model.training["sample_weight"], groups=groups,
    )  # fmt: skip
    return {"lower": found.lower, "upper": found.upper}


def check_output(path: Path | None) -> None:
    """Refuse a file that predictions cannot be written to, before any work is done."""
    if path is None:
        return
    if path.suffix.lower() not in (".csv", ".parquet", ".pq"):
        raise ValueError(f"--output {path.name} must end in .csv or .parquet")
    check_place(path)


def write_predictions(frame: Any, path: Path) -> None:
    """Write predictions as CSV or Parquet, by the file's name."""
    if path.suffix.lower() == ".csv":
        write_csv(frame, path)
    else:
        frame.to_parquet(path, index=False)
