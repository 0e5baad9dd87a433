"""Search for a support vector machine: onefit's smoothed hinge beside other libraries on one grid.

Part 1: 15 gammas x 15 lams x 10 stratified folds, the same folds for all but liquidSVM, which draws
its own, and solves without an intercept to a loose tolerance; onefit's race runs without one, too.
SVC and ThunderSVM get C = 1 / (2 n_train lam). Part 2: the test errors of the selected models over
random halves, each method of onefit against GridSearchCV(SVC), with paired tests.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Contestant, Outcome, Row
from _peers import liquidsvm_search, thundersvm_one_gamma

from onefit.losses import SmoothedHinge

WORKERS = 2
METHODS = ("limit", "exact", "race")
LIQUID_NAME = "liquidSVM"
SVC_NAME = "scikit-learn GridSearchCV(SVC)"
TARGETS = {"limit": "at least 10", "exact": "at least 3", "race": "at least 8"}


# The calls into onefit.


def onefit_search(
    X, y, gammas, lams, folds, delta: float, method: str, refit: bool = False, intercept=True
):
    from onefit import KernelClassifier, KernelSearchCV

    return KernelSearchCV(
        KernelClassifier(loss=SmoothedHinge(delta), fit_intercept=intercept),
        {"gamma": gammas, "lam": lams},
        cv=folds,
        scoring="accuracy",
        method=method,
        n_jobs=WORKERS,
        refit=refit,
    ).fit(X, y)


# The contestants.


def grid(task: Row, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gammas, lams and the Cs they stand for: powers of two, lams falling as Cs rise."""
    gammas = 2.0 ** np.linspace(*task["log2_gamma"], task["gammas"])
    Cs = 2.0 ** np.linspace(*task["log2_C"], task["lams"])
    n_train = n * (1 - 1 / task["folds"])
    return gammas, 1 / (2 * n_train * Cs), Cs


