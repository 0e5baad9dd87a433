"""Search for a support vector regression: onefit's rounded tube and GridSearchCV(SVR) on one grid.

Targets are standardised, features min-max scaled. Total scaling, so that every split has the same
C = 1 / (2 lam) in both. The scores of onefit are those of the rounded machine, exact up to their
bounds; how far they are from SVR's the second table says.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Contestant, Outcome, Row

from onefit.losses import EpsilonInsensitive

WORKERS = 2
DELTAS = (0.1, 0.03)
SVR_NAME = "scikit-learn GridSearchCV(SVR)"
SCORE = "neg_mean_absolute_error"
#: values of C, as powers of two and how many: around the winners and beyond, and small ones, with
#: which SVR is quick and most rows lie outside the tube
GRIDS = {"wide": ((-3.0, 11.0), 15), "small": ((-9.0, 1.0), 11)}
#: what is less for the largest set, whose wide grid would else take SVR an hour
LESS = {"rows": 2000, "gammas": 4}


# The call into onefit.


def onefit_search(X, y, gammas, Cs, folds, epsilon: float, delta: float):
    from onefit import KernelRegressor, KernelSearchCV

    machine = KernelRegressor(
        loss=EpsilonInsensitive(epsilon=epsilon, delta=delta), scaling="total"
    )
    grid = {"gamma": gammas, "lam": 1 / (2 * Cs)}
    search = KernelSearchCV(machine, grid, cv=folds, scoring=SCORE, n_jobs=WORKERS, refit=False)
    return search.fit(X, y)


# The contestants.


def problem_of(task: Row):
    from sklearn.model_selection import KFold

    X, y = load(Path(task["data"]), task["set"])
    rows = np.random.default_rng(0).permutation(len(y))
    rows = rows[: task["rows"] or len(y)]
    X, y = X[rows], (y[rows] - y[rows].mean()) / y[rows].std()
    folds = list(KFold(task["folds"], shuffle=True, random_state=0).split(X))
    gammas = 2.0 ** np.linspace(*task["log2_gamma"], task["gammas"])
    Cs = 2.0 ** np.linspace(*task["log2_C"], task["Cs"])
    return X, y, folds, gammas, Cs


def build_onefit(task: Row, delta: float):
    X, y, folds, gammas, Cs = problem_of(task)

    def run() -> Row:
        search = onefit_search(X, y, gammas, Cs, folds, task["epsilon"], delta)
        exact = bool(search.cv_results_["exact"].all())
        lams = 1 / (2 * Cs)
        return {"exact": exact, "error": scores(search, "lam", gammas, lams)}

    return run


def build_svr(task: Row):
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVR

    X, y, folds, gammas, Cs = problem_of(task)
    grid = {"gamma": gammas, "C": Cs}

    def run() -> Row:
        search = GridSearchCV(
            SVR(epsilon=task["epsilon"]), grid, cv=folds, scoring=SCORE, n_jobs=WORKERS, refit=False
        ).fit(X, y)
        return {"error": scores(search, "C", gammas, Cs)}

    return run


def scores(search, name: str, gammas, others) -> np.ndarray:
    """Mean absolute errors as a (gammas, Cs) array."""
    table = {(p["gamma"], p[name]): i for i, p in enumerate(search.cv_results_["params"])}
    rows = [[table[gamma, other] for other in others] for gamma in gammas]
    return -np.asarray(search.cv_results_["mean_test_score"])[rows]


def contestants() -> list[Contestant]:
    ours = [
        Contestant(
            f"onefit, delta {delta:g}",
            f"{WORKERS} workers x 1 thread",
            partial(build_onefit, delta=delta),
        )
        for delta in DELTAS
    ]
    return [*ours, Contestant(SVR_NAME, f"{WORKERS} processes x 1 thread", build_svr)]


# What is written down.


def speed_rows(outcomes: list[Outcome], n: int, name: str) -> list[Row]:
    rows = harness.timing_rows(outcomes, SVR_NAME, n, set=name)
    for row in rows:
        row["faster_than_svr"] = 1 / row.pop("times_reference")
        row["wanted"] = "at least 6" if row["contestant"].startswith("onefit") else ""
    return rows


def agreement_rows(outcomes: list[Outcome], gammas, Cs, name: str) -> list[Row]:
    """The best candidate of each, and how its scores compare with SVR's over the grid."""
    values = {o.name: o.value for o in outcomes if o.value is not None}
    svr, rows = values.get(SVR_NAME), []
    for contestant, value in values.items():
        error = value["error"]
        i, j = np.unravel_index(error.argmin(), error.shape)
        row = {"set": name, "contestant": contestant, "log2_gamma": float(np.log2(gammas[i]))}
        row |= {"log2_C": float(np.log2(Cs[j])), "cv_error": float(error[i, j])}
        row["all_scores_exact"] = {True: "yes", False: "no"}.get(value.get("exact"), "")
        if svr is not None:
            row["svr_error_there"] = float(svr["error"][i, j])
            row["largest_difference_to_svr"] = float(np.abs(error - svr["error"]).max())
        rows.append(row)
    return rows


