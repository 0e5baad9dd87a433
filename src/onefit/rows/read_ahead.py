"""Chunks that threads read while others are added up.

Reading, decoding and checking release Python's lock. SciPy's BLAS keeps it, and has threads of its
own: sums in several threads would wait for each other. So rows are read by several threads and
added up by one. Each thread reads one piece and stays at most a few chunks ahead, so that memory
does not grow with the size of a row group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from queue import Full, Queue
from threading import Event
from typing import Any

from onefit.rows.accumulate import Chunk
from onefit.rows.source import Source

__all__ = ["read_ahead"]

#: largest number of chunks of a piece that wait, and seconds between checks whether the pass ended
MAX_WAITING_CHUNKS, STOP_POLL_SECONDS = 4, 0.1


def read_ahead(
    source: Source, pieces: Sequence[Any], rows: int, workers: int
) -> Iterator[Iterator[Chunk]]:
    """The chunks of every piece, in order; use those of one piece before taking the next."""
    stopped, ahead, queues = Event(), iter(pieces), deque[Queue[Any]]()
    pool = ThreadPoolExecutor(workers)

    def begin(some: int) -> None:
        for piece in islice(ahead, some):
            queues.append(Queue(MAX_WAITING_CHUNKS))
            pool.submit(_read, source, piece, rows, queues[-1], stopped)

    try:
        begin(workers)
        while queues:
            yield _taken(queues[0])
            queues.popleft()
            begin(1)
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)


def _read(source: Source, piece: Any, rows: int, queue: Queue[Any], stopped: Event) -> None:
    """Put the chunks of a piece into a queue, and then None, or the error that ended it."""
    end = None
    try:
        for block in piece.blocks(rows):
            _put(queue, source.reading.chunk(block), stopped)
    except BaseException as error:  # raised where the chunks are taken
        end = error
    with suppress(CancelledError):
        _put(queue, end, stopped)


def _put(queue: Queue[Any], item: Any, stopped: Event) -> None:
    while not stopped.is_set():
        with suppress(Full):
            queue.put(item, timeout=STOP_POLL_SECONDS)
            return
    raise CancelledError


def _taken(queue: Queue[Any]) -> Iterator[Chunk]:
    while (item := queue.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item
