"""One pass in this process: pieces in turn, or so many at a time in threads.

In turn, one state grows by every chunk. With threads, each group of pieces has a state of its own,
and states are joined in the order of the rows as they are done; only so many groups are in flight
that memory stays bounded, however fast files are read. Either way the order of additions does not
depend on how fast anyone is, so that a pass that is run again gives the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from joblib import cpu_count, effective_n_jobs
from threadpoolctl import threadpool_limits

from onefit.linalg.tiles import in_flight
from onefit.stream.accumulate import Accumulator
from onefit.stream.arrays import PIECE
from onefit.stream.checkpoint import Keeper, open_checkpoint
from onefit.stream.source import Source, groups_of

__all__ = ["CHUNK", "absorb", "run"]

#: rows of a chunk: enough for matrix products at full speed, few enough for their features
CHUNK = 8192

Result = TypeVar("Result")


def run(
    accumulator: Accumulator[Any, Result],
    source: Source,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    checkpoint: Any = None,
    chunk_rows: int = CHUNK,
    watch: Callable[[int], None] | None = None,
) -> Result:
    """Take a sum over all rows of a source.

    Parameters
    ----------
    accumulator : Accumulator
    source : Source
        See :func:`onefit.stream.open_rows`.
    n_jobs : int, default=None
        Threads, where this process does the work. None means one (or what joblib's context says).
    client : distributed.Client, default=None
        Where the work is done; None takes the client that is active, if there is one and the rows
        can be read by its workers. Dask collections are read on whatever scheduler is active.
    checkpoint : str or Path, default=None
        A folder that keeps what is finished, so that a pass that was killed goes on where it was.
    chunk_rows : int, default=8192
        Rows that an accumulator gets at once, at most.
    watch : callable, default=None
        Told from time to time how many pieces of the source are done.

    Returns
    -------
    What the accumulator finishes with.
    """
    keeper = open_checkpoint(checkpoint, accumulator, source)
    keeper.watch = watch
    client = _client(client, source)
    if source.lazy or client is not None:
        from onefit.stream.dask_tree import reduce_on_dask

        return accumulator.finish(reduce_on_dask(accumulator, source, client, keeper, chunk_rows))
    workers = effective_n_jobs(n_jobs)
    work = _in_turn if workers == 1 else _in_threads
    return accumulator.finish(work(accumulator, source, keeper, chunk_rows, workers))


def absorb(
    accumulator: Accumulator[Any, Any], source: Source, pieces: Sequence[Any], rows: int, state: Any
) -> Any:
    """The state with the rows of some pieces."""
    for piece in pieces:
        for block in piece.blocks(rows):
            state = accumulator.update(state, source.reading.chunk(block))
    return state


def _in_turn(
    accumulator: Accumulator[Any, Any], source: Source, keeper: Keeper, rows: int, _: int
) -> Any:
    state, done = keeper.begin(accumulator)
    for group in groups_of(source.pieces[done:], PIECE):
        state = absorb(accumulator, source, group, rows, state)
        done += len(group)
        keeper.keep(state, done, last=done == len(source.pieces))
    return state


def _in_threads(
    accumulator: Accumulator[Any, Any], source: Source, keeper: Keeper, rows: int, workers: int
) -> Any:
    state, done = keeper.begin(accumulator)
    groups = groups_of(source.pieces[done:], PIECE)

    def work(group: Sequence[Any]) -> Any:
        return absorb(accumulator, source, group, rows, accumulator.init())

    with threadpool_limits(max(1, cpu_count() // workers)):
        found = in_flight(work, groups, workers)
        for group, one in zip(groups, found, strict=True):
            state = accumulator.merge(state, one)
            done += len(group)
            keeper.keep(state, done, last=done == len(source.pieces))
    return state


def _client(client: Any, source: Source) -> Any:
    """The client that is to do the work, if any is."""
    if client is not None and not (source.lazy or source.anywhere):
        raise ValueError(
            "rows in memory are not sent to a cluster; write them to Parquet or .npy files that "
            "its workers can read, or make a Dask collection of them"
        )
    if client is None and (source.lazy or source.anywhere):
        from onefit.stream.needs import active_client

        return active_client()
    return client
