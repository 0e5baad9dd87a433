"""Features instead of the kernel matrix: what cross-validation adds to one pass over the rows.

Three parts, chosen by ``--part`` (a pattern):

pass      10 folds x 20 lams with 2,000 landmarks on rows of 20 columns, against the bare pass that
          makes the features and adds up their products, two threads each; ``--rows`` says how many
peers     the same search on 100,000 rows against GridSearchCV over make_pipeline(Nystroem, Ridge)
          with as many landmarks; of its 200 fits some are run, and their mean is taken 200 times
accuracy  scores of features against those of the whole kernel by the number of features, on parts
          of cadata, a9a and covtype and on synthetic rows similar to covtype: the error of
          the score, and what choosing by the features loses in the whole kernel's score
"""

from __future__ import annotations

import re
import time
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, forest, load
from _harness import Contestant, Row

from onefit.features import Fourier, Nystrom

LAMS = np.geomspace(1e-8, 1e0, 20)
FOLDS = 10


def rows_of(n: int, p: int = 20, seed: int = 0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, p))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n)
    return X, y


def build_bare(task: Row):
    """Features of every chunk, and their products, added up: nothing held out."""
    from onefit import linalg
    from onefit.features.approximation import get_approximation
    from onefit.kernels import Gaussian

    X, y = rows_of(task["n"])

    def run() -> Row:
        start, s = time.process_time(), np.ones(len(y))
        rows = get_approximation(Nystrom(task["m"])).expand(Gaussian(0.02), X, s)
        m = rows.features.size
        G, r, room = np.zeros((m, m), order="F"), np.zeros((m, 1)), np.empty((rows.size, m))
        for first in range(0, len(y), rows.size):
            some = slice(first, first + rows.size)
            Phi = rows.features.apply(X[some], room)
            linalg.add_gram(G, Phi.T)
            r += linalg.matmul(Phi.T, y[some, None])
        return {"trace": float(np.trace(G)), "cpu": time.process_time() - start}

    return run


def build_search(task: Row):
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV

    X, y = rows_of(task["n"])
    machine = KernelRegressor(approximation=Nystrom(task["m"]), gamma=0.02)
    search = KernelSearchCV(
        machine, {"lam": LAMS}, cv=KFold(FOLDS, shuffle=True, random_state=0), refit=False,
        scoring="neg_mean_squared_error",
    )  # fmt: skip

    def run() -> Row:
        start = time.process_time()
        search.fit(X, y)
        return {"score": float(search.best_score_), "cpu": time.process_time() - start}

    return run


