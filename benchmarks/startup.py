"""How long the command line takes to start, and the libraries that it needs.

Every line is a separate program, started again in every round; contestants take turns and the best
round counts. ``predict`` reads a model of 120 rows and a file of 120 rows. What scikit-learn and
skops take to import is the floor under it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import _harness as harness

ROWS = 120
LIMIT = 600


def programs(folder: Path) -> dict[str, list[str]]:
    """Command lines by name."""
    cli = [sys.executable, "-m", "onefit"]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import numpy": [sys.executable, "-c", "import numpy"],
        "import onefit": [sys.executable, "-c", "import onefit"],
        "onefit --help": [*cli, "--help"],
        "import sklearn.pipeline": [sys.executable, "-c", "import sklearn.pipeline"],
        "from onefit import select": [sys.executable, "-c", "from onefit import select"],
        "import sklearn.compose, skops.io, pandas": [
            sys.executable, "-c", "import sklearn.compose, skops.io, pandas",
        ],
        "onefit predict": [*cli, "predict", str(folder / "model.skops"), str(folder / "rows.csv")],
    }  # fmt: skip


def write_model(folder: Path) -> None:
    """A table of ``ROWS`` rows and a model of it."""
    import numpy as np

    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 4))
    table = np.column_stack([X, X[:, 0] + 0.1 * random.normal(size=ROWS)])
    place = folder / "rows.csv"
    np.savetxt(place, table, delimiter=",", header="a,b,c,d,target", comments="")
    options = ["--target", "target", "--model", str(folder / "model.skops")]
    run([sys.executable, "-m", "onefit", "select", str(place), *options])


def run(command: list[str]) -> float:
    """Seconds from start to end."""
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)
    return time.perf_counter() - start


def main() -> None:
    flags = harness.parser(__doc__, rounds=5).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder)
        rivals = programs(folder)
        seconds: dict[str, list[float]] = {one: [] for one in rivals}
        for _ in range(1 if flags.quick else flags.rounds):
            for one, command in rivals.items():
                seconds[one].append(run(command))
    floor = min(seconds["import sklearn.pipeline"])
    rows = [
        {"program": one, "best s": min(found), "times import sklearn.pipeline": min(found) / floor}
        for one, found in seconds.items()
    ]
    print(harness.table(rows))
    name = harness.stem("startup", flags.quick)
    harness.write_csv(flags.out, name, rows)
    harness.write_report(
        flags.out, name, "Start-up time of the command line", [("Times", harness.table(rows))]
    )


if __name__ == "__main__":
    main()
