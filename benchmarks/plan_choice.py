"""Whether the cost model chooses well: the time of its choice beside that of every exact method.

One kernel, five folds, one BLAS thread: few and many lams, a smooth kernel (Gaussian) and a rough
one (Laplace), and the smoothed hinge for losses that Newton's method solves. Kernel matrix and
held-out values are timed, by processor time, methods in turn, the best of several rounds. Methods
that the plan expects to take longer than ``--limit`` seconds are not run, and are shown as such.
Rows are written one by one: a run that was stopped goes on, ``--fresh`` begins anew.
"""

from __future__ import annotations

import csv
import time
from itertools import product
from pathlib import Path

import _harness as harness
import numpy as np
from _data import friedman, friedman_classes
from _harness import Row

FOLDS = 5
SIZES = (100, 300, 1000, 2000, 5000, 10_000)
LAMS = (1, 3, 10, 30)
#: kernel and gamma of features in [0, 1]: ten of them, so that typical rows are about 1.6 apart
KERNELS = {"smooth": ("rbf", 0.3), "rough": ("laplacian", 0.3)}
METHODS = {"squared": ("block", "eigen", "iterative"), "smoothed_hinge": ("exact", "refit")}
#: rows up to which losses other than the squared one are tried
MAX_HINGE_ROWS = 1000
KEY = ("loss", "kernel", "n", "lams")


def prepared(loss: str, kernel: str, n: int, lams: int, method: str):
    """A search of one kernel by one method, set up but not run."""
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
    from onefit.search.setup import set_up

    squared = loss == "squared"
    X, y = (friedman if squared else friedman_classes)(n)
    name, gamma = KERNELS[kernel]
    kind = KernelRegressor if squared else KernelClassifier
    grid = {"lam": np.logspace(-5, 0, lams) if lams > 1 else [1e-3]}
    search = KernelSearchCV(
        kind(loss=loss, kernel=name, gamma=gamma), grid, cv=FOLDS, method=method
    )
    return set_up(search, X, y, None, {})


def seconds(setup) -> float:
    """Processor time of kernel matrix and held-out values."""
    from onefit.estimators import inside
    from onefit.search.workers import _matrix

    (job,) = setup.jobs
    (machine,) = job.machines
    start = time.process_time()
    K = _matrix(job, setup.sample, None)
    problem = inside.problem_of(
        machine.estimator, K, setup.sample.Y, setup.sample.s, may_overwrite=True, definite=True
    )
    machine.method.prepare(problem, setup.sample.folds).predict(np.array(machine.lams))
    return time.process_time() - start


def rounds_of(n: int, asked: int) -> int:
    return asked if n <= 300 else max(1, min(asked, 6000 // n))


def measured(loss: str, kernel: str, n: int, lams: int, limit: float, rounds: int) -> Row:
    chosen = prepared(loss, kernel, n, lams, "auto").choices[0].method
    setups, row = {}, {"loss": loss, "kernel": kernel, "n": n, "lams": lams, "chosen": chosen}
    for method in METHODS[loss]:
        setup = prepared(loss, kernel, n, lams, method)
        (work,) = setup.works.values()
        row[f"{method} expected s"] = work.seconds
        if work.seconds <= limit or method == chosen:
            setups[method] = setup
    best = dict.fromkeys(setups, np.inf)
    for _ in range(rounds_of(n, rounds)):
        for method, setup in setups.items():
            best[method] = min(best[method], seconds(setup))
    row |= {f"{method} s": best.get(method, np.nan) for method in METHODS[loss]}
    fastest = min(best, key=best.get)
    return row | {"fastest": fastest, "times fastest": best[chosen] / best[fastest]}


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open() as file:
        return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(file)]


def _number(text: str):
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() and "." not in text else value


def cases(quick: bool):
    sizes, lams = ((100, 300), (1, 10)) if quick else (SIZES, LAMS)
    for loss, kernel, n, k in product(METHODS, KERNELS, sizes, lams):
        if loss == "squared" or n <= MAX_HINGE_ROWS:
            yield loss, kernel, n, k


def main() -> None:
    flags = harness.parser(__doc__, rounds=15)
    flags.add_argument("--limit", type=float, default=25.0, help="seconds of a method, by the plan")
    flags.add_argument("--fresh", action="store_true", help="forget rows of an earlier run")
    flags = flags.parse_args()
    name = harness.stem("plan_choice", flags.quick)
    rows = [] if flags.fresh else read(flags.out / f"{name}.csv")
    known = {tuple(row[key] for key in KEY) for row in rows}
    for case in sorted(cases(flags.quick), key=lambda one: one[2]):
        if case in known:
            continue
        rows.append(measured(*case, flags.limit, flags.rounds))
        harness.write_csv(flags.out, name, rows)
        print({k: harness._cell(v) for k, v in rows[-1].items()}, flush=True)
    worst = max(row["times fastest"] for row in rows)
    within = sum(row["times fastest"] <= 1.15 for row in rows)
    about = (
        f"{within} of {len(rows)} choices are within 15 % of the fastest method that was run; the "
        f"worst takes {worst:.2f} times as long. Processor seconds of one kernel, {FOLDS} folds, "
        "one thread; an empty cell is a method that the plan expects to take longer than "
        f"{flags.limit:g} s and that was not run."
    )
    harness.write_report(
        flags.out, name, "The choice of the cost model", [("", f"{about}\n\n{harness.table(rows)}")]
    )


if __name__ == "__main__":
    main()
