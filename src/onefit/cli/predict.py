"""Predictions of a model for the rows of a file: all at once, or as the rows of Parquet come."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import is_classifier

from onefit._frames import as_frame, shown
from onefit._validation import DataError
from onefit.auto.familiar import Unfamiliar, read_and_encode
from onefit.cli.model import Model
from onefit.cli.output import as_csv, write_frames
from onefit.files import is_parquet
from onefit.rows import open_rows
from onefit.rows.parquet import open_dataset
from onefit.tables import WrittenColumn, read_features

Array = NDArray[Any]

__all__ = ["Predictions"]

#: rows of Parquet files that are predicted at once
MAX_CHUNK_ROWS = 65_536


@dataclass
class Predictions:
    """Predictions for the rows of a file.

    The columns of a frame of predictions: the id of the row, if one is asked for; ``prediction``;
    for quantities the ends of an interval, ``lower`` and ``upper``; for classes a decision value,
    or a probability where the model gives one, for each; ``novelty``, the distance to the training
    rows (above 1 further than any of these from the others), and ``unfamiliar``, what is odd about
    the row, empty for most.

    Attributes
    ----------
    model : Model
    data : Path
    id : str or None
        Column that names the rows, which predictions keep.
    level : float
        Of the intervals; 0 for none.
    dayfirst : bool or None
        For dates in another order than those of the training rows.
    """

    model: Model
    data: Path
    id: str | None = None
    level: float = 0.9
    dayfirst: bool | None = None
    _unfamiliar: Unfamiliar = field(init=False)
    _truth: list[tuple[Array, Array]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._unfamiliar = Unfamiliar(self.model.preparer, self.model.known)

    def write(self, output: Path) -> None:
        """Write the predictions to a CSV or Parquet file."""
        rows = write_frames(self.frames(), output)
        print(f"{rows} predictions written to {output}", file=sys.stderr)

    def print_csv(self) -> None:
        """Print the predictions as CSV on stdout."""
        for place, frame in enumerate(self.frames()):
            print(as_csv(frame, header=place == 0), end="")

    @property
    def document(self) -> dict[str, Any]:
        """The predictions for JSON."""
        rows = [row for frame in self.frames() for row in frame.to_dict(orient="records")]
        found = {"predictions": rows, "unfamiliar": self._unfamiliar.document}
        _, scores = self._scored
        return found | ({"scores": scores} if scores else {})

    def show_notes(self) -> None:
        """Print notes on unusual rows, and scores if the targets are known, on stderr."""
        for sentence in self._unfamiliar.sentences:
            print(f"warning: {sentence}", file=sys.stderr)
        known, scores = self._scored
        if scores:
            text = ", ".join(f"{name} {value:.4g}" for name, value in scores.items())
            print(f"scored on the {known} rows that have the target: {text}", file=sys.stderr)

    def frames(self) -> Iterator[Any]:
        """Predictions for some rows after the other."""
        has_intervals = self._has_intervals()
        for X, beside in self._rows:
            if self.id is not None and self.id not in beside:
                raise DataError(
                    f"{self.data.name} has no column {self.id!r}; name another with --id"
                )
            rows, Z = read_and_encode(self.model.pipeline, X, self.dayfirst)
            frame = self._frame(rows, Z, has_intervals)
            novelty, notes = self._unfamiliar.add(rows, Z)
            if novelty is not None:
                frame["novelty"] = novelty
            frame["unfamiliar"] = notes
            if self.model.target in beside:
                truth = np.asarray(beside[self.model.target])
                self._truth.append((truth, frame["prediction"].to_numpy()))
            if self.id is not None:
                name = self.id if self.id not in frame.columns else f"{self.id} (id)"
                frame.insert(0, name, np.asarray(beside[self.id]))
            yield frame

    @property
    def _is_streamed(self) -> bool:
        """Intervals are made from training rows, at the same cost for a few rows as for all."""
        model, folder = self.model, self.data.is_dir()
        if isinstance(model.columns, int) or not (folder or is_parquet(self.data)):
            return False
        if model.training is None or self.level == 0:
            return True
        if folder:
            raise ValueError("intervals need all rows at once; predict a folder with --level 0")
        return False

    @property
    def _rows(self) -> Iterator[tuple[Any, Any]]:
        """Rows, and the columns of the file that they are in."""
        columns = self.model.columns
        if not self._is_streamed:
            width = columns if isinstance(columns, int) else None
            X, beside = read_features(self.data, width, self._texts)
            if X.shape[0] == 0:
                raise DataError(f"{self.data.name} has no row to predict")
            yield X, beside
            return
        known = {*columns, self.model.target, self.id}  # type: ignore[misc]
        there = [one for one in open_dataset(self.data)[0].schema.names if one in known]
        for piece in open_rows(self.data, None, features=there, numeric=False).pieces:
            for block in piece.blocks(MAX_CHUNK_ROWS):
                frame = as_frame(block.X)
                frame.index = block.row
                yield frame, frame

    @property
    def _texts(self) -> set[str]:
        """Columns of text, which the rows of a file must not turn into numbers: 007 into 7."""
        reader, classes = self.model.preparer.reader_, getattr(self.model.estimator, "classes_", ())
        texts = [] if reader is None else [
            name for name, how in reader.how_.items() if how["kind"] == "text"
        ]  # fmt: skip
        labels = [self.model.target] if any(isinstance(one, str) for one in classes) else []
        return {str(one) for one in (*texts, *labels, *([] if self.id is None else [self.id]))}

    def _frame(self, rows: Any, Z: Any, has_intervals: bool) -> Any:
        """Predictions for rows as the preparer has read and encoded them."""
        import pandas as pd

        estimator = self.model.estimator
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
        elif has_intervals:
            found = self.model.interval(rows, 1.0 - self.level)
            columns |= {"lower": found.lower, "upper": found.upper}
        return pd.DataFrame(columns)

    def _has_intervals(self) -> bool:
        """Whether there are intervals; a warning says why not where they are asked for."""
        training = self.model.training
        if self.level == 0 or is_classifier(self.model.estimator):
            return False
        if training is None:
            warnings.warn(
                "the model holds features, no training rows, so there are no intervals; --level 0 "
                "asks for none",
                stacklevel=2,
            )
            return False
        count = None if training["groups"] is None else int(training["groups"].max()) + 1
        if count is not None and 1.0 - self.level < 1.0 / (count + 1):
            most = np.floor(1e3 - 1e3 / (count + 1)) / 1e3
            warnings.warn(
                f"there are no intervals: new rows are taken to be of new groups, and the {count} "
                f"groups of the training rows allow for a --level of {most:g} at most",
                stacklevel=2,
            )
            return False
        return True

    @cached_property
    def _scored(self) -> tuple[int, dict[str, float]]:
        """Number of rows that have the target, and scores by name, after all predictions."""
        import pandas as pd

        if not self._truth:
            return 0, {}
        truth, predicted = (np.concatenate(one) for one in zip(*self._truth, strict=True))
        what = f"the target {shown(self.model.target)}"
        column = WrittenColumn(pd.Series(truth), what, [], is_target=True)
        if column.rows.size == 0:
            return 0, {}
        if is_classifier(self.model.estimator):
            known, scores = column.rows, _scores_of_labels
            values = column.labels
        else:
            try:
                how, values = column.learn()
                why = "" if how["kind"] == "number" else f"{what} does not hold numbers"
            except DataError as error:
                why = str(error)
            if why:
                warnings.warn(f"predictions are not scored: {why}", stacklevel=2)
                return 0, {}
            known, scores = np.flatnonzero(values == values), _scores_of_numbers
        return known.size, scores(values[known], predicted[known])


def _scores_of_numbers(truth: Array, predicted: Array) -> dict[str, float]:
    found = {"root mean squared error": metrics.root_mean_squared_error(truth, predicted)}
    return found | ({"R²": metrics.r2_score(truth, predicted)} if np.ptp(truth) else {})


def _scores_of_labels(truth: Array, predicted: Array) -> dict[str, float]:
    predicted = predicted.astype(str)
    # labels may be predicted that the truth has not
    with warnings.catch_warnings(action="ignore"):
        balanced = metrics.balanced_accuracy_score(truth, predicted)
    return {"accuracy": metrics.accuracy_score(truth, predicted), "balanced accuracy": balanced}
