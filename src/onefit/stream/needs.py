"""Packages that only some sources need: how to get them, and whether they are in use."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

__all__ = ["active_client", "needed"]


def needed(package: str, extra: str | None, what: str) -> None:
    """Say what to install where a package is missing; ``extra`` names one of onefit's, if any."""
    if find_spec(package) is None:
        name = package if extra is None else f"'onefit[{extra}]'"
        raise ImportError(f"{what} need {package}, which is not installed: pip install {name}")


def active_client() -> Any:
    """The active client of Dask, or None, also if Dask was not imported."""
    if "distributed" not in sys.modules:
        return None
    import dask
    from distributed import default_client

    if dask.config.get("scheduler", "distributed") not in ("dask.distributed", "distributed"):
        return None
    try:
        return default_client()
    except ValueError:
        return None
