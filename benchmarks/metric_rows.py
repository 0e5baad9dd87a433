"""Whether a metric of a sample of the rows pays on thousands of rows.

For each large regression of the literature: the best of the Laplace, Matern 3/2 and Gaussian
kernels on standardised columns, and the best of two Matern kernels on rows transformed by
:class:`onefit.gradient_metric.GradientMetric`, which is fitted to ``--sample`` rows of each
training part. Both choose gamma and lam by the same five folds; whole kernel matrices, on the
device if one is named. Errors are root mean squared errors over the standard deviation of the
training targets.

Usage: python benchmarks/metric_rows.py --data DIR [--device cuda] [--sets kin8nm pol] [--splits 2]
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _data import data_folder
from _sets import LARGE, table_sets
from sklearn.model_selection import KFold

LAMS = np.logspace(-7, -2, 6)
PLAIN, GAMMAS = ("laplacian", "matern32", "rbf"), (0.2, 0.5, 1.0, 2.0)
LEARNED, LEARNED_GAMMAS, STEPS = ("matern12", "matern32"), (0.2, 0.5, 1.4), (1, 3)
RESULTS = Path(__file__).parent / "results"


def search(X: Any, y: Any, kernel: str, gammas: Any, folds: Any) -> Any:
    from onefit import KernelRegressor, KernelSearchCV

    found = KernelSearchCV(
        KernelRegressor(kernel=kernel),
        {"gamma": gammas, "lam": LAMS},
        cv=folds,
        scoring="neg_root_mean_squared_error",
        aggregate="pooled",
    )
    return found.fit(X, y)


def plain(X: Any, y: Any, X_test: Any, place: Any, folds: Any) -> list[tuple[float, Any, str]]:
    """Cross-validated error, predictions and name of each kernel."""
    spread, found = np.sqrt(X.shape[1]), []
    for kernel in PLAIN:
        power = 2 if kernel == "rbf" else 1
        scale = X.shape[1] if kernel == "laplacian" else spread
        one = search(place(X), place(y), kernel, [(g / scale) ** power for g in GAMMAS], folds)
        found.append((-one.best_score_, host(one.predict(place(X_test))), kernel))
    return found


def learned(
    X: Any, y: Any, X_test: Any, place: Any, folds: Any, sample: int, steps: int
) -> list[tuple[float, Any, str]]:
    """The same on rows of metrics; each fold's model on the metric of its training part."""
    from onefit import KernelRegressor
    from onefit.gradient_metric import GradientMetric

    random = np.random.default_rng(0)

    def metric(rows: Any) -> Any:
        some = random.permutation(rows)[:sample]
        return GradientMetric(steps).fit(X[some], y[some])

    parts = [(train, test, metric(train)) for train, test in folds]
    final, found = metric(np.arange(len(y))), []
    for kernel in LEARNED:
        squares = {}
        for train, test, one in parts:
            Z = one.transform(X)
            own = search(place(Z), place(y), kernel, LEARNED_GAMMAS, [(train, test)])
            scores = own.cv_results_["split0_test_score"]
            for params, score in zip(own.cv_results_["params"], scores, strict=True):
                key = float(params["gamma"]), float(params["lam"])
                squares[key] = squares.get(key, 0.0) + score**2 * len(test)
        (gamma, lam), total = min(squares.items(), key=lambda item: item[1])
        model = KernelRegressor(kernel=kernel, gamma=gamma, lam=lam)
        model.fit(place(final.transform(X)), place(y))
        predicted = host(model.predict(place(final.transform(X_test))))
        found.append((np.sqrt(total / len(y)), predicted, f"{kernel}, {steps} steps"))
    return found


def host(values: Any) -> np.ndarray:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--device", default="")
    parser.add_argument("--sets", nargs="*", default=list(LARGE))
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--sample", type=int, default=2000, help="rows that learn a metric")
    parser.add_argument("--rows", type=int, default=20_000, help="most training rows")
    parser.add_argument("--out", type=Path, default=RESULTS)
    flags = parser.parse_args()
    folder, rows = data_folder(flags.data), []
    warnings.simplefilter("ignore")

    def place(values: Any) -> Any:
        if not flags.device:
            return values
        import torch

        return torch.tensor(values, device=flags.device)

    for one in table_sets():
        if one.group != "literature" or one.name not in flags.sets:
            continue
        for split in range(flags.splits):
            for row in run(one, folder, split, flags.rows, flags.sample, place):
                rows.append(row)
                print(*row.values(), flush=True)
                with (flags.out / "metric_rows.csv").open("w", newline="") as file:
                    writer = csv.DictWriter(file, list(row), lineterminator="\n")
                    writer.writeheader()
                    writer.writerows(rows)


def run(
    one: Any, folder: Path, split: int, most: int, sample: int, place: Any
) -> Iterator[dict[str, Any]]:
    """The best models of the rows as they are, and of rows with metrics, on one split."""
    X, X_test, y, y_test = one.split(folder, split)
    some = np.random.default_rng(0).permutation(len(y))[:most]
    mean, deviation = y[some].mean(), y[some].std()
    X, y, target = X[some], (y[some] - mean) / deviation, (y_test - mean) / deviation
    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    for steps in (0, *STEPS):
        start = time.perf_counter()
        if steps:
            found = learned(X, y, X_test, place, folds, sample, steps)
        else:
            found = plain(X, y, X_test, place, folds)
        seconds = time.perf_counter() - start
        error, predicted, choice = min(found, key=lambda item: item[0])
        off = np.sqrt(np.mean((predicted - target) ** 2))
        yield {
            "set": one.name, "rows": len(y), "columns": X.shape[1], "split": split,
            "models": f"metric {steps}" if steps else "plain", "chosen": choice,
            "cross-validated": f"{error:.4f}", "test": f"{off:.4f}",
            "rmse": f"{deviation * off:.5g}", "seconds": f"{seconds:.1f}",
        }  # fmt: skip


if __name__ == "__main__":
    main()
