"""Draw the pictures of README.md and of the documentation's first page, from committed results.

``python benchmarks/readme_picture.py`` draws them again; each file has a digest of its numbers.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path
from typing import Any

from readme_table import OURS, PEERS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
ASSETS = HERE.parent / "docs" / "assets"
#: picture -> the table that it shows
PICTURES = {"accuracy": "accuracy", "speed": "exact_search", "quality": "how_good"}
#: loss -> title
LOSSES = {
    "squared": "squared loss",
    "huber": "Huber loss",
    "smoothed_hinge": "smoothed hinge (SVM)",
}
ORDERS = ("order 1", "order 2", "order 3", "order 5", "order 8")
#: name in the table -> name in the picture
RIVALS = {
    "catboost": "CatBoost",
    "lightgbm": "LightGBM, tuned",
    "xrfm": "xRFM, tuned",
    "forest": "random forest",
    "svm": "SVM, grid search",
    "gp": "Gaussian process",
}
BLUE, LIGHT, GREY, RED = "#003b6f", "#56B4E9", "#c8c8c8", "#d55e00"
FLOOR = 1e-16


def rows_of(table: str) -> list[dict[str, str]]:
    """The rows of a committed table."""
    with (RESULTS / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def digest(picture: str) -> str:
    """What identifies the numbers of a picture."""
    return hashlib.sha256((RESULTS / f"{PICTURES[picture]}.csv").read_bytes()).hexdigest()


def draw(picture: str, folder: Path = ASSETS) -> Path:
    """Draw one picture and return its path."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "onefit", "svg.fonttype": "none"})
    figure = {"accuracy": accuracy, "speed": speed, "quality": quality}[picture](plt)
    path = folder / f"{picture}.svg"
    about = f"{PICTURES[picture]}.csv sha256 {digest(picture)}"
    figure.savefig(path, metadata={"Date": None, "Description": about})
    plt.close(figure)
    return path


def accuracy(plt: Any) -> Any:
    """Relative error of five-fold held-out predictions against lam, one panel a loss."""
    rows = [row for row in rows_of("accuracy") if row["cv"] == "5 folds"]
    size = {"figsize": (9.0, 3.1), "layout": "constrained"}
    figure, axes = plt.subplots(1, len(LOSSES), sharey=True, **size)
    for axis, (loss, title) in zip(axes, LOSSES.items(), strict=True):
        own = [row for row in rows if row["loss"] == loss]
        lams = [float(row["lam"]) for row in own]
        for i, way in enumerate((*ORDERS, "limit", "exact")):
            style = {"color": plt.cm.autumn(i / 6), "lw": 1.0, "ls": "--", "marker": "."}
            if way == "limit":
                style = {"color": LIGHT, "lw": 3.5, "alpha": 0.8}
            elif way == "exact":
                style = {"color": BLUE, "lw": 1.6, "marker": "o", "ms": 4}
            errors = [max(float(row[way]), FLOOR) for row in own]
            axis.loglog(lams, errors, label=way, **style)
        axis.invert_xaxis()
        axis.minorticks_off()
        axis.set(title=title, xlabel="lam")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("relative error of\nheld-out predictions")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7)
    return figure


def speed(plt: Any) -> Any:
    """Seconds of one search by three libraries, a group of bars for each number of rows."""
    rows = [row for row in rows_of("exact_search") if row["part"] == "kfold"]
    sizes = list(dict.fromkeys(row["n"] for row in rows))
    ways = {
        "onefit": (OURS, BLUE),
        "himalaya": (PEERS["himalaya `KernelRidgeCV`, bandwidth by bandwidth"], LIGHT),
        "scikit-learn GridSearchCV": (PEERS["scikit-learn `GridSearchCV(KernelRidge)`"], GREY),
    }
    figure, axis = plt.subplots(figsize=(7.2, 3.0), layout="constrained")
    for k, (label, (start, colour)) in enumerate(ways.items()):
        seconds = [
            min(
                float(r["best_s"])
                for r in rows
                if r["n"] == n and r["contestant"].startswith(start)
            )
            for n in sizes
        ]
        places = [i + 0.28 * (1 - k) for i in range(len(sizes))]
        bars = axis.barh(places, seconds, 0.26, color=colour, label=label)
        axis.bar_label(
            bars, [f"{one:.2g} s" if one < 100 else f"{one:.0f} s" for one in seconds], padding=3
        )
    axis.set_yticks(range(len(sizes)), [f"{int(n):,} rows" for n in sizes])
    axis.invert_yaxis()
    axis.set(xlabel="seconds (shorter is better)", xlim=(0, 1.12 * axis.get_xlim()[1]))
    axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axis.get_legend_handles_labels()
    axis.legend(handles[::-1], labels[::-1], frameon=False, loc="upper right")
    return figure


def quality(plt: Any) -> Any:
    """Data sets on which the default of select has the smaller, an equal or the larger error."""
    rows = rows_of("how_good")
    pairs = {
        name: [(float(row[row["default"]]), float(row[name])) for row in rows if row[name]]
        for name in RIVALS
    }
    counts = {
        ("onefit has the smaller error", BLUE, "white"): lambda a, b: a < b,
        ("an equal one", GREY, "black"): lambda a, b: a == b,
        ("the larger one", RED, "white"): lambda a, b: a > b,
    }
    figure, axis = plt.subplots(figsize=(7.2, 2.8), layout="constrained")
    left = [0] * len(RIVALS)
    for (label, colour, inside), counted in counts.items():
        sets = [sum(counted(a, b) for a, b in one) for one in pairs.values()]
        bars = axis.barh(list(RIVALS.values()), sets, 0.6, left=left, color=colour, label=label)
        axis.bar_label(bars, [one or "" for one in sets], label_type="center", color=inside)
        left = [a + b for a, b in zip(left, sets, strict=True)]
    axis.invert_yaxis()
    axis.set(xlabel="data sets")
    axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    return figure


if __name__ == "__main__":
    for name in PICTURES:
        draw(name)
