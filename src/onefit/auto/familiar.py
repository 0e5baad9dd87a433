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
from onefit.prepare import MISSING, TablePreparer
from onefit.uncertainty.novelty import Novelty, TrainingRows

Array = NDArray[Any]

__all__ = ["Familiar", "RowNotes", "Unfamiliar"]

#: columns that the note of a row names
NAMED_COLUMNS = 3


@dataclass(frozen=True)
class Familiar:
    """The training rows, as a reference that shows which new rows are unusual.

    Attributes
    ----------
    preparer : TablePreparer or another transformer, fitted to the training rows
    known : TrainingRows or None
        None where the model holds none.
    learned : transformer or None
        What the chosen model transforms prepared rows by.
    """

    preparer: Any
    known: TrainingRows | None
    learned: Any = None

    @classmethod
    def of(
        cls, model: Any, preparer: Any, folds: Folds | None, groups: Any = None, learned: Any = None
    ) -> Familiar:
        """The training rows of a fitted model, as the splits of its search compare them.

        New rows are compared with the rows that a classifier has coefficients for, with the
        landmarks of an approximation, and with all rows of others.
        """
        model = unwrap(model)
        support = is_classifier(model) and model.approximation is None
        if folds is None and model.approximation is None:
            return cls(preparer, None, learned)
        return cls(preparer, TrainingRows.of(model, folds, groups, support), learned)

    def novelty(self, rows: Any) -> Novelty | None:
        """Distance of rows, as the preparer reads them, to the training rows."""
        if self.known is None:
            return None
        encode = getattr(self.preparer, "encode", self.preparer.transform)
        encoded = encode(rows)
        if self.learned is not None:
            encoded = self.learned.transform(encoded)
        return self.known.novelty(self.known.model._validate_X(encoded, reset=False))

    def odd_cells(self, rows: Any) -> list[tuple[str, str, Array]]:
        """Name of a column, what is odd, and in which rows: "unseen" categories or "empty"."""
        if not (hasattr(rows, "columns") and isinstance(self.preparer, TablePreparer)):
            return []
        found = []
        numbers, categories = set(self.preparer.number_columns_), self.preparer.categories_
        for name in rows.columns[rows.isna().any().to_numpy()]:
            known = self.preparer.columns_with_gaps_ if name in numbers else categories[name]
            if (str(name) if name in numbers else MISSING) not in known:
                found.append((name, "empty", rows[name].isna().to_numpy()))
        for name, values in categories.items():
            odd = (rows[name].notna() & ~rows[name].isin(values)).to_numpy()
            if odd.any():
                found.append((name, "unseen", odd))
        return found


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
    """Rows that are not familiar, counted as they come.

    Attributes
    ----------
    familiar : Familiar
    rows : int
        That were looked at.
    odd : int
        Of these, rows with a note.
    """

    familiar: Familiar
    rows: int = 0
    odd: int = 0
    _far: list[tuple[int, float, str]] = field(default_factory=list)
    _columns: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)

    def add(self, X: Any) -> tuple[Array | None, Array]:
        """The novelty of rows, in units of the reach, and a note for each, empty for most."""
        m = int(X.shape[0])
        notes: list[list[str]] = [[] for _ in range(m)]
        novelty = self.familiar.novelty(X)
        if novelty is not None:
            where = np.flatnonzero(novelty.far)
            for row in where:
                notes[row].append("far from the training rows")
            if where.size:
                worst = float(novelty.ratio[where].max())
                self._far.append((where.size, worst, place_of(X, int(where[0]))))
        for name, what, odd in self.familiar.odd_cells(X):
            where = np.flatnonzero(odd)
            count, example = self._columns.get((name, what), (0, ""))
            value = shown(X[name].iloc[int(where[0])]) if what == "unseen" else ""
            place = place_of(X, int(where[0]))
            example = example or (f"{value} in {place}" if value else place)
            self._columns[name, what] = count + where.size, example
            for row in where:
                cell = f" {shown(X[name].iloc[row])}" if what == "unseen" else ""
                notes[row].append(f"{what} {name}{cell}")
        self.rows += m
        self.odd += sum(bool(one) for one in notes)
        texts = [_joined(one) for one in notes]
        ratio = None if novelty is None else novelty.ratio
        return ratio, np.array(texts, dtype=object)

    @property
    def sentences(self) -> list[str]:
        """A sentence for whatever was found."""
        found = []
        for (name, what), (count, example) in self._columns.items():
            how = "in every row" if count == self.rows else f"in {count} of {self.rows} rows"
            text = f"is empty {how} (the first is {example}), and was filled in all training rows"
            if what == "unseen":
                text = f"holds categories that no training row has, {how} (for example {example})"
            found.append(f"column {shown(name)} {text}")
        if self._far and self.familiar.known is not None:
            count = sum(one[0] for one in self._far)
            chance = self.rows / (self.familiar.known.units + 1.0)
            found.append(
                f"{count} of {self.rows} rows are further from the training rows than any of these "
                f"was when held out, up to {max(one[1] for one in self._far):.3g} times as far "
                f"(the first is {self._far[0][2]}); {chance:.2g} would be by chance"
            )
        return found

    @property
    def document(self) -> dict[str, Any]:
        """The counts and notes, for JSON."""
        return {"rows": self.odd, "notes": self.sentences}


def _joined(notes: list[str]) -> str:
    more = f" and {len(notes) - NAMED_COLUMNS} more" if len(notes) > NAMED_COLUMNS else ""
    return "; ".join(notes[:NAMED_COLUMNS]) + more
