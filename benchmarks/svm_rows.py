"""Search for a support vector machine as rows grow: onefit's race beside liquidSVM and libsvm.

Rows of a9a, or of another ``--set``, drawn once, features min-max scaled to [-1, 1]. The grid of
svm_search.py, 15 gammas x 15 lams, is represented by every third gamma; times are scaled up to the
whole grid by the number of candidates. 10 folds up to 5,000 rows, 5 beyond, or ``--folds``.
liquidSVM draws folds of its own, solves without an intercept and to a loose tolerance.
GridSearchCV(SVC) is represented by some of its fits: every fourth C of these gammas, on one split;
times are scaled up by the number of fits, and divided by the two processes that would share them.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

import _harness as harness
import svm_search
from _data import data_folder
from _harness import Contestant, Row

SIZES = (2500, 5000, 10_000)
GAMMAS, LAMS = 15, 15
#: of the gammas, and of the Cs of libsvm
EVERY, EVERY_C = 3, 4
SVC = "scikit-learn SVC, some fits"
LIQUID = "liquidSVM"


def task_of(rows: int, data: str, name: str = "a9a", folds: int | None = None) -> Row:
    """The task of svm_search.py on a number of rows."""
    return {
        "data": data, "set": name, "rows": rows, "gammas": GAMMAS, "lams": LAMS, "delta": 0.1,
        "log2_gamma": (-10.0, 4.0), "log2_C": (-3.0, 11.0),
        "folds": folds or (10 if rows <= 5000 else 5),
    }  # fmt: skip


def part_of(task: Row):
    """Rows, folds, and the gammas that stand for all."""
    X, y, folds, gammas, lams, Cs = svm_search.problem_of(task)
    return X, y, folds, gammas[1::EVERY], lams, Cs


def build_onefit(task: Row, method: str, intercept: bool = True):
    X, y, folds, gammas, lams, _ = part_of(task)

    def run() -> Row:
        search = svm_search.onefit_search(
            X, y, gammas, lams, folds, task["delta"], method, intercept=intercept
        )
        return {"error": 1.0 - search.best_score_, "scale": GAMMAS / gammas.size}

    return run


def build_liquid(task: Row):
    X, y, _, gammas, lams, _ = part_of(task)

    def run() -> Row:
        accuracy = svm_search.liquidsvm_search(
            X, y, gammas, lams, task["folds"], svm_search.WORKERS
        )
        return {"error": 1.0 - float(accuracy.max()), "scale": GAMMAS / gammas.size}

    return run


def build_svc(task: Row):
    from sklearn import svm

    X, y, folds, gammas, _, Cs = part_of(task)
    train, test = folds[0]

    def run() -> Row:
        for gamma in gammas:
            for C in Cs[1::EVERY_C]:
                svm.SVC(gamma=gamma, C=C).fit(X[train], y[train]).score(X[test], y[test])
        done = gammas.size * Cs[1::EVERY_C].size
        return {"error": float("nan"), "scale": GAMMAS * LAMS * len(folds) / (2.0 * done)}

    return run


def contestants() -> list[Contestant]:
    two = f"{svm_search.WORKERS} workers x 1 thread"
    return [
        Contestant("onefit race", two, partial(build_onefit, method="race")),
        Contestant(
            "onefit race, no intercept", two,
            partial(build_onefit, method="race", intercept=False),
        ),
        Contestant(LIQUID, "1 process x 2 threads", build_liquid),
        Contestant(SVC, "1 process x 1 thread", build_svc),
    ]  # fmt: skip


def measure(flags, rows: int, data: str) -> list[Row]:
    """All contestants on a number of rows."""
    task = task_of(rows, data, flags.set, flags.folds)
    warm = {**task, "rows": 80, "gammas": 4, "lams": 2, "log2_C": (-1, 1), "folds": 3}
    rivals = harness.chosen(contestants(), flags.only)
    found = [one for one in harness.compete(rivals, task, warm, flags.rounds) if one.seconds]
    whole = {one.name: one.best * one.value["scale"] for one in found}
    return [
        {
            "rows": rows,
            "folds": task["folds"],
            "contestant": one.name,
            "threads": one.contestant.policy,
            "measured_s": one.best,
            "rounds": len(one.seconds),
            "whole_grid_s": whole[one.name],
            "times_liquidsvm": whole[one.name] / whole.get(LIQUID, float("nan")),
            "svc_times_this": whole.get(SVC, float("nan")) / whole[one.name],
            "cv_error": one.value["error"],
            "peak_n2_doubles": one.matrices(rows),
        }
        for one in found
    ]


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    flags.add_argument("--set", default="a9a")
    flags.add_argument("--folds", type=int, help="of all sizes")
    flags.add_argument("--name", default="svm_rows", help="of the files of results")
    flags = flags.parse_args()
    start, rows = perf_counter(), []
    for size in [300] if flags.quick else flags.sizes:
        print(f"{size} rows")
        rows += measure(flags, size, str(data_folder(flags.data)))
    name = harness.stem(flags.name, flags.quick)
    harness.write_csv(flags.out, name, rows)
    text = f"{' '.join(__doc__.split())}\n\n{harness.table(rows)}"
    title = "Support vector machines as rows grow"
    print(harness.write_report(flags.out, name, title, [("Times", text)]).read_text())
    print(f"{perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
