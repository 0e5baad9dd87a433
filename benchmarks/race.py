"""Races: what a proof costs, and how often an estimate misses the winner.

Two parts, chosen by ``--part`` (a pattern):

winners  random searches (loss, rows, grid, splitter drawn at random): how often the winner of
         ``method="race"`` is not that of ``method="exact"``, what its score loses, and the share
         of candidates repaired
cost     german.numer, 15 gammas x 15 lams x 10 folds, smoothed hinge: processor time of "limit",
         "race" and "exact", the share of candidates repaired, the winners

One thread.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Contestant, Row

LOSSES = ("smoothed_hinge", "log", "squared_hinge", "huber")


def draw(seed: int):
    """Loss, data and options of a random search."""
    from sklearn.model_selection import KFold, ShuffleSplit

    random = np.random.default_rng(seed)
    loss, n = LOSSES[seed % len(LOSSES)], int(random.integers(30, 120))
    X = random.normal(size=(n, 3))
    u = np.sin(2.0 * X[:, 0]) + X[:, 1] + random.uniform(0.1, 1.0) * random.normal(size=n)
    classes = int(random.integers(2, 4))
    y = u if loss == "huber" else np.digitize(u, np.quantile(u, np.arange(1, classes) / classes))
    grid = {
        "gamma": np.geomspace(0.01, 10.0, int(random.integers(2, 6))),
        "lam": np.geomspace(10.0 ** random.uniform(-6, -3), 1.0, int(random.integers(4, 10))),
    }
    scoring = str(random.choice(["r2", "neg_mean_absolute_error"]))
    options = {
        "scoring": scoring if loss == "huber" else "accuracy",
        "cv": KFold(5) if random.random() < 0.7 else ShuffleSplit(5, random_state=0),
        "refit": False,
    }
    return loss, X, y, grid, options


def fitted(loss, X, y, grid, options, method):
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

    kind = KernelRegressor if loss == "huber" else KernelClassifier
    return KernelSearchCV(kind(loss=loss), grid, method=method, **options).fit(X, y)


def winners(flags) -> tuple[str, list[Row]]:
    count = 8 if flags.quick else flags.searches
    found: dict[str, list[tuple[bool, float, float]]] = {}
    for seed in range(count):
        loss, *rest = draw(seed)
        exact = fitted(loss, *rest, "exact")
        scores = exact.cv_results_["mean_test_score"]
        one = fitted(loss, *rest, "race")
        lost = scores[exact.best_index_] - scores[one.best_index_]
        share = float(np.mean(one.cv_results_["method"] == "exact"))
        other = one.best_index_ != exact.best_index_
        found.setdefault(loss, []).append((other, float(lost), share))
        if seed % 50 == 49:
            print(f"{seed + 1} searches", flush=True)
    rows = []
    for loss, values in found.items():
        other, lost, share = (np.array(column) for column in zip(*values, strict=True))
        rows.append(
            {
                "loss": loss,
                "searches": len(values),
                "other winner": int(other.sum()),
                "worse score": int((lost > 0).sum()),
                "largest loss": float(lost.max()),
                "repaired": float(share.mean()),
            }
        )
    about = (
        f"{count} random searches. 'Other winner' counts those whose winner is not that of exact "
        "search, 'worse score' those whose winner's exact score is below it."
    )
    return f"{about}\n\n{harness.table(rows)}", rows


def build(task: Row, method: str):
    from sklearn.model_selection import StratifiedKFold

    from onefit import KernelClassifier, KernelSearchCV

    X, y = load(Path(task["data"]), task["set"])
    X, y = X[: task["n"]], y[: task["n"]]
    grid = {
        "gamma": np.geomspace(1e-3, 1e1, task["grid"]),
        "lam": np.geomspace(1e-5, 1.0, task["grid"]),
    }
    search = KernelSearchCV(
        KernelClassifier(loss="smoothed_hinge"), grid, refit=False,
        cv=StratifiedKFold(10, shuffle=True, random_state=0),
        method=method,
    )  # fmt: skip

    def run() -> Row:
        table = search.fit(X, y).cv_results_
        return {
            "repaired": float(np.mean(table["method"] == "exact")),
            "winner": int(search.best_index_),
            "error": 1.0 - float(search.best_score_),
        }

    return run


def cost(flags) -> tuple[str, list[Row]]:
    task = {"set": "german.numer", "data": str(data_folder(flags.data)), "n": 1000, "grid": 15}
    if flags.quick:
        task |= {"n": 150, "grid": 4}
    rivals = [
        Contestant(how, "1 process x 1 thread", partial(build, method=how))
        for how in ("limit", "race", "exact")
    ]
    found = harness.compete(
        rivals, task, {**task, "n": 60, "grid": 2}, flags.rounds, clock="process_time"
    )
    rows = [
        {
            "method": one.name,
            "CPU s": one.best,
            "times exact": one.best / found[-1].best,
            "repaired": one.value["repaired"],
            "winner": one.value["winner"],
            "its error": one.value["error"],
        }
        for one in found
    ]
    about = f"{task['set']}, {task['grid']} x {task['grid']} candidates, 10 folds, smoothed hinge."
    return f"{about}\n\n{harness.table(rows)}", rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=2)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--part", default="", help="parts whose name matches this")
    flags.add_argument("--searches", type=int, default=1000, help="random searches")
    flags = flags.parse_args()
    for part, run in (("winners", winners), ("cost", cost)):
        if not re.search(flags.part, part):
            continue
        text, rows = run(flags)
        print(text)
        name = harness.stem(f"race_{part}", flags.quick)
        harness.write_csv(flags.out, name, rows)
        harness.write_report(flags.out, name, f"Races: {part}", [("Results", text)])


if __name__ == "__main__":
    main()
