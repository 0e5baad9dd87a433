"""Exact cross-validation beyond n^3: the iteration for all folds and lambdas.

Five parts, chosen by ``--part`` (a pattern):

cadata     all 20,640 rows with the default grid of ``onefit select``, at several tolerances
sizes      15 kernels x 20 lams x 10 folds at n = 5,000 and 10,000, against "eigen" and against
           GridSearchCV(KernelRidge), of which a part is timed and the rest extrapolated
rows       the time of a kernel as n grows, held and not held
agreement  against "block" at n = 3,000, over kernels and lam from 1e-8 to 1e2
fits       one fit of every loss, by factors and by iteration, and of 50,000 rows

One process, as many threads as there are cores.
"""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, friedman, load
from _harness import Contestant, Row
from joblib import cpu_count
from threadpoolctl import threadpool_limits

FOLDS = 10
CORES = cpu_count()
PARTS = ("agreement", "fits", "sizes", "rows", "cadata")


def standardised(X, y):
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


# cadata


def cadata(flags) -> tuple[str, list[Row]]:
    """The whole of it, a row for each kernel and tolerance."""
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV, default_grid
    from onefit.heldout import Iterative

    X, y = standardised(*load(data_folder(flags.data), "cadata"))
    if flags.quick:
        X, y = X[:1500], y[:1500]
    (grid,) = default_grid(X)
    cv, rows = KFold(FOLDS, shuffle=True, random_state=0), []
    for tol in (1e-4, 1e-6, 1e-8):
        for gamma in sorted(grid["gamma"])[:: 1 if tol == 1e-4 else 4]:
            one = {"gamma": [gamma], "lam": grid["lam"]}
            search = KernelSearchCV(
                KernelRegressor(), one, cv=cv, method=Iterative(tol=tol), refit=False,
                scoring="neg_mean_squared_error",
            )  # fmt: skip
            start = time.perf_counter()
            search.fit(X, y)
            seconds = time.perf_counter() - start
            heldouts = [search.heldout(i) for i in range(len(grid["lam"]))]
            error = np.array([held.error.max() for held in heldouts])
            rows.append(
                {
                    "tol": tol,
                    "gamma": gamma,
                    "seconds": seconds,
                    "steps": int(max(held.steps.max() for held in heldouts)),
                    "largest bound": float(error.max()),
                    "within tol": f"{100 * np.mean(error <= tol):.0f} %",
                    "best score": float(search.best_score_),
                }
            )
            print(harness.table(rows[-1:]), flush=True)
    totals = []
    for tol in dict.fromkeys(row["tol"] for row in rows):
        mine = [row for row in rows if row["tol"] == tol]
        totals.append(
            {
                "tol": tol,
                "kernels": len(mine),
                "minutes": sum(row["seconds"] for row in mine) / 60,
                "largest bound": max(row["largest bound"] for row in mine),
            }
        )
    about = (
        f"cadata, {len(y)} rows, standardised, {len(grid['lam'])} lams x {FOLDS} folds; errors are "
        "in units of the target's standard deviation."
    )
    return f"{about}\n\n{harness.table(totals)}\n\n{harness.table(rows)}", rows


# sizes


def build_onefit(task: Row, method: str):
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV

    X, y = friedman(task["n"])
    grid = {"gamma": np.logspace(-3, 1, 15)[task["kernels"]], "lam": np.logspace(-6, 2, 20)}
    machine = KernelRegressor(scaling="total", fit_intercept=False)
    search = KernelSearchCV(
        machine, grid, cv=KFold(FOLDS), method=method, refit=False, scoring="neg_mean_squared_error"
    )

    def run() -> Row:
        results = search.fit(X, y).cv_results_
        return {"scores": results["mean_test_score"], "exact": float(results["exact"].mean())}

    return run


