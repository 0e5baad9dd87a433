"""Test errors of ``select`` on the splits of the literature, beside published ones.

Sets and splits are in ``$ONEFIT_DATA_DIR/uci``: those of Hernandez-Lobato and Adams (2015), as
used by Gal and Ghahramani (2016), whose errors with a grid search are "MC dropout". Gradient
boosting is that of bayesian_benchmarks, on random tests of 10 %.

Usage: python -m benchmarks.literature [--splits 3] [--sets concrete20 energy20] [--name literature]
[--stack] [--jobs 1]. ``--stack`` calls ``select`` with ``stack=True``.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np

from onefit import select

DATA = Path(os.environ.get("ONEFIT_DATA_DIR", "data")) / "uci"
RESULTS = Path(__file__).parent / "results"
#: MC dropout, gradient boosting
PUBLISHED = {
    "boston20": (2.90, 2.60),
    "concrete20": (4.82, 5.39),
    "energy20": (0.54, 0.48),
    "power20": (4.01, 3.86),
    "winered20": (0.62, 0.615),
    "yacht20": (0.67, 0.67),
}
SETS = ("concrete20", "energy20", "yacht20", "boston20", "winered20", "airfoil10")


def load(name):
    table = np.genfromtxt(DATA / f"{name}.csv.gz", delimiter=",", skip_header=1)
    with np.load(DATA / f"{name}.splits.npz") as file:
        masks = np.unpackbits(file["test"], axis=0)[: int(file["n"])].astype(bool)
    return table[:, :-1], table[:, -1], masks


def run(name, split, stack=False):
    """The test error, seconds and the choice of one split."""
    X, y, masks = load(name)
    test = masks[:, split]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = select(X[~test], y[~test], stack=stack)
    seconds = time.perf_counter() - start
    rest = found.predict(X[test]) - y[test]
    best = found.best_params_
    return {
        "set": name,
        "split": split,
        "rows": int((~test).sum()),
        "rmse": float(np.sqrt(np.mean(rest**2))),
        "rmse_over_sd": float(np.sqrt(np.mean(rest**2)) / y[~test].std()),
        "seconds": seconds,
        "kernel": best["kernel"],
        "loss": best.get("loss", "squared"),
        "lam": best["lam"],
        "reasons": "; ".join(one for one in found.reasons_ if "raced" in one or " tried" in one),
    }


def write(path, rows, mode):
    """Rows with a header, or after those that are there."""
    new = mode == "w" or not path.exists()
    with path.open(mode, newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--name", default="literature")
    parser.add_argument("--stack", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    tasks = [(name, split) for split in range(options.splits) for name in options.sets]
    rows = []
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{options.name}.csv"
    path.unlink(missing_ok=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        for found in as_completed([pool.submit(run, *one, options.stack) for one in tasks]):
            rows.append(found.result())
            write(path, rows[-1:], "a")
            print(rows[-1], flush=True)
    rows.sort(key=lambda row: (options.sets.index(row["set"]), row["split"]))
    write(path, rows, "w")
    lines = [
        f"# Test errors of `select`{' with `stack=True`' * options.stack} on the splits of the "
        "literature",
        "",
        f"Root mean squared error, mean of the first {options.splits} splits "
        "(`benchmarks/literature.py`); published means are over all splits.",
        "",
        "| set | training rows | `select` | over sd | MC dropout | boosting | seconds | kernels |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in options.sets:
        mine = [row for row in rows if row["set"] == name]
        mean = {key: np.mean([row[key] for row in mine]) for key in ("rmse", "rmse_over_sd")}
        known = [str(one) for one in PUBLISHED.get(name, ("-", "-"))]
        kernels = ", ".join(sorted({row["kernel"] for row in mine}))
        seconds = np.mean([row["seconds"] for row in mine])
        lines.append(
            f"| {name} | {mine[0]['rows']:,} | {mean['rmse']:.3f} | {mean['rmse_over_sd']:.3f} | "
            f"{known[0]} | {known[1]} | {seconds:.1f} | {kernels} |"
        )
    (RESULTS / f"{options.name}.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
