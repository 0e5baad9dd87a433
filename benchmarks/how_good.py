"""How good are the models: ``onefit.select`` beside other learners, on public tables.

Sets of LIBSVM, UCI, R and scikit-learn, each in random quarters for the test (sets of more than
1,000 rows are represented by 1,000 of them, drawn once), and regressions with all of their rows and
the test rows that the literature uses (:mod:`_sets`). Every contestant (:mod:`_learners`) gets the
same rows, with columns standardised by the training part. "onefit stack" is the average of the
candidates of ``select``, "onefit" the best one of them, and "onefit plain" the best one whose rows
are not transformed by what is learned in each training part; one run gives all three. The *default*
is what ``select`` returns without options. It is compared with each of the others.

The error of a regression is the root mean squared error over that of predicting the mean of the
training part; ``rmse`` is the numerator. The error of a classification is the share of wrong labels
and, where classes are uneven, the mean of that share over the classes. Differences are tested by
the paired t-test over the splits, with the variance enlarged for overlapping training parts (Nadeau
and Bengio, Machine Learning 52, 2003); over the sets, by Wilcoxon's signed-rank test of relative
differences (a - b) / (a + b) of the mean errors (Demsar, JMLR 7, 2006).

Every contestant has one thread; ``--jobs`` runs that number of them side by side. ``seconds`` is
processor time. Finished runs are appended to ``how_good_runs.csv``; an interrupted benchmark
resumes there, and ``--tables`` writes the tables of what is there. With ``--device cuda`` onefit
and xRFM compute on the GPU, and ``seconds`` is wall time.
"""

from __future__ import annotations

import csv
import re
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
from _data import data_folder
from _learners import CONTESTANTS, MAX_ROWS_GP, of_onefit
from _sets import LARGE, LITERATURE, UNEVEN, TableSet, table_sets
from overfitting import corrected_p

Row = dict[str, Any]
#: the least ratio of errors that enters a geometric mean: some are zero
MIN_RATIO = 0.1
OWN = ("onefit stack", "onefit", "onefit plain")
RIVALS = tuple(name for name in CONTESTANTS if name not in OWN)
MODELS = (*OWN, *RIVALS)
#: what ``select`` returns without options
DEFAULT = {"regression": "onefit stack", "classification": "onefit plain"}
COLUMNS = ("set", "group", "task", "n", "columns", "split", "contestant", "error", "rmse",
           "seconds", "choice")  # fmt: skip
#: root mean squared errors: MC dropout with a grid search (Gal and Ghahramani 2016), gradient
#: boosting and support vector regression (bayesian_benchmarks, random tests of 10 %)
PUBLISHED = {
    "boston": (2.90, 2.60, 2.46),
    "concrete": (4.82, 5.39, 6.77),
    "energy": (0.54, 0.48, 2.29),
    "power": (4.01, 3.86, 3.99),
    "winered": (0.62, 0.615, 0.620),
    "yacht": (0.67, 0.67, 6.34),
}


def error_of(one: TableSet, y: np.ndarray, predicted: np.ndarray, train: np.ndarray) -> float:
    """Smaller is better; see the top of this file."""
    if one.name in UNEVEN:
        return 1.0 - float(np.mean([np.mean(predicted[y == c] == c) for c in np.unique(y)]))
    if one.classes:
        return float(np.mean(predicted != y))
    return float(np.sqrt(np.mean((predicted - y) ** 2) / np.mean((train.mean() - y) ** 2)))


def run(folder: Path, one: TableSet, split: int, contestant: str, device: str) -> list[Row]:
    """Fit, predict, and measure error and time."""
    X, X_test, y, y_test = one.split(folder, split)
    clock = time.process_time if device == "cpu" else time.perf_counter
    computing: Any = nullcontext()
    if device != "cpu" and contestant.startswith("onefit"):
        from onefit.config import config_context

        computing = config_context(device=device)
    with warnings.catch_warnings(), computing:
        warnings.simplefilter("ignore")
        start = clock()
        model = CONTESTANTS[contestant](X, y, one.classes, one.name in UNEVEN, split)
        predicted = {contestant: np.ravel(model.predict(X_test))}
        seconds: dict[str, Any] = {contestant: clock() - start}
        if one.name in LARGE and device == "cpu":
            seconds = {}  # searches of many rows compute in other processes, too
        if contestant in OWN:
            predicted = of_onefit(model, X_test)
    best = getattr(model, "best_params_", {})
    return [
        {
            "set": one.name,
            "group": one.group,
            "task": "classification" if one.classes else "regression",
            "n": y.size + y_test.size,
            "columns": X.shape[1],
            "split": split,
            "contestant": name,
            "error": error_of(one, y_test, values, y),
            "rmse": "" if one.classes else float(np.sqrt(np.mean((values - y_test) ** 2))),
            "seconds": seconds.get(name, ""),
            "choice": str(best.get("kernel", "")) if name.startswith("onefit") else "",
        }
        for name, values in predicted.items()
    ]


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


