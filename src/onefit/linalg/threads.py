"""Loops in the number of threads that BLAS may use, each with one BLAS thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import cache
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["blas_threads", "each", "in_flight"]

Result = TypeVar("Result")

_LIMITING = Lock()


def each(
    action: Callable[..., Result],
    jobs: Iterable[tuple[Any, ...]],
    then: Callable[[Result], None] = lambda _: None,
) -> None:
    """Do all jobs, in the number of threads that BLAS may use, each with one BLAS thread.

    ``then`` is called with what each job returns, in this thread and in the order of the jobs.
    """
    threads = blas_threads()
    # the limit holds for the whole process: of two threads that set and restore it, one is wrong
    if threads == 1 or not _LIMITING.acquire(blocking=False):
        for job in jobs:
            then(action(*job))
        return
    try:
        found = in_flight(lambda job: action(*job), jobs, threads)
        with _controller().limit(limits=1, user_api="blas"), closing(found):
            for result in found:
                then(result)
    finally:
        _LIMITING.release()


def in_flight(
    work: Callable[[Any], Result], items: Iterable[Any], workers: int
) -> Generator[Result, None, None]:
    """Results in the order of the items; at most two items per worker are in progress."""
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for item in items:
            if len(waiting) == 2 * workers:
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads() -> int:
    """The number of threads that BLAS may use now."""
    blas = _controller().select(user_api="blas").lib_controllers
    return max((int(one.num_threads) for one in blas), default=1)
