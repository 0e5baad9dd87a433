"""One pass over all rows: in this process, where threads may read ahead, or on Dask.

In this process the chunks are added to one state, in the order of the rows, whatever the number of
threads, so repeated passes give the same bits.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from joblib import effective_n_jobs

from onefit import linalg
from onefit._describe import describe
from onefit.journal import Journal
from onefit.rows.accumulate import Accumulator, Chunk, to_host
from onefit.rows.read_ahead import read_ahead
from onefit.rows.source import Source

__all__ = ["CHUNK_ROWS", "Progress", "active_client", "open_progress", "run"]

#: rows of a chunk: enough for matrix products at full speed, few enough for their features
CHUNK_ROWS = 8192

Result = TypeVar("Result")


def run(
    accumulator: Accumulator[Any, Result],
    source: Source,
    *,
    n_jobs: int | None = None,
    client: Any = None,
    journal: Any = None,
    chunk_rows: int = CHUNK_ROWS,
    watch: Callable[[int], None] | None = None,
) -> Result:
    """Take a sum over all rows of a source.

    Parameters
    ----------
    accumulator : Accumulator
    source : Source
        See :func:`onefit.rows.open_rows`.
    n_jobs : int, default=None
        Threads that read rows in this process; one thread adds them up, with the threads of BLAS.
        With None (or as joblib's context says), one thread does both.
    client : distributed.Client, default=None
        The cluster for the pass; None means the active client, if there is one and its workers can
        read the rows. Dask collections are read on the active scheduler.
    journal : str or Path, default=None
        A folder that keeps the state of the pass, from which a pass that was killed resumes (see
        :mod:`onefit.journal`).
    chunk_rows : int, default=8192
        Largest number of rows of a chunk.
    watch : callable, default=None
        Called after pieces of the source with the number of those that are done.

    Returns
    -------
    The result of ``accumulator.finish``.
    """
    progress = open_progress(journal, accumulator, source, watch)
    client = _client(client, source)
    if source.lazy or client is not None:
        from onefit.rows.dask_tree import reduce_on_dask

        return accumulator.finish(reduce_on_dask(accumulator, source, client, progress, chunk_rows))
    return accumulator.finish(_here(accumulator, source, progress, chunk_rows, n_jobs))


def _here(
    accumulator: Accumulator[Any, Any],
    source: Source,
    progress: Progress,
    rows: int,
    n_jobs: int | None,
) -> Any:
    state, done = progress.begin(accumulator)
    for chunks in _read(source, source.pieces[done:], rows, effective_n_jobs(n_jobs)):
        state = _added(accumulator, state, chunks)
        done += 1
        progress.keep(state, done, last=done == len(source.pieces))
    return state


def _added(accumulator: Accumulator[Any, Any], state: Any, chunks: Iterator[Chunk]) -> Any:
    """The state with the chunks of a piece; sums on a device are copied to the host at its end."""
    on_device = None
    for chunk in chunks:
        if linalg.is_elsewhere(chunk.X):
            before = accumulator.init() if on_device is None else on_device
            on_device = accumulator.update(before, chunk)
        else:
            state = accumulator.update(state, chunk)
    return state if on_device is None else accumulator.merge(state, to_host(on_device))


def _read(
    source: Source, pieces: Sequence[Any], rows: int, workers: int
) -> Iterator[Iterator[Chunk]]:
    """The chunks of every piece, read in turn or ahead by several threads."""
    if workers > 1:
        yield from read_ahead(source, pieces, rows, workers)
        return
    for piece in pieces:
        yield map(source.reading.chunk, piece.blocks(rows))


def _client(client: Any, source: Source) -> Any:
    """The client for the pass, if any."""
    if client is not None and not (source.lazy or source.anywhere):
        raise ValueError(
            "rows in memory are not sent to a cluster; write them to Parquet or .npy files that "
            "its workers can read, or make a Dask collection of them"
        )
    if client is None and (source.lazy or source.anywhere):
        return active_client()
    return client


#: share of the time of a pass that saving its state may take
MAX_WRITING_SHARE = 0.02


@dataclass
class Progress:
    """The progress of one pass, and the journal with its state.

    The state after the first piece is always written. Each later write waits until the one before
    took at most MAX_WRITING_SHARE of the time since then.

    Attributes
    ----------
    journal : Journal or None
    key : str
        The pass in words.
    modules : tuple of str
        Modules that define the dataclasses of its state.
    watch : callable or None
        Called with the number of pieces that are done.
    written : float
        Time at the end of the last write, in seconds.
    writing_seconds : float
        Duration of the last write.
    clock : callable
        Returns the time in seconds.
    """

    journal: Journal | None = None
    key: str = ""
    modules: tuple[str, ...] = ()
    watch: Callable[[int], None] | None = None
    written: float = 0.0
    writing_seconds: float = 0.0
    clock: Callable[[], float] = time.monotonic

    def begin(self, accumulator: Any) -> tuple[Any, int]:
        """The state to begin with, and the number of pieces that it has already."""
        known = [] if self.journal is None else self.journal.read(self.key, self.modules)
        return known[0] if known else (accumulator.init(), 0)

    def keep(self, state: Any, done: int, last: bool = False) -> None:
        """Report ``done`` pieces; write their state to the journal if a write is due."""
        if self.watch is not None:
            self.watch(done)
        if self.journal is None:
            return
        now = self.clock()
        if last or self.writing_seconds <= MAX_WRITING_SHARE * (now - self.written):
            self.journal.write(self.key, (state, done))
            self.written = self.clock()
            self.writing_seconds = self.written - now


def open_progress(
    journal: Any, accumulator: Any, source: Any, watch: Callable[[int], None] | None
) -> Progress:
    """The progress of a pass over a source, with the journal at a path if that is not None."""
    if journal is None:
        return Progress(watch=watch)
    starts = [one.start for one in source.pieces]
    key = json.dumps([describe(accumulator), describe(source.reading), starts])
    modules = ("onefit", type(accumulator).__module__)
    return Progress(Journal(journal, source.about), key, modules, watch)


def active_client() -> Any:
    """The active client of Dask, or None; Dask is not imported for it."""
    if "distributed" not in sys.modules:
        return None
    import dask
    from distributed import default_client

    if dask.config.get("scheduler", "distributed") not in ("dask.distributed", "distributed"):
        return None
    try:
        return default_client()
    except ValueError:
        return None
