"""Passes that are interrupted, and continue where they were."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from rows_everywhere import K, N, P, Rows, assert_same, opened
from sums import FoldSums, Smallest, WatchedSums, noted_rows

from onefit.journal import Journal, JournalError
from onefit.rows import run
from onefit.rows.one_pass import Progress


class Stopping(FoldSums):
    """Interrupts the pass at a row, as Ctrl-C would, and counts the rows that it sees."""

    stop: ClassVar[int]
    seen: ClassVar[int]

    @classmethod
    def restart(cls, stop: int = -1) -> None:
        """Count from zero, and interrupt at another row, if that is not -1."""
        cls.stop, cls.seen = stop, 0

    def update(self, state: Any, chunk: Any) -> Any:
        if self.stop in chunk.row:
            raise KeyboardInterrupt
        Stopping.seen += chunk.row.size
        return super().update(state, chunk)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupted_pass_continues(rows: Rows, tmp_path: Path, n_jobs: int) -> None:
    source = opened(rows.folder, "y", sample_weight="s", drop=["g"])
    whole = run(FoldSums(K, P), source, n_jobs=n_jobs)

    def again(stop: int = -1) -> Any:
        Stopping.restart(stop)
        return run(Stopping(K, P), source, journal=tmp_path / "kept", n_jobs=n_jobs)

    with pytest.raises(KeyboardInterrupt):
        again(stop=4600)
    found = again()
    assert 0 < Stopping.seen < N
    for name, value in whole.items():
        np.testing.assert_array_equal(found[name], value)  # to the last bit
    assert_same(again(), whole)
    assert Stopping.seen == 0


def test_writing_takes_a_small_share_of_a_pass(tmp_path: Path) -> None:
    """On a clock that says that a write takes one second, and every other piece another one."""
    clock = count(1000.0)
    progress = Progress(Journal(tmp_path / "kept", {}), "a pass", clock=lambda: next(clock))
    written: dict[int, int] = {}
    for done in range(1, 201):
        progress.keep(np.zeros(3), done, last=done == 200)
        for entry in (tmp_path / "kept").glob("*.entry"):
            written.setdefault(entry.stat().st_mtime_ns, done)
    assert list(written.values()) == [1, 51, 101, 151, 200]


def test_states_are_read_as_they_were_written(tmp_path: Path, rows: Rows) -> None:
    source = opened(rows.folder, "y", features=["a"])
    for _ in range(2):
        found: Any = run(Smallest(5), source, journal=tmp_path / "kept")
        np.testing.assert_array_equal(found.row, np.arange(5))
        assert found.Y.dtype == np.float64
    state = ([1, 2.5, None, "x"], {"a": (np.float32(1.5), {3: np.arange(3)})}, True)
    journal = Journal(tmp_path / "state", {})
    journal.write("key", state)
    assert repr(journal.read("key")) == repr([state])
    assert journal.read("other") == []


class Counting(FoldSums):
    """Has a set in its state, which no journal holds."""

    def update(self, state: Any, chunk: Any) -> Any:
        return {1, 2}


def test_a_state_that_no_journal_can_hold_is_refused(tmp_path: Path, rows: Rows) -> None:
    with pytest.raises(TypeError, match="a set cannot be kept in a journal"):
        run(Counting(K, P), opened(rows.X, rows.y), journal=tmp_path)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_entry_is_set_aside(rows: Rows, tmp_path: Path, damage: str) -> None:
    source = opened(rows.folder, "y", sample_weight="s", drop=["g"])
    run(FoldSums(K, P), source, journal=tmp_path)
    (file,) = tmp_path.glob("*.entry")
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[len(data) // 2] ^= 0xFF
    file.write_bytes({"cut": data[:-200], "flip": data, "empty": b""}[damage])
    with pytest.warns(UserWarning, match="set aside"):
        found = run(FoldSums(K, P), source, journal=tmp_path)
    assert_same(found, rows.expected)
    assert list(tmp_path.glob("*.damaged"))


def test_other_rows_and_settings_are_refused(rows: Rows, tmp_path: Path) -> None:
    roles = {"sample_weight": "s", "drop": ["g"]}
    run(FoldSums(K, P), opened(rows.folder, "y", **roles), journal=tmp_path)
    files = sorted(rows.folder.iterdir())
    with pytest.raises(JournalError, match=r"X was 3 Parquet files .* is 2 Parquet files"):
        run(FoldSums(K, P), opened(files[1:], "y", **roles), journal=tmp_path)
    with pytest.raises(JournalError, match="columns was"):
        run(FoldSums(K, P), opened(rows.folder, "y", drop=["g", "s"]), journal=tmp_path)
    with pytest.raises(JournalError, match="X was"):
        run(FoldSums(K, P), opened(rows.X, rows.y), journal=tmp_path)
    with pytest.raises(JournalError, match="is a file, but a journal is a folder"):
        run(FoldSums(K, P), opened(rows.X, rows.y), journal=rows.npy)
    (tmp_path / "journal.json").write_text("{")
    with pytest.raises(JournalError, match="damaged"):
        run(FoldSums(K, P), opened(rows.X, rows.y), journal=tmp_path)


def test_another_pass_is_another_entry(rows: Rows, tmp_path: Path) -> None:
    source = opened(rows.X, rows.y)
    run(FoldSums(K, P), source, journal=tmp_path)
    run(Smallest(4), source, journal=tmp_path)
    run(Smallest(5), source, journal=tmp_path)
    assert len(list(tmp_path.glob("*.entry"))) == 3


SLOW = """
import sys
sys.path.insert(0, {tests!r})
from sums import WatchedSums
from onefit.rows import open_rows, run

