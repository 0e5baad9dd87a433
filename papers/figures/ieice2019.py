"""Figure 1 of IEICE 2019 from the committed run, and in small at the time of the build."""

from __future__ import annotations

import sys
from pathlib import Path
from time import perf_counter

import common
import matplotlib.pyplot as plt
import numpy as np
from common import COLOURS, MAIN, Results

from onefit import KernelRegressor, KernelSearchCV

COUNTS = (1, 2, 4, 8, 16, 32)
ROWS = 400


def small(out: Path) -> None:
    """Seconds of a search over one kernel and several lambdas, by method; the best of three."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-10.0, 10.0, (ROWS, 1)), rng.standard_normal(ROWS)
    model = KernelRegressor(gamma=1.0, fit_intercept=False, scaling="total")
    figure, axis = plt.subplots(figsize=(5.0, 2.8))
    for method, colour in zip(("refit", "block", "eigen"), COLOURS, strict=False):
        seconds = []
        for count in COUNTS:
            grid = {"lam": np.linspace(0.1, 1.0, count)}
            scoring = "neg_mean_squared_error"
            search = KernelSearchCV(model, grid, cv=5, scoring=scoring, method=method, refit=False)
            seconds.append(min(_seconds(search, X, y) for _ in range(3)))
        axis.loglog(COUNTS, seconds, "o-", ms=3, color=colour, label=method)
    axis.set_xticks(COUNTS, [str(count) for count in COUNTS])
    axis.minorticks_off()
    axis.set(title=f"n = {ROWS}, 5 folds", xlabel="number of lambdas", ylabel="seconds")
    axis.legend()
    common.save(figure, out, "small")


def _seconds(search: KernelSearchCV, X: np.ndarray, y: np.ndarray) -> float:
    start = perf_counter()
    search.fit(X, y)
    return perf_counter() - start


def figure1(results: Results, out: Path) -> None:
    """Seconds against the number of lambdas."""
    rows = results.rows("figure 1")
    kinds = list(dict.fromkeys(row.split(", ")[0] for row in rows))
    figure, axes = plt.subplots(1, len(kinds), figsize=(8.5, 3.0), squeeze=False)
    for axis, kind in zip(axes.flat, kinds, strict=True):
        own = [row for row in rows if row.startswith(f"{kind},")]
        counts = [int(row.split(", ")[1]) for row in own]
        for name, colour in zip(("naive", "Fast", "Prop", "block", "eigen"), COLOURS, strict=False):
            for variant in results.variants("figure 1"):
                seconds = [results.median("figure 1", row, name, variant) for row in own]
                if np.isfinite(seconds).any():
                    style = {"color": colour, "label": name, "ls": "-"}
                    if variant != MAIN:
                        style |= {"label": f"{name}, {variant}", "ls": ":"}
                    axis.loglog(counts, seconds, marker="o", ms=3, **style)
        axis.set_xticks(counts, [str(count) for count in counts], fontsize=7)
        axis.minorticks_off()
        axis.set(title=kind, xlabel="number of lambdas", ylabel="seconds")
    axes.flat[0].legend()
    common.save(figure, out, "figure1")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    small(folder)
    found = common.committed("ieice2019")
    if found is not None:
        figure1(found, folder)
