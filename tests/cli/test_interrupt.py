"""Ctrl-C in the middle of a real run, and resuming from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import onefit as package
from onefit.cli.errors import INTERRUPTED


def kept(journal: Path) -> int:
    return len(list(journal.glob("*.entry")))


def test_interrupted_and_resumed(onefit, interrupted, tmp_path):
    random = np.random.default_rng(0)
    X = random.normal(size=(450, 4))
    csv, journal = tmp_path / "data.csv", tmp_path / "journal"
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame.assign(t=X[:, 0] * X[:, 1] + random.normal(size=450)).to_csv(csv, index=False)
    select = ["select", csv, "--target", "t", "--no-stack", "--format", "json"]
    done = interrupted(journal, 2, *select)
    assert done.returncode == INTERRUPTED, done.stderr
    assert done.stdout == ""
    assert (
        done.stderr
        == f"onefit: interrupted; finished work is in {journal}, run the same command to resume\n"
    )
    before = kept(journal)
    assert before >= 2
    done = onefit(*select, "--journal", journal)
    assert done.exit_code == 0, done.stderr
    assert kept(journal) == 39 > before
    assert json.loads(done.stdout)["candidates"] == 702


#: an interrupt when a module is first looked for
AT_IMPORT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupter:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
from onefit.cli import main
sys.meta_path.insert(0, Interrupter())
main()
"""


@pytest.mark.parametrize("module", ["argparse", "numpy", "numpy.linalg", "sklearn.base", "pandas"])
def test_interrupted_while_modules_are_imported(module, tmp_path):
    csv = tmp_path / "data.csv"
    csv.write_text("a,t\n1,2\n2,3\n")
    environment = os.environ | {"PYTHONPATH": str(Path(package.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", AT_IMPORT, "explain", str(csv), "--target", "t"],
        capture_output=True,
        text=True,
        env=environment | {"INTERRUPTED_AT": module},
        timeout=120,
        check=False,
    )
    assert done.returncode == INTERRUPTED, done.stderr
    assert done.stdout == ""
    assert done.stderr == "onefit: interrupted\n"