def folds_of(task: Row, X, y) -> list[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    return list(StratifiedKFold(task["folds"], shuffle=True, random_state=0).split(X, y))


def problem_of(task: Row):
    X, y = load(Path(task["data"]), task["set"])
    if task["rows"]:
        rows = np.random.default_rng(0).permutation(len(y))[: task["rows"]]
        X, y = X[rows], y[rows]
    return X, y, folds_of(task, X, y), *grid(task, len(y))


def svc_search(X, y, gammas, Cs, folds, refit: bool = False):
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    candidates = {"gamma": gammas, "C": Cs}
    return GridSearchCV(SVC(), candidates, cv=folds, n_jobs=WORKERS, refit=refit).fit(X, y)


def build_onefit(task: Row, method: str, intercept: bool = True):
    X, y, folds, gammas, lams, _ = problem_of(task)

    def run() -> Row:
        search = onefit_search(
            X, y, gammas, lams, folds, task["delta"], method, intercept=intercept
        )
        return result(search, "lam", gammas, lams)

    return run


def build_svc(task: Row):
    X, y, folds, gammas, _, Cs = problem_of(task)
    return lambda: result(svc_search(X, y, gammas, Cs, folds), "C", gammas, Cs)


def build_thundersvm(task: Row, processes: int, threads: int):
    from joblib import Parallel, delayed

    X, y, folds, gammas, _, Cs = problem_of(task)
    thundersvm_one_gamma(X[:60], y[:60], 1.0, Cs[:1], [(np.arange(60), np.arange(60))], threads)

    def run() -> Row:
        jobs = (delayed(thundersvm_one_gamma)(X, y, g, Cs, folds, threads) for g in gammas)
        accuracy = np.array(Parallel(n_jobs=processes)(jobs)).mean(axis=2)
        return {"accuracy": accuracy, "best": np.unravel_index(accuracy.argmax(), accuracy.shape)}

    return run


def build_liquidsvm(task: Row):
    X, y, _, gammas, lams, _ = problem_of(task)

    def run() -> Row:
        accuracy = liquidsvm_search(X, y, gammas, lams, task["folds"], WORKERS)
        return {"accuracy": accuracy, "best": np.unravel_index(accuracy.argmax(), accuracy.shape)}

    return run


def result(search, name: str, gammas, others) -> Row:
    """Mean accuracy as a (gammas, lams) array, and the place of the winner the search named."""
    params = search.cv_results_["params"]
    at = {(p["gamma"], p[name]): i for i, p in enumerate(params)}
    rows = np.array([[at[gamma, other] for other in others] for gamma in gammas])
    accuracy = np.asarray(search.cv_results_["mean_test_score"])[rows]
    return {"accuracy": accuracy, "best": tuple(np.argwhere(rows == search.best_index_)[0])}


def contestants() -> list[Contestant]:
    two = f"{WORKERS} processes x 1 thread"
    ours = [
        Contestant(f"onefit {m}", f"{WORKERS} workers x 1 thread", partial(build_onefit, method=m))
        for m in METHODS
    ]
    return [
        *ours,
        Contestant(
            "onefit race, no intercept",
            f"{WORKERS} workers x 1 thread",
            partial(build_onefit, method="race", intercept=False),
        ),
        Contestant(LIQUID_NAME, f"1 process x {WORKERS} threads", build_liquidsvm),
        Contestant(SVC_NAME, two, build_svc),
        Contestant(
            "ThunderSVM, gammas in parallel", two, partial(build_thundersvm, processes=2, threads=1)
        ),
        Contestant(
            "ThunderSVM, gammas in turn",
            "1 process x 2 threads",
            partial(build_thundersvm, processes=1, threads=2),
            blas_threads=2,
        ),
    ]


# Part 1: times, winners, agreement.


def run_search(flags, task: Row) -> tuple[list[Row], list[Row]]:
    times, winners = [], []
    for name in flags.sets:
        print(name)
        task = {**task, "set": name}
        X, _, _, gammas, _, Cs = problem_of(task)
        warm = {**task, "rows": 80, "gammas": 2, "lams": 2, "log2_C": (-1, 1), "folds": 3}
        rivals = harness.chosen(contestants(), flags.only)
        outcomes = harness.compete(rivals, task, warm, flags.rounds)
        times += speed_rows(outcomes, len(X), name)
        winners += winner_rows(outcomes, gammas, Cs, name)
    return times, winners


def speed_rows(outcomes: list[Outcome], n: int, name: str) -> list[Row]:
    """The timing rows, with how many times faster than GridSearchCV(SVC) instead of the ratio."""
    rows = harness.timing_rows(outcomes, SVC_NAME, n, set=name)
    liquid = next((o.best for o in outcomes if o.name == LIQUID_NAME), float("nan"))
    for row in rows:
        row["times_liquidsvm"] = row["best_s"] / liquid
        row["faster_than_svc"] = 1 / row.pop("times_reference")
        if not np.isnan(row["faster_than_svc"]):
            row["wanted"] = TARGETS.get(row["contestant"].removeprefix("onefit "), "")
    return rows


def winner_rows(outcomes: list[Outcome], gammas, Cs, name: str) -> list[Row]:
    """Winner of every contestant, and how its CV errors compare with SVC's over the grid."""
    values = {o.name: o.value for o in outcomes if o.value is not None}
    exact, svc = values.get("onefit exact"), values.get(SVC_NAME)
    rows = []
    for contestant, value in values.items():
        accuracy, (i, j) = value["accuracy"], value["best"]
        row = {"set": name, "contestant": contestant, "log2_gamma": float(np.log2(gammas[i]))}
        row |= {"log2_C": float(np.log2(Cs[j])), "cv_error": float(1 - accuracy[i, j])}
        if exact is not None and contestant.startswith("onefit"):
            row["same_winner_as_exact"] = "yes" if exact["best"] == value["best"] else "no"
        if svc is not None:
            difference = np.abs(accuracy - svc["accuracy"])
            row["svc_cv_error_there"] = float(1 - svc["accuracy"][i, j])
            row["mean_difference_to_svc"] = float(np.nanmean(difference))
            row["largest_difference_to_svc"] = float(np.nanmax(difference))
        rows.append(row)
    return rows


# Part 2: test errors of the selected models.


def run_halves(flags, task: Row) -> tuple[list[Row], list[Row]]:
    errors, tests = [], []
    for name in flags.sets if flags.splits else []:
        found = [half_errors({**task, "set": name}, split) for split in range(flags.splits)]
        errors += [{"set": name, "split": split, **row} for split, row in enumerate(found)]
        tests += [paired(found, f"onefit {method}", name) for method in METHODS]
    return errors, tests


def half_errors(task: Row, split: int) -> Row:
    """Test error of every search's winner, trained on one random half and tested on the other."""
    from sklearn.model_selection import train_test_split

    X, y, *_ = problem_of(task)
    halves = train_test_split(X, y, test_size=0.5, stratify=y, random_state=split)
    X_train, X_test, y_train, y_test = halves
    folds = folds_of(task, X_train, y_train)
    gammas, lams, Cs = grid(task, len(y_train))
    searches = {SVC_NAME: partial(svc_search, X_train, y_train, gammas, Cs, folds, refit=True)}
    for method in METHODS:
        search = partial(onefit_search, X_train, y_train, gammas, lams, folds, task["delta"])
        searches[f"onefit {method}"] = partial(search, method, refit=True)
    row: Row = {}
    for name, search in searches.items():
        try:
            row[name] = float(np.mean(search().predict(X_test) != y_test))
        except Exception as error:
            print(f"  {name}: not available: {type(error).__name__}")
            row[name] = float("nan")
    print(f"  split {split}: " + ", ".join(f"{k} {v:.4f}" for k, v in row.items()), flush=True)
    return row


def paired(found: list[Row], ours: str, name: str) -> Row:
    """Both paired tests of our test errors against SVC's."""
    from scipy.stats import ttest_rel, wilcoxon

    a, b = (np.array([row[key] for row in found]) for key in (ours, SVC_NAME))
    row = {"set": name, "contestant": ours, "splits": len(found), "test_error": float(a.mean())}
    row |= {"svc_test_error": float(b.mean()), "difference": float((a - b).mean())}
    measured = len(found) > 1 and np.isfinite(a - b).all()
    moved = measured and bool(np.any(a != b))
    nan = float("nan")
    row["t_test_p"] = float(ttest_rel(a, b).pvalue) if moved else (1.0 if measured else nan)
    row["wilcoxon_p"] = float(wilcoxon(a, b).pvalue) if moved else (1.0 if measured else nan)
    return row


def arguments():
    flags = harness.parser(__doc__, rounds=2)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sets", nargs="+", default=["german.numer", "a2a"])
    flags.add_argument("--delta", type=float, default=0.1, help="of the smoothed hinge")
    flags.add_argument("--gammas", type=int, default=15)
    flags.add_argument("--lams", type=int, default=15)
    flags.add_argument("--log2-gamma", type=float, nargs=2, default=[-10.0, 4.0])
    flags.add_argument("--log2-C", type=float, nargs=2, default=[-3.0, 11.0])
    flags.add_argument("--folds", type=int, default=10)
    flags.add_argument("--splits", type=int, default=10, help="random halves; 0 leaves part 2 out")
    flags.add_argument("--rows", type=int, default=0, help="number of rows to use (0: all)")
    flags.add_argument("--name", default="svm_search", help="of the files of results")
    flags.add_argument(
        "--title", default="searches compared with libsvm and liquidSVM", help="of the page"
    )
    given = flags.parse_args()
    if given.quick:
        given.sets, given.rows, given.rounds, given.splits = given.sets[:1], 200, 1, 2
        given.gammas, given.lams, given.folds = 3, 4, 5
    return given


def main() -> None:
    flags = arguments()
    keys = ("delta", "gammas", "lams", "log2_gamma", "log2_C", "folds", "rows")
    task = {key: getattr(flags, key) for key in keys} | {"data": str(data_folder(flags.data))}
    times, winners = run_search(flags, task)
    errors, tests = run_halves(flags, task)
    name = harness.stem(flags.name, flags.quick)
    harness.write_csv(flags.out, name, times)
    harness.write_csv(flags.out, f"{name}_winners", winners)
    if errors:
        harness.write_csv(flags.out, f"{name}_halves", errors)
    about = (
        f"{flags.gammas} gammas x {flags.lams} lams x {flags.folds} stratified folds, features "
        f"min-max scaled to [-1, 1], smoothed hinge with delta = {flags.delta:g}, "
        f"C = 1 / (2 n_train lam)."
    )
    paired_about = "Halves drawn with stratification; a negative difference favours onefit."
    parts = [
        ("Times", f"{about}\n\n{harness.table(times)}"),
        ("Winners and agreement with SVC", harness.table(winners)),
        ("Test errors over random halves", f"{paired_about}\n\n{harness.table(tests)}"),
    ]
    title = f"Support vector machines: {flags.title}"
    print(harness.write_report(flags.out, name, title, parts).read_text())


if __name__ == "__main__":
    main()
