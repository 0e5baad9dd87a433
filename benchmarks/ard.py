"""A scale for every column: the package's ways beside one gamma and a Gaussian process.

Ten outer folds of four small sets (at most 250 rows), mean squared errors over the variance of y:

one gamma   the Gaussian kernel, one gamma by gradient of the score of five inner folds
gradient    one gamma per column by gradient, with the default safeguards
evidence    a search of gamma and lam over rows scaled by the evidence of each training part
choice      of one gamma and evidence the one with the better held-out score
gp          scikit-learn's Gaussian process, a length scale per column, evidence from one start

p is that of the resampled t-test against one gamma, corrected for overlapping training parts
(Nadeau and Bengio 2003). Seconds are processor time of all folds, one thread.
"""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder
from _learners import gp
from overfitting import bandwidths, by_evidence, corrected_p, fold_error, standardised
from sklearn.model_selection import KFold

SETS, ROWS = ("pyrim", "ozone", "triazines", "housing"), 250


def of_fold(X, y, train, test) -> tuple[dict[str, float], dict[str, float]]:
    """Errors and seconds of all contestants on one outer fold."""
    errors, seconds, reported = {}, {}, {}
    ways = {"one gamma": bandwidths()["one gamma"], "gradient": bandwidths()["both"]}
    for name, build in (ways | {"evidence": by_evidence}).items():
        start = time.process_time()
        errors[name], reported[name] = fold_error(build(y), X, y, train, test)
        seconds[name] = time.process_time() - start
    both = ("one gamma", "evidence")
    errors["choice"] = errors[min(both, key=reported.get)]
    seconds["choice"] = sum(seconds[name] for name in both)
    start = time.process_time()
    predicted = gp(X[train], y[train], False, False, 0).predict(X[test])
    errors["gp"] = float(np.mean((predicted - y[test]) ** 2))
    seconds["gp"] = time.process_time() - start
    return errors, seconds


def main() -> None:
    flags = harness.parser(__doc__, rounds=10)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags = flags.parse_args()
    folder, table = data_folder(flags.data), []
    name = harness.stem("ard", flags.quick)
    for one in SETS[: 1 if flags.quick else None]:
        X, y = standardised(folder, one, ROWS)
        folds = KFold(flags.rounds, shuffle=True, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [of_fold(X, y, train, test) for train, test in folds.split(X)]
        errors = {way: np.array([e[way] for e, _ in found]) for way in found[0][0]}
        row: harness.Row = {"set": one, "rows": len(y), "columns": X.shape[1]}
        row |= {way: float(values.mean()) for way, values in errors.items()}
        against = partial(corrected_p, errors["one gamma"], ratio=1.0 / (flags.rounds - 1))
        row |= {f"p {way}": against(values) for way, values in errors.items() if way != "one gamma"}
        row |= {f"{way} s": sum(s[way] for _, s in found) for way in errors}
        table.append(row)
        print(row, flush=True)
        harness.write_csv(flags.out, name, table)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [("Results", f"{text}\n\n{harness.table(table)}")]
    harness.write_report(flags.out, name, "One gamma or one per column", sections)


if __name__ == "__main__":
    main()
