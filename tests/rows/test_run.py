"""Passes in this process: threads, bounded memory, values that are not numbers, broken files."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from joblib import parallel_config
from rows_everywhere import K, N, P, Rows, check, damage, opened
from sums import FoldSums, Smallest

from onefit.linalg.threads import in_flight
from onefit.rows import open_rows, run
from onefit.rows.read_ahead import MAX_WAITING_CHUNKS, read_ahead
from onefit.rows.source import groups_of


def test_threads_stay_a_few_chunks_ahead(rows: Rows) -> None:
    source = opened(rows.folder, "y", features=["a"])
    read: list[int] = []

    class Watched:
        def __init__(self, piece: Any) -> None:
            self.piece = piece

        def blocks(self, size: int) -> Any:
            for block in self.piece.blocks(size):
                read.append(block.row.size)
                yield block

    before = threading.active_count()
    pieces: Any = read_ahead(source, list(map(Watched, source.pieces)), 20, 2)
    assert next(next(pieces)).row[0] == 0
    time.sleep(0.3)
    assert len(read) <= 2 * (MAX_WAITING_CHUNKS + 2)
    pieces.close()  # no one wants the others
    assert threading.active_count() == before


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_threads_give_the_same_sums(rows: Rows, n_jobs: int) -> None:
    source = opened(rows.folder, "y", sample_weight="s", drop=["g"])
    check(source, rows.expected, n_jobs=n_jobs)
    with parallel_config(backend="threading", n_jobs=n_jobs):
        check(source, rows.expected)


def test_states_may_be_anything(rows: Rows) -> None:
    source = opened(rows.folder, "y", features=["a"])
    found: Any = run(Smallest(5), source, n_jobs=2)
    np.testing.assert_array_equal(found.row, np.arange(5))
    np.testing.assert_array_equal(found.Y[:, 0], rows.y[:5])


def test_only_so_many_are_in_flight() -> None:
    begun, taken, most = 0, 0, 0
    lock = threading.Lock()

    def work(item: int) -> int:
        nonlocal begun, most
        with lock:
            begun += 1
            most = max(most, begun - taken)
        return item

    found = []
    for item in in_flight(work, range(50), 3):
        time.sleep(1e-3)  # a slow consumer
        taken += 1
        found.append(item)
    assert found == list(range(50))
    assert most <= 6 + 1


def test_groups_are_adjacent_and_large_enough(rows: Rows) -> None:
    pieces = opened(rows.folder, "y", features=["a"]).pieces
    groups = groups_of(pieces, 1500)
    assert [piece for group in groups for piece in group] == list(pieces)
    assert all(sum(piece.rows for piece in group) >= 1500 for group in groups[:-1])
    assert len(groups) > 2


@pytest.mark.parametrize("column", ["b", "y", "s"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_number_is_named(
    rows: Rows, tmp_path: Path, column: str, value: float
) -> None:
    frame = rows.frame.drop(columns="g").copy()
    frame.loc[4321, column] = value
    frame[:3000].to_parquet(tmp_path / "part-0.parquet")
    frame[3000:].to_parquet(tmp_path / "part-1.parquet", row_group_size=500)
    name = {"b": "column 'b'", "y": "the target", "s": "sample_weight"}[column]
    place = rf"{name} holds {value} in row 4321 \(part-1.parquet, row group 2, row 321 of it\)"
    source = opened(tmp_path, "y", sample_weight="s")
    with pytest.raises(ValueError, match=place):
        run(FoldSums(K, P), source, chunk_rows=100)
    with pytest.raises(ValueError, match=f"{name} holds {value} in row 4321"):
        run(FoldSums(K, P), opened(frame, "y", sample_weight="s"), n_jobs=2)


def test_negative_weights_missing_keys_and_texts_are_named(rows: Rows) -> None:
    frame = rows.frame.copy()
    frame.loc[7, "s"] = -1.0
    with pytest.raises(ValueError, match=r"sample_weight holds -1.0 in row 7"):
        run(FoldSums(K, P), opened(frame, "y", sample_weight="s", drop=["g"]))
    frame.loc[8, "g"] = None
    with pytest.raises(ValueError, match="in row 8"):
        run(FoldSums(K, P), opened(frame, "y", groups="g", drop=["s"]))
    with pytest.raises(ValueError, match="encode or leave out"):
        run(FoldSums(K, P), opened(frame, "y", drop=["s"]))


@pytest.mark.parametrize("compression", ["snappy", "none"])
def test_a_corrupt_row_group_is_named(rows: Rows, tmp_path: Path, compression: str) -> None:
    path = tmp_path / "part-0.parquet"
    rows.frame.drop(columns="g").to_parquet(
        path, row_group_size=1000, compression=compression, write_page_checksum=True
    )
    damage(path, 3)
    source = opened(tmp_path, "y", sample_weight="s")
    words = r"part-0.parquet, row group 3 \(rows 3000 to 3999\) cannot be read"
    with pytest.raises(ValueError, match=words):
        run(FoldSums(K, P), source)


def test_a_file_that_vanishes_or_is_cut_off_is_named(rows: Rows, tmp_path: Path) -> None:
    shutil.copytree(rows.folder, tmp_path, dirs_exist_ok=True)
    source = opened(tmp_path, "y", sample_weight="s", drop=["g"])
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(ValueError, match=r"part-1.parquet, row group 0 cannot be read: "):
        run(FoldSums(K, P), source)
    whole = (tmp_path / "part-2.parquet").read_bytes()
    (tmp_path / "part-2.parquet").write_bytes(whole[:-100])
    with pytest.raises(ValueError, match=r"part-2.parquet.* cannot be read as Parquet"):
        opened(tmp_path, "y", drop=["g"])


# of this program alone: ru_maxrss would count what the process was that started it
PEAK = """
def peak():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
"""

MEASURED = """
import sys
import numpy as np
sys.path.insert(0, {tests!r})
from sums import FoldSums
from onefit.rows import open_rows, run

