"""Searches over pipelines: KernelSearchCV against GridSearchCV, and what all-rows steps gain.

Time is CPU time of the process in seconds, the contestants interleaved, the best of two rounds (of
one at n = 2000). The grid has 15 gammas, 20 lams and 10 folds. Both run a part of it and are
extrapolated: some of the gammas, spread over their range, with all lams for KernelSearchCV (its
cost is proportional to kernels) and with some of the lams, spread over theirs, for GridSearchCV
(its cost is proportional to candidates). "all rows" is method="all_rows", the check of the winner
included, and "its ratio" that of GridSearchCV to it. "bound" is what KernelRidge cannot avoid with
a kernel matrix per fold: the matrix, and one tridiagonal form of the training block. What SVC and
SVR take is Newton steps, whose mean number per fold and lam is "steps".

Optimism is the best score with the steps fitted to all rows before the search, less that of the
same candidate with the steps fitted in every training part. Scores are R^2 or accuracy of all
held-out rows together, of 10 shuffled folds; "error" is the standard error of the honest score.
Steps that use no target are searched by method="all_rows", whose optimism_ this is.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row

GAMMAS, LAMS, FOLDS = 15, 20, 10


def cpu(run: Any) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def data(n: int, classes: bool) -> tuple[Any, Any]:
    from sklearn.datasets import make_classification, make_friedman1

    if classes:
        return make_classification(n, 10, n_informative=5, flip_y=0.1, random_state=0)
    return make_friedman1(n, noise=1.0, random_state=0)


def bound(X: Any) -> float:
    """Seconds for all kernel matrices and the tridiagonal forms of their training blocks."""
    from scipy.linalg.lapack import dsytrd
    from sklearn.metrics.pairwise import rbf_kernel

    n = len(X)
    train = n * (FOLDS - 1) // FOLDS
    block = np.asfortranarray(rbf_kernel(X[:train], gamma=0.05))
    made = min(cpu(lambda: rbf_kernel(X, gamma=0.05)) for _ in range(3))
    factored = min(cpu(lambda: dsytrd(block, lower=1, lwork=32 * train)) for _ in range(3))
    return GAMMAS * FOLDS * (made + factored)


def contest(kind: str, n: int, some_gammas: int, some_lams: int, rounds: int = 2) -> Row:
    """Seconds of both for the whole grid, extrapolated."""
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

    X, y = data(n, kind == "SVC")
    train = n * (FOLDS - 1) / FOLDS
    # both spread over the whole range
    gammas = np.logspace(-3, 1, GAMMAS)[:: GAMMAS // some_gammas][:some_gammas]
    lams = np.logspace(-6, 0, LAMS)
    few = lams[:: LAMS // some_lams][:some_lams]
    ours, theirs, name, values = {
        "KernelRidge": (KernelRegressor(), KernelRidge(kernel="rbf"), "alpha", few * train),
        "SVC": (KernelClassifier("smoothed_hinge"), SVC(), "C", 1 / (2 * train * few)),
        "SVR": (KernelRegressor("epsilon_insensitive"), SVR(), "C", 1 / (2 * train * few)),
    }[kind]
    mine = {f"{type(ours).__name__.lower()}__gamma": gammas}
    mine[f"{type(ours).__name__.lower()}__lam"] = lams
    other = type(theirs).__name__.lower()
    grid = {f"{other}__gamma": gammas, f"{other}__{name}": values}
    model = make_pipeline(StandardScaler(), ours)
    options: Any = {"cv": FOLDS, "refit": False}
    fast = KernelSearchCV(model, mine, **options)
    flat = KernelSearchCV(model, mine, method="all_rows", **options)
    slow = GridSearchCV(make_pipeline(StandardScaler(), theirs), grid, **options)
    every = (fast, flat, slow)
    times = np.array([[cpu(lambda one=one: one.fit(X, y)) for one in every] for _ in range(rounds)])
    fast_s, flat_s, slow_s = times.min(axis=0) * GAMMAS / some_gammas
    slow_s *= LAMS / some_lams
    steps = np.mean([fast.heldout(i).steps for i in range(some_gammas * LAMS)])
    return {
        "model": f"StandardScaler + {kind}",
        "n": n,
        "GridSearchCV": slow_s,
        "KernelSearchCV": fast_s,
        "ratio": slow_s / fast_s,
        "all rows": flat_s,
        "its ratio": slow_s / flat_s,
        "bound": bound(X) if kind == "KernelRidge" else "",
        "steps": steps,
    }


def optimism(name: str, steps: Any, model: Any, X: Any, y: Any) -> Row:
    """The best score with steps fitted to all rows, and its candidate's with steps in the folds."""
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import KFold, StratifiedKFold
    from sklearn.pipeline import make_pipeline

    from onefit import KernelSearchCV
    from onefit.auto.planning import is_supervised

    grid = {"gamma": [0.001, 0.01, 0.1], "lam": np.logspace(-5, 0, 12)}
    step = type(model).__name__.lower()
    inside = {f"{step}__{key}": value for key, value in grid.items()}
    kind = StratifiedKFold if is_classifier(model) else KFold
    options = {"cv": kind(FOLDS, shuffle=True, random_state=0), "aggregate": "pooled"}
    whole = make_pipeline(steps, model)
    supervised = is_supervised(steps, X)
    if supervised:
        Z = clone(steps).fit(X, y).transform(X)
        flattered = KernelSearchCV(model, grid, **options).fit(Z, y)
        best = flattered.best_params_
    else:
        flattered = KernelSearchCV(whole, inside, method="all_rows", **options).fit(X, y)
        best = {key.split("__")[1]: value for key, value in flattered.best_params_.items()}
    alone = {f"{step}__{key}": [value] for key, value in best.items()}
    honest = KernelSearchCV(whole, alone, **options).fit(X, y)
    a, b = float(flattered.best_score_), float(honest.best_score_)
    return {
        "steps": name,
        "rows x columns": f"{X.shape[0]} x {X.shape[1]}",
        "uses y": "yes" if supervised else "no",
        "score (all rows)": a,
        "score (in folds)": b,
        "error": honest.headline_.standard_error,
        "optimism": a - b,
    }


