"""The progress of a pass in a journal, so that a pass that was killed continues where it was."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onefit._describe import describe
from onefit.journal import Journal

__all__ = ["Progress", "open_progress"]

#: share of the time of a pass that writing its state may take
MAX_WRITING_SHARE = 0.02


@dataclass
class Progress:
    """The state of one pass, written to a journal as often as that costs little.

    The first piece is always written, so an interrupted pass never starts from nothing. Later
    writes wait until the last one took at most MAX_WRITING_SHARE of the time since then.

    Attributes
    ----------
    journal : Journal or None
        None keeps nothing.
    key : str
        The pass in words.
    modules : tuple of str
        Where the dataclasses of its state are defined.
    watch : callable or None
        Called with the number of pieces that are done.
    written : float
        Time at the end of the last write.
    writing_seconds : float
        Seconds that the last write took.
    """

    journal: Journal | None = None
    key: str = ""
    modules: tuple[str, ...] = ()
    watch: Callable[[int], None] | None = None
    written: float = 0.0
    writing_seconds: float = 0.0

    def begin(self, accumulator: Any) -> tuple[Any, int]:
        """The state to begin with, and the number of pieces that are in it already."""
        known = [] if self.journal is None else self.journal.read(self.key, self.modules)
        return known[0] if known else (accumulator.init(), 0)

    def keep(self, state: Any, done: int, last: bool = False) -> None:
        """Write the state after so many pieces, if that is due."""
        if self.watch is not None:
            self.watch(done)
        if self.journal is None:
            return
        now = time.monotonic()
        if last or self.writing_seconds <= MAX_WRITING_SHARE * (now - self.written):
            self.journal.write(self.key, (state, done))
            self.written = time.monotonic()
            self.writing_seconds = self.written - now


def open_progress(
    journal: Any, accumulator: Any, source: Any, watch: Callable[[int], None] | None
) -> Progress:
    """The progress of a pass over a source, kept in the journal at a path if that is not None."""
    if journal is None:
        return Progress(watch=watch)
    starts = [one.start for one in source.pieces]
    key = json.dumps([describe(accumulator), describe(source.reading), starts])
    modules = ("onefit", type(accumulator).__module__)
    return Progress(Journal(journal, source.about), key, modules, watch)
