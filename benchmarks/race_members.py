"""How many candidates of the race on a sample have to be tried on all rows.

``AutoKernelRegressor()`` with default options on the literature's larger sets, first split, at most
3,000 training rows. A race on 1,500 of them chooses the kernels that all rows try: those with at
least MIN_WEIGHT in the average on the sample, and at most MAX_LEARNED with a learned metric or
scales (:mod:`onefit.auto.race`). "error" is the root mean squared error of the average on the test
rows over that of the mean, "best" that of its best candidate, "kernels" the number that all rows
tried. Seconds are processor time, one thread; "all rows" are those after the race.
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
from _sets import TableSet

SETS = ("power", "kin8nm", "pol", "protein")
#: weight in the average on the sample, and number of learned kernels
LIMITS = ((0.2, 2), (0.1, 4), (0.05, 8))
MAX_ROWS = 3000


def run(folder: Path, name: str, split: int, limits: tuple[float, int]) -> dict[str, Any]:
    from onefit import AutoKernelRegressor
    from onefit.auto import race, run
    from onefit.stack_candidates import same_but_lam

    X, X_test, y, y_test = TableSet(name, "literature").split(folder, split)
    rows = np.random.default_rng(0).permutation(y.size)[:MAX_ROWS]
    X, y = X[rows], y[rows]
    race.MIN_WEIGHT, race.MAX_LEARNED = limits
    narrow, seconds = run.narrow, {}

    def timed(*given: Any) -> Any:
        start = time.process_time()
        found = narrow(*given)
        seconds["race"] = time.process_time() - start
        return found

    run.narrow = timed
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            auto = AutoKernelRegressor().fit(X, y)
        finally:
            run.narrow = narrow
    total = time.process_time() - start
    best = auto.searches_[0].best_estimator_.predict(auto.pipeline_[:1].transform(X_test))
    errors = [
        float(np.sqrt(np.mean((one - y_test) ** 2) / np.mean((y.mean() - y_test) ** 2)))
        for one in (auto.predict(X_test), np.ravel(best))
    ]
    return {
        "set": name, "split": split, "rows": y.size, "least weight": limits[0],
        "most learned": limits[1],
        "kernels": sum(np.unique(same_but_lam(one)).size for one in auto.searches_),
        "error": errors[0], "best": errors[1], "race s": seconds["race"],
        "all rows s": total - seconds["race"],
    }  # fmt: skip


def main() -> None:
    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--jobs", type=int, default=1, help="runs side by side")
    flags = flags.parse_args()
    folder, name = data_folder(flags.data), harness.stem("race_members", flags.quick)
    sets = SETS[:1] if flags.quick else SETS
    todo = [(one, split, two) for split in range(flags.rounds) for one in sets for two in LIMITS]
    with ProcessPoolExecutor(flags.jobs) as pool:
        found = list(pool.map(run, [folder] * len(todo), *zip(*todo, strict=True)))
    first = {(row["set"], row["split"]): row for row in found if row["least weight"] == 0.1}
    over = []
    for limits in LIMITS:
        own = [row for row in found if (row["least weight"], row["most learned"]) == limits]
        pairs = [(row, first[row["set"], row["split"]]) for row in own]
        ratios = {
            key: np.exp(np.mean([np.log(a[key] / b[key]) for a, b in pairs]))
            for key in ("error", "all rows s")
        }
        over.append({"least weight": limits[0], "most learned": limits[1]} | ratios)
    harness.write_csv(flags.out, name, found)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [
        ("Results", f"{text}\n\n{harness.table(found)}"),
        ("In units of the limits of the package, geometric means", harness.table(over)),
    ]
    harness.write_report(flags.out, name, "Candidates that survive the race on a sample", sections)


if __name__ == "__main__":
    main()
