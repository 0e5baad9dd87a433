"""Stacks of the candidates of one search beside its winner, on small regressions.

Splits of the literature (boston, concrete, energy, yacht, airfoil: 10 % of the rows for
the test), and random splits of the sets of LIBSVM and R (a quarter of the rows). Columns are
standardised by the training part. Both contestants come from one search: Gaussian, Laplace and
linear kernels with the lams and gammas of ``default_grid``, 5 shuffled folds.

- learned: the stack whose candidates include kernels of transformed rows, a metric and scales that
  are learned in each training part, as ``select(..., stack=True)`` adds them; "learned ratio" and
  "learned p" compare it with the winner, and "learned time" is that of all searches and the stack;
- winner, stack: root mean squared error of the test rows over the standard deviation of the
  training targets, mean over the splits;
- ratio: of the two means; "p" is the paired t-test over the splits, with the variance enlarged for
  training parts that overlap (Nadeau and Bengio, Machine Learning 52, 2003); over the sets, the
  logarithms of the ratios by Wilcoxon's signed-rank test;
- best, crossfit, nested: what each estimate of the error says before the test rows are seen, in
  the same unit: the held-out error of the best candidate (for the winner), and the cross-fitted
  and the nested error (for the stack; nested on sets of at most ``MOST_NESTED`` rows);
- time: of search and stack together over that of the search with the fit of its winner; "nested
  time" the same with the nested error. Processor time, one thread.
"""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder
from _harness import Row
from _sets import TEST_SHARE, TableSet
from overfitting import corrected_p
from scipy.stats import wilcoxon

LITERATURE = ("boston", "concrete", "energy", "yacht", "airfoil")
OTHERS = ("servo", "ozone", "mpg", "pyrim", "triazines", "eunite2001", "bodyfat")
KERNELS = ("rbf", "laplacian", "linear")
MOST_NESTED = 500
HOW = ("winner", "stack", "learned", "best", "crossfit")


def split_rows(folder: Path, name: str, split: int) -> tuple[np.ndarray, ...]:
    """Training and test rows, standardised by the training part."""
    group = "libsvm" if name in OTHERS else "literature"
    return TableSet(name, group).split(folder, split)