source = open_rows({folder!r}, "y", sample_weight="s", drop=["g"], cv=4)
run(WatchedSums(4, 3), source, journal={kept!r}, chunk_rows=200)
"""
#: each process has one, which makes it slow or notes what it reads
PAUSED = {**os.environ, "TEST_PAUSE": "0.05"}


@pytest.mark.skipif(os.name == "nt", reason="signals are not sent to processes there")
@pytest.mark.parametrize(
    "how", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_another_process_continues_a_pass_that_was_killed(
    rows: Rows, tmp_path: Path, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, noted = tmp_path / "kept", tmp_path / "noted"
    tests = str(Path(__file__).parents[1])
    program = SLOW.format(tests=tests, folder=str(rows.folder), kept=str(kept))
    other = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL, env=PAUSED)
    deadline = time.monotonic() + 60.0
    while not list(kept.glob("*.entry")) and time.monotonic() < deadline:
        time.sleep(0.01)
    other.send_signal(how)
    assert other.wait(timeout=60) != 0
    assert list(kept.glob("*.entry"))
    monkeypatch.setenv("TEST_ROWS_FILE", str(noted))
    source = opened(rows.folder, "y", sample_weight="s", drop=["g"])
    assert_same(run(WatchedSums(K, P), source, journal=kept, chunk_rows=200), rows.expected)
    assert 0 < noted_rows(noted) < N


SEARCH = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from onefit import KernelRegressor, KernelSearchCV
from onefit.features import Nystrom
from onefit.rows import HashKFold, open_rows
from onefit.rows.chunks import BlockReader
from sums import note_rows

read = BlockReader.chunk

def watched(self, block):
    note_rows(block.row.size)
    return read(self, block)

def fitted(folder, journal):
    BlockReader.chunk = watched
    try:
        model = KernelRegressor(approximation=Nystrom(20), gamma=0.3)
        search = KernelSearchCV(model, {{"lam": [1e-3, 1e-1]}}, cv=HashKFold(3), journal=journal)
        return search.fit(open_rows(folder, "y", sample_weight="s", drop=["g"]))
    finally:
        BlockReader.chunk = read
"""

KILLED = (
    SEARCH
    + """
print("begin", flush=True)
fitted(*sys.argv[1:])
"""
)


@pytest.mark.skipif(os.name == "nt", reason="signals are not sent to processes there")
def test_a_search_that_is_killed_three_times_gives_the_same_bits(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, kept, moments = tmp_path / "rows", tmp_path / "kept", random.Random(0)
    folder.mkdir()
    rows.frame.to_parquet(folder / "rows.parquet", row_group_size=100)
    command = [sys.executable, "-c", KILLED, str(folder), str(kept)]
    entries = [0]
    for _ in range(3):
        paused = {**PAUSED, "TEST_PAUSE": "0.01"}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=paused) as other:
            assert other.stdout is not None
            other.stdout.readline()
            time.sleep(moments.uniform(0.1, 0.9))
            other.send_signal(signal.SIGKILL)
        assert other.returncode == -signal.SIGKILL
        entries.append(len(list(kept.glob("*.entry"))))
    assert entries == sorted(entries)
    assert entries[-1] > 0
    program: dict[str, Any] = {"__name__": "__main__"}  # as in the other processes
    exec(SEARCH, program)
    noted = tmp_path / "noted"
    monkeypatch.setenv("TEST_ROWS_FILE", str(noted))
    resumed = program["fitted"](folder, kept)
    again = noted_rows(noted)
    whole = program["fitted"](folder, None)
    assert again < noted_rows(noted)
    for name, values in whole.cv_results_.items():
        if "time" not in name:
            np.testing.assert_array_equal(resumed.cv_results_[name], values, err_msg=name)
    np.testing.assert_array_equal(resumed.heldout_.values, whole.heldout_.values)
    np.testing.assert_array_equal(*(one.best_estimator_.coef_ for one in (resumed, whole)))
