"""Draw docs/assets/gpu.svg from results/gpu_curve.csv: rows against seconds, three contestants.

``python benchmarks/gpu_picture.py`` draws it again after ``benchmarks/gpu.py --part curve --save``.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "gpu_curve.csv"
PICTURE = HERE.parent / "docs" / "assets" / "gpu.svg"
#: contestant -> label and style
WAYS = {
    "GridSearchCV": ("GridSearchCV(KernelRidge)", {"color": "#999999", "ls": "--", "marker": "s"}),
    "CPU": ("onefit, CPU", {"color": "#56B4E9", "marker": "o"}),
    "GPU": ("onefit, one GPU", {"color": "#003b6f", "marker": "o"}),
}


def digest(path: Path = RESULTS) -> str:
    """What identifies the numbers."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def draw(path: Path = PICTURE) -> None:
    """Seconds of ten folds at ten lams."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "svg.hashsalt": "onefit", "svg.fonttype": "none"})
    with RESULTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    figure, axis = plt.subplots(figsize=(5.2, 3.1), layout="constrained")
    for who, (label, style) in WAYS.items():
        own = sorted((int(row["n"]), float(row["seconds"])) for row in rows if row["who"] == who)
        if own:
            axis.loglog(*zip(*own, strict=True), label=label, lw=1.6, ms=4, **style)
    axis.set(xlabel="rows", ylabel="seconds, 10 folds x 10 lams")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    about = f"gpu_curve.csv sha256 {digest()}"
    figure.savefig(path, metadata={"Date": None, "Description": about})


if __name__ == "__main__":
    draw()
