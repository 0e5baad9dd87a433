"""How near the times of the cost model are: whole searches, expected beside measured.

Processor time of ``KernelSearchCV.fit`` without the final fit, one thread, the best of the rounds,
searches in turn. Expected is the time of ``onefit.plan`` with its fixed rates, so a machine that is
faster or slower changes all ratios by one factor; what matters is how far they are from each other.
Streamed rows have no plan of their own: theirs is that of the same rows in memory, with features
that are computed again for every pass.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import _harness as harness
import numpy as np
from _data import friedman, friedman_classes
from _harness import Row

FOLDS = 5
#: lams of the default grid's range
LAMS = np.geomspace(5e-6, 5e-2, 10)

#: name -> rows, kernels, and how the estimator is made
Case = tuple[int, int, Callable[[], Any], bool]


def cases() -> dict[str, Case]:
    from onefit import KernelClassifier, KernelRegressor
    from onefit.features import Nystrom
    from onefit.losses import Huber

    def regressor(features: int = 0, **options: Any) -> Callable[[], Any]:
        approximation = Nystrom(features) if features else None
        return lambda: KernelRegressor(approximation=approximation, **options)

    def classifier(features: int = 0) -> Callable[[], Any]:
        approximation = Nystrom(features) if features else None
        return lambda: KernelClassifier("smoothed_hinge", approximation=approximation)

    return {
        "ridge": (500, 4, regressor(), False),
        "ridge, more rows": (2000, 2, regressor(), False),
        "ridge by iteration": (5000, 1, regressor(), False),
        "support vector machine": (500, 3, classifier(), False),
        "support vector machine, more rows": (2000, 1, classifier(), False),
        "Huber": (500, 3, regressor(loss=Huber(0.5)), False),
        "Huber, more rows": (1500, 1, regressor(loss=Huber(0.5)), False),
        "Nystrom ridge, 300 features": (5000, 2, regressor(300), False),
        "Nystrom support vector machine, 200 features": (5000, 1, classifier(200), False),
        "Nystrom Huber, 100 features": (5000, 1, regressor(100, loss=Huber(0.5)), False),
        "streamed ridge, 300 features": (5000, 2, regressor(300), True),
        "streamed Huber, 100 features": (5000, 1, regressor(100, loss=Huber(0.5)), True),
    }


def prepared(case: Case, quick: bool) -> tuple[float, Callable[[], Any]]:
    """Seconds expected, and the search."""
    from sklearn.base import is_classifier

    from onefit import KernelSearchCV
    from onefit.plan import choose
    from onefit.rows import HashKFold, open_rows
    from onefit.search.setup import set_up

    n, kernels, make, streamed = case
    n = n // 5 if quick else n
    X, y = (friedman_classes if is_classifier(make()) else friedman)(n)
    grid = {"gamma": np.geomspace(0.1, 1.0, kernels), "lam": LAMS}
    search = KernelSearchCV(make(), grid, cv=HashKFold(FOLDS), refit=False)
    setup = set_up(search, X, y, None, {})
    if streamed:
        works = [replace(work, tiled=True) for work in setup.works]
        return sum(choose(one).seconds for one in works), lambda: search.fit(open_rows(X, y))
    return sum(found.seconds for found in setup.works.values()), lambda: search.fit(X, y)


def measured(rounds: int, quick: bool, only: str) -> list[Row]:
    found = {name: case for name, case in cases().items() if re.search(only, name)}
    known = {name: (case, *prepared(case, quick)) for name, case in found.items()}
    best = dict.fromkeys(known, np.inf)
    for _ in range(rounds):
        for name, (_, _, run) in known.items():
            begun = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - begun)
            print(f"{name}: {best[name]:.2f} s", flush=True)
    return [
        {
            "search": name,
            "n": case[0],
            "kernels": case[1],
            "expected s": expected,
            "measured s": best[name],
            "measured / expected": best[name] / expected,
        }
        for name, (case, expected, _) in known.items()
    ]


def main() -> None:
    flags = harness.parser(__doc__, rounds=3).parse_args()
    rows = measured(flags.rounds, flags.quick, flags.only or "")
    about = (
        f"{LAMS.size} lams, {FOLDS} folds, one thread; processor seconds of a whole search without "
        "its final fit."
    )
    text = f"{about}\n\n{harness.table(rows)}"
    print(text)
    name = harness.stem("plan_times", flags.quick)
    harness.write_csv(flags.out, name, rows)
    harness.write_report(
        flags.out, name, "Cost model: expected and measured times", [("Results", text)]
    )


if __name__ == "__main__":
    main()
