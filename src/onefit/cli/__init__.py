"""The command line: ``onefit select``, ``explain``, ``predict`` and ``demo``."""

from __future__ import annotations

import sys
from time import monotonic

from onefit.cli import interrupt

__all__ = ["main", "started"]

_started: list[float] = []


def started() -> float:
    """When the command began, by :func:`time.monotonic`: before its imports, which count."""
    return _started[-1] if _started else monotonic()


def main() -> None:
    """Run the command line; what it needs is imported here and not before."""
    _started.append(monotonic())
    interrupt.watch()
    try:
        from onefit.cli.app import app
    except BaseException as error:
        if interrupt.came():
            interrupt.leave()
        name = getattr(error, "name", None)
        if not isinstance(error, ModuleNotFoundError) or (name or "onefit").startswith("onefit"):
            raise
        sys.exit(f"onefit: {name} is not installed; use: pip install 'onefit[cli,report]'")
    try:
        app()
    except SystemExit as end:
        if interrupt.came() and end.code == 1:  # typer's own word for it
            sys.exit(interrupt.INTERRUPTED)
        raise
