"""Passes on Dask: schedulers, a real cluster of processes, and workers that die."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pytest
from distributed import wait
from rows_everywhere import K, N, P, Rows, assert_same, check, forget_pages, opened
from sums import FoldSums, SlowOnOne, Smallest, Taken

from onefit.rows import run
from onefit.rows.one_pass import active_client


def collections(rows: Rows) -> dict[str, Any]:
    """The rows as Dask has them, by name: as sources."""
    X = da.from_array(rows.X, chunks=(1100, 2))
    unknown = da.from_delayed(dask.delayed(rows.X[:4000]), (np.nan, P), float)
    rest = da.from_delayed(dask.delayed(rows.X[4000:]), (np.nan, P), float)
    y, s = da.from_array(rows.y, chunks=999), da.from_array(rows.s, chunks=-1)
    frame = dd.from_pandas(rows.frame, npartitions=6)
    only = frame[["a", "b", "c"]]
    roles = {"sample_weight": "s", "drop": ["g"]}
    return {
        "array": opened(X, y, sample_weight=s),
        "array and memory": opened(X, rows.y, sample_weight=rows.s),
        "unknown sizes": opened(da.concatenate([unknown, rest]), rows.y, sample_weight=rows.s),
        "frame": opened(frame, "y", **roles),
        "parquet": opened(dd.read_parquet(rows.folder), "y", **roles),
        "frame and series": opened(only, frame["y"], sample_weight=frame["s"]),
    }


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_collections_on_local_schedulers(rows: Rows, scheduler: str) -> None:
    with dask.config.set(scheduler=scheduler):
        for name, source in collections(rows).items():
            assert source.lazy, name
            assert source.n_rows == N, name
            check(source, rows.expected, chunk_rows=500)


def test_collections_on_a_cluster(rows: Rows, cluster: Any) -> None:
    with cluster.as_current():
        for source in collections(rows).values():
            check(source, rows.expected, client=cluster)


def test_rows_that_are_read_by_the_workers(rows: Rows, cluster: Any) -> None:
    for X, y, s, drop in (
        (rows.folder, "y", "s", ["g"]),
        (rows.npy, rows.y, rows.s, ()),
    ):
        check(opened(X, y, sample_weight=s, drop=drop), rows.expected, client=cluster)


def test_persisted_rows(rows: Rows, cluster: Any) -> None:
    X = cluster.persist(da.from_array(rows.X, chunks=(500, P)))
    check(opened(X, rows.y, sample_weight=rows.s), rows.expected, client=cluster)


def test_states_without_rows_and_of_any_kind(rows: Rows, cluster: Any) -> None:
    found: Any = run(Smallest(5), opened(rows.folder, "y", features=["a"]), client=cluster)
    np.testing.assert_array_equal(found.row, np.arange(5))


def test_the_active_client_is_taken(rows: Rows, cluster: Any) -> None:
    assert active_client() is None
    with cluster.as_current():
        assert active_client() is cluster
        with dask.config.set(scheduler="threads"):
            assert active_client() is None


def _normal(columns: int = 10) -> Any:
    """40 MB of rows."""
    return da.random.default_rng(0).normal(size=(500_000, 10), chunks=(25_000, columns))


@pytest.mark.parametrize("kind", ["array", "table", "put together", "persisted", "of persisted"])
def test_rows_do_not_travel(cluster: Any, kind: str) -> None:
    """Next to nothing of the rows goes to another worker, though an idle one seeks work."""
    y = None
    with cluster.as_current():
        X = _normal(5) if kind == "put together" else _normal()
        if "persisted" in kind:
            X = cluster.persist(X)
            wait(X)
        if kind == "table":
            X, y = X[:, 1:], X[:, 0]
        elif kind == "of persisted":
            X = X[:, ::-1] + 1.0
        slow = SlowOnOne(K, X.shape[1], 0 if y is None else 1, min(cluster.nthreads()))
        before = _sent(cluster)
        run(slow, opened(X, y), client=cluster, chunk_rows=25_000)
    assert _sent(cluster) - before < 0.02 * X.nbytes


def test_persisted_rows_stay_alive_while_a_source_has_them(rows: Rows, cluster: Any) -> None:
    with cluster.as_current():
        frame = dd.from_pandas(rows.frame, npartitions=6)
        source = opened(cluster.persist(frame), "y", sample_weight="s", drop=["g"])
        gc.collect()
        assert [len(piece.held) for piece in source.pieces] == [1] * 6
        check(source, rows.expected, client=cluster)


def _sent(client: Any) -> int:
    """Bytes that workers have sent to anyone so far."""

    def count(dask_worker: Any) -> int:
        return int(dask_worker.transfer_outgoing_bytes_total)

    return sum(client.run(count).values())


def test_dask_knows_how_large_states_are() -> None:
    from dask.sizeof import sizeof

    from onefit.rows.dask_tree import _Held

    state = ([np.zeros(1000)], {"a": Taken(np.zeros(500), None)}, 3, None)
    assert 12_000 <= sizeof(_Held(state)) < 13_000


def test_wrong_blocks_are_refused(rows: Rows) -> None:
    X = da.from_array(rows.X, chunks=(1000, P))
    frame = dd.from_pandas(rows.frame, npartitions=6)
    with pytest.raises(ValueError, match="y has 3 rows, but X has 6000"):
        opened(X, np.zeros(3))
    with pytest.raises(ValueError, match="y has 3 rows"):
        opened(X, da.zeros(3))
    with pytest.raises(ValueError, match="y has 2 blocks, but X has 6"):
        opened(frame[["a"]], dd.from_pandas(rows.frame, npartitions=2)["y"])
    with pytest.raises(ValueError, match="there is no column 'z'"):
        opened(frame, "z")
    with pytest.raises(ValueError, match="slice it"):
        opened(X, drop=["a"])
    with pytest.raises(ValueError, match="two dimensions"):
        opened(X[:, 0])


def test_a_value_that_is_no_number_is_named_from_a_worker(rows: Rows, cluster: Any) -> None:
    X = rows.X.copy()
    X[4321, 1] = np.nan
    source = opened(da.from_array(X, chunks=(1000, P)), rows.y)
    words = r"column 1 holds nan in row 4321 \(block 4 of the Dask collection, row 321 of it\)"
    with pytest.raises(ValueError, match=words):
        run(FoldSums(K, P), source, client=cluster)


def test_a_journal_on_a_cluster(rows: Rows, cluster: Any, tmp_path: Path) -> None:
    file, kept = tmp_path / "rows.parquet", tmp_path / "kept"
    rows.frame.to_parquet(file, row_group_size=100)
    source = opened(file, "y", sample_weight="s", drop=["g"])
    sections: list[int] = []
    check(source, rows.expected, client=cluster, journal=kept, watch=sections.append)
    assert sections == [32, 60]
    forget_pages(file)  # nothing is read again
    check(source, rows.expected, client=cluster, journal=kept)
    # a pass of the cluster is known here: pieces are the same
    check(source, rows.expected, journal=kept)


class Slow(FoldSums):
    """Takes its time, so that there is some to kill a worker in."""

    pause = 0.02

    def update(self, state: Any, chunk: Any) -> Any:
        time.sleep(self.pause)
        return super().update(state, chunk)


def _kill_later(client: Any, seconds: float) -> threading.Thread:
    """Kill one worker by signal 9 a moment from now, in the middle of the pass."""
    pids = client.run(os.getpid)

    def kill() -> None:
        time.sleep(seconds)
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def _survives(rows: Rows, client: Any, source: Any) -> None:
    client.wait_for_workers(2)  # one that was killed before has been started again
    whole = run(FoldSums(K, P), source, client=client)
    before = set(client.run(os.getpid).values())
    thread = _kill_later(client, 0.3)
    found = run(Slow(K, P), source, client=client, chunk_rows=100)
    thread.join()
    assert_same(found, whole)
    assert_same(found, rows.expected)
    assert before - set(client.run(os.getpid).values()), "no worker was killed"


@pytest.mark.skipif(os.name == "nt", reason="there is no signal 9")
def test_a_worker_that_is_killed_changes_nothing(rows: Rows, cluster: Any) -> None:
    _survives(rows, cluster, opened(rows.folder, "y", sample_weight="s", drop=["g"]))


@pytest.mark.skipif(os.name == "nt", reason="there is no signal 9")
def test_persisted_rows_survive_it(rows: Rows, cluster: Any) -> None:
    """Their leaves wait for no worker that is gone."""
    with cluster.as_current():
        X = cluster.persist(da.from_array(rows.X, chunks=(500, P)))
        _survives(rows, cluster, opened(X, rows.y, sample_weight=rows.s))


@pytest.mark.skipif(os.name == "nt", reason="there is no signal 9")
def test_what_persisted_blocks_share_survives_it(rows: Rows, cluster: Any) -> None:
    """A mean that all blocks need is bound to no worker that is gone."""
    with cluster.as_current():
        X = cluster.persist(da.from_array(rows.X, chunks=(500, P)))
        X = X - X.mean(axis=0) + rows.X.mean(axis=0)
        _survives(rows, cluster, opened(X, rows.y, sample_weight=rows.s))


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no signal 9")
@pytest.mark.parametrize("name", ["array", "frame", "parquet"])
def test_collections_survive_it_too(rows: Rows, cluster: Any, name: str) -> None:
    with cluster.as_current():
        _survives(rows, cluster, collections(rows)[name])
