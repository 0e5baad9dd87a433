"""Where rows come from, a file or standard input, which becomes one; and where files may go."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["as_file", "check_place"]


@contextmanager
def as_file(data: Path) -> Iterator[Path]:
    """The file itself; for -, a copy of what comes on stdin, as CSV, removed afterwards."""
    if str(data) != "-":
        yield data
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def check_place(path: Path) -> None:
    """Refuse a file whose folder does not exist, or that is one."""
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; name a file to write")