def build_pipeline(task: Row):
    """Some of the fits of a grid search over a pipeline."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV, KFold
    from sklearn.pipeline import make_pipeline

    X, y = rows_of(task["n"])
    model = make_pipeline(
        Nystroem(gamma=0.02, n_components=task["m"], random_state=0), Ridge(solver="cholesky")
    )
    splits = list(KFold(FOLDS, shuffle=True, random_state=0).split(X))[:1]
    grid = {"ridge__alpha": (LAMS * 0.9 * task["n"])[:: len(LAMS) // task["part"]][: task["part"]]}
    search = GridSearchCV(model, grid, cv=splits, refit=False, scoring="neg_mean_squared_error")

    def run() -> Row:
        search.fit(X, y)
        return {"fits": len(splits) * task["part"]}

    return run


def one_pass(flags) -> tuple[str, list[Row]]:
    n, m = (5_000, 100) if flags.quick else (flags.rows, 2_000)
    task = {"n": n, "m": m}
    rivals = [
        Contestant("bare pass", "1 process x 2 threads", build_bare, 2),
        Contestant("onefit, 10 folds x 20 lams", "1 process x 2 threads", build_search, 2),
    ]
    chosen = harness.chosen(rivals, flags.only)
    found = harness.compete(chosen, task, {"n": 500, "m": 20}, flags.rounds)
    rows = [
        {
            "rows": n,
            "contestant": one.name,
            "seconds": one.best,
            "processor seconds": one.value["cpu"],
            "peak GiB": one.peak / 2**30,
        }
        for one in found
    ]
    for row in rows if len(found) == 2 else []:
        row["times the bare pass"] = row["seconds"] / rows[0]["seconds"]
        row["by processor time"] = row["processor seconds"] / rows[0]["processor seconds"]
    about = f"{n:,} rows x 20 columns, {m:,} landmarks, rbf; two threads; {flags.rounds} round(s)."
    return f"{about}\n\n{harness.table(rows)}", rows


def peers(flags) -> tuple[str, list[Row]]:
    n, m = (3_000, 50) if flags.quick else (100_000, 2_000)
    task = {"n": n, "m": m, "part": 2}
    rivals = [
        Contestant("onefit", "1 process x 2 threads", build_search, 2),
        Contestant("GridSearchCV(Nystroem, Ridge)", "1 process x 2 threads", build_pipeline, 2),
    ]
    ours, theirs = harness.compete(rivals, task, {"n": 500, "m": 20, "part": 1}, flags.rounds)
    fits = FOLDS * LAMS.size
    whole = theirs.best / theirs.value["fits"] * fits
    rows = [
        {"contestant": ours.name, "fits run": "", "seconds": ours.best, "times onefit": 1.0},
        {
            "contestant": theirs.name,
            "fits run": f"{theirs.value['fits']} of {fits}, {theirs.best:.1f} s",
            "seconds": whole,
            "times onefit": whole / ours.best,
        },
    ]
    about = (
        f"{n:,} rows x 20 columns, {m:,} landmarks, {FOLDS} folds x {LAMS.size} lams, two threads. "
        "The time of the grid search is that of the fits it ran, per fit, times all fits."
    )
    return f"{about}\n\n{harness.table(rows)}", rows


def sets(flags):
    """Name, estimator and rows of every set, the rows in random order."""
    from onefit import KernelClassifier, KernelRegressor

    folder = data_folder(flags.data)
    for name in ("cadata", "a9a", "covtype_sub"):
        kind = KernelRegressor if name == "cadata" else KernelClassifier
        X, y = load(folder, name)
        order = np.random.default_rng(0).permutation(len(y))
        yield name, kind, X[order], y[order]
    yield "forest (synthetic)", KernelClassifier, *forest(20_000)


def accuracy(flags) -> tuple[str, list[Row]]:
    from sklearn.model_selection import KFold

    from onefit import KernelSearchCV

    rows = []
    n = 400 if flags.quick else 6_000
    for name, kind, X, y in sets(flags):
        X, y = X[:n], y[:n]
        grid = {"gamma": [0.01, 0.1, 1.0], "lam": np.geomspace(1e-6, 1e0, 9)}
        cv = KFold(5, shuffle=True, random_state=0)
        find = partial(KernelSearchCV, param_grid=grid, cv=cv, refit=False)
        start = time.perf_counter()
        search = find(kind()).fit(X, y)
        whole, seconds = search.cv_results_["mean_test_score"], time.perf_counter() - start
        best, by = float(whole.max()), search.cv_results_["method"][0]
        first = {
            "set": name,
            "n": n,
            "features": f"whole kernel, {by}",
            "m": "",
            "best score": best,
        }
        rows.append(first | {"seconds": seconds})
        print(harness.table(rows[-1:]), flush=True)
        for m in (50, 100, 200, 500, 1000, 2000)[: 2 if flags.quick else None]:
            for approximation in (Nystrom(m), Fourier(m)):
                machine = kind(approximation=approximation)
                start = time.perf_counter()
                score = find(machine).fit(X, y).cv_results_["mean_test_score"]
                rows.append(
                    {
                        "set": name,
                        "n": n,
                        "features": type(approximation).__name__.lower(),
                        "m": m,
                        "best score": float(score.max()),
                        "error of the best score": float(abs(score.max() - whole[score.argmax()])),
                        "largest error": float(np.abs(score - whole).max()),
                        "regret": float(best - whole[score.argmax()]),
                        "seconds": time.perf_counter() - start,
                    }
                )
                print(harness.table(rows[-1:]), flush=True)
    about = (
        "5 folds, 3 gammas x 9 lams; R^2 (cadata) and accuracy (the others). Errors are "
        "differences from the score of the whole kernel at the same setting: at the setting that "
        "the features choose, and the largest over the grid. Regret: how much less the whole "
        "kernel scores at the setting that the features choose than at its own best. One thread; "
        "times are not compared."
    )
    return f"{about}\n\n{harness.table(rows)}", rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--part", default="", help="parts whose name matches this")
    flags.add_argument("--rows", type=int, default=1_000_000, help="rows of part 'pass'")
    flags = flags.parse_args()
    for part, run, title in (
        ("pass", one_pass, "Features of a million rows in one pass"),
        ("peers", peers, "Features compared with scikit-learn's"),
        ("accuracy", accuracy, "How many features: scores and times"),
    ):
        if not re.search(flags.part, part):
            continue
        print(part, flush=True)
        text, rows = run(flags)
        print(text)
        name = harness.stem(f"features_{part}", flags.quick)
        harness.write_csv(flags.out, name, rows)
        harness.write_report(flags.out, name, title, [("Results", text)])


if __name__ == "__main__":
    main()
