"""The command line: ``onefit select``, ``explain``, ``predict`` and ``demo``."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; what it needs is imported here and not before."""
    try:
        from onefit.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("onefit"):
            raise
        sys.exit(f"onefit: {error.name} is not installed; use: pip install 'onefit[cli,report]'")
    app()
