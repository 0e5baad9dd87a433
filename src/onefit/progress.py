"""Progress of functions that are called, not fitted: a line when each part of the work is done.

Searches have callbacks (:mod:`onefit.callbacks`); these need an estimator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["counted"]

_Part = TypeVar("_Part")


def counted(
    parts: Sequence[_Part], verbose: int, name: Callable[[_Part], object]
) -> Iterator[_Part]:
    """Yield every part, and print its number and name when the caller is done with it."""
    for done, part in enumerate(parts, start=1):
        yield part
        if verbose > 0:
            print(f"[{done}/{len(parts)}] {name(part)}", flush=True)
