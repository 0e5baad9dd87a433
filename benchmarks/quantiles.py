"""Quantiles: losses and times, beside QuantileRegressor on Nystroem features and boosted trees.

Half of the rows to train and choose on, the other half to test, some splits of each set. onefit
searches gamma and lam by five folds for three levels at once; the others, for each level by itself,
search what decides about their smoothness by GridSearchCV over the same folds: alpha and gamma of
QuantileRegressor on 100 Nystroem features, learning rate and leaves of
HistGradientBoostingRegressor. Of onefit there is one with a narrower corner of the loss, and one
that adds to each quantile a constant from the held-out residuals of the same search
(onefit.quantiles.heldout_shift). Sets are kept in the table from run to run, so that they can be
measured one by one (--sets).
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Row

from onefit.losses import Quantile

LEVELS = (0.1, 0.5, 0.9)
GAMMAS = 2.0 ** np.linspace(-7, 1, 5)
LANDMARKS = 100
#: a corner narrower than the default, which is about 0.02 to 0.04 here
NARROW = 0.01


# The call into onefit.


def onefit_quantiles(X, y, folds, delta="mad"):
    from onefit import KernelRegressor, KernelSearchCV

    machine = KernelRegressor(loss=Quantile(LEVELS, delta=delta))
    grid = {"gamma": GAMMAS, "lam": np.logspace(-5, -1, 9)}
    return KernelSearchCV(machine, grid, cv=folds).fit(X, y)


def as_fitted(X, y, folds):
    return onefit_quantiles(X, y, folds).predict


def narrow(X, y, folds):
    return onefit_quantiles(X, y, folds, NARROW).predict


def shifted(X, y, folds):
    from onefit.quantiles import heldout_shift

    search = onefit_quantiles(X, y, folds)
    shift = heldout_shift(search.heldout_, LEVELS)
    return lambda new: search.predict(new) + shift


# The others.


def by_level(make: Callable[[float], Any], grid: Row):
    """A search for each level by itself; predictions side by side."""

    def fit(X, y, folds):
        from sklearn.metrics import make_scorer, mean_pinball_loss
        from sklearn.model_selection import GridSearchCV

        found = []
        for level in LEVELS:
            scorer = make_scorer(mean_pinball_loss, alpha=level, greater_is_better=False)
            found.append(GridSearchCV(make(level), grid, cv=folds, scoring=scorer).fit(X, y))
        return lambda new: np.column_stack([one.predict(new) for one in found])

    return fit


def nystroem(level: float):
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import QuantileRegressor
    from sklearn.pipeline import make_pipeline

    features = Nystroem(n_components=LANDMARKS, random_state=0)
    return make_pipeline(features, QuantileRegressor(quantile=level))


def trees(level: float):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)


CONTESTANTS: dict[str, Callable[..., Any]] = {
    "onefit": as_fitted,
    f"onefit, corner of {NARROW}": narrow,
    "onefit, shifted by held-out residuals": shifted,
    "QuantileRegressor on Nystroem features": by_level(
        nystroem,
        {"nystroem__gamma": GAMMAS[1::2], "quantileregressor__alpha": [1e-5, 1e-4, 1e-3]},
    ),
    "HistGradientBoostingRegressor": by_level(
        trees, {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}
    ),
}


# What is measured.


def halves(task: Row, name: str, split: int):
    X, y = load(Path(task["data"]), name)
    rows = np.random.default_rng(split).permutation(len(y))[: task["rows"]]
    X, y = X[rows], (y[rows] - y[rows].mean()) / y[rows].std()
    half = len(y) // 2
    return X[:half], y[:half], X[half:], y[half:]


def one_run(fit, X, y, X_test, y_test) -> Row:
    from sklearn.model_selection import KFold

    from onefit.quantiles import crossings, pinball_loss, rearrange

    folds = list(KFold(5, shuffle=True, random_state=0).split(X))
    start = time.perf_counter()
    predict = fit(X, y, folds)
    seconds = time.perf_counter() - start
    P = predict(X_test)
    return {
        "pinball": pinball_loss(y_test, P, LEVELS),
        "rearranged": pinball_loss(y_test, rearrange(P, LEVELS), LEVELS),
        "covered": float(((P[:, 0] <= y_test) & (y_test <= P[:, -1])).mean()),
        "width": float((P[:, -1] - P[:, 0]).mean()),
        "crossing": crossings(P, LEVELS).share,
        "seconds": seconds,
    }


def kept(path: Path, sets: list[str]) -> list[Row]:
    """The rows of other sets, measured before."""
    if not path.exists():
        return []
    with path.open() as file:
        old = [row for row in csv.DictReader(file) if row["set"] not in sets]
    words = ("set", "contestant", "train_rows")
    return [{k: v if k in words else float(v) for k, v in row.items()} for row in old]


def main() -> None:
    flags = harness.parser(__doc__, rounds=3)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sets", nargs="+", default=["mpg", "housing", "mg"])
    flags.add_argument("--rows", type=int, default=1000)
    given = flags.parse_args()
    if given.quick:
        given.sets, given.rows, given.rounds = given.sets[:1], 120, 1
    task, rows = {"data": str(data_folder(given.data)), "rows": given.rows}, []
    for name in given.sets:
        found: dict[str, list[Row]] = {one: [] for one in CONTESTANTS}
        for split in range(given.rounds):
            data = halves(task, name, split)
            for one, fit in CONTESTANTS.items():  # interleaved
                found[one].append(one_run(fit, *data))
                print(name, split, one, found[one][-1], flush=True)
        for one, several in found.items():
            row: Row = {"set": name, "train_rows": len(data[1]), "contestant": one}
            keys = ("pinball", "rearranged", "covered", "width", "crossing")
            row |= {key: float(np.mean([r[key] for r in several])) for key in keys}
            row["best_s"] = min(r["seconds"] for r in several)
            row["times_onefit"] = row["best_s"] / min(r["seconds"] for r in found["onefit"])
            rows.append(row)
    stem = harness.stem("quantiles", given.quick)
    rows = sorted(rows + kept(given.out / f"{stem}.csv", given.sets), key=lambda row: row["set"])
    harness.write_csv(given.out, stem, rows)
    about = (
        f"Levels {LEVELS}; test pinball loss (the mean over levels, targets of unit variance) of "
        f"machines chosen by five folds, means over {given.rounds} random halves; the share of "
        "test targets between the outer quantiles, 0.8 if all is well, and how far apart these "
        "are; the share of test rows in which quantiles cross; the best time of search and fit, "
        "one process, one thread."
    )
    title = "Quantile regression compared with scikit-learn's"
    parts = [("Test losses and times", f"{about}\n\n{harness.table(rows)}")]
    print(harness.write_report(given.out, stem, title, parts).read_text())


if __name__ == "__main__":
    main()
