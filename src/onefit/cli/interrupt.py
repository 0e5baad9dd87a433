"""Ctrl-C at any moment, while modules are imported too: one line on stderr, and exit code 130.

An import that is interrupted may end in any error: what it imports may turn the interrupt into one
of its own. So it is noted that there was one, and whatever ends the run after that counts as it.
"""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import NoReturn

__all__ = ["INTERRUPTED", "came", "leave", "watch"]

INTERRUPTED = 130
_seen = False


def came() -> bool:
    """Whether there was an interrupt."""
    return _seen


def watch() -> None:
    """Note interrupts from now on, unless somebody else handles or ignores them."""
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note)


def _note(number: int, frame: FrameType | None) -> None:
    global _seen
    _seen = True
    signal.default_int_handler(number, frame)


def leave() -> NoReturn:
    """End the process as interrupted."""
    print("onefit: interrupted", file=sys.stderr)
    sys.exit(INTERRUPTED)
