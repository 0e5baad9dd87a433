"""Exact k-fold search of kernel ridge regression: onefit, GridSearchCV and himalaya on one grid.

Part 1: 15 gammas x 20 lams x 10 folds. GridSearchCV must give the same split scores; himalaya
reports the best alpha of every gamma, which must be the same too.
Part 2: leave-one-out over the same grid, beside the bare eigendecompositions of the same kernel
matrices (built beforehand) in the same thread layout.
"""

from __future__ import annotations

import _harness as harness
import numpy as np
from _data import friedman
from _harness import Contestant, Outcome, Row
from _peers import himalaya_one_gamma

TOLERANCE = 1e-8
OURS = "onefit KernelSearchCV"
GRID = "scikit-learn GridSearchCV(KernelRidge)"
EIGH = "bare eigendecompositions"
WORKERS = 2
CHECKED = (
    "Largest relative difference over the lams from 1e-8 n up (where 1e-8 is promised), and over "
    "all lams of the grid, where rounding decides the last digits of every solver."
)


def grid(task: Row) -> tuple[np.ndarray, np.ndarray]:
    gammas = np.logspace(-3, 1, task["gammas"])
    lams = np.logspace(-6, 2, task["lams"])
    return gammas, lams


def splitter(task: Row):
    from sklearn.model_selection import KFold, LeaveOneOut

    return LeaveOneOut() if task["folds"] == "loo" else KFold(task["folds"])


def build_onefit(task: Row):
    from onefit import KernelRegressor, KernelSearchCV

    X, y = friedman(task["n"])
    gammas, lams = grid(task)

    def run() -> Row:
        search = KernelSearchCV(
            KernelRegressor(scaling="total", fit_intercept=False),
            {"gamma": gammas, "lam": lams},
            cv=splitter(task),
            scoring="neg_mean_squared_error",
            n_jobs=WORKERS,
            refit=False,
        ).fit(X, y)
        return scores(search.cv_results_, "lam", gammas, lams)

    return run


def build_gridsearch(task: Row):
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV

    X, y = friedman(task["n"])
    gammas, lams = grid(task)

    def run() -> Row:
        search = GridSearchCV(
            KernelRidge(kernel="rbf"),
            {"gamma": gammas, "alpha": lams},
            cv=splitter(task),
            scoring="neg_mean_squared_error",
            n_jobs=WORKERS,
            refit=False,
        ).fit(X, y)
        return scores(search.cv_results_, "alpha", gammas, lams)

    return run


def build_himalaya(task: Row, processes: int):
    """One KernelRidgeCV (solver "eigenvalues", all alphas at once, float64) a gamma."""
    from joblib import Parallel, delayed

    X, y = friedman(task["n"])
    gammas, lams = grid(task)
    himalaya_one_gamma(X[:20], y[:20], 1.0, lams, 2)  # a missing package shows here

    def run() -> Row:
        jobs = (delayed(himalaya_one_gamma)(X, y, g, lams, task["folds"]) for g in gammas)
        found = np.array(Parallel(n_jobs=processes)(jobs))
        return {"best_lam": found[:, 0], "best_score": found[:, 1]}

    return run


def build_eigh(task: Row):
    from joblib import Parallel, delayed
    from sklearn.metrics.pairwise import rbf_kernel

    X, _ = friedman(task["n"])
    matrices = [rbf_kernel(X, gamma=gamma) for gamma in grid(task)[0]]

    def run() -> None:
        # numpy.linalg.eigh is LAPACK's syevd, called with the interpreter lock released
        jobs = (delayed(np.linalg.eigh)(K) for K in matrices)
        for _ in Parallel(n_jobs=WORKERS, prefer="threads", return_as="generator")(jobs):
            pass

    return run


def scores(results: Row, lam_name: str, gammas, lams) -> Row:
    """Split scores as a (gammas, lams, folds) array, and the best lam of every gamma."""
    splits = sorted(
        (key for key in results if key.startswith("split") and key.endswith("_test_score")),
        key=lambda key: int(key.removeprefix("split").split("_")[0]),
    )
    keys = splits or ["mean_test_score"]
    at = {(p["gamma"], p[lam_name]): i for i, p in enumerate(results["params"])}
    rows = np.array([[at[gamma, lam] for lam in lams] for gamma in gammas])
    cube = np.stack([np.asarray(results[key])[rows] for key in keys], axis=-1)
    mean = np.asarray(results["mean_test_score"])[rows]
    best = mean.argmax(axis=1)
    return {"splits": cube, "best_lam": lams[best], "best_score": mean.max(axis=1)}


def agreement(outcomes: list[Outcome], n: int, lams) -> list[Row]:
    """Every contestant's numbers against GridSearchCV's (or onefit's, when that did not run).

    The promise is for lams from 1e-8 of the largest eigenvalue, here at most n; below, the
    numbers of any two solvers drift apart, and the difference is shown beside.
    """
    ran = {o.name: o.value for o in outcomes if o.value is not None}
    anchor = GRID if GRID in ran else OURS
    others = [name for name in ran if name != anchor] if anchor in ran else []
    return [
        {"n": n, "contestant": name, "compared_with": anchor}
        | compare(ran[name], ran[anchor], lams, floor=1e-8 * n)
        for name in others
    ]


