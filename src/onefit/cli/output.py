"""Where files may be written; predictions as CSV or Parquet, without formulas.

A label such as ``=HYPERLINK(...)`` comes from the data, whoever wrote it; a spreadsheet that opens
the file would run it. Such texts get an apostrophe before them, as OWASP advises [1]_: spreadsheets
take what follows as text. Numbers stay as they are, those among the labels too.

References
----------
.. [1] https://owasp.org/www-community/attacks/CSV_Injection
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Outputs", "as_csv", "check_file", "write_frames"]

ENDINGS = {"model": (".skops",), "report": (".html", ".htm"), "output": (".csv", ".parquet")}
#: first characters of a formula
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
PLAIN_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Outputs:
    """Files that a selection writes, and its journal; None for those that were not asked for."""

    report: Path | None = None
    model: Path | None = None
    journal: Path | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The files, by what they hold."""
        both = {"report": self.report, "model": self.model}
        return {what: path for what, path in both.items() if path is not None}

    def check(self) -> None:
        """Refuse what cannot be written, before any work is done."""
        for what, path in self.files.items():
            check_file(what, path)
        if self.journal is None or self.journal.is_dir():
            return
        if self.journal.is_file():
            raise ValueError(f"journal {self.journal} is a file, but a journal is a folder")
        _check_place(self.journal)

    @contextmanager
    def on_interrupt(self) -> Iterator[None]:
        """Add to Ctrl-C how the selection is resumed."""
        try:
            yield
        except KeyboardInterrupt as error:
            if self.journal is None:
                raise
            message = f"; finished work is in {self.journal}, run the same command to resume"
            raise KeyboardInterrupt(message) from error


def _check_place(path: Path) -> None:
    """Refuse a file whose folder does not exist, or that is one."""
    if not path.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    if path.is_dir():
        raise ValueError(f"{str(path)!r} is a folder; name a file to write")
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise ValueError(f"{str(path)!r} may not be written; name another place")


def check_file(what: str, path: Path) -> None:
    """Refuse a file that cannot be written, or whose name promises another kind of file."""
    if path.suffix.lower() not in ENDINGS[what]:
        raise ValueError(f"--{what} {path.name} must end in {' or '.join(ENDINGS[what])}")
    _check_place(path)


def as_csv(frame: Any, header: bool = True) -> str:
    """A data frame as CSV in which no text is taken for a formula."""
    texts = [name for name, column in frame.items() if column.dtype.kind not in "fiub"]
    # a carriage return alone ends a line for spreadsheets, but would not be quoted
    broken = any("\r" in str(one) for name in texts for one in (name, *frame[name]))
    quoting = csv.QUOTE_NONNUMERIC if broken else csv.QUOTE_MINIMAL
    found = frame.assign(**{name: frame[name].map(_as_text) for name in texts})
    found.columns = [_as_text(name) for name in found.columns]
    text: str = found.to_csv(index=False, quoting=quoting, header=header)
    return text


def _as_text(value: Any) -> Any:
    """A value that is no formula."""
    if isinstance(value, str) and value.startswith(FORMULA) and not PLAIN_NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def write_frames(frames: Iterable[Any], path: Path) -> int:
    """Write frames one after the other, and count rows; the file is there after the last frame."""
    part = path.with_name(f"{path.name}.part")
    try:
        rows = (_write_csv if path.suffix.lower() == ".csv" else _write_parquet)(frames, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return rows


def _write_csv(frames: Iterable[Any], path: Path) -> int:
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for frame in frames:
            file.write(as_csv(frame, header=rows == 0))
            rows += len(frame)
    return rows


def _write_parquet(frames: Iterable[Any], path: Path) -> int:
    import pyarrow as pa
    from pyarrow import parquet

    rows, file = 0, None
    try:
        for frame in frames:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            file = file or parquet.ParquetWriter(path, table.schema)
            file.write_table(table)
            rows += len(frame)
    finally:
        if file is not None:
            file.close()
    return rows
