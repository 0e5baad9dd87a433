"""What the figures of the gallery share: a style, and a paper's committed results.

A script of this folder is run as ``python SCRIPT OUT`` while the documentation is built. Every SVG
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

from onefit.reproduce.results import Results

ROOT = Path(__file__).resolve().parents[3]
#: told apart by most eyes
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


def committed(paper: str) -> Results | None:
    """The results of the full run that is committed, None where there are none."""
    path = ROOT / "experiments" / paper / "results.csv"
    if not path.exists():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    for row in rows:
        row["replicate"], row["value"] = int(row["replicate"]), float(row["value"])
    return Results(rows)


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
