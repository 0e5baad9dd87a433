"""How good are the models: the default selection beside other learners, on 25 sets.

Random splits of every set, ten where the run was finished (the column "splits" says how many there
are), a quarter of the rows for the test; sets of more than 2,000 rows are represented by 2,000 of
them, drawn once. Every contestant sees the same rows, with columns
standardised by the training part.

- onefit: ``onefit.select(X, y)`` with default options;
- onefit stack: ``onefit.select(X, y, stack=True)``, the average of all candidates and of kernels
  with a metric and scales that are learned in each training part;
- boosting: histogram gradient boosting, 200 trees, the best of 2 learning rates x 2 sizes of trees
  by 5-fold cross-validation;
- forest: a random forest of 500 trees;
- svm: SVC or SVR with a Gaussian kernel, the best of 5 values of C x 5 of gamma by 5-fold
  cross-validation; the target of an SVR is standardised;
- gp: a Gaussian process, on sets of at most 1,000 rows: Gaussian kernel and noise by marginal
  likelihood, with a length scale per column for regression and one for all columns for classes.

The error of a regression is the root mean squared one over that of predicting the mean of the
training part; that of a classification the share of wrong labels, on the sets of ``UNEVEN`` the
mean over the classes of that share (``select`` goes by the balanced accuracy there, and so do the
grid searches). Differences are tested by the paired t-test over the splits, with the variance
enlarged for training parts that overlap (Nadeau and Bengio, Machine Learning 52, 2003); over the
sets, their mean errors by Wilcoxon's signed-rank test ("p over sets", Demsar, JMLR 7, 2006).

One thread. Times are those of the processor, so that a run that was paused or shared its machine
counts only its own work. One row per set, split and contestant is appended to
``bakeoff_runs.csv`` as soon as it is known; a run that was stopped resumes, and
``--tables`` writes the tables of what is there.
"""

from __future__ import annotations

import csv
import re
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
from _data import data_folder, load
from overfitting import corrected_p

Row = dict[str, Any]
CLASSES = (
    "ionosphere", "breast-cancer", "diabetes", "fourclass", "australian", "heart", "german.numer",
    "liver-disorders", "sonar", "a2a", "w7a",
)  # fmt: skip
NUMBERS = (
    "bodyfat", "housing", "mpg", "pyrim", "triazines", "eunite2001", "space_ga", "cpusmall", "mg",
    "abalone", "servo", "ozone", "cadata", "kin8nm",
)  # fmt: skip
#: a class has less than half of its even share of the rows
UNEVEN = ("w7a",)
MOST_ROWS, MOST_GP = 2000, 1000
SPLITS, TEST = 10, 0.25
CONTESTANTS = ("onefit", "onefit stack", "boosting", "forest", "svm", "gp")
RIVALS = CONTESTANTS[1:]
COLUMNS = ("set", "task", "n", "columns", "split", "contestant", "error", "seconds")


