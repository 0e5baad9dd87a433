"""How long ``select`` takes on ten thousand rows: races on a sample, and searches on all rows.

``AutoKernelRegressor()`` with default options on all cores of an idle computer, wall seconds. (What
is learned in the training parts is computed in processes of its own.) Rows of
the protein set, drawn at random; 5,000 others for the test. "error" is the root mean squared error
of the test rows over the standard deviation of the training targets.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from pathlib import Path

import _harness as harness
import numpy as np
from _data import data_folder

TEST_ROWS = 5000


def main() -> None:
    from onefit import AutoKernelRegressor
    from onefit.auto.run import Selection

    flags = harness.parser(__doc__, rounds=1)
    flags.add_argument("--data", type=Path, help="folder of the data sets (else ONEFIT_DATA_DIR)")
    flags.add_argument("--rows", type=int, nargs="+", default=[10_000])
    flags = flags.parse_args()
    path = data_folder(flags.data) / "uci" / "protein10.csv.gz"
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    table = table[np.random.default_rng(0).permutation(len(table))]
    name, found = harness.stem("select_rows", flags.quick), []
    for rows in [2000] if flags.quick else flags.rows:
        seconds: dict[str, float] = {}

        def timed(stage: str, seconds: dict[str, float] = seconds) -> None:
            own = getattr(Selection, stage)

            def run(selection: Selection) -> None:
                start = time.perf_counter()
                own(selection)
                seconds[stage] = time.perf_counter() - start

            setattr(Selection, stage, run)

        timed("narrow")
        timed("fit_search")
        timed("learn")
        timed("average")
        (X, y), test = (table[:rows, :-1], table[:rows, -1]), table[rows : rows + TEST_ROWS]
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            auto = AutoKernelRegressor().fit(X, y)
        total = time.perf_counter() - start
        error = np.sqrt(np.mean((auto.predict(test[:, :-1]) - test[:, -1]) ** 2)) / y.std()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        best = auto.searches_[0].best_params_
        best = {name.removeprefix("model__"): v for name, v in best.items()}
        row = {"set": "protein", "rows": rows, "races s": seconds["narrow"],
               "search s": seconds["fit_search"], "learned s": seconds["learn"],
               "average s": seconds["average"], "total s": total,
               "cores": os.cpu_count(), "peak GiB of one process": peak,
               "transformed by": best.get("rows", ""),
               "kernel": best["kernel"], "lam": best["lam"], "R2": auto.best_score_,
               "error": error}  # fmt: skip
        found.append(row)
        print(row, flush=True)
        harness.write_csv(flags.out, name, found)
    text = (__doc__ or "").partition("\n\n")[2]
    sections = [("Results", f"{text}\n\n{harness.table(found)}")]
    harness.write_report(flags.out, name, "Time of select on ten thousand rows", sections)


if __name__ == "__main__":
    main()
