"""Rows unlike those that a model was made from: far away, of unknown categories, or with new gaps.

The kernel sees encoded rows, in which an unknown category is a row of zeros and a gap is the
median: :mod:`onefit.uncertainty.novelty` finds neither, so the columns themselves are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from onefit._frames import place_of, shown
from onefit.estimators.accepted import unwrap
from onefit.folds import Folds
from onefit.prepare import TablePreparer
from onefit.uncertainty.novelty import TrainingRows

Array = NDArray[Any]

__all__ = ["RowNotes", "Unfamiliar", "read_and_encode", "training_rows"]

#: columns that the note of a row names
MAX_NAMED_COLUMNS = 3


def read_and_encode(pipeline: Any, X: Any, dayfirst: bool | None = None) -> tuple[Any, Any]:
    """Rows as the first step of a fitted pipeline reads them, and as its last step takes them."""
    prepare, further = pipeline.named_steps["prepare"], pipeline.named_steps.get("rows")
    if not isinstance(prepare, TablePreparer):
        return X, pipeline[:-1].transform(X)
    rows = prepare.read(X, dayfirst)
    Z = prepare.encode(rows)
    return rows, Z if further is None else further.transform(Z)


def training_rows(model: Any, folds: Folds | None, groups: Any = None) -> TrainingRows | None:
    """The rows that new ones are compared with, as the splits of a search compare them.

    These are the rows that a classifier has coefficients for, the landmarks of an approximation,
    and all rows of other models; None for streamed rows without landmarks.
    """
    model = unwrap(model)
    if folds is None and model.approximation is None:
        return None
    support = is_classifier(model) and model.approximation is None
    return TrainingRows.of(model, folds, groups, support)


@dataclass(frozen=True)
class RowNotes:
    """Notes on unusual rows.

    Attributes
    ----------
    novelty : (m,) array or None
        Distance to the training rows; above 1 further than any of these from the others.
    notes : (m,) array of str
        Empty for ordinary rows.
    summary : list of str
        A sentence for whatever was found.
    """

    novelty: Array | None
    notes: Array
    summary: list[str]


@dataclass
class Unfamiliar:
    """Rows unlike the training rows, counted chunk by chunk.

    Attributes
    ----------
    preparer : TablePreparer or another transformer, fitted to the training rows
    known : TrainingRows or None
        None if the model holds none.
    rows, odd : int
        Rows so far, and those of them with a note.
    """

    preparer: Any
    known: TrainingRows | None
    rows: int = 0
    odd: int = 0
    #: number of far rows, the largest ratio, and the place of the first
    _far: tuple[int, float, str] = (0, 0.0, "")
    #: number of odd cells of a column and the place of the first, by column and what is odd
    _columns: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def add(self, X: Any, Z: Any) -> tuple[Array | None, Array]:
        """The novelty of rows, and a note for each, mostly empty; see :func:`read_and_encode`."""
        notes: list[list[str]] = [[] for _ in range(X.shape[0])]
        novelty = None
        if self.known is not None:
            novelty = self.known.novelty(self.known.model._validate_X(Z, reset=False))
            where = np.flatnonzero(novelty.far)
            for row in where:
                notes[row].append("far from the training rows")
            if where.size:
                count, worst, first = self._far
                worst = max(worst, float(novelty.ratio[where].max()))
                self._far = count + where.size, worst, first or place_of(X, int(where[0]))
        for name, what, odd in self._odd_cells(X):
            where = np.flatnonzero(odd)
            cells = [f" {shown(X[name].iloc[row])}" if what == "unseen" else "" for row in where]
            for row, cell in zip(where, cells, strict=True):
                notes[row].append(f"{what} {name}{cell}")
            place = place_of(X, int(where[0]))
            count, first = self._columns.get(
                (name, what), (0, f"{cells[0]} in {place}".strip() if cells[0] else place)
            )
            self._columns[name, what] = count + where.size, first
        self.rows += len(notes)
        self.odd += sum(map(bool, notes))
        texts = np.array([_joined(one) for one in notes], dtype=object)
        return None if novelty is None else novelty.ratio, texts

    def _odd_cells(self, rows: Any) -> list[tuple[str, str, Array]]:
        """Name of a column, what is odd, and in which rows: "unseen" categories or "empty"."""
        if not (hasattr(rows, "columns") and isinstance(self.preparer, TablePreparer)):
            return []
        found = [
            (name, "empty", rows[name].isna().to_numpy())
            for name in rows.columns[rows.isna().any().to_numpy()]
            if name not in self.preparer.columns_with_gaps_
        ]
        for name, values in self.preparer.categories_.items():
            odd = (rows[name].notna() & ~rows[name].isin(values)).to_numpy()
            if odd.any():
                found.append((name, "unseen", odd))
        return found

    @property
    def sentences(self) -> list[str]:
        """A sentence for each kind of unusual rows."""
        found = []
        for (name, what), (count, example) in self._columns.items():
            how = "in every row" if count == self.rows else f"in {count} of {self.rows} rows"
            text = f"is empty {how} (the first is {example}), but in no training row"
            if what == "unseen":
                text = f"holds categories that no training row has, {how} (for example {example})"
            found.append(f"column {shown(name)} {text}")
        count, worst, first = self._far
        if count and self.known is not None:
            chance = self.rows / (self.known.units + 1.0)
            found.append(
                f"{count} of {self.rows} rows are further from the training rows than any of these "
                f"was when held out, up to {worst:.3g} times as far (the first is {first}); "
                f"{chance:.2g} would be by chance"
            )
        return found

    @property
    def document(self) -> dict[str, Any]:
        """The counts and notes, for JSON."""
        return {"rows": self.odd, "notes": self.sentences}


def _joined(notes: list[str]) -> str:
    rest = len(notes) - MAX_NAMED_COLUMNS
    return "; ".join(notes[:MAX_NAMED_COLUMNS]) + (f" and {rest} more" if rest > 0 else "")
