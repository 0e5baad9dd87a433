"""A text file counted before it is read: its bytes, lines and values, a piece at a time.

A packed file may unpack to a thousand times its size, or more, and a reader takes several times
that. Counting takes little memory, and ends as soon as a file is too large to be read.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

__all__ = [
    "BROKEN",
    "PACKED",
    "READ_BYTES",
    "Counts",
    "open_unpacked",
    "records",
    "scan",
    "too_long",
]

PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
#: what a file raises that cannot be read, or unpacked
BROKEN = (OSError, EOFError, zlib.error)
#: bytes looked at together
READ_BYTES = 2**20


@dataclass
class Counts:
    """What a text file holds, as far as it was looked at.

    Attributes
    ----------
    nbytes : int
        Unpacked.
    ended : int
        Lines, but for the last one if it has no end.
    blank : int
        Those with nothing in them.
    separators : int
        Between the values of the lines.
    header : int
        Separators in the first line that is not blank.
    first : int
        Bytes of that line.
    quotes : bool
        Whether there is any: a row may then continue in the next line.
    nul : int or None
        The line of the first NUL byte, where the count stops.
    """

    nbytes: int = 0
    ended: int = 0
    blank: int = 0
    separators: int = 0
    header: int = 0
    first: int = 0
    quotes: bool = False
    nul: int | None = None

    @property
    def lines(self) -> int:
        """Lines with something in them."""
        return self.ended - self.blank

    @property
    def values(self) -> int:
        """Values of these lines, all together."""
        return self.separators + self.lines

    @property
    def columns(self) -> int:
        """Values of the first line."""
        return self.header + (self.first > 0)

    @property
    def rows(self) -> int:
        """Rows below a header, at least."""
        return 0 if self.quotes else max(0, self.lines - 1)

    def add(self, piece: bytes, last: bytes, separator: bytes) -> None:
        """Count the next piece, without carriage returns, after a byte ``last``."""
        if self.lines == 0:
            line = piece.lstrip(b"\n") if self.first == 0 else piece
            line, _, _ = line.partition(b"\n")
            self.header += line.count(separator)
            self.first += len(line)
        feeds = np.frombuffer(last + piece, dtype=np.uint8) == ord("\n")
        self.ended += int(np.count_nonzero(feeds[1:]))
        self.blank += int(np.count_nonzero(feeds[1:] & feeds[:-1]))
        self.separators += piece.count(separator)
        self.quotes |= b'"' in piece


def open_unpacked(path: Path, encoding: str = "utf-8") -> Any:
    """A file's bytes, unpacked by its name; those of text in another encoding as UTF-8."""
    file = PACKED.get(path.suffix.lower(), open)(path, "rb")
    return file if encoding == "utf-8" else codecs.EncodedFile(file, "utf-8", encoding)


def scan(
    path: Path,
    separator: str,
    cost: Callable[[Counts], float],
    room: float,
    encoding: str = "utf-8",
) -> Counts:
    """Count what a file holds, and stop once it costs more bytes to read than there is room for."""
    found, last = Counts(), b"\n"
    with open_unpacked(path, encoding) as file:
        while whole := file.read(READ_BYTES):
            before, nul, _ = whole.partition(b"\0")
            piece = before.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            found.add(piece, last, separator.encode())
            found.nbytes += len(before)
            last = piece[-1:] or last
            if nul:
                found.nul = found.ended + 1
            if nul or cost(found) > room:
                break
    return found


def records(path: Path, delimiter: str, encoding: str = "utf-8") -> Iterator[tuple[int, list[str]]]:
    """The values of each row of a CSV file, header included, and the line where it begins."""
    codec = "utf-8-sig" if encoding == "utf-8" else encoding
    with open_unpacked(path) as file, io.TextIOWrapper(file, codec, newline="") as text:
        lines = csv.reader(text, delimiter=delimiter, skipinitialspace=delimiter != " ")
        begins = 1
        for values in lines:
            if values:
                yield begins, values
            begins = lines.line_num + 1


def too_long(path: Path, delimiter: str, encoding: str = "utf-8") -> str:
    """The first row with more values than the header, in brackets."""
    try:
        rows = records(path, delimiter, encoding)
        _, header = next(rows)
        for line, values in rows:
            if len(values) > len(header):
                return f" (line {line} holds {len(values)} values, expected {len(header)})"
    except (csv.Error, StopIteration, UnicodeError, *BROKEN):
        pass
    return ""
