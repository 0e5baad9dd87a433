"""Races: how often a sample of the rows leaves out the winner, and what it saves.

Random searches: data set, rows, splits and grid are drawn at random. Every search is run by
``method="race"`` and by ``method="exact"``; "other winner" counts those whose winners differ,
"worse score" those where the exact score of the race's winner is below the best one, by "largest
loss" at most. "left out" is the mean share of the candidates, "time" the processor time of all
races over that of the exact searches. One thread.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import _harness as harness
import numpy as np
from _data import data_folder, load
from _harness import Row

#: losses, the metrics that they are scored by, and sets with two classes or a numeric target
LOSSES = {
    "smoothed_hinge": ("accuracy", ("german.numer", "a2a", "a9a", "covtype_sub")),
    "log": ("neg_log_loss", ("german.numer", "a2a", "covtype_sub")),
    "huber": ("neg_mean_absolute_error", ("abalone", "cadata", "cpusmall", "kin8nm")),
}
#: rows of a search, from and to
ROWS = 1000, 1500


def draw(seed: int, data: Path):
    """Loss, data and options of a random search."""
    from sklearn.model_selection import KFold, StratifiedKFold

    random = np.random.default_rng(seed)
    loss = list(LOSSES)[seed % len(LOSSES)]
    scoring, sets = LOSSES[loss]
    X, y = load(data, str(random.choice(sets)))
    rows = random.permutation(len(y))[: int(random.integers(*ROWS))]
    X, y = X[rows], y[rows]
    if loss == "huber":
        y = (y - y.mean()) / y.std()
    folds = KFold if loss == "huber" else StratifiedKFold
    grid = {
        "gamma": 2.0 ** np.sort(random.uniform(-10, 4, int(random.integers(4, 7)))),
        "lam": 2.0 ** np.linspace(*np.sort(random.uniform(-24, -2, 2)), int(random.integers(4, 7))),
    }
    options = {
        "scoring": scoring,
        "cv": folds(int(random.integers(3, 6)), shuffle=True, random_state=seed),
        "refit": False,
    }
    return loss, X, y, grid, options


def fitted(loss, X, y, grid, options, method):
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

    kind = KernelRegressor if loss == "huber" else KernelClassifier
    search = KernelSearchCV(kind(loss=loss), grid, method=method, **options)
    start = process_time()
    search.fit(X, y)
    return search, process_time() - start


def winners(count: int, data: Path) -> list[Row]:
    """A row for each loss."""
    found: dict[str, list[tuple[bool, float, float, float, float]]] = {}
    for seed in range(count):
        loss, *rest = draw(seed, data)
        exact, whole = fitted(loss, *rest, "exact")
        race, part = fitted(loss, *rest, "race")
        scores = exact.cv_results_["mean_test_score"]
        lost = float(scores[exact.best_index_] - scores[race.best_index_])
        gone = float(np.mean(race.cv_results_["method"] == "left out"))
        other = race.best_index_ != exact.best_index_
        found.setdefault(loss, []).append((other, lost, gone, part, whole))
        print(f"{seed + 1}: {loss} lost {lost:.4g}, {gone:.0%} left out", flush=True)
    rows = []
    for loss, values in found.items():
        other, lost, gone, part, whole = (np.array(column) for column in zip(*values, strict=True))
        rows.append(
            {
                "loss": loss,
                "searches": len(values),
                "other winner": int(other.sum()),
                "worse score": int((lost > 0).sum()),
                "largest loss": float(lost.max()),
                "left out": float(gone.mean()),
                "time": float(part.sum() / whole.sum()),
            }
        )
    return rows


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--searches", type=int, default=30, help="random searches")
    flags = flags.parse_args()
    rows = winners(2 if flags.quick else flags.searches, data_folder(flags.data))
    name = harness.stem("race_winners", flags.quick)
    harness.write_csv(flags.out, name, rows)
    text = f"{' '.join(__doc__.split())}\n\n{harness.table(rows)}"
    print(text)
    harness.write_report(flags.out, name, "Races: winners", [("Results", text)])


if __name__ == "__main__":
    main()
