"""Searches over pipelines: KernelSearchCV against GridSearchCV, and what all-rows steps flatter.

Time is CPU time of the process, the contestants interleaved, the best of two rounds. The grid has
15 gammas, 20 lams and 10 folds. Both run a part of it and are extrapolated: KernelSearchCV runs
some of the gammas with all lams (its cost is proportional to kernels), GridSearchCV these gammas
with some of the lams (its cost is proportional to candidates).

Optimism is the best score with the steps fitted to all rows before the search, less that with the
steps fitted in every training part.
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


def contest(kind: str, n: int, some_gammas: int, some_lams: int) -> Row:
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
    fast = KernelSearchCV(make_pipeline(StandardScaler(), ours), mine, cv=FOLDS, refit=False)
    slow = GridSearchCV(make_pipeline(StandardScaler(), theirs), grid, cv=FOLDS, refit=False)
    times = np.array([[cpu(lambda one=one: one.fit(X, y)) for one in (fast, slow)] for _ in "ab"])
    fast_s, slow_s = times.min(axis=0)
    fast_s *= GAMMAS / some_gammas
    slow_s *= GAMMAS * LAMS / (some_gammas * some_lams)
    return {
        "model": f"StandardScaler + {kind}",
        "n": n,
        "KernelSearchCV [s]": fast_s,
        "GridSearchCV [s]": slow_s,
        "ratio": slow_s / fast_s,
    }


def optimism(name: str, steps: Any, model: Any, X: Any, y: Any) -> Row:
    """The best score with steps fitted to all rows, and with steps fitted in the folds."""
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    from onefit import KernelSearchCV

    grid = {"gamma": [0.001, 0.01, 0.1], "lam": np.logspace(-5, 0, 12)}
    step = type(model).__name__.lower()
    inside = {f"{step}__{key}": value for key, value in grid.items()}
    options = {"cv": FOLDS, "aggregate": "pooled"}
    honest = KernelSearchCV(make_pipeline(steps, model), inside, **options).fit(X, y)
    Z = clone(steps).fit(X, y).transform(X)
    flattered = KernelSearchCV(model, grid, **options).fit(Z, y)
    a, b = float(flattered.best_score_), float(honest.best_score_)
    return {"steps": name, "score, all rows": a, "score, in the folds": b, "optimism": a - b}


def optimisms() -> list[Row]:
    from sklearn.feature_selection import SelectKBest, f_classif, f_regression
    from sklearn.preprocessing import StandardScaler, TargetEncoder

    from onefit import KernelClassifier, KernelRegressor

    rng = np.random.default_rng(0)
    noise, levels = rng.normal(size=(100, 2000)), rng.integers(0, 80, size=(400, 2))
    effect = rng.normal(size=80)
    y = 0.5 * effect[levels[:, 0]] + rng.normal(size=400)
    two = (noise[:, :5].sum(axis=1) + 2 * rng.normal(size=100) > 0).astype(int)
    ridge, lssvm = KernelRegressor(), KernelClassifier()
    best = SelectKBest(f_regression, k=20)
    return [
        optimism("StandardScaler, regression", StandardScaler(), ridge, *data(300, False)),
        optimism("StandardScaler, classes", StandardScaler(), lssvm, *data(300, True)),
        optimism("SelectKBest, 100 x 2000 noise", best, ridge, noise, rng.normal(size=100)),
        optimism(
            "SelectKBest + LS-SVM, 5 of 2000", SelectKBest(f_classif, k=20), lssvm, noise, two
        ),
        optimism("TargetEncoder, 2 x 80 levels", TargetEncoder(), ridge, levels, y),
    ]


def main() -> None:
    flags = harness.parser(__doc__).parse_args()
    warnings.simplefilter("ignore")
    sizes = (200,) if flags.quick else (500, 1000)
    rows = []
    for n in sizes:
        for kind in ("KernelRidge", "SVC", "SVR"):
            rows.append(contest(kind, n, *((3, 4) if n < 1000 else (2, 3))))
            print(harness.table(rows[-1:]), flush=True)
    found = optimisms()
    print(harness.table(found))
    name = harness.stem("pipelines", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = __doc__.split("\n\n")
    harness.write_report(
        flags.out,
        name,
        "Searches over pipelines",
        [
            ("Time", f"{about[1]}\n\n{harness.table(rows)}"),
            ("Optimism of preprocessing on all rows", f"{about[2]}\n{harness.table(found)}"),
        ],
    )


if __name__ == "__main__":
    main()
