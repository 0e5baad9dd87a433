"""Gradients of exact cross-validation: what one costs, and what a search by them finds.

Parts, chosen by ``--part`` (a pattern):

cost    value and gradient in 50 bandwidths and lam, n = 1000, 10 folds, against a bare Cholesky
        factor with its inverse of that n; squared loss and smoothed hinge
search  gamma and lam in intervals against the 15 x 20 grid, on six data sets: time and score
mkl     weights of a bank of kernels against himalaya's MultipleKernelRidgeCV, by random search and
        by hyper-gradients, on the same bank and folds: time, and the exact cross-validated error
        of the weights found
gp      a gamma per column against scikit-learn's GaussianProcessRegressor with a length scale per
        column: time, and error over five outer folds

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

    from onefit import KernelGradientSearchCV, KernelRegressor, KernelSearchCV
    from onefit.search import Interval

    X, y = load(Path(task["data"]), task["set"])
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    X, y = X[: task["n"]], y[: task["n"]]
    grid = {"gamma": np.geomspace(1e-4, 1e1, 15), "lam": np.geomspace(1e-7, 1e0, 20)}
    kind = KernelSearchCV
    if how == "gradient":
        grid = {"gamma": Interval(1e-4, 1e1), "lam": Interval(1e-7, 1e0, points=8)}
        kind = KernelGradientSearchCV
    search = kind(
        KernelRegressor(), grid, cv=KFold(10, shuffle=True, random_state=0),
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


def rows_of(task: Row):
    """Columns and target with mean zero and standard deviation one."""
    X, y = load(Path(task["data"]), task["set"])
    keep = np.random.default_rng(0).permutation(len(y))[: task["n"]]
    X, y = X[keep], y[keep]
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def bank_of(X):
    """One kernel per column, five bandwidths of all columns, a linear one."""
    from onefit.kernels import Bank, Gaussian, Linear, OnColumns

    p = X.shape[1]
    alone = [OnColumns(Gaussian(0.5), [column]) for column in range(p)]
    return Bank([*alone, *(Gaussian(g / p) for g in np.geomspace(0.03, 10.0, 5)), Linear()])


def build_ours(task: Row, how: dict[str, int]):
    from sklearn.model_selection import KFold

    from onefit import KernelGradientSearchCV, KernelRegressor
    from onefit.search import Interval

    X, y = rows_of(task)
    search = KernelGradientSearchCV(
        KernelRegressor(fit_intercept=False),
        {"kernel": bank_of(X), "lam": Interval(1e-6, 1e1, points=8)},
        cv=KFold(5), early_stopping=False, **how,
        scoring="neg_mean_squared_error", refit=False,
    )  # fmt: skip
    return lambda: {"error": -float(search.fit(X, y).best_score_), "n": len(y)}


def build_himalaya(task: Row, solver: str):
    from himalaya.kernel_ridge import MultipleKernelRidgeCV
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, heldout_predict

    X, y = rows_of(task)
    bank = bank_of(X).settled(X)
    folds = KFold(5)
    machine = KernelRegressor(kernel="precomputed", lam=1.0, scaling="total", fit_intercept=False)

    def run() -> Row:
        Ks = np.array([bank.mixed(one)(X) for one in np.eye(len(bank.kernels))])
        params = {"progress_bar": False}
        if solver == "random_search":
            params["alphas"] = np.geomspace(1e-3, 1e4, 12)
        model = MultipleKernelRidgeCV(
            kernels="precomputed", solver=solver, cv=folds, solver_params=params, random_state=0
        ).fit(Ks, y)
        K = np.einsum("m,mij->ij", np.exp(np.ravel(model.deltas_)), Ks)
        held = heldout_predict(machine, K, y, cv=folds).predictions
        errors = [np.mean((held[test] - y[test]) ** 2) for _, test in folds.split(X)]
        return {"error": float(np.mean(errors)), "n": len(y)}

    return run


#: runs of ours, the last one in full
OURS = {
    "2 steps": {"starts": 1, "steps": 2},
    "5 steps": {"starts": 1, "steps": 5},
    "15 steps": {"starts": 1, "steps": 15},
    "ours": {},
}


def mkl(flags) -> tuple[str, list[Row]]:
    rows = []
    for name in ("housing", "mpg", "ozone", "triazines")[: 1 if flags.quick else None]:
        task = {"set": name, "data": str(data_folder(flags.data)), "n": 80 if flags.quick else 250}
        rivals = [
            Contestant(label, "1 process x 1 thread", partial(build_ours, how=how))
            for label, how in OURS.items()
        ]
        rivals += [
            Contestant(solver, "1 process x 1 thread", partial(build_himalaya, solver=solver))
            for solver in ("random_search", "hyper_gradient")
        ]
        found = harness.compete(rivals, task, {**task, "n": 40}, 1)
        ours, peers = found[: len(OURS)], found[len(OURS) :]
        full = ours[-1]
        row: Row = {"set": name, "n": full.value["n"], "ours s": full.best}
        row["ours error"] = full.value["error"]
        for peer in peers:
            reached = [one.best for one in ours if one.value["error"] <= peer.value["error"]]
            row |= {f"{peer.name} s": peer.best, f"{peer.name} error": peer.value["error"]}
            row[f"{peer.name} / ours"] = peer.best / full.best
            row[f"{peer.name} / ours to its score"] = peer.best / min(reached, default=np.nan)
        rows.append(row)
        print(harness.table(rows[-1:]), flush=True)
    about = (
        "A bank of one kernel per column, five of all columns and a linear one; 5 folds, no "
        "intercept. The error is the exact cross-validated one of the weights found. Ours runs to "
        "convergence from up to three starts; 'to its score' takes the shortest of a few runs, of "
        "2, 5 and 15 steps from one start and of all, that reach the error of the peer."
    )
    return f"{about}\n\n{harness.table(rows)}", rows


def outer_error(model, X, y) -> float:
    from sklearn.model_selection import KFold, cross_val_predict

    held = cross_val_predict(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
    return float(np.mean((held - y) ** 2))


def build_ard(task: Row):
    from sklearn.model_selection import KFold

    from onefit import KernelGradientSearchCV, KernelRegressor
    from onefit.search import Interval

    X, y = rows_of(task)
    grid = {
        "gamma": Interval(1e-5, 1e1, per_feature=True),
        "lam": Interval(1e-6, 1e1, points=8),
    }
    search = KernelGradientSearchCV(
        KernelRegressor(), grid, cv=KFold(5, shuffle=True, random_state=1),
        scoring="neg_mean_squared_error",
    )  # fmt: skip
    return lambda: {"error": outer_error(search, X, y), "n": len(y), "p": X.shape[1]}


def build_gp(task: Row):
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    X, y = rows_of(task)
    kernel = ConstantKernel(1.0) * RBF(np.full(X.shape[1], np.sqrt(X.shape[1]))) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, n_restarts_optimizer=2, random_state=0)

    def run() -> Row:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return {"error": outer_error(model, X, y), "n": len(y), "p": X.shape[1]}

    return run


def gp(flags) -> tuple[str, list[Row]]:
    rows = []
    for name in ("housing", "mpg", "ozone", "triazines", "pyrim")[: 1 if flags.quick else None]:
        task = {"set": name, "data": str(data_folder(flags.data)), "n": 80 if flags.quick else 250}
        rivals = [
            Contestant("ours", "1 process x 1 thread", build_ard),
            Contestant("gp", "1 process x 1 thread", build_gp),
        ]
        ours, peer = harness.compete(rivals, task, {**task, "n": 30}, 1)
        rows.append(
            {
                "set": name,
                "n": ours.value["n"],
                "columns": ours.value["p"],
                "ours s": ours.best,
                "gp s": peer.best,
                "gp / ours": peer.best / ours.best,
                "error of ours": ours.value["error"],
                "error of gp": peer.value["error"],
            }
        )
        print(harness.table(rows[-1:]), flush=True)
    about = (
        "Five outer folds; a search with a gamma per column over five inner folds, three starts, "
        "against the marginal likelihood with a length scale per column, three starts. Errors are "
        "mean squared ones over the variance."
    )
    return f"{about}\n\n{harness.table(rows)}", rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=3)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--part", default="", help="parts whose name matches this")
    flags = flags.parse_args()
    for part, run, title in (
        ("cost", cost, "Gradient of a cross-validated score: cost"),
        ("search", search, "Gradient search compared with a grid"),
        ("mkl", mkl, "Weights of several kernels by gradient"),
        ("gp", gp, "One gamma per column compared with a Gaussian process: time and error"),
    ):
        if not re.search(flags.part, part):
            continue
        print(part, flush=True)
        text, rows = run(flags)
        print(text)
        name = harness.stem(f"gradient_{part}", flags.quick)
        harness.write_csv(flags.out, name, rows)
        harness.write_report(flags.out, name, title, [("Results", text)])


if __name__ == "__main__":
    main()
