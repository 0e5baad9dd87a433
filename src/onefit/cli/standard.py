"""Where rows come from, a file or standard input, which becomes one; and where files may go."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onefit.files import CsvFormat
    from onefit.tables import Table

__all__ = ["Source", "as_file", "check_place"]


@dataclass(frozen=True)
class Source:
    """Where a table comes from.

    Attributes
    ----------
    name : str
        Of the file.
    reading : CsvFormat or None
        How it was read.
    whole : Table or None
        All rows, where the choice is made on a sample and the model is to be fitted to all.
    """

    name: str
    reading: CsvFormat | None = None
    whole: Table | None = None


@contextmanager
def as_file(data: Path) -> Iterator[Path]:
    """The file itself; for -, a copy of what comes on stdin, as CSV, removed afterwards."""
    if str(data) != "-":
        yield data
        return
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
