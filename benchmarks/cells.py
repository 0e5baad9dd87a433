"""Many rows: models in cells of a partition beside features, at comparable time.

Every contestant searches the same grid, 5 bandwidths x 10 lams of the Laplace kernel (of the
Gaussian kernel on the simulated covtype rows), with the same five folds, and is fitted to
all rows. The literature's sets use the test rows of their first split; "forest" has 50,000 rows in
the manner of covtype (:func:`_data.forest`) and 20,000 further rows for the test.

- error: root mean squared error of the test rows over the standard deviation of the training
  targets, or the share of wrong labels;
- estimate: the same from held-out rows, before the test rows are seen;
- seconds: processor time of search and fit, one thread.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
from _data import data_folder, forest
from _harness import Row
from _sets import table_sets
from sklearn.model_selection import KFold

SETS = ("bike", "pol", "protein", "forest")
FOREST_ROWS, FOREST_TEST = 50_000, 20_000


def parts(folder: Path, name: str, rows: int) -> tuple[np.ndarray, ...]:
    """Training and test rows, then their targets; at most ``rows`` training rows (0: all)."""
    if name == "forest":
        X, y = forest(FOREST_ROWS + FOREST_TEST)
        mean, spread = X.mean(axis=0), X.std(axis=0)
        X = (X - mean) / np.where(spread > 0, spread, 1.0)
        found: tuple[np.ndarray, ...] = (
            X[:FOREST_ROWS], X[FOREST_ROWS:], y[:FOREST_ROWS], y[FOREST_ROWS:],
        )  # fmt: skip
    else:
        (one,) = (one for one in table_sets() if (one.name, one.group) == (name, "literature"))
        found = one.split(folder, 0)
    some = np.random.default_rng(0).permutation(len(found[2]))[: rows or None]
    return found[0][some], found[1], found[2][some], found[3]


def searches(X: np.ndarray, classes: bool) -> dict[str, Any]:
    """The contestants, not fitted."""
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
    from onefit.cells import CellSearchCV
    from onefit.features import Nystrom

    kernel, kind = ("rbf", KernelClassifier) if classes else ("laplacian", KernelRegressor)
    grid = {"gamma": np.geomspace(0.03, 3, 5) / X.shape[1], "lam": np.geomspace(1e-7, 1e-1, 10)}
    scoring = "accuracy" if classes else "neg_root_mean_squared_error"
    cv = KFold(5, shuffle=True, random_state=0)
    found: dict[str, Any] = {}
    for size, count in ((500, 4), (1000, 1), (1000, 4), (2000, 1)):
        name = f"cells of {size}, {count} partition{'s' * (count > 1)}"
        found[name] = CellSearchCV(
            kind(kernel=kernel), grid, cell_size=size, n_partitions=count, cv=cv, scoring=scoring
        )
    for size in (1000, 2000):
        model = kind(kernel=kernel, approximation=Nystrom(size), random_state=0)
        found[f"{size} Nystrom features"] = KernelSearchCV(
            model, grid, cv=cv, scoring=scoring, aggregate="pooled"
        )
    return found


def run(folder: Path, name: str, rows: int, contestant: str) -> Row:
    X, X_test, y, y_test = parts(folder, name, rows)
    classes = name == "forest"
    search = searches(X, classes)[contestant]
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    seconds = time.process_time() - start
    predicted = search.predict(X_test)
    if classes:
        error, estimate = float(np.mean(predicted != y_test)), 1.0 - search.best_score_
    else:
        error = float(np.sqrt(np.mean((predicted - y_test) ** 2)) / y.std())
        estimate = -search.best_score_ / y.std()
    return {
        "set": name,
        "rows": len(y),
        "contestant": contestant,
        "error": error,
        "estimate": float(estimate),
        "seconds": seconds,
    }


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sets", nargs="*", default=SETS)
    flags.add_argument("--rows", type=int, default=0, help="training rows at most (0: all)")
    flags = flags.parse_args()
    folder = data_folder(flags.data)
    table: list[Row] = []
    name = harness.stem("cells", flags.quick)
    for one in flags.sets:
        for contestant in searches(np.zeros((2, 2)), False):
            if flags.only and not harness.re.search(flags.only, contestant):
                continue
            table.append(run(folder, one, 2000 if flags.quick else flags.rows, contestant))
            print(table[-1], flush=True)
            harness.write_csv(flags.out, name, table)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [("Results", f"{text}\n\n{harness.table(table)}")]
    harness.write_report(flags.out, name, "Cells or features", sections)


if __name__ == "__main__":
    main()
