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

__all__ = ["INTERRUPTED", "main", "started", "was_interrupted"]

INTERRUPTED = 130
_started: list[float] = []
_interrupts: list[int] = []


def started() -> float:
    """When the command began, by :func:`time.monotonic`: before its imports, which count."""
    return _started[-1] if _started else monotonic()


def was_interrupted() -> bool:
    """Whether there was an interrupt."""
    return bool(_interrupts)


def main() -> None:
    """Run the command line; what it needs is imported here and not before."""
    _started.append(monotonic())
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _note_interrupt)
    try:
        from onefit.cli.app import app
    except BaseException as error:
        if was_interrupted():
            print("onefit: interrupted", file=sys.stderr)
            sys.exit(INTERRUPTED)
        name = getattr(error, "name", None)
        if not isinstance(error, ModuleNotFoundError) or (name or "onefit").startswith("onefit"):
            raise
        sys.exit(f"onefit: {name} is not installed; use: pip install 'onefit[cli,report]'")
    try:
        app()
    except SystemExit as end:
        if was_interrupted() and end.code == 1:  # typer's own word for it
            sys.exit(INTERRUPTED)
        raise


def _note_interrupt(number: int, frame: FrameType | None) -> None:
    _interrupts.append(number)
    signal.default_int_handler(number, frame)
