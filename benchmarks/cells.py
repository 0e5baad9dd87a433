"""Many rows: models in cells of a partition beside features, at comparable time.

Every contestant searches the same grid, 5 bandwidths x 10 lams of the Laplace kernel (of the
Gaussian kernel on classes), with the same five folds, and is fitted to all rows. At most ``--rows``
training rows and 5,000 test rows of the first split of the literature's sets, and of a random
quarter of covtype_sub (classes).

- error: root mean squared error of the test rows over the standard deviation of the training
  targets, or the share of wrong labels;
- estimate: the same from held-out rows, before the test rows are seen;
- seconds: processor time of search and fit, one thread, the smallest of ``--rounds``.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
from _data import data_folder
from _harness import Row
from _sets import TableSet
from sklearn.model_selection import KFold, train_test_split
from sklearn.preprocessing import StandardScaler

SETS = ("protein", "bike", "kin8nm", "covtype_sub")
MAX_TEST_ROWS = 5000


def parts(folder: Path, name: str, rows: int) -> tuple[np.ndarray, ...]:
    """Training and test rows, then their targets; at most ``rows`` training rows (0: all)."""
    if name == "covtype_sub":
        table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
        X, y = table[:, :-1], table[:, -1]
        split = train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)
        scaler = StandardScaler().fit(split[0])
        found = (scaler.transform(split[0]), scaler.transform(split[1]), split[2], split[3])
    else:
        found = TableSet(name, "literature").split(folder, 0)
    some = np.random.default_rng(0).permutation(len(found[2]))[: rows or None]
    return found[0][some], found[1][:MAX_TEST_ROWS], found[2][some], found[3][:MAX_TEST_ROWS]


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
    for size, count in ((500, 1), (500, 4), (1000, 4)):
        name = f"cells of {size}, {count} partition{'s' * (count > 1)}"
        found[name] = CellSearchCV(
            kind(kernel=kernel), grid, cell_size=size, n_partitions=count, cv=cv, scoring=scoring
        )
    for size in (500, 1000):
        model = kind(kernel=kernel, approximation=Nystrom(size), random_state=0)
        found[f"{size} Nystrom features"] = KernelSearchCV(
            model, grid, cv=cv, scoring=scoring, aggregate="pooled"
        )
    return found


def run(folder: Path, name: str, rows: int, contestant: str, rounds: int) -> Row:
    X, X_test, y, y_test = parts(folder, name, rows)
    classes = name == "covtype_sub"
    seconds = np.inf
    for _ in range(rounds):
        search = searches(X, classes)[contestant]
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(X, y)
        seconds = min(seconds, time.process_time() - start)
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
    flags.add_argument("--rows", type=int, default=6000, help="training rows at most (0: all)")
    flags = flags.parse_args()
    folder = data_folder(flags.data)
    table: list[Row] = []
    name = harness.stem("cells", flags.quick)
    for one in flags.sets:
        for contestant in searches(np.zeros((2, 2)), False):
            if flags.only and not harness.re.search(flags.only, contestant):
                continue
            table.append(
                run(folder, one, 2000 if flags.quick else flags.rows, contestant, flags.rounds)
            )
            print(table[-1], flush=True)
            harness.write_csv(flags.out, name, table)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [("Results", f"{text}\n\n{harness.table(table)}")]
    harness.write_report(flags.out, name, "Cells or features on smooth and rough targets", sections)


if __name__ == "__main__":
    main()
