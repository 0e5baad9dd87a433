"""Gradients of exact cross-validation: what one costs, and what a search by them finds.

Two parts, chosen by ``--part`` (a pattern):

cost    value and gradient in 50 bandwidths and lam, n = 1000, 10 folds, against a bare Cholesky
        factor with its inverse of that n; squared loss and smoothed hinge
search  gamma and lam in intervals against the 15 x 20 grid, on six data sets: time and score

One thread.
"""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Contestant, Row

SETS = ("housing", "mpg", "bodyfat", "triazines", "pyrim", "space_ga")


def best_of(action, rounds: int) -> float:
    action()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def cost(flags) -> tuple[str, list[Row]]:
    from sklearn.model_selection import KFold

    from onefit import linalg
    from onefit.folds import Folds
    from onefit.gradient import cv_gradient
    from onefit.heldout import Block, Exact
    from onefit.kernels import Gaussian, PerFeature
    from onefit.losses import SmoothedHinge, Squared
    from onefit.problem import Problem

    n, p = (200, 10) if flags.quick else (1000, 50)
    random = np.random.default_rng(0)
    X = random.normal(size=(n, p))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.3 * random.normal(size=n)
    kernel = PerFeature(Gaussian, np.full(p, 0.3 / p))
    K, folds = kernel(X), Folds.draw(KFold(10), X)
    M = np.asfortranarray(K + np.eye(n))

    def bare() -> None:
        linalg.inverse_spd(M.copy(order="F"))

    unit = best_of(bare, flags.rounds)
    rows = [{"what": "Cholesky factor and inverse", "seconds": unit, "times that": 1.0}]
    for loss, target in ((Squared(), y), (SmoothedHinge(0.1), np.sign(y))):
        problem = Problem(K, target[:, None], np.ones(n), loss)
        method = Block() if problem.quadratic else Exact()

        def value(problem=problem, method=method) -> None:
            method.prepare(problem, folds).predict(np.array([1e-2]))

        def gradient(problem=problem) -> None:
            cv_gradient(problem, 1e-2, folds).kernel(kernel, X)

        for name, action in (("value", value), ("value and gradient", gradient)):
            seconds = best_of(action, flags.rounds)
            rows.append(
                {"what": f"{loss!r}: {name}", "seconds": seconds, "times that": seconds / unit}
            )
    about = f"n = {n}, {p} bandwidths and lam, 10 folds, one thread; K is given."
    return f"{about}\n\n{harness.table(rows)}", rows


def build(task: Row, how: str):
    from sklearn.model_selection import KFold

    from onefit import Interval, KernelRegressor, KernelSearchCV

    X, y = load(Path(task["data"]), task["set"])
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    X, y = X[: task["n"]], y[: task["n"]]
    grid = {"gamma": np.geomspace(1e-4, 1e1, 15), "lam": np.geomspace(1e-7, 1e0, 20)}
    if how == "gradient":
        grid = {"gamma": Interval(1e-4, 1e1), "lam": Interval(1e-7, 1e0, points=8)}
    search = KernelSearchCV(
        KernelRegressor(), grid, cv=KFold(10, shuffle=True, random_state=0), search=how,
        scoring="neg_mean_squared_error", refit=False,
    )  # fmt: skip

    def run() -> Row:
        return {"score": float(-search.fit(X, y).best_score_), "n": len(y)}

    return run


def search(flags) -> tuple[str, list[Row]]:
    rows = []
    for name in SETS[: 1 if flags.quick else None]:
        n = 150 if flags.quick else 1500
        task = {"set": name, "data": str(data_folder(flags.data)), "n": n}
        rivals = [
            Contestant(how, "1 process x 1 thread", partial(build, how=how))
            for how in ("grid", "gradient")
        ]
        grid, gradient = harness.compete(rivals, task, {**task, "n": 60}, flags.rounds)
        rows.append(
            {
                "set": name,
                "n": grid.value["n"],
                "grid s": grid.best,
                "gradient s": gradient.best,
                "gradient / grid": gradient.best / grid.best,
                "error of grid": grid.value["score"],
                "error of gradient": gradient.value["score"],
            }
        )
        print(harness.table(rows[-1:]), flush=True)
    about = "15 x 20 grid of (gamma, lam) against intervals, 10 folds; mean squared errors."
    return f"{about}\n\n{harness.table(rows)}", rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=3)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--part", default="", help="parts whose name matches this")
    flags = flags.parse_args()
    for part, run in (("cost", cost), ("search", search)):
        if not re.search(flags.part, part):
            continue
        print(part, flush=True)
        text, rows = run(flags)
        print(text)
        name = harness.stem(f"gradient_{part}", flags.quick)
        harness.write_csv(flags.out, name, rows)
        harness.write_report(flags.out, name, f"Gradients: {part}", [("Results", text)])


if __name__ == "__main__":
    main()
