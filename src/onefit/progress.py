"""Progress of functions that are called, not fitted: a line when each part of the work is done.

Searches have callbacks (:mod:`onefit.callbacks`); these need an estimator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import perf_counter
from typing import Any, TypeVar

from sklearn.utils.parallel import Parallel

from onefit._format import duration

__all__ = ["MIN_ANNOUNCED_SECONDS", "counted", "in_parallel"]

#: seconds from which an estimate is printed without being asked for
MIN_ANNOUNCED_SECONDS = 60.0

_Part = TypeVar("_Part")


def counted(
    parts: Sequence[_Part], verbose: int, name: Callable[[_Part], object]
) -> Iterator[_Part]:
    """Yield every part, and print its number and name when the caller is done with it.

    The time that is left is that of the parts so far, times the share of parts to come. If it is
    long after the first part, it is printed to stderr without ``verbose``, too.
    """
    start = perf_counter()
    for done, part in enumerate(parts, start=1):
        yield part
        left = (perf_counter() - start) * (len(parts) - done) / done
        if verbose <= 0 and done == 1 and left > MIN_ANNOUNCED_SECONDS:
            print(
                f"{len(parts)} parts are expected to take {duration(left)}; verbose=1 prints each",
                file=sys.stderr, flush=True,
            )  # fmt: skip
        if verbose > 0:
            more = f", about {duration(left)} left" if done < len(parts) else ""
            print(f"[{done}/{len(parts)}] {name(part)}{more}", flush=True)


def in_parallel(
    calls: Iterable[Any],
    parts: Sequence[_Part],
    n_jobs: int | None,
    verbose: int,
    name: Callable[[_Part], object],
) -> Iterator[tuple[_Part, Any]]:
    """Every part with the result of its call, in order; calls are made side by side.

    Parameters
    ----------
    calls : calls of ``sklearn.utils.parallel.delayed``, one per part
    parts : sequence
    n_jobs : int or None
    verbose, name : as of :func:`counted`
    """
    outcomes = Parallel(n_jobs=n_jobs, return_as="generator")(calls)
    for part in counted(parts, verbose, name):
        yield part, next(outcomes)
