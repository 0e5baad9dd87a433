"""What was measured and what the papers print, looked up by table, row and column.

A measurement is a row with the keys ``table``, ``row``, ``column``, ``variant``, ``replicate`` and
``value``; whatever else it carries (the chosen parameters, say) goes into the CSV file as it is.
The papers' numbers lie in ``published/<paper>.csv``, typed from the texts; a cell that cannot be
read has no mean and a note that says so.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit_papers.journal import Row

Array = NDArray[Any]

__all__ = ["MAIN", "Cell", "Published", "Results", "middle", "read_csv", "write_csv"]

#: the variant that is compared with the paper
MAIN = "main"
_FIRST = ("table", "variant", "row", "column", "replicate", "value")


class Results:
    """Measurements, grouped."""

    def __init__(self, rows: list[Row]) -> None:
        self.all = rows
        self._cells: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for row in rows:
            key = (row["table"], row["variant"], row["row"], row["column"])
            self._cells.setdefault(key, {})[row["replicate"]] = row["value"]

    def values(self, table: str, row: str, column: str, variant: str = MAIN) -> Array:
        """One value a replicate, in their order; empty where nothing was measured."""
        cell = self._cells.get((table, variant, row, column), {})
        return np.array([cell[replicate] for replicate in sorted(cell)])

    def mean(self, table: str, row: str, column: str, variant: str = MAIN) -> float:
        """The mean over replicates, NaN where there is none."""
        values = self.values(table, row, column, variant)
        return float(values.mean()) if values.size else float("nan")

    def median(self, table: str, row: str, column: str, variant: str = MAIN) -> float:
        """The median over replicates, for times; NaN where there is none."""
        values = self.values(table, row, column, variant)
        return float(np.median(values)) if values.size else float("nan")

    def least(self, table: str, row: str, column: str, variant: str = MAIN) -> float:
        """The minimum over replicates, for times; NaN where there is none."""
        values = self.values(table, row, column, variant)
        return float(values.min()) if values.size else float("nan")

    def paired(self, table: str, row: str, one: str, two: str) -> Array:
        """First column minus second, replicate by replicate, where both were measured."""
        first, second = (self._cells.get((table, MAIN, row, c), {}) for c in (one, two))
        return np.array([first[i] - second[i] for i in sorted(first.keys() & second.keys())])

    def reading(self, variant: str) -> Results:
        """The main measurements, with those of a variant in their place wherever it has some."""
        own = [row for row in self.all if row["variant"] == variant]
        taken = {(row["table"], row["row"], row["column"]) for row in own}
        kept = [
            row
            for row in self.all
            if row["variant"] == MAIN and (row["table"], row["row"], row["column"]) not in taken
        ]
        return Results([*kept, *({**row, "variant": MAIN} for row in own)])

    def only(self, variant: str) -> Results:
        """The measurements of a variant alone, as if they were the main ones."""
        own = [row for row in self.all if row["variant"] == variant]
        return Results([{**row, "variant": MAIN} for row in own])

    def rows(self, table: str, variant: str = MAIN) -> list[str]:
        """Names of the rows of a table, in the order of measurement."""
        return list(dict.fromkeys(k[2] for k in self._cells if k[:2] == (table, variant)))

    def columns(self, table: str, variant: str = MAIN) -> list[str]:
        """Names of the columns of a table, in the order of measurement."""
        return list(dict.fromkeys(k[3] for k in self._cells if k[:2] == (table, variant)))

    def variants(self, table: str) -> list[str]:
        """Names of the variants that have this table."""
        return list(dict.fromkeys(k[1] for k in self._cells if k[0] == table))


def middle(values: list[float]) -> float:
    """The median of those that are numbers, NaN where none is."""
    known = [value for value in values if np.isfinite(value)]
    return float(np.median(known)) if known else float("nan")


@dataclass(frozen=True)
class Cell:
    """A number of a paper; NaN where it cannot be read or none is given."""

    mean: float
    sd: float
    note: str = ""


class Published:
    """The numbers that a paper prints."""

    def __init__(self, paper: str) -> None:
        text = files("onefit_papers").joinpath("published", f"{paper}.csv").read_text("utf-8")
        self._cells = {
            (line["table"], line["row"], line["column"]): Cell(
                float(line["mean"] or "nan"), float(line["sd"] or "nan"), line["note"]
            )
            for line in csv.DictReader(io.StringIO(text))
        }

    def cell(self, table: str, row: str, column: str) -> Cell:
        """The paper's number, NaN if it has none there."""
        return self._cells.get((table, row, column), Cell(float("nan"), float("nan")))

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table."""
        return list(dict.fromkeys(key[2] for key in self._cells if key[0] == table))

    def spread_cells(self, table: str) -> dict[tuple[str, str], Cell]:
        """Row and column of the cells that have a number and a spread behind it."""
        return {
            key[1:]: cell
            for key, cell in self._cells.items()
            if key[0] == table and np.isfinite(cell.mean) and cell.sd > 0
        }

    def notes(self, table: str) -> list[str]:
        """What had to be guessed or left out, one line a cell."""
        found = [
            (key, cell.note) for key, cell in self._cells.items() if key[0] == table and cell.note
        ]
        return [f"{row}, {column}: {note}" for (_, row, column), note in found]


def read_csv(text: str) -> Results:
    """The measurements that :func:`write_csv` wrote."""
    lines = csv.DictReader(io.StringIO(text))
    numbers = {"replicate": int, "value": float}
    return Results(
        [{k: numbers.get(k, str)(v) for k, v in line.items() if v != ""} for line in lines]
    )


def write_csv(rows: list[Row]) -> str:
    """All measurements as CSV text, one line each."""
    others = dict.fromkeys(name for row in rows for name in row if name not in _FIRST)
    text = io.StringIO()
    writer = csv.DictWriter(text, [*_FIRST, *others], lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