source = open_rows({path!r}, {target!r}, cv=5)
warm = open_rows(np.zeros((10, source.n_features)), np.zeros(10))
run(FoldSums(5, source.n_features), warm)
before = peak()
targets = int(source.target_shape is not None)
found = run(FoldSums(5, source.n_features, targets), source, n_jobs={n_jobs})
assert found["rows"].sum() == {n}, found["rows"]
print(peak() - before, peak())
"""


def _peak(path: Path, target: str | None, n: int, n_jobs: int = 1) -> tuple[int, int]:
    """Bytes that a pass takes at most in a process of its own: beyond those before, and in all."""
    tests = str(Path(__file__).parents[1])
    return _measured(
        MEASURED.format(tests=tests, path=str(path), target=target, n=n, n_jobs=n_jobs)
    )


def _measured(program: str) -> tuple[int, int]:
    """The two numbers that a process of its own prints."""
    if sys.platform != "linux":
        pytest.skip("/proc is on Linux only")
    done = subprocess.run([sys.executable, "-c", PEAK + program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    beyond, whole = map(int, done.stdout.split())
    return beyond, whole


def _write(path: Path, n: int, p: int, group: int) -> None:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    names = [*(f"x{j}" for j in range(p)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, compression="none") as file:
        for start in range(0, n, group):
            rows = min(group, n - start)
            values = {name: rng.normal(size=rows) for name in names}
            file.write_table(pa.table(values), row_group_size=group)


def test_memory_is_that_of_a_few_chunks(tmp_path: Path) -> None:
    n, p = 100_000, 60
    path = tmp_path / "rows.parquet"
    _write(path, n, p, 5000)
    assert path.stat().st_size > 46 * 2**20
    beyond, _ = _peak(path, "y", n)
    assert beyond < 23 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ten_million_rows_in_two_gigabytes(tmp_path: Path, n_jobs: int) -> None:
    n, p = 10_000_000, 20
    path = tmp_path / "rows.parquet"
    _write(path, n, p, 500_000)
    _, whole = _peak(path, "y", n, n_jobs)
    assert whole < 2 * 2**30


SEARCHED = """
import numpy as np
from onefit import KernelRegressor, KernelSearchCV
from onefit.features import Nystrom
from onefit.rows import HashKFold

machine = KernelRegressor(approximation=Nystrom({features}), gamma=0.02)
grid = {{"lam": np.geomspace(1e-6, 1e0, 5)}}
search = KernelSearchCV(machine, grid, cv=HashKFold(5))
y = np.random.default_rng(1).normal(size={n})
search.fit({path!r}, y)
assert search.best_estimator_.landmarks_.shape == ({features}, {p})
print(0, peak())
"""


@pytest.mark.parametrize(
    ("n", "features"), [(200_000, 100), pytest.param(10_000_000, 1000, marks=pytest.mark.slow)]
)
def test_a_search_over_mapped_rows_in_two_gigabytes(tmp_path: Path, n: int, features: int) -> None:
    p = 20
    path = tmp_path / "rows.npy"
    X = np.lib.format.open_memmap(path, mode="w+", shape=(n, p), dtype=np.float64)
    rng = np.random.default_rng(0)
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = rng.normal(size=(100_000, p))
    X.flush()
    del X
    _, whole = _measured(SEARCHED.format(path=str(path), n=n, p=p, features=features))
    print(f"{n:,} rows, {features} features: peak {whole / 2**20:.0f} MiB")
    assert whole < (2 * 2**30 if n > 10**6 else 2**29)


def test_empty_row_groups_are_passed_over(tmp_path: Path, rows: Rows) -> None:
    rows.frame[:0].to_parquet(tmp_path / "a.parquet")
    rows.frame.to_parquet(tmp_path / "b.parquet")
    source = opened(tmp_path, "y", sample_weight="s", drop=["g"])
    assert source.n_rows == N
    check(source, rows.expected)
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(ValueError, match="has no rows"):
        open_rows(tmp_path, drop=["g"])