def compare(value: Row, anchor: Row, lams, floor: float) -> Row:
    inside = anchor["best_lam"] >= floor
    row = {}
    if "splits" in value:
        difference = relative(value["splits"], anchor["splits"])
        promised = float(difference[:, lams >= floor].max())
        row["split_scores_max_rel"] = promised
        row["split_scores_max_rel_all_lams"] = float(difference.max())
    else:
        difference = relative(value["best_score"], anchor["best_score"])
        promised = float(difference[inside].max(initial=0.0))
        row["best_scores_max_rel"] = promised
        row["best_scores_max_rel_all_lams"] = float(difference.max())
    same = np.isclose(value["best_lam"], anchor["best_lam"], rtol=1e-6)
    row["same_best_lam"] = f"{same.sum()} of {same.size} gammas"
    row[f"within_{TOLERANCE:g}"] = "yes" if promised <= TOLERANCE else "no"
    return row


def relative(a, b) -> np.ndarray:
    return np.abs(a - b) / np.abs(b)


def kfold_contestants() -> list[Contestant]:
    from functools import partial

    two = f"{WORKERS} processes x 1 thread"
    return [
        Contestant(OURS, f"{WORKERS} workers x 1 thread", build_onefit),
        Contestant(GRID, two, build_gridsearch),
        Contestant("himalaya, gammas in parallel", two, partial(build_himalaya, processes=WORKERS)),
        Contestant(
            "himalaya, gammas in turn",
            f"1 process x {WORKERS} threads",
            partial(build_himalaya, processes=1),
            blas_threads=WORKERS,
        ),
    ]


def loo_contestants() -> list[Contestant]:
    layout = f"{WORKERS} workers x 1 thread"
    return [
        Contestant(OURS, layout, build_onefit),
        Contestant(EIGH, f"{WORKERS} Python threads x 1 thread", build_eigh),
    ]


def run_kfold(flags, task: Row) -> tuple[list[Row], list[Row]]:
    times, checks = [], []
    for n, rounds in zip(flags.sizes, flags.kfold_rounds, strict=True):
        print(f"n = {n}, {task['gammas']} gammas x {task['lams']} lams x {task['folds']} folds")
        contestants = harness.chosen(kfold_contestants(), flags.only)
        outcomes = harness.compete(contestants, {**task, "n": n}, warm(task), rounds)
        times += harness.timing_rows(outcomes, OURS, n, part="kfold")
        checks += agreement(outcomes, n, grid(task)[1])
    return times, checks


def run_loo(flags, task: Row) -> list[Row]:
    n = flags.loo_size
    print(f"leave-one-out, n = {n}")
    contestants = harness.chosen(loo_contestants(), flags.only)
    task = {**task, "n": n, "folds": "loo"}
    outcomes = harness.compete(contestants, task, {**warm(task), "folds": "loo"}, flags.rounds[0])
    return harness.timing_rows(outcomes, EIGH, n, part="loo")


def warm(task: Row) -> Row:
    return {**task, "n": 60, "gammas": 2, "lams": 2}


def arguments():
    flags = harness.parser(__doc__, rounds_per_size=True)
    flags.add_argument("--sizes", type=int, nargs="+", default=[500, 1000, 2000])
    flags.add_argument("--loo-size", type=int, default=2000, help="0 leaves this part out")
    flags.add_argument("--gammas", type=int, default=15)
    flags.add_argument("--lams", type=int, default=20)
    flags.add_argument("--folds", type=int, default=10)
    given = flags.parse_args()
    if given.quick:
        given.sizes, given.loo_size = [200, 300], min(given.loo_size, 300)
        given.gammas, given.lams, given.folds, given.rounds = 3, 5, 5, [2]
    many = len(given.rounds) == len(given.sizes)
    given.kfold_rounds = given.rounds if many else [given.rounds[0]] * len(given.sizes)
    return given


def main() -> None:
    flags = arguments()
    task = {"gammas": flags.gammas, "lams": flags.lams, "folds": flags.folds}
    times, checks = run_kfold(flags, task)
    loo = run_loo(flags, task) if flags.loo_size else []
    name = harness.stem("exact_search", flags.quick)
    harness.write_csv(flags.out, name, times + loo)
    cells = f"{flags.gammas} gammas x {flags.lams} lams"
    about = (
        "Friedman's first function, ten features, Gaussian kernel, gammas 1e-3 to 1e1, lams 1e-6 "
        "to 1e2, no intercept. `times_reference`: best time over that of the reference. "
        "`peak_n2_doubles`: peak memory added by the run, in n x n doubles."
    )
    first = f"{about} Reference: {OURS}.\n\n{harness.table(times)}"
    second = f"Reference: {EIGH}, of kernel matrices built beforehand.\n\n{harness.table(loo)}"
    parts = [
        (f"{cells} x {flags.folds} folds", first),
        ("Agreement of the numbers", f"{CHECKED}\n\n{harness.table(checks)}"),
        (f"{cells}, leave-one-out", second),
    ]
    path = harness.write_report(
        flags.out,
        name,
        "Search of kernel ridge regression compared with GridSearchCV and himalaya",
        parts,
    )
    print(path.read_text())


if __name__ == "__main__":
    main()