def run(folder: Path, name: str, split: int) -> Row:
    """The errors and times of one split."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _run(folder, name, split)


def _run(folder: Path, name: str, split: int) -> Row:
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV, default_grid
    from onefit.auto.learned import learned_grid, learned_search
    from onefit.auto.prepared import PreparedRows
    from onefit.stacking import stack

    X, X_test, y, y_test = split_rows(folder, name, split)
    cv = KFold(5, shuffle=True, random_state=split)
    search = KernelSearchCV(
        KernelRegressor(), default_grid(X, kernel=KERNELS), cv=cv, aggregate="pooled",
        scoring="neg_root_mean_squared_error",
    )  # fmt: skip
    clock = [time.process_time()]
    search.fit(X, y)
    clock.append(time.process_time())
    model = stack(search, X, y)
    clock.append(time.process_time())
    learned = stack(
        search, X, y, further=[learned_search(search, PreparedRows(X, y), learned_grid())]
    )
    clock.append(time.process_time())
    row: Row = {"set": name, "rows": y.size, "split": split}
    for how, one in (("winner", search), ("stack", model), ("learned", learned)):
        row[how] = float(np.sqrt(np.mean((one.predict(X_test) - y_test) ** 2)) / y.std())
    found = model.stack_
    row |= {"best": found.best_error / y.std(), "crossfit": found.crossfit_error / y.std()}
    row |= {"members": np.count_nonzero(found.weights[0])}
    row |= {"kernels": len(model.best_estimator_.members_)}
    search_time, stack_time, learned_time = np.diff(clock)
    row |= {"search s": float(search_time), "stack s": float(stack_time)}
    row["learned s"] = float(learned_time)
    if y.size <= MOST_NESTED:
        start = time.process_time()
        row["nested"] = stack(search, X, y, nested=True).stack_.nested_error / y.std()
        row["nested s"] = time.process_time() - start
    return row


def by_set(runs: list[Row]) -> list[Row]:
    rows = []
    for name in dict.fromkeys(row["set"] for row in runs):
        own = [row for row in runs if row["set"] == name]
        mean = {key: float(np.mean([row[key] for row in own])) for key in own[0] if key != "set"}
        share = TEST_SHARE if name in OTHERS else 0.1
        errors = {how: [row[how] for row in own] for how in ("winner", "stack", "learned")}
        total = {how: mean[how] for how in HOW}
        row: Row = {"set": name, "rows": own[0]["rows"], "splits": len(own)} | total
        row["nested"] = mean.get("nested", "")
        for how, prefix in (("stack", ""), ("learned", "learned ")):
            p = corrected_p(errors[how], errors["winner"], share / (1 - share))
            row[f"{prefix}ratio"] = mean[how] / mean["winner"]
            row[f"{prefix}p"] = p if len(own) > 2 else ""
        row["members"], row["kernels"] = mean["members"], mean["kernels"]
        row["time"] = 1.0 + mean["stack s"] / mean["search s"]
        row["learned time"] = 1.0 + mean["learned s"] / mean["search s"]
        row["nested time"] = 1.0 + mean["nested s"] / mean["search s"] if "nested s" in mean else ""
        rows.append(row)
    return rows


def over_sets(sets: list[Row]) -> Row:
    ratios = np.log([row["ratio"] for row in sets])
    learned = np.log([row["learned ratio"] for row in sets])
    sure = [row["ratio"] for row in sets if row["p"] != "" and row["p"] < 0.05]
    return {
        "sets": len(sets),
        "stack smaller": int((ratios < 0).sum()),
        "significantly": sum(ratio < 1 for ratio in sure),
        "significantly larger": sum(ratio > 1 for ratio in sure),
        "geometric mean of ratios": float(np.exp(ratios.mean())),
        "p over sets": float(wilcoxon(ratios).pvalue) if ratios.size > 5 else "",
        "learned smaller": int((learned < 0).sum()),
        "learned mean of ratios": float(np.exp(learned.mean())),
        "learned p over sets": float(wilcoxon(learned).pvalue) if ratios.size > 5 else "",
        "winner / best": _mean_ratio(sets, "winner", "best"),
        "stack / crossfit": _mean_ratio(sets, "stack", "crossfit"),
        "stack / nested": _mean_ratio([row for row in sets if row["nested"]], "stack", "nested"),
        "median time": float(np.median([row["time"] for row in sets])),
        "learned median time": float(np.median([row["learned time"] for row in sets])),
    }


def _mean_ratio(sets: list[Row], above: str, below: str) -> float:
    return float(np.exp(np.mean([np.log(row[above] / row[below]) for row in sets])))


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="processes, of one thread each")
    args = parser.parse_args()
    names = ("servo", "yacht") if args.quick else (*LITERATURE, *OTHERS)
    tasks = [(name, split) for split in range(2 if args.quick else args.splits) for name in names]
    runs = []
    with ProcessPoolExecutor(args.jobs) as pool:
        for found in as_completed([pool.submit(run, data_folder(None), *one) for one in tasks]):
            runs.append(found.result())
            print(runs[-1], flush=True)
    runs.sort(key=lambda row: (names.index(row["set"]), row["split"]))
    sets, stem = by_set(runs), harness.stem("stacking", args.quick)
    total = over_sets(sets)
    harness.write_csv(args.out, stem, sets)
    harness.write_csv(args.out, f"{stem}_over_sets", [total])
    harness.write_csv(args.out, f"{stem}_runs", runs)
    about = (__doc__ or "").partition("\n\n")[2]
    parts = [
        ("Errors", f"{about}\n{harness.table(sets)}"),
        ("Over the sets", harness.table([total])),
    ]
    path = harness.write_report(
        args.out, stem, "Stacks compared with the best candidate of their search", parts
    )
    print(path.read_text())


if __name__ == "__main__":
    main()
