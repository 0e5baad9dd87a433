"""The measured rates on disk, one small JSON file in the user's cache directory.

A directory that cannot be read or written, or a file that something else has spoilt, only costs
a measurement.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy

__all__ = ["cache_file", "read", "read_device", "write", "write_device"]


def cache_file() -> Path:
    """Where the rates are kept: XDG_CACHE_HOME or ~/.cache, LOCALAPPDATA on Windows."""
    name = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    base = os.environ.get(name)
    return (Path(base) if base else Path.home() / ".cache") / "onefit" / "rates.json"


def read(threads: int, itemsize: int) -> dict[str, Any] | None:
    """The entry of this machine, if there is one."""
    return _read(_key(threads, itemsize))


def read_device(name: str, itemsize: int) -> dict[str, Any] | None:
    """The entry of a device that describes itself so, if there is one."""
    return _read(f"{name}, {itemsize} bytes")


def write(threads: int, itemsize: int, entry: dict[str, Any]) -> None:
    """Add the entry of this machine."""
    _write(_key(threads, itemsize), entry)


def write_device(name: str, itemsize: int, entry: dict[str, Any]) -> None:
    """Add the entry of a device."""
    _write(f"{name}, {itemsize} bytes", entry)


def _read(key: str) -> dict[str, Any] | None:
    entry = _load().get(key)
    return entry if isinstance(entry, dict) else None


def _write(key: str, entry: dict[str, Any]) -> None:
    """Replace the file in one move."""
    entries = _load() | {key: entry}
    with contextlib.suppress(OSError, RuntimeError):
        path = cache_file()
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps(entries, indent=1), encoding="utf-8")
        draft.replace(path)


def _load() -> dict[str, Any]:
    with contextlib.suppress(OSError, RuntimeError, ValueError):
        entries = json.loads(cache_file().read_text(encoding="utf-8"))
        if isinstance(entries, dict):
            return entries
    return {}


def _key(threads: int, itemsize: int) -> str:
    versions = f"numpy {np.__version__}, scipy {scipy.__version__}"
    return f"{_cpu()} x {os.cpu_count()}, {versions}, {threads} threads, {itemsize} bytes"


def _cpu() -> str:
    """The processor's name, as well as the platform tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
