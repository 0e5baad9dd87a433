"""What the figures of the gallery share: a style, a paper's committed results, its own numbers.

``make docs`` runs a script of this folder as ``python SCRIPT OUT``. Every SVG
file that it writes to the folder OUT can be shown by the page of the same name, and every Markdown
file inserted there.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

PAPERS = Path(__file__).resolve().parents[1]
#: the reading that is compared with the paper
MAIN = "main"
#: colours that most readers can distinguish
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#666666")
BLUE, RED, GREEN, PINK, ORANGE, SKY, GREY = COLOURS

plt.rcParams.update(
    {
        "axes.grid": True,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 10,
        "figure.constrained_layout.use": True,
        "font.size": 9,
        "grid.alpha": 0.3,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "svg.hashsalt": "onefit",
    }
)


class Results:
    """Measurements of a paper's tables: one value per replicate in every cell."""

    def __init__(self, rows: list[dict[str, str]]) -> None:
        cells: dict[tuple[str, str, str, str], dict[int, float]] = {}
        for row in rows:
            key = (row["table"], row["variant"], row["row"], row["column"])
            cells.setdefault(key, {})[int(row["replicate"])] = float(row["value"])
        self._cells = {k: np.array([own[i] for i in sorted(own)]) for k, own in cells.items()}

    def values(self, table: str, row: str, column: str, variant: str = MAIN) -> np.ndarray:
        """In the order of the replicates; empty where nothing was measured."""
        return self._cells.get((table, variant, row, column), np.empty(0))

    def mean(self, table: str, row: str, column: str, variant: str = MAIN) -> float:
        """Over replicates, NaN where there is none."""
        values = self.values(table, row, column, variant)
        return float(values.mean()) if values.size else float("nan")

    def median(self, table: str, row: str, column: str, variant: str = MAIN) -> float:
        """Over replicates, NaN where there is none."""
        values = self.values(table, row, column, variant)
        return float(np.median(values)) if values.size else float("nan")

    def tables(self) -> list[str]:
        """Names of the tables, in the order of measurement, as all that follow."""
        return list(dict.fromkeys(key[0] for key in self._cells))

    def variants(self, table: str) -> list[str]:
        """Names of the readings that have this table."""
        return list(dict.fromkeys(key[1] for key in self._cells if key[0] == table))

    def rows(self, table: str) -> list[str]:
        """Names of the rows of a table in the main reading."""
        return list(dict.fromkeys(key[2] for key in self._cells if key[:2] == (table, MAIN)))

    def columns(self, table: str) -> list[str]:
        """Names of the columns of a table in the main reading."""
        return list(dict.fromkeys(key[3] for key in self._cells if key[:2] == (table, MAIN)))


def committed(paper: str) -> Results | None:
    """The results of the full run that is committed, None where there are none."""
    path = PAPERS / "experiments" / paper / "results.csv"
    return Results(_read(path)) if path.exists() else None


def published(paper: str) -> dict[tuple[str, str, str], float]:
    """The numbers that a paper prints, by table, row and column; NaN for those not readable."""
    lines = _read(PAPERS / "src" / "onefit_papers" / "published" / f"{paper}.csv")
    return {(r["table"], r["row"], r["column"]): float(r["mean"] or "nan") for r in lines}


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def panels(count: int, width: int, height: float = 2.2) -> tuple[Figure, list[Any]]:
    """A figure of panels, ``width`` of them in a row."""
    width = min(width, count)
    depth = -(-count // width)
    size = (max(2.4 * width, 5.0), height * depth)
    figure, axes = plt.subplots(depth, width, figsize=size, squeeze=False)
    flat = list(axes.flat)
    for axis in flat[count:]:
        axis.set_axis_off()
    return figure, flat[:count]


def bars(axis: Any, groups: Sequence[str], series: dict[str, Sequence[float]]) -> None:
    """Bars side by side, one group for each name."""
    at, width = np.arange(len(groups)), 0.8 / len(series)
    for i, (name, values) in enumerate(series.items()):
        place = at + (i - (len(series) - 1) / 2) * width
        axis.bar(place, values, width, label=name, color=COLOURS[i % len(COLOURS)])
    axis.set_xticks(at, groups, rotation=35, ha="right")


def save(figure: Figure, out: Path, name: str) -> None:
    """Write a figure as SVG, the same bytes for the same figure."""
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)
