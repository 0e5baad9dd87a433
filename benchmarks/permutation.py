"""Permutation test of a whole search: time against a search per permutation.

A grid of kernels and lams (Gaussian kernel, squared loss, 5 folds) on n rows of 8 columns.
``permutation_test`` tests the best score with 1,000 permutations. The contestants are
scikit-learn's ``permutation_test_score`` with the same statistic (the best score of the search, on
all rows) and, inside, a ``KernelSearchCV`` or a ``GridSearchCV`` over scikit-learn's
``KernelRidge`` (without an intercept, so that its scores differ). They get a few permutations, and
their time is extrapolated to 1,000. Contestants take turns, with one BLAS thread; the least time of
several rounds counts. Columns:

- seconds: of 1,000 permutations; those of the peers are extrapolated from their permutations;
- search: seconds of one fit of the KernelSearchCV without its final fit;
- times search: 1,000 permutations in units of such a search;
- KernelSearchCV, GridSearchCV: how many times as long the peers take;
- difference: the largest difference of a permuted score from that of KernelSearchCV.
"""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import _harness as harness
import numpy as np
from _harness import Row
from threadpoolctl import threadpool_limits

PERMUTATIONS, GAMMAS, LAMS = 1000, 4, 10


def best_score(search: Any, X: Any, y: Any) -> float:
    return float(search.best_score_)


def draw(n: int, classes: bool):
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 8))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + random.normal(size=n)
    return X, (y > 0.0).astype(int) if classes else y


def timed(action) -> tuple[float, Any]:
    start = perf_counter()
    result = action()
    return perf_counter() - start, result


def case(task: str, n: int, rounds: int, permutations: int) -> Row:
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.model_selection import GridSearchCV, KFold, permutation_test_score

    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
    from onefit.permutation import permutation_test

    X, y = draw(n, task == "classes")
    gammas, lams = np.logspace(-2, 0.5, GAMMAS), np.logspace(-4, 0, LAMS)
    model = KernelClassifier("squared") if task == "classes" else KernelRegressor()
    search = KernelSearchCV(model, {"gamma": gammas, "lam": lams}, cv=KFold(5), refit=False)
    peers = {"KernelSearchCV": (search, 5)}
    if task == "numbers":
        ridge, grid = KernelRidge(kernel="rbf"), {"gamma": gammas, "alpha": 0.8 * n * lams}
        peers["GridSearchCV"] = GridSearchCV(ridge, grid, cv=KFold(5), refit=False), 1
    times: dict[str, list[float]] = {"ours": [], "search": [], **{name: [] for name in peers}}
    for _ in range(rounds):
        seconds, ours = timed(lambda: permutation_test(search, X, y, n_permutations=permutations))
        times["ours"].append(seconds * PERMUTATIONS / permutations)
        times["search"].append(timed(lambda: search.fit(X, y))[0])
        for name, (peer, few) in peers.items():
            seconds, found = timed(
                lambda peer=peer, few=few: permutation_test_score(
                    peer, X, y, cv=[(np.arange(n), np.arange(n))], scoring=best_score,
                    n_permutations=few, random_state=0,
                )
            )  # fmt: skip
            # the given targets are one more
            times[name].append(seconds * (PERMUTATIONS + 1) / (few + 1))
            if name == "KernelSearchCV":
                difference = float(np.abs(found[1] - ours.permutation_scores[:few]).max())
    best = {name: min(each) for name, each in times.items()}
    return {
        "task": task,
        "n": n,
        "candidates": GAMMAS * LAMS,
        "seconds": best["ours"],
        "search": best["search"],
        "times search": best["ours"] / best["search"],
        **{name: best[name] / best["ours"] if name in best else "" for name in
           ("KernelSearchCV", "GridSearchCV")},
        "difference": difference,
    }  # fmt: skip


def main() -> None:
    flags = harness.parser(__doc__, rounds=2).parse_args()
    rows: list[Row] = []
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for n in (100,) if flags.quick else (200, 500, 1000):
            for task in ("numbers", "classes"):
                rows.append(case(task, n, flags.rounds, 100 if flags.quick else PERMUTATIONS))
                print(rows[-1], flush=True)
    name = harness.stem("permutation", flags.quick)
    harness.write_csv(flags.out, name, rows)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [("Results", f"{about}\n{harness.table(rows)}")]
    harness.write_report(
        flags.out, name, "Permutation test compared with one search per permutation", parts
    )


if __name__ == "__main__":
    main()
