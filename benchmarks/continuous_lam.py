"""Whether a continuous lam makes the chosen model better than the grid of lams of ``select``.

The grid of ``select`` has about 18 lams for every kernel. "continuous" searches the same kernels
and bandwidths with ``Interval`` over the same range, which refines every local minimum. Errors are
root mean squared errors of the test rows over that of the mean, averaged over the splits; times are
processor seconds of the search. The regressions of ``how_good.py`` with at most 1,600 rows.
"""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import _harness as harness
import numpy as np
from _data import data_folder
from _sets import LARGE, TableSet, table_sets


def run(folder: Path, one: TableSet, split: int) -> dict[str, Any]:
    from sklearn.model_selection import KFold

    from onefit import KernelRegressor, KernelSearchCV
    from onefit.auto.rules import DEFAULT_KERNELS, choose_grid
    from onefit.search import Interval

    X, X_test, y, y_test = one.split(folder, split)
    grid = choose_grid(DEFAULT_KERNELS, "squared", X, y, "regression", split, True)
    ranges = [part | {"lam": Interval(min(part["lam"]), max(part["lam"]))} for part in grid]
    cv, row = KFold(5, shuffle=True, random_state=split), {"set": one.name, "split": split}
    for name, params in (("grid", grid), ("continuous", ranges)):
        search = KernelSearchCV(
            KernelRegressor(), params, cv=cv, scoring="r2", aggregate="pooled", n_jobs=1
        )
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(X, y)
        row[f"{name} s"] = time.process_time() - start
        squares = (search.predict(X_test) - y_test) ** 2
        row[name] = float(np.sqrt(squares.mean() / np.mean((y.mean() - y_test) ** 2)))
    return row


def main() -> None:
    from scipy.stats import wilcoxon

    flags = harness.parser(__doc__, rounds=3)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--jobs", type=int, default=1, help="runs side by side")
    flags = flags.parse_args()
    folder, name = data_folder(flags.data), harness.stem("continuous_lam", flags.quick)
    sets = [
        one
        for one in table_sets()
        if not one.classes and not (one.group == "literature" and one.name in LARGE)
    ]
    todo = [
        (one, split) for split in range(flags.rounds) for one in sets[: 2 * flags.quick or None]
    ]
    with ProcessPoolExecutor(flags.jobs) as pool:
        runs = list(pool.map(run, [folder] * len(todo), *zip(*todo, strict=True)))
    rows = []
    for one in dict.fromkeys(row["set"] for row in runs):
        own = [row for row in runs if row["set"] == one]
        means = {key: float(np.mean([row[key] for row in own])) for key in own[0] if key != "set"}
        rows.append({"set": one, "splits": len(own)} | {k: means[k] for k in means if k != "split"})
    ratios = np.array([row["continuous"] / row["grid"] for row in rows])
    times = np.array([row["continuous s"] / row["grid s"] for row in rows])
    over = {
        "error, continuous / grid": float(np.exp(np.log(ratios).mean())),
        "sets smaller": int((ratios < 1.0).sum()),
        "sets larger": int((ratios > 1.0).sum()),
        "p over sets": float(wilcoxon(np.log(ratios)).pvalue) if len(rows) > 5 else np.nan,
        "time, continuous / grid": float(np.exp(np.log(times).mean())),
    }
    harness.write_csv(flags.out, name, rows)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [
        ("Over the sets, geometric means", f"{text}\n\n{harness.table([over])}"),
        ("Every set", harness.table(rows)),
    ]
    harness.write_report(flags.out, name, "A continuous lam in select", sections)


if __name__ == "__main__":
    main()
