"""The command line: ``onefit select``, ``explain``, ``predict`` and ``demo``.

Ctrl-C ends it at any moment, while modules are imported too, with one line on stderr and exit code
130. An import that is interrupted may end in any error: what it imports may turn the interrupt into
one of its own. So a signal handler notes the interrupt, and any error after it counts as one.
"""

from __future__ import annotations

import signal
import sys
import threading
from time import monotonic
from types import FrameType

__all__ = ["INTERRUPTED", "main", "was_interrupted"]

INTERRUPTED = 130
_interrupts: list[int] = []


def was_interrupted() -> bool:
    """Whether there was an interrupt."""
    return bool(_interrupts)


def main() -> None:
    """Run the command line; what it needs is imported here and not before."""
    begun = monotonic()
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note_interrupt)
    try:
        from onefit.cli.app import run

        run(sys.argv[1:], begun)
    except SystemExit:
        raise
    except BaseException:
        if not was_interrupted():
            raise
        print("onefit: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _note_interrupt(number: int, frame: FrameType | None) -> None:
    _interrupts.append(number)
    signal.default_int_handler(number, frame)