def missing(done: list[Row], sets: list[TableSet], splits: int, only: str) -> Iterator[tuple]:
    """Runs that are not in the file: the first split of all sets, then the second."""
    known = {(row["set"], row["group"], int(row["split"]), row["contestant"]) for row in done}
    for split in range(splits):
        for one in sets:
            for contestant in CONTESTANTS:
                wanted = re.fullmatch(only, contestant) and split < one.splits
                if wanted and (one.name, one.group, split, contestant) not in known:
                    yield one, split, contestant


def resume(path: Path, folder: Path, todo: list[tuple], jobs: int, device: str, end: float) -> None:
    """Run what is missing until ``end`` (of ``time.monotonic``), appending every result."""
    with ProcessPoolExecutor(jobs) as pool:
        waiting, todo = set(), iter(todo)
        while True:
            while len(waiting) < jobs and time.monotonic() < end:
                task = next(todo, None)
                if task is None:
                    break
                waiting.add(pool.submit(run, folder, *task, device))
            if not waiting:
                return
            finished = next(as_completed(waiting))
            waiting.remove(finished)
            try:
                rows = finished.result()
            except Exception as problem:  # the other runs still count
                print(f"failed: {problem!r}", flush=True)
                continue
            for row in rows:
                append(path, row)
                print(*(row[key] for key in ("split", "set", "contestant", "error", "seconds")),
                      flush=True)  # fmt: skip


def verdict(ours: np.ndarray, theirs: np.ndarray, ratio: float) -> str:
    """Which has the smaller error, at the level of 5 %; from three splits on."""
    if ours.size < 3:
        return "untested"
    if not corrected_p(ours, theirs, ratio) < 0.05:
        return "tied"
    return "better" if ours.mean() < theirs.mean() else "worse"


def by_set(runs: list[Row], sets: list[TableSet]) -> list[Row]:
    """Mean errors of every set over the splits that the default and the other model both have."""
    rows = []
    for one in sets:
        own = [row for row in runs if (row["set"], row["group"]) == (one.name, one.group)]
        found = {c: {int(r["split"]): r for r in own if r["contestant"] == c} for c in MODELS}
        if not found["onefit stack"]:
            continue
        first = next(iter(found["onefit stack"].values()))
        row: Row = {key: first[key] for key in ("set", "group", "task", "n", "columns")}
        row["default"] = DEFAULT[first["task"]]
        ours = found[row["default"]]
        row["splits"] = len(ours)
        means = {}
        for c, theirs in found.items():
            common = sorted(set(ours) & set(theirs))
            pair = [np.array([float(o[s]["error"]) for s in common]) for o in (ours, theirs)]
            means[c] = pair[1].mean() if common else np.nan
            row[c] = f"{means[c]:.4g}" if common else ""
            other = common and c != row["default"]
            row[f"vs {c}"] = verdict(*pair, one.ratio) if other else ""
            divisible = other and pair[0].mean() > 0.0
            row[f"{c} / default"] = f"{pair[1].mean() / pair[0].mean():.3f}" if divisible else ""
        least = np.nanmin(list(means.values()))
        row["least error"] = ", ".join(c for c, mean in means.items() if mean <= least + 1e-9)
        if first["rmse"]:
            row["rmse"] = f"{np.mean([float(r['rmse']) for r in ours.values()]):.4g}"
        for c in MODELS:
            times = [float(r["seconds"]) for r in found[c].values() if r["seconds"]]
            row[f"{c} s"] = f"{np.median(times):.2g}" if times else ""
        rows.append({"rmse": ""} | row)
    return rows


def by_rival(rows: list[Row]) -> list[Row]:
    """How often the default is better, tied or worse."""
    found = []
    for task in ("classification", "regression", "both"):
        own = [row for row in rows if task in (row["task"], "both")]
        for c in MODELS:
            met = [row for row in own if row[f"vs {c}"]]
            if not met or (c in OWN and task == "both"):
                continue
            counted = {w: sum(row[f"vs {c}"] == w for row in met)
                       for w in ("better", "tied", "worse", "untested")}  # fmt: skip
            tested = len(met) - counted["untested"]
            share = (counted["better"] + counted["tied"]) / tested if tested else np.nan
            less = sum(float(row[row["default"]]) < float(row[c]) for row in met)
            more = sum(float(row[row["default"]]) > float(row[c]) for row in met)
            ratios = [float(row[f"{c} / default"]) for row in met if row[f"{c} / default"]]
            ratio = np.exp(np.mean(np.log(np.maximum(ratios, MIN_RATIO))))
            times = [float(row[f"{c} s"]) / float(row["onefit stack s"]) for row in met
                     if row[f"{c} s"] and row["onefit stack s"]]  # fmt: skip
            found.append({"task": task, "against": c, "sets": len(met), **counted,
                          "better or tied": f"{100 * share:.0f} %" if tested else "",
                          "onefit smaller": less, "onefit larger": more,
                          "its error / onefit's": f"{ratio:.3f}", "p over sets": over_sets(met, c),
                          "its time / stack": f"{np.median(times):.2g}" if times else "",
                          })  # fmt: skip
    return found