def arguments():
    flags = harness.parser(__doc__, rounds=2)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sets", nargs="+", default=["mpg", "housing", "abalone"])
    flags.add_argument("--epsilon", type=float, default=0.1)
    flags.add_argument("--gammas", type=int, default=5)
    flags.add_argument("--grid", choices=GRIDS, default="wide", help="which values of C")
    flags.add_argument("--log2-gamma", type=float, nargs=2, default=[-8.0, 2.0])
    flags.add_argument("--folds", type=int, default=10)
    flags.add_argument("--rows", type=int, default=0, help="largest number of rows (0: all)")
    given = flags.parse_args()
    if given.quick:
        given.sets, given.rows, given.rounds = given.sets[:1], 150, 1
        given.gammas, given.folds = 3, 5
    return given


def grid_of(name: str, flags) -> Row:
    """The values of C of a set, and what is less of it."""
    log2_C, Cs = GRIDS[flags.grid]
    if flags.quick:
        return {"log2_C": log2_C, "Cs": 4}
    if name != "abalone":
        return {"log2_C": log2_C, "Cs": Cs}
    end = min(log2_C[1], 6.0)
    return LESS | {"log2_C": (log2_C[0], end), "Cs": int(end - log2_C[0]) + 1}


def main() -> None:
    flags = arguments()
    keys = ("epsilon", "gammas", "log2_gamma", "folds", "rows")
    task = {key: getattr(flags, key) for key in keys} | {"data": str(data_folder(flags.data))}
    times, agreement = [], []
    for name in flags.sets:
        print(name)
        mine = {**task, "set": name} | grid_of(name, flags)
        X, _, _, gammas, Cs = problem_of(mine)
        warm = {**mine, "rows": 80, "gammas": 2, "Cs": 2, "log2_C": (-1, 1), "folds": 3}
        outcomes = harness.compete(
            harness.chosen(contestants(), flags.only), mine, warm, flags.rounds
        )
        times += speed_rows(outcomes, len(X), name)
        agreement += agreement_rows(outcomes, gammas, Cs, name)
    name = "svr_search" if flags.grid == "wide" else f"svr_search_{flags.grid}"
    name = harness.stem(name, flags.quick)
    harness.write_csv(flags.out, name, times)
    log2_C, Cs = GRIDS[flags.grid]
    about = (
        f"{flags.gammas} gammas x {Cs} values of C (two to the {log2_C[0]:g} to {log2_C[1]:g}) x "
        f"{flags.folds} folds, epsilon = {flags.epsilon:g}, targets of unit variance, features "
        "min-max scaled to [-1, 1], mean absolute error. Of abalone "
        f"{LESS['rows']} rows, {LESS['gammas']} gammas and values of C up to two to the "
        f"{min(log2_C[1], 6.0):g}."
    )
    parts = [
        ("Times", f"{about}\n\n{harness.table(times)}"),
        ("Winners, and agreement with SVR", harness.table(agreement)),
    ]
    grid = ": small values of C" if flags.grid == "small" else ""
    title = f"Support vector regression compared with libsvm{grid}"
    print(harness.write_report(flags.out, name, title, parts).read_text())


if __name__ == "__main__":
    main()
