"""Whether the cost model chooses well: the time of its choice beside that of every exact method.

One kernel, five folds, one BLAS thread: few and many lams, a smooth kernel (Gaussian) and a rough
one (Laplace), and the smoothed hinge for losses that Newton's method solves. Kernel matrix and
held-out values are timed, by processor time, methods in turn, the best of several rounds. Methods
that the plan expects to take longer than ``--limit`` seconds are not run, and are shown as such.
The plan considers an iteration from 4,000 rows on only: below, its time depends too much on the
lams, which the column "iterative s" of the third table (lams down to 1e-9) shows.
Rows are written one by one: a run that was stopped resumes, ``--fresh`` starts again.
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
#: smallest and largest lam: those of the default grid, and smaller ones
RANGES = {"usual": (5e-6, 5e-2), "small": (1e-9, 1e-3)}
KEY = ("loss", "kernel", "range", "n", "lams")
WITHIN = 1.15


def prepared(loss: str, kernel: str, span: str, n: int, lams: int, method: str):
    """A search of one kernel by one method, set up but not run."""
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
    from onefit.search.setup import set_up

    squared = loss == "squared"
    X, y = (friedman if squared else friedman_classes)(n)
    name, gamma = KERNELS[kernel]
    kind = KernelRegressor if squared else KernelClassifier
    low, high = RANGES[span]
    grid = {"lam": np.geomspace(low, high, lams) if lams > 1 else [np.sqrt(low * high)]}
    search = KernelSearchCV(
        kind(loss=loss, kernel=name, gamma=gamma), grid, cv=FOLDS, method=method
    )
    return set_up(search, X, y, None, {})


def seconds(setup) -> float:
    """Processor time of kernel matrix and held-out values."""
    from onefit.search.job import _matrix

    (job,) = setup.jobs
    (machine,) = job.models
    start = time.process_time()
    K = _matrix(job, setup.sample, None)
    sample = setup.sample
    problem = machine.spec.problem(K, sample.Y, sample.s, may_overwrite=True, definite=True)
    machine.method.prepare(problem, setup.sample.folds).predict(np.array(machine.lams))
    return time.process_time() - start


def rounds_of(n: int, asked: int) -> int:
    return asked if n <= 300 else max(1, min(asked, 6000 // n))


def measured(case: tuple, limit: float, rounds: int) -> Row:
    from onefit.plan.choice import AUTO_METHODS, MIN_ITERATED_ROWS

    loss, n = case[0], case[3]
    chosen = prepared(*case, "auto").choices[0].method
    setups, row = {}, dict(zip(KEY, case, strict=True)) | {"chosen": chosen}
    for method in METHODS[loss]:
        setup = prepared(*case, method)
        (work,) = setup.works.values()
        row[f"{method} expected s"] = work.seconds
        if work.seconds <= limit or method == chosen:
            setups[method] = setup
    best = dict.fromkeys(setups, np.inf)
    for _ in range(rounds_of(n, rounds)):
        for method, setup in setups.items():
            best[method] = min(best[method], seconds(setup))
    row |= {f"{method} s": best.get(method, np.nan) for method in METHODS[loss]}
    considered = [
        one
        for one in best
        if one in AUTO_METHODS[loss == "squared"] and (one != "iterative" or n >= MIN_ITERATED_ROWS)
    ]
    return row | {
        "times fastest considered": best[chosen] / min(best[one] for one in considered),
        "times fastest of all": best[chosen] / min(best.values()),
    }


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
            yield loss, kernel, "usual", n, k
    for kernel, n in product(KERNELS, sizes if quick else (1000, 2000, 5000)):
        yield "squared", kernel, "small", n, 10


def summary(rows: list[Row]) -> str:
    lines = []
    for column in ("times fastest considered", "times fastest of all"):
        within = sum(row[column] <= WITHIN for row in rows)
        worst = max(row[column] for row in rows)
        lines.append(f"- {column}: {within} of {len(rows)} within 15 %, the worst {worst:.2f}")
    return "\n".join(lines)


def main() -> None:
    flags = harness.parser(__doc__, rounds=15)
    flags.add_argument("--limit", type=float, default=25.0, help="seconds of a method, by the plan")
    flags.add_argument("--fresh", action="store_true", help="forget rows of an earlier run")
    flags = flags.parse_args()
    name = harness.stem("plan_choice", flags.quick)
    rows = [] if flags.fresh else read(flags.out / f"{name}.csv")
    known = {tuple(row[key] for key in KEY) for row in rows}
    for case in sorted(cases(flags.quick), key=lambda one: one[3]):
        if case in known:
            continue
        rows.append(measured(case, flags.limit, flags.rounds))
        harness.write_csv(flags.out, name, rows)
        print({k: harness._cell(v) for k, v in rows[-1].items()}, flush=True)
    about = (
        f"Processor seconds of one kernel, {FOLDS} folds, one thread; an empty cell is a method "
        f"that the plan expects to take longer than {flags.limit:g} s and that was not run. "
        "Methods that are considered: block and eigen, and from 4,000 rows on iterative; exact for "
        "other losses.\n\n"
    )
    parts = []
    for title, loss, span in (
        ("Squared loss", "squared", "usual"),
        ("Smoothed hinge", "smoothed_hinge", "usual"),
        ("Squared loss, small lams", "squared", "small"),
    ):
        own = [row for row in rows if (row["loss"], row["range"]) == (loss, span)]
        own = [{k: v for k, v in row.items() if k not in ("loss", "range")} for row in own]
        parts.append((title, f"{summary(own)}\n\n{harness.table(own)}"))
    parts[0] = (parts[0][0], about + parts[0][1])
    harness.write_report(flags.out, name, "Cost model: is the chosen method the fastest?", parts)


if __name__ == "__main__":
    main()
