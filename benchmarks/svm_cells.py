"""Many rows: liquidSVM's cells beside onefit's features, on rows similar to covtype.

liquidSVM splits the rows into cells of at most 2,000 and solves a search of its own in each, on its
default grid of 10 x 10 candidates with 5 folds. onefit searches one machine for all rows on Nystrom
features, 5 gammas x 10 lams with 5 folds: the squared loss with 2,000 features and the smoothed
hinge with 500, whose Newton steps make it the slowest (``--only "squared|liquid"`` leaves it out).
Both have two cores; the error is that on 20,000 further rows.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import _harness as harness
import numpy as np
from _data import forest
from _harness import Contestant, Row
from _peers import liquidsvm_import

from onefit.features import Nystrom

ROWS, TEST, CELL = 50_000, 20_000, 2000


def parts(task: Row):
    """Training rows and test rows, columns standardised by the training part."""
    X, y = forest(task["rows"] + TEST)
    train, test = slice(0, task["rows"]), slice(task["rows"], None)
    mean, deviation = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    return X[train], y[train], X[test], y[test]


def build_onefit(task: Row, loss: str, features: int):
    from onefit import KernelClassifier, KernelSearchCV

    X, y, X_test, y_test = parts(task)
    d = X.shape[1]
    machine = KernelClassifier(loss=loss, approximation=Nystrom(features), random_state=0)
    grid = {"gamma": np.geomspace(0.03, 3.0, 5) / d, "lam": np.geomspace(1e-7, 1e-2, 10)}

    def run() -> Row:
        search = KernelSearchCV(machine, grid, cv=5, n_jobs=2).fit(X, y)
        return {"error": float(np.mean(search.predict(X_test) != y_test))}

    return run


def build_liquid(task: Row):
    liquid = liquidsvm_import()
    X, y, X_test, y_test = parts(task)

    def run() -> Row:
        model = liquid.SVM(
            X, y, SCENARIO="MC AvA_hinge", folds=5, threads=2, display=0, voronoi=f"5 {CELL}"
        )
        model.train()
        model.select()
        found, _ = model.test(X_test, y_test)
        model.clean()
        return {"error": float(np.mean(np.ravel(found)[: y_test.size] != y_test))}

    return run


def contestants(features: int) -> list[Contestant]:
    return [
        Contestant(
            f"onefit, squared loss, {features} features", "1 process x 2 threads",
            partial(build_onefit, loss="squared", features=features), blas_threads=2,
        ),
        Contestant(
            f"onefit, smoothed hinge, {features // 4} features", "1 process x 2 threads",
            partial(build_onefit, loss="smoothed_hinge", features=features // 4), blas_threads=2,
        ),
        Contestant(f"liquidSVM, cells of {CELL}", "1 process x 2 threads", build_liquid),
    ]  # fmt: skip


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--rows", type=int, default=ROWS)
    flags = flags.parse_args()
    rows, features = (3000, 200) if flags.quick else (flags.rows, 2000)
    start, rivals = perf_counter(), harness.chosen(contestants(features), flags.only)
    found = harness.compete(rivals, {"rows": rows}, {"rows": 500}, flags.rounds)
    table = [
        {
            "rows": rows,
            "contestant": one.name,
            "threads": one.contestant.policy,
            "seconds": one.best,
            "rounds": len(one.seconds),
            "test_error": one.value["error"],
            "peak_mb": one.peak / 1e6,
        }
        for one in found
        if one.seconds
    ]
    name = harness.stem("svm_cells", flags.quick)
    harness.write_csv(flags.out, name, table)
    text = f"{' '.join(__doc__.split())}\n\n{harness.table(table)}"
    print(
        harness.write_report(
            flags.out, name, "Cells of liquidSVM or features of onefit", [("Result", text)]
        ).read_text()
    )
    print(f"{perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
