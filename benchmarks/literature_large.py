"""Test errors on the larger sets of the literature, whole kernel matrices on a GPU.

The search is that of ``AutoKernelRegressor`` without its race on a sample: Laplace, Matern 3/2 and
Gaussian kernels on standardised columns, the bandwidths and lams of the default grid with further
lams, five folds, grids that grow while the winner lies at an end. Errors are divided by the
standard deviation of the test targets of all rows.

Usage: python -m benchmarks.literature_large [--splits 2] [--sets power20 pol10] [--device cuda]
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import KFold

from benchmarks.literature import RESULTS, load
from onefit import KernelRegressor, KernelSearchCV
from onefit.auto.extend import fit_growing
from onefit.auto.rules import choose_grid

SETS = ("power20", "kin8nm20", "pol10", "bike10", "elevators10", "protein10")
KERNELS = ("laplacian", "matern32", "rbf")


def run(name, split, device, rows, kernels=KERNELS):
    X, y, masks = load(name)
    test = masks[:, split]
    X = (X - X[~test].mean(axis=0)) / np.where(X[~test].std(axis=0) > 0, X[~test].std(axis=0), 1.0)
    train = np.flatnonzero(~test)
    train = train[np.random.default_rng(0).permutation(train.size)[: rows or train.size]]
    there = {"X": torch.tensor(X[train], device=device), "y": torch.tensor(y[train], device=device)}
    found = []
    for kernel in kernels:
        (grid,) = choose_grid((kernel,), "squared", X[train], y[train], "regression", 0, True)
        cv = KFold(5, shuffle=True, random_state=0)
        scoring = "neg_root_mean_squared_error"
        search = KernelSearchCV(KernelRegressor(), grid, cv=cv, scoring=scoring, aggregate="pooled")
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reasons = fit_growing(search, there["X"], there["y"], {})
        seconds = time.perf_counter() - start
        predicted = search.predict(torch.tensor(X[test], device=device)).cpu().numpy()
        rmse = float(np.sqrt(np.mean((predicted - y[test]) ** 2)))
        best = search.best_params_
        found.append(
            {
                "set": name,
                "split": split,
                "rows": train.size,
                "kernel": kernel,
                "cv rmse / sd": -float(search.best_score_) / y.std(),
                "test rmse": rmse,
                "test rmse / sd": rmse / y.std(),
                "gamma": best.get("gamma"),
                "lam": best["lam"],
                "candidates": len(search.cv_results_["params"]),
                "exact": float(np.mean(search.cv_results_["exact"])),
                "seconds": seconds,
                "edges": "; ".join(reasons),
            }
        )
        print(found[-1], flush=True)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, nargs="*", default=[0])
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--kernels", nargs="*", default=KERNELS)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", type=int, default=0, help="number of rows to use (0: all)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        for split in options.splits:
            try:
                rows += run(name, split, options.device, options.rows, options.kernels)
            except Exception as error:  # the other sets are still of interest
                print(name, split, repr(error), flush=True)
                continue
            with (options.out / "literature_large.csv").open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