def over_sets(met: list[Row], rival: str) -> str:
    """Whether mean errors differ over the sets, as over a sample of sets."""
    from scipy.stats import wilcoxon

    pairs = [(float(row[rival]), float(row[row["default"]])) for row in met]
    gaps = [(a - b) / (a + b) if a + b else 0.0 for a, b in pairs]
    return f"{wilcoxon(gaps).pvalue:.2g}" if np.count_nonzero(gaps) > 5 else ""


def rmse(runs: list[Row], name: str, model: str) -> str:
    """The mean root mean squared error on the splits of the literature."""
    wanted = (name, "literature", model)
    own = [float(r["rmse"]) for r in runs if (r["set"], r["group"], r["contestant"]) == wanted]
    return f"{np.mean(own):.4g}" if own else ""


def published(rows: list[Row], runs: list[Row]) -> list[Row]:
    """Root mean squared errors on the splits of the literature beside published ones."""
    names = ("MC dropout", "boosting", "svm (published)")
    return [
        {"set": row["set"], "rows": row["n"], "splits": row["splits"], "of": LITERATURE[row["set"]],
         **{model: rmse(runs, row["set"], model) for model in OWN},
         **dict(zip(names, PUBLISHED[row["set"]], strict=True))}
        for row in rows
        if row["group"] == "literature" and row["set"] in PUBLISHED
    ]  # fmt: skip


def losses(rows: list[Row]) -> list[Row]:
    """Sets on which a rival's error is significantly smaller, or smaller by a tenth."""
    found = []
    for row in rows:
        ours = float(row[row["default"]])
        less = {
            c: f"{row[c]}{' (significant)' if row[f'vs {c}'] == 'worse' else ''}"
            for c in RIVALS
            if row[f"vs {c}"] and (row[f"vs {c}"] == "worse" or float(row[c]) < 0.9 * ours)
        }
        if less:
            kept = {key: row[key] for key in ("set", "task", "n", "columns", "splits")}
            words = ", ".join(f"{c} {error}" for c, error in less.items())
            found.append(kept | {"onefit": row[row["default"]], "smaller": words})
    return found


def main() -> None:
    flags = harness.parser(__doc__, rounds=20)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--sets", default=".*", help="groups or sets whose name matches this")
    flags.add_argument("--large", action="store_true", help="the sets that need a GPU or an hour")
    flags.add_argument("--jobs", type=int, default=1, help="runs side by side")
    flags.add_argument("--minutes", type=float, default=np.inf, help="start no run after this time")
    flags.add_argument("--device", default="cpu")
    flags.add_argument("--tables", action="store_true", help="run nothing, write the tables")
    flags = flags.parse_args()
    name = harness.stem("how_good", flags.quick)
    path = flags.out / f"{name}_runs.csv"
    flags.out.mkdir(parents=True, exist_ok=True)
    sets = table_sets()
    if not flags.tables:
        wanted = re.compile("heart|servo" if flags.quick else flags.sets)
        chosen = [
            one
            for one in sets
            if (wanted.fullmatch(one.name) or wanted.fullmatch(one.group))
            and (one.group == "literature" and one.name in LARGE) == flags.large
        ]
        folder = data_folder(flags.data)
        chosen.sort(key=lambda one: one.split(folder, 0)[2].size)  # quick ones first
        splits = 2 if flags.quick else flags.rounds
        todo = [
            task
            for task in missing(read(path), chosen, splits, flags.only or ".*")
            if task[2] != "gp" or task[0].split(folder, 0)[2].size <= MAX_ROWS_GP
        ]
        end = time.monotonic() + 60 * flags.minutes
        resume(path, folder, todo, flags.jobs, flags.device, end)
    runs = read(path)
    rows = by_set(runs, sets)
    tables = {
        "": ("Errors on every set", rows),
        "_rivals": ("The default against each of the others", by_rival(rows)),
        "_losses": ("Where another learner has the smaller error", losses(rows)),
        "_published": ("Beside published errors", published(rows, runs)),
    }
    for end_of_name, (_, table) in tables.items():
        if table:
            harness.write_csv(flags.out, name + end_of_name, table)
    sections = [(title, harness.table(table)) for title, table in tables.values() if table]
    sections.append(("What was done", (__doc__ or "").partition("\n\n")[2]))
    harness.write_report(flags.out, name, "Test errors of select and of other learners", sections)


if __name__ == "__main__":
    main()
