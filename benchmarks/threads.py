"""Whether predictions depend on the number of threads.

The same fits and searches in processes with 1, 2 and 4 threads of BLAS, each twice. Columns:

- same again: whether two runs with as many threads give the same bytes;
- same bytes: whether all runs do;
- furthest: the largest difference between predictions of runs, in units of their standard
  deviation;
- same choice: whether all runs choose the same candidate (searches).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import _harness as harness
import numpy as np

from onefit.features import Nystrom
from onefit.losses import Huber

THREADS = (1, 2, 4)
SIZES = (200, 1500)
WORK = ("squared", "huber", "hinge", "nystrom", "search", "huber search")


def data(n: int):
    random = np.random.default_rng(n)
    X = random.normal(size=(n + 500, 8))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] + 0.3 * random.normal(size=n + 500)
    return X[:n], y[:n], X[n:]


def work(name: str, n: int):
    """Predictions, and what was chosen."""
    from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, default_grid

    X, y, X_new = data(n)
    if name == "hinge":
        machine = KernelClassifier(loss="smoothed_hinge", gamma=0.1, lam=1e-3).fit(X, y > 0)
        return machine.decision_function(X_new), ""
    if "search" in name:
        estimator = KernelRegressor(loss="huber" if "huber" in name else "squared")
        grid = default_grid(X, None, ["rbf"])
        grid[0]["gamma"] = grid[0]["gamma"][2:8:3]
        grid[0]["lam"] = grid[0]["lam"][::3]
        search = KernelSearchCV(estimator, grid, cv=5, method="auto").fit(X, y)
        return search.predict(X_new), repr(search.best_params_)
    options = {
        "squared": {},
        "huber": {"loss": Huber(0.3)},
        "nystrom": {"approximation": Nystrom(100)},
    }[name]
    return KernelRegressor(gamma=0.1, lam=1e-3, **options).fit(X, y).predict(X_new), ""


def worker(name: str, n: int, path: str) -> None:
    values, chosen = work(name, n)
    np.savez(path, values=values, chosen=chosen)


def run(name: str, n: int, threads: int, folder: str):
    path = str(Path(folder) / "found.npz")
    environment = os.environ | dict.fromkeys(harness.THREAD_VARIABLES, str(threads))
    command = [sys.executable, __file__, "--worker", name, str(n), path]
    subprocess.run(command, env=environment, check=True)
    with np.load(path) as found:
        return found["values"], str(found["chosen"])


def row(name: str, n: int) -> harness.Row:
    with tempfile.TemporaryDirectory() as folder:
        found = [[run(name, n, k, folder) for _ in range(2)] for k in THREADS]
    values = [one[0] for pair in found for one in pair]
    spread = max(float(np.abs(one - values[0]).max()) for one in values) / float(values[0].std())
    return {
        "what": name,
        "n": n,
        "same again": all(a[0].tobytes() == b[0].tobytes() for a, b in found),
        "same bytes": all(one.tobytes() == values[0].tobytes() for one in values),
        "furthest": spread,
        "same choice": len({one[1] for pair in found for one in pair}) == 1,
    }


def main() -> None:
    flags = harness.parser(__doc__, rounds=1).parse_args()
    rows = []
    for name in WORK:
        for n in SIZES[:1] if flags.quick else SIZES:
            rows.append(row(name, n))
            print(rows[-1], flush=True)
    name = harness.stem("threads", flags.quick)
    harness.write_csv(flags.out, name, rows)
    text = f"{(__doc__ or '').partition(chr(10) * 2)[2]}\n{harness.table(rows)}"
    harness.write_report(
        flags.out, name, "Do results depend on the number of threads?", [("Results", text)]
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2], int(sys.argv[3]), sys.argv[4])
    else:
        main()