def build_gridsearch(task: Row):
    """One kernel, two lams, two of the ten folds: a hundred and fiftieth of 15 x 20 x 10 / 2."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold

    X, y = friedman(task["n"])
    grid = {"gamma": np.logspace(-3, 1, 15)[7:8], "alpha": np.logspace(-6, 2, 20)[[5, 15]]}
    cv = list(KFold(FOLDS).split(X))[:2]
    search = GridSearchCV(
        KernelRidge(kernel="rbf"), grid, cv=cv, refit=False, scoring="neg_mean_squared_error"
    )
    return lambda: float(search.fit(X, y).best_score_)


def sizes(flags) -> tuple[str, list[Row]]:
    rows = []
    for n in (300,) if flags.quick else (5000, 10000):
        # some kernels of the grid: all would take too long
        some = list(range(1, 15, 3 if n <= 5000 else 6))
        task, share = {"n": n, "kernels": some}, 15 / len(some)
        rivals = [
            Contestant(f"onefit {m}", "1 process", partial(build_onefit, method=m), CORES)
            for m in ("auto", "eigen")
        ]
        rivals.append(Contestant("GridSearchCV(KernelRidge)", "1 process", build_gridsearch, CORES))
        rivals = harness.chosen(rivals, flags.only)
        warm = {"n": 200, "kernels": [7]}
        for one in harness.compete(rivals, task, warm, flags.rounds):
            if one.problem is not None:
                continue
            factor = 15 * 20 * FOLDS / 4 if one.name.startswith("Grid") else share
            exact = "" if one.name.startswith("Grid") else f"{100 * one.value['exact']:.0f} %"
            rows.append(
                {
                    "n": n,
                    "contestant": one.name,
                    "seconds": one.best * factor,
                    "timed": f"{100 / factor:.2g} %",
                    "certified": exact,
                }
            )
        print(harness.table(rows), flush=True)
    about = (
        "15 kernels x 20 lams x 10 folds; `timed` is the part of the search that was run, the rest "
        "is extrapolated."
    )
    return f"{about}\n\n{harness.table(rows)}", rows


# rows


def rows_grow(flags) -> tuple[str, list[Row]]:
    from sklearn.model_selection import KFold

    from onefit.folds import Folds
    from onefit.heldout import Iterative
    from onefit.kernels import Gaussian
    from onefit.losses import Squared
    from onefit.problem import Problem

    rows = []
    for held in (True, False):
        for n in (500, 1000) if flags.quick else (5000, 10000, 20000, 40000)[: 4 if held else 3]:
            X, y = friedman(n)
            folds = Folds.draw(KFold(FOLDS), X)
            best = np.inf
            for _ in range(flags.rounds if n < 20000 else 1):
                start = time.perf_counter()
                tiles = Gaussian(0.3).tiles(X)
                K = tiles.whole() if held else tiles
                problem = Problem(K, y[:, None], np.ones(n), Squared(), definite=True)
                lams = np.logspace(-5, -1, 5)
                path = Iterative().prepare(problem, folds).predict(lams)
                best = min(best, time.perf_counter() - start)
            rows.append(
                {
                    "K": "held" if held else "tiles",
                    "n": n,
                    "seconds": best,
                    "steps": int(path.steps.max()),
                    "certified": f"{100 * path.exact.mean():.0f} %",
                }
            )
            print(harness.table(rows[-1:]), flush=True)
    fits = []
    for kind in ("held", "tiles"):
        mine = [row for row in rows if row["K"] == kind]
        slope = np.polyfit(
            np.log([row["n"] for row in mine]), np.log([row["seconds"] for row in mine]), 1
        )[0]
        fits.append({"K": kind, "exponent": float(slope)})
    about = "One Gaussian kernel, 5 lams from 1e-5 to 1e-1, 10 folds."
    return f"{about}\n\n{harness.table(rows)}\n\n{harness.table(fits)}", rows


# agreement


def agreement(flags) -> tuple[str, list[Row]]:
    from sklearn.model_selection import KFold

    from onefit.folds import Folds
    from onefit.heldout import Block, Iterative
    from onefit.kernels import Gaussian, Laplace, Matern32, Polynomial
    from onefit.losses import Squared
    from onefit.problem import Problem

    n = 300 if flags.quick else 3000
    X, y = friedman(n)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    folds, rows = Folds.draw(KFold(FOLDS), X), []
    lams = np.logspace(-8, 2, 11)
    kernels = [Gaussian(0.01), Gaussian(0.1), Gaussian(1.0), Laplace(0.1), Matern32(0.3)]
    for kernel in [*kernels, Polynomial(0.1, 1.0, 3)]:
        problem = Problem(kernel(X), y[:, None], np.ones(n), Squared(), definite=True)
        mine = Iterative(tol=1e-9).prepare(problem, folds).predict(lams)
        other = Block().prepare(problem, folds).predict(lams)
        for i, lam in enumerate(lams):
            a, b = mine[i], other[i]
            gap = np.array([np.abs(u - v).max() for u, v in zip(a.by_fold, b.by_fold, strict=True)])
            scale = float(problem.scale[0])
            rows.append(
                {
                    "kernel": repr(kernel),
                    "lam": lam,
                    "difference": float(gap.max()) / scale,
                    "bound": float(a.error.max()) / scale,
                    "bound of block": float(b.error.max()) / scale,
                    "within both": bool((gap <= a.error + b.error).all()),
                    "steps": int(a.steps.max()),
                }
            )
        print(harness.table(rows[-lams.size :]), flush=True)
    about = f'n = {n}, against "block"; in units of the targets\' standard deviation.'
    return f"{about}\n\n{harness.table(rows)}", rows


# fits


def fits(flags) -> tuple[str, list[Row]]:
    from onefit import KernelClassifier, KernelRegressor

    rows = []
    tasks = [(n, s) for n in (3000, 6000) for s in ("newton", "iterative")] + [(50000, "iterative")]
    for n, solver in [(300, "newton"), (300, "iterative")] if flags.quick else tasks:
        X, y = friedman(n)
        losses = ("squared", "huber", "smoothed_hinge", "log")
        for loss in losses if n < 50000 else losses[:3]:
            kind = KernelRegressor if loss in ("squared", "huber") else KernelClassifier
            machine = kind(loss=loss, gamma=0.3, lam=1e-4, solver=solver)
            target = y if kind is KernelRegressor else y > np.median(y)
            start = time.perf_counter()
            machine.fit(X, target)
            rows.append(
                {
                    "n": n,
                    "loss": loss,
                    "solver": solver,
                    "seconds": time.perf_counter() - start,
                    "Newton steps": machine.n_iter_,
                }
            )
            print(harness.table(rows[-1:]), flush=True)
    about = "One Gaussian kernel (gamma 0.3), lam 1e-4."
    return f"{about}\n\n{harness.table(rows)}", rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=2)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--part", default="", help="parts whose name matches this")
    flags = flags.parse_args()
    run = {
        "agreement": (agreement, "agreement with the closed form"),
        "fits": (fits, "time of single fits"),
        "sizes": (sizes, "whole searches compared with other methods"),
        "rows": (rows_grow, "time as rows grow"),
        "cadata": (cadata, "a search of 20,640 rows by tolerance"),
    }
    threadpool_limits(CORES)
    for part in PARTS:
        if not re.search(flags.part, part):
            continue
        print(part, flush=True)
        work, title = run[part]
        text, rows = work(flags)
        name = harness.stem(f"iterative_{part}", flags.quick)
        harness.write_csv(flags.out, name, rows)
        harness.write_report(flags.out, name, f"Iteration: {title}", [("Results", text)])


if __name__ == "__main__":
    main()
