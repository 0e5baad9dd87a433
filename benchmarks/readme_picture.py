"""Draw the picture of README.md, docs/assets/accuracy.svg, from results/accuracy.csv.

``python benchmarks/readme_picture.py`` draws it anew; the file remembers which numbers it shows.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "accuracy.csv"
PICTURE = HERE.parent / "docs" / "assets" / "accuracy.svg"
#: loss -> title
LOSSES = {
    "squared": "squared loss",
    "huber": "Huber loss",
    "smoothed_hinge": "smoothed hinge (SVM)",
}
ORDERS = ("order 1", "order 2", "order 3", "order 5", "order 8")
FLOOR = 1e-16


def digest(path: Path = RESULTS) -> str:
    """What identifies the numbers."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def draw(path: Path = PICTURE) -> None:
    """Relative error of five-fold held-out predictions against lam, one panel a loss."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "onefit", "svg.fonttype": "none"})
    with RESULTS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["cv"] == "5 folds"]
    size = {"figsize": (9.0, 3.1), "layout": "constrained"}
    figure, axes = plt.subplots(1, len(LOSSES), sharey=True, **size)
    for axis, (loss, title) in zip(axes, LOSSES.items(), strict=True):
        own = [row for row in rows if row["loss"] == loss]
        lams = [float(row["lam"]) for row in own]
        for i, way in enumerate((*ORDERS, "limit", "exact")):
            style = {"color": plt.cm.autumn(i / 6), "lw": 1.0, "ls": "--", "marker": "."}
            if way == "limit":
                style = {"color": "#56B4E9", "lw": 3.5, "alpha": 0.8}
            elif way == "exact":
                style = {"color": "#003b6f", "lw": 1.6, "marker": "o", "ms": 4}
            errors = [max(float(row[way]), FLOOR) for row in own]
            axis.loglog(lams, errors, label=way, **style)
        axis.invert_xaxis()
        axis.minorticks_off()
        axis.set(title=title, xlabel="lam")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("relative error of\nheld-out predictions")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7)
    about = f"accuracy.csv sha256 {digest()}"
    figure.savefig(path, metadata={"Date": None, "Description": about})


if __name__ == "__main__":
    draw()