@cache
def rows_of(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """At most 2,000 rows of a set, the same ones every time."""
    X, y = load(folder, name)
    if name == "breast-cancer":
        X = X[:, 1:]  # the first column numbers the samples
    rows = np.random.default_rng(0).permutation(y.size)[:MOST_ROWS]
    return X[rows], y[rows].astype(int) if name in CLASSES else y[rows]


def split_of(folder: Path, name: str, split: int) -> tuple[np.ndarray, ...]:
    """Training and test rows, standardised by the training part."""
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    X, y = rows_of(folder, name)
    stratify = y if name in CLASSES else None
    parts = train_test_split(X, y, test_size=TEST, random_state=split, stratify=stratify)
    scaler = StandardScaler().fit(parts[0])
    return scaler.transform(parts[0]), scaler.transform(parts[1]), parts[2], parts[3]


def fitted(contestant: str, name: str, X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """The contestant's model of the training part."""
    classes = name in CLASSES
    if contestant.startswith("onefit"):
        from onefit import select

        return select(X, y, stack=contestant == "onefit stack", random_state=seed)
    if contestant == "gp":
        return gaussian_process(X, classes, seed).fit(X, y)
    if contestant == "forest":
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        forest = RandomForestClassifier if classes else RandomForestRegressor
        return forest(500, random_state=seed).fit(X, y)
    return (boosting if contestant == "boosting" else svm)(name, X, seed).fit(X, y)


def scoring_of(name: str) -> str:
    if name not in CLASSES:
        return "r2"
    return "balanced_accuracy" if name in UNEVEN else "accuracy"


def folds_of(name: str, seed: int) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if name in CLASSES else KFold
    return kind(5, shuffle=True, random_state=seed)


def boosting(name: str, X: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.model_selection import GridSearchCV

    kind = HistGradientBoostingClassifier if name in CLASSES else HistGradientBoostingRegressor
    grid = {"learning_rate": [0.03, 0.1], "max_leaf_nodes": [7, 31]}
    model = kind(max_iter=200, random_state=seed)
    return GridSearchCV(model, grid, cv=folds_of(name, seed), scoring=scoring_of(name))


def svm(name: str, X: np.ndarray, seed: int) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    grid = {"C": np.logspace(-1, 3, 5), "gamma": np.logspace(-2, 1, 5) / X.shape[1]}
    model: Any = SVC()
    if name not in CLASSES:
        model = TransformedTargetRegressor(SVR(), transformer=StandardScaler())
        grid = {f"regressor__{key}": values for key, values in grid.items()}
    return GridSearchCV(model, grid, cv=folds_of(name, seed), scoring=scoring_of(name))


def gaussian_process(X: np.ndarray, classes: bool, seed: int) -> Any:
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    length = np.sqrt(X.shape[1])
    if classes:
        return GaussianProcessClassifier(ConstantKernel(1.0) * RBF(length), random_state=seed)
    kernel = ConstantKernel(1.0) * RBF(np.full(X.shape[1], length)) + WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=seed)


def error_of(name: str, y: np.ndarray, predicted: np.ndarray, train: np.ndarray) -> float:
    """Smaller is better; see the top of this file."""
    if name in UNEVEN:
        return 1.0 - float(np.mean([np.mean(predicted[y == one] == one) for one in np.unique(y)]))
    if name in CLASSES:
        return float(np.mean(predicted != y))
    return float(np.sqrt(np.mean((predicted - y) ** 2) / np.mean((train.mean() - y) ** 2)))


def run(folder: Path, name: str, split: int, contestant: str) -> Row:
    """Fit, predict, and say what it cost."""
    X, X_test, y, y_test = split_of(folder, name, split)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        predicted = fitted(contestant, name, X, y, split).predict(X_test)
    seconds = time.process_time() - start
    return {
        "set": name,
        "task": "classification" if name in CLASSES else "regression",
        "n": len(y) + len(y_test),
        "columns": X.shape[1],
        "split": split,
        "contestant": contestant,
        "error": error_of(name, y_test, np.ravel(predicted), y),
        "seconds": seconds,
    }


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, row: Row) -> None:
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({key: harness._plain(value) for key, value in row.items()})


def go_on(path: Path, folder: Path, wanted: list[str], splits: int, only: str, jobs: int) -> None:
    """Every run that is not yet in the file, in ``jobs`` processes; the largest sets first."""
    done = {(row["set"], int(row["split"]), row["contestant"]) for row in read(path)}
    left = [
        (name, split, contestant)
        for split in range(splits)
        for name in sorted(wanted, key=lambda one: -rows_of(folder, one)[1].size)
        for contestant in CONTESTANTS
        if (name, split, contestant) not in done
        and re.search(only, contestant)
        and not (contestant == "gp" and rows_of(folder, name)[1].size > MOST_GP)
    ]
    with ProcessPoolExecutor(jobs) as pool:
        for found in as_completed([pool.submit(run, folder, *one) for one in left]):
            row = found.result()
            append(path, row)
            about = row["split"], row["set"], row["contestant"]
            print(*about, f"{row['error']:.4f} {row['seconds']:.1f} s", flush=True)


def verdict(ours: np.ndarray, theirs: np.ndarray) -> str:
    """Who has the smaller error, at the level of 5 %; three splits at least."""
    if ours.size < 3:
        return "untested"
    if not corrected_p(ours, theirs, TEST / (1 - TEST)) < 0.05:
        return "tied"
    return "better" if ours.mean() < theirs.mean() else "worse"


def by_set(runs: list[Row]) -> list[Row]:
    """Mean errors of a set, and ours against each of the others."""
    rows = []
    for name in [*CLASSES, *NUMBERS]:
        own = [row for row in runs if row["set"] == name]
        found = {c: {int(r["split"]): r for r in own if r["contestant"] == c} for c in CONTESTANTS}
        common = (
            sorted(set.intersection(*(set(one) for one in found.values() if one))) if own else []
        )
        if not common:
            continue
        errors = {c: np.array([float(one[s]["error"]) for s in common])
                  for c, one in found.items() if one}  # fmt: skip
        first = own[0]
        row: Row = {"set": name, "task": first["task"], "n": first["n"],
                    "columns": first["columns"], "splits": len(common)}  # fmt: skip
        row |= {c: f"{errors[c].mean():.3f}" if c in errors else "" for c in CONTESTANTS}
        for c in RIVALS:
            row[f"vs {c}"] = verdict(errors["onefit"], errors[c]) if c in errors else ""
        least = min(one.mean() for one in errors.values())
        row["least error"] = ", ".join(c for c, one in errors.items() if one.mean() <= least + 1e-9)
        for c in CONTESTANTS:
            times = [float(one["seconds"]) for one in found[c].values()]
            row[f"{c} s"] = f"{np.median(times):.2g}" if times else ""
        rows.append(row)
    return rows


def by_rival(sets: list[Row]) -> list[Row]:
    """How often ours is better, tied or worse, and how long the others take."""
    rows = []
    for task in ("classification", "regression", "both"):
        own = [row for row in sets if task in (row["task"], "both")]
        for c in RIVALS:
            met = [row for row in own if row[f"vs {c}"]]
            counted = {w: sum(row[f"vs {c}"] == w for row in met)
                       for w in ("better", "tied", "worse", "untested")}  # fmt: skip
            ratios = [float(row[f"{c} s"]) / float(row["onefit s"]) for row in met]
            less = sum(float(row["onefit"]) < float(row[c]) for row in met)
            ratio = f"{np.median(ratios):.2g}" if ratios else ""
            rows.append({"task": task, "against": c, "sets": len(met), **counted,
                         "smaller mean": less, "p over sets": over_sets(met, c),
                         "its time / ours": ratio})  # fmt: skip
    return rows


def over_sets(met: list[Row], rival: str) -> str:
    """Whether mean errors differ over the sets, as over a sample of sets."""
    from scipy.stats import wilcoxon

    gaps = [round(float(row[rival]) - float(row["onefit"]), 3) for row in met]
    return f"{wilcoxon(gaps).pvalue:.2g}" if np.count_nonzero(gaps) > 5 else ""


def main() -> None:
    flags = harness.parser(__doc__, rounds=SPLITS)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sets", default="", help="sets whose name matches this")
    flags.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    flags.add_argument("--tables", action="store_true", help="run nothing, write the tables")
    flags = flags.parse_args()
    name = harness.stem("bakeoff", flags.quick)
    path = flags.out / f"{name}_runs.csv"
    flags.out.mkdir(parents=True, exist_ok=True)
    if not flags.tables:
        wanted = ["heart", "servo"] if flags.quick else [*CLASSES, *NUMBERS]
        wanted = [one for one in wanted if re.search(flags.sets, one)]
        splits = 2 if flags.quick else flags.rounds
        go_on(path, data_folder(flags.data), wanted, splits, flags.only, flags.jobs)
    sets = by_set(read(path))
    rivals = by_rival(sets)
    harness.write_csv(flags.out, name, sets)
    harness.write_csv(flags.out, f"{name}_rivals", rivals)
    about = (__doc__ or "").partition("\n\n")[2]
    sections = [
        ("Ours against each of the others", harness.table(rivals)),
        ("Mean errors and processor seconds of every set", harness.table(sets)),
        ("What was done", about),
    ]
    harness.write_report(flags.out, name, "How good are the models", sections)


if __name__ == "__main__":
    main()