def gaps(X: Any, share: float) -> Any:
    """X with a share of its entries missing."""
    random = np.random.default_rng(0)
    return np.where(random.random(X.shape) < share, np.nan, X)


def optimisms() -> list[Row]:
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest, f_classif, f_regression
    from sklearn.impute import KNNImputer, SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

    from onefit import KernelClassifier, KernelRegressor

    rng = np.random.default_rng(0)
    noise, levels = rng.normal(size=(100, 2000)), rng.integers(0, 80, size=(400, 2))
    effect = rng.normal(size=80)
    y = 0.5 * effect[levels[:, 0]] + rng.normal(size=400)
    two = (noise[:, :5].sum(axis=1) + 2 * rng.normal(size=100) > 0).astype(int)
    ridge, lssvm = KernelRegressor(), KernelClassifier()
    scaler, best = StandardScaler(), SelectKBest(f_regression, k=20)
    X, target = data(300, False)
    few, few_target = data(30, False)
    known = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return [
        optimism("StandardScaler", scaler, ridge, X, target),
        optimism("StandardScaler, few rows", scaler, ridge, few, few_target),
        optimism("StandardScaler + LS-SVM", scaler, lssvm, *data(300, True)),
        optimism(
            "SimpleImputer, 20 % missing", make_pipeline(SimpleImputer(), scaler), ridge,
            gaps(X, 0.2), target,
        ),
        optimism(
            "KNNImputer, 20 % missing", make_pipeline(scaler, KNNImputer()), ridge,
            gaps(X, 0.2), target,
        ),
        optimism("OneHotEncoder, 80 levels", known, ridge, levels, y),
        optimism("PCA(5) of noise", PCA(5, svd_solver="full"), ridge, noise, rng.normal(size=100)),
        optimism("PCA(5) + LS-SVM", PCA(5, svd_solver="full"), lssvm, noise, two),
        optimism("SelectKBest(20) of noise", best, ridge, noise, rng.normal(size=100)),
        optimism("SelectKBest(20) + LS-SVM", SelectKBest(f_classif, k=20), lssvm, noise, two),
        optimism("TargetEncoder, 80 levels", TargetEncoder(random_state=0), ridge, levels, y),
    ]  # fmt: skip


def times(flags: Any) -> None:
    # n, gammas, lams of GridSearchCV, rounds
    sizes = [(200, 3, 4, 1)] if flags.quick else [(500, 5, 4, 2), (1000, 5, 4, 2), (2000, 3, 4, 1)]
    rows = []
    for n, *some in sizes:
        for kind in ("KernelRidge", "SVC", "SVR"):
            rows.append(contest(kind, n, *some))
            print(harness.table(rows[-1:]), flush=True)
    write(flags, "pipelines", "Searches of pipelines compared with GridSearchCV", rows, 1)


def write(flags: Any, name: str, title: str, rows: list[Row], paragraph: int) -> None:
    assert __doc__
    name, about = harness.stem(name, flags.quick), __doc__.split("\n\n")[paragraph].strip()
    harness.write_csv(flags.out, name, rows)
    harness.write_report(flags.out, name, title, [("Result", f"{about}\n\n{harness.table(rows)}")])


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--part", choices=("times", "optimism"), help="one of two, not both")
    flags = parser.parse_args()
    warnings.simplefilter("ignore")
    if flags.part != "optimism":
        times(flags)
    if flags.part != "times":
        rows = optimisms()
        print(harness.table(rows))
        write(flags, "pipelines_optimism", "Optimism of preprocessing on all rows", rows, 2)


if __name__ == "__main__":
    main()
