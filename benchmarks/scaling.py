"""How the time of an exact search grows with the rows, the lams and the folds.

One of the three is varied at a time, for every method of the exact engine. The exponent p of
time ~ size^p is fitted by least squares on logarithms, over all sizes and over the larger half of
them, where the leading term shows.
"""

from __future__ import annotations

from functools import partial

import _harness as harness
import numpy as np
from _data import friedman
from _harness import Contestant, Row

METHODS = ("auto", "eigen", "block")
SWEEPS = {
    "n": [250, 350, 500, 700, 1000, 1400, 2000],
    "lams": [5, 10, 20, 40, 80, 160, 320],
    "folds": [2, 5, 10, 20, 50, 100, 200],
}
QUICK = {"n": [100, 150, 200, 300], "lams": [4, 8, 16], "folds": [2, 5, 10]}
BASE = {"n": 1000, "lams": 20, "folds": 10, "gammas": 2}


def build_onefit(task: Row, method: str):
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV

    X, y = friedman(task["n"])
    candidates = {
        "gamma": np.logspace(-1, 0, task["gammas"]),
        "lam": np.logspace(-6, 2, task["lams"]),
    }
    machine = KernelRegressor(scaling="total", fit_intercept=False)
    options = {"cv": KFold(task["folds"]), "scoring": "neg_mean_squared_error"}
    search = KernelSearchCV(machine, candidates, method=method, n_jobs=1, refit=False, **options)
    return lambda: float(search.fit(X, y).best_score_)


def build_gridsearch(task: Row):
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold

    X, y = friedman(task["n"])
    candidates = {
        "gamma": np.logspace(-1, 0, task["gammas"]),
        "alpha": np.logspace(-6, 2, task["lams"]),
    }
    options = {"cv": KFold(task["folds"]), "scoring": "neg_mean_squared_error"}
    search = GridSearchCV(KernelRidge(kernel="rbf"), candidates, n_jobs=1, refit=False, **options)
    return lambda: float(search.fit(X, y).best_score_)


def contestants(peers: bool) -> list[Contestant]:
    one = "1 process x 1 thread"
    ours = [Contestant(f"onefit {m}", one, partial(build_onefit, method=m)) for m in METHODS]
    return ours + (
        [Contestant("GridSearchCV(KernelRidge)", one, build_gridsearch)] if peers else []
    )


def sweep(flags, varied: str, sizes: list[int], base: Row) -> list[Row]:
    rows = []
    for size in sizes:
        task = {**base, varied: size}
        print(f"{varied} = {size}")
        warm = {**base, "n": 60, "lams": 2, "folds": 2}
        rivals = harness.chosen(contestants(flags.peers), flags.only)
        outcomes = harness.compete(rivals, task, warm, flags.rounds)
        timed = harness.timing_rows(outcomes, "onefit auto", task["n"], varied=varied, size=size)
        rows += [{**row, "lams": task["lams"], "folds": task["folds"]} for row in timed]
    return rows


def exponents(rows: list[Row]) -> list[Row]:
    """Fitted exponents, a row for each varied quantity and contestant."""
    fits = []
    for varied, name in dict.fromkeys((row["varied"], row["contestant"]) for row in rows):
        size, seconds = curve(rows, varied, name)
        half = size >= np.median(size) if size.size else np.array([], dtype=bool)
        fits.append(
            {
                "varied": varied,
                "contestant": name,
                "exponent": slope(size, seconds),
                "exponent_larger_half": slope(size[half], seconds[half]),
                "sizes": ", ".join(f"{s:g}" for s in size) or "not available",
            }
        )
    return fits


def curve(rows: list[Row], varied: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    points = [
        (row["size"], row["best_s"])
        for row in rows
        if row["varied"] == varied and row["contestant"] == name and row["rounds"]
    ]
    size, seconds = np.array(points, dtype=float).reshape(-1, 2).T
    return size, seconds


def slope(size: np.ndarray, seconds: np.ndarray) -> float:
    if size.size < 2:
        return float("nan")
    return float(np.polyfit(np.log(size), np.log(seconds), 1)[0])


def plot(path, rows: list[Row], fits: list[Row], base: Row) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(row["varied"] for row in rows))
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.8), squeeze=False)
    for axis, varied in zip(axes[0], panels, strict=True):
        for fit in (fit for fit in fits if fit["varied"] == varied):
            size, seconds = curve(rows, varied, fit["contestant"])
            label = f"{fit['contestant']}: p = {fit['exponent']:.2f}"
            axis.loglog(size, seconds, "o-", ms=4, lw=1.2, label=label)
        fixed = ", ".join(f"{key} = {value}" for key, value in base.items() if key != varied)
        axis.set(xlabel=varied, ylabel="seconds", title=fixed)
        axis.title.set_fontsize(9)
        axis.grid(alpha=0.3, which="both")
        axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def arguments():
    flags = harness.parser(__doc__)
    flags.add_argument("--vary", nargs="+", choices=list(SWEEPS), default=list(SWEEPS))
    flags.add_argument("--peers", action="store_true", help="GridSearchCV(KernelRidge) too (long)")
    return flags.parse_args()


def main() -> None:
    flags = arguments()
    base = {**BASE, "n": 200, "lams": 5, "folds": 5} if flags.quick else BASE
    sizes = QUICK if flags.quick else SWEEPS
    rows = [row for varied in flags.vary for row in sweep(flags, varied, sizes[varied], base)]
    fits = exponents(rows)
    name = harness.stem("scaling", flags.quick)
    harness.write_csv(flags.out, name, rows)
    plot(flags.out / f"{name}.png", rows, fits, base)
    fixed = ", ".join(f"{key} = {value}" for key, value in base.items())
    about = f"Where not varied: {fixed}. Exponent p of time ~ size^p.\n\n![times]({name}.png)\n\n"
    parts = [("Fitted exponents", about + harness.table(fits)), ("Times", harness.table(rows))]
    print(harness.write_report(flags.out, name, "Time by rows, lams and folds", parts).read_text())


if __name__ == "__main__":
    main()
