"""The command line: ``onefit select``, ``explain``, ``predict`` and ``demo``."""

from __future__ import annotations

import sys
from time import monotonic

__all__ = ["main", "started"]

_started: list[float] = []


def started() -> float:
    """When the command began, by :func:`time.monotonic`: before its imports, which count."""
    return _started[-1] if _started else monotonic()


def main() -> None:
    """Run the command line; what it needs is imported here and not before."""
    _started.append(monotonic())
    try:
        from onefit.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("onefit"):
            raise
        sys.exit(f"onefit: {error.name} is not installed; use: pip install 'onefit[cli,report]'")
    app()
