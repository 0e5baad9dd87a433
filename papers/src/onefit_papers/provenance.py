"""What made the numbers of a page: machine, software, and the commit of the source tree.

A commit says nothing if the tree has changes that are in no commit. Only changes of the two
packages, onefit and this one, count: a run writes results into the same tree.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

import onefit

__all__ = ["DIRTY", "commit", "machine", "software"]

#: the packages that make the numbers
SOURCES = (Path(onefit.__file__).resolve().parent, Path(__file__).resolve().parent)

#: what stands behind a commit if a package differs from it
DIRTY = "-dirty"


def machine() -> str:
    """Processor and cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name}, {os.cpu_count()} logical cores, {platform.system()}"


def software() -> str:
    """Versions of Python and of the packages that do the work."""
    found = [f"Python {platform.python_version()}"]
    for package in ("onefit", "numpy", "scipy", "scikit-learn"):
        try:
            found.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{package} (not installed as a package)")
    return ", ".join(found)


def commit(sources: Sequence[Path] = SOURCES) -> str:
    """The commit of the source tree that the packages lie in, if they lie in one.

    Packages of two trees have two commits.
    """
    try:
        known = [_git(folder, "rev-parse", "--short=12", "HEAD") for folder in sources]
        changed = [_git(folder, "status", "--porcelain", "--", ".") for folder in sources]
    except (OSError, subprocess.SubprocessError):
        return "not a source tree"
    return " and ".join(dict.fromkeys(known)) + (DIRTY if any(changed) else "")


def _git(folder: Path, *asked: str) -> str:
    command = ["git", "-C", str(folder), *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
    return done.stdout.strip()
