"""What ``select`` does where time is short: features instead of the whole kernel, and their price.

``select(X, y, minutes=...)`` plans the whole kernel, and uses features if that exceeds the time.
Here the winner is then cross-validated with the whole kernel, on the same folds.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter

import _harness as harness
import numpy as np
from _data import data_folder
from _harness import Row
from sklearn.base import clone

FOLDS = 5
#: prices of houses are shown in thousands
UNIT = 1000.0


def measured(X, y, minutes: float) -> tuple[Row, str]:
    """One selection: its row of the table, and what it says of itself."""
    from onefit import KernelSearchCV, select

    start = perf_counter()
    found = select(X, y, minutes=minutes, cv=FOLDS, scoring="neg_root_mean_squared_error")
    fallback = found.fallback_
    if fallback is None:
        raise SystemExit(f"the whole kernel fits into {minutes:g} minutes; allow fewer")
    begun, model = perf_counter(), found.search_.best_estimator_
    whole = KernelSearchCV(
        clone(model).set_params(approximation=None), {"lam": [model.lam]},
        cv=found.heldout_.folds, scoring=found.scoring_, aggregate="pooled", refit=False,
    ).fit(found._planned.data.X, y)  # fmt: skip
    apart = whole.heldout_.values - found.heldout_.values
    row: Row = {
        "minutes": minutes,
        "planned s": fallback.planned,
        "features": fallback.n_components,
        "expected s": fallback.expected,
        "RMSE of features": -found.best_score_ / UNIT,
        "RMSE of whole kernel": -whole.best_score_ / UNIT,
        "loss": found.best_score_ / whole.best_score_ - 1.0,
        "values apart": np.sqrt(np.mean(apart**2)) / UNIT,
        "whole kernel s": perf_counter() - begun,
        "seconds": perf_counter() - start,
    }
    return row, f"`minutes={minutes:g}`: {fallback.describe()}."


def main() -> None:
    flags = harness.parser(__doc__)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--minutes", type=float, nargs="+", help="time allowed, by default 2")
    flags = flags.parse_args()
    rows = np.loadtxt(data_folder(flags.data) / "cadata.csv.gz", delimiter=",", skiprows=1)
    if flags.quick:
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:2000]]
    X, y = rows[:, :-1], rows[:, -1]
    results, sentences = [], []
    for minutes in flags.minutes or ([0.02] if flags.quick else [2.0]):
        row, sentence = measured(X, y, minutes)
        results.append(row)
        sentences.append(sentence)
        print(harness.table(results[-1:]), sentence, sep="\n", flush=True)
    about = (
        f"`select(X, y, minutes=..., cv={FOLDS}, scoring='neg_root_mean_squared_error')` on "
        f"{len(y)} rows of cadata. planned: the whole kernel, by the plan; expected: the search "
        "with features, by the plan; loss: of the RMSE of the winner by features against that of "
        "the whole kernel at the same setting, on the same folds; whole kernel s: what measuring "
        "the latter took; seconds: all of it. Errors are in thousands."
    )
    text = f"{about}\n\n{harness.table(results)}\n" + "\n".join(f"- {one}" for one in sentences)
    name = harness.stem("fallback", flags.quick)
    harness.write_csv(flags.out, name, results)
    harness.write_report(
        flags.out,
        name,
        "select with a time limit: features or the whole kernel",
        [("cadata", text)],
    )


if __name__ == "__main__":
    main()
