"""A small table with numbers, text, truth values and gaps, and the command line in this process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import onefit as run_onefit

import onefit as package

#: a terminal's Ctrl-C arrives as it does here, whatever the parent process ignores
PROGRAM = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from onefit.cli import main; main()"
)


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(0)
    n = 80
    size, age = random.normal(size=n), random.uniform(20, 60, n)
    colour = random.choice(["red", "green", "blue"], n)
    price = 3 * size + 0.1 * age + 2 * (colour == "red") + 0.3 * random.normal(size=n)
    data = pd.DataFrame({"size": size, "age": age, "colour": colour, "new": age < 40})
    data.loc[3, "size"] = np.nan
    data.loc[5, "colour"] = None
    return data.assign(price=price, kind=np.where(price > price.mean(), "dear", "cheap"))


@pytest.fixture
def csv(frame, tmp_path):
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def onefit():
    """Call the command line; the result has exit_code, stdout and stderr."""

    return run_onefit


@pytest.fixture
def interrupted():
    """Run the command line as a process, and interrupt it when its journal has some entries."""

    def run(journal: Path, entries: int, *arguments: object) -> subprocess.CompletedProcess[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *map(str, arguments), "--journal", str(journal)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(Path(package.__file__).parents[1])},
            start_new_session=True,
        )
        while len(list(journal.glob("*.entry"))) < entries and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)

    return run
