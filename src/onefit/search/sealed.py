"""Entries in an SQLite file, each sealed by a checksum, so that damage is found and mended.

Data and settings are written at the start, each under its name; a file that was made from others is
refused, with the difference named. Every entry carries a SHA-256 checksum over itself and over data
and settings, hence is taken as it was written, for the search it was written for, or not at all.
Entries of one call of :meth:`SealedFile.append` are written in a transaction of their own, so that
after a kill the file holds exactly those that were finished.

Where anything is amiss, the intact entries are copied to a new file, a warning says how many they
are, and the damaged file stays beside it. Only a file of which nothing can be proved is refused.
Whatever goes wrong is a :class:`JournalError`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onefit import _version
from onefit._describe import digest

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SMALLEST", "Entry", "JournalError", "SealedFile"]

#: how long to wait for another process that is writing, in seconds
PATIENCE = 30.0
#: the tables as SQLite remembers them; no index, which could only be damaged
TABLES = {
    "about": "CREATE TABLE about (name TEXT NOT NULL, value TEXT NOT NULL, checksum TEXT NOT NULL)",
    "jobs": "CREATE TABLE jobs (machine TEXT NOT NULL, lams TEXT NOT NULL, outcome BLOB NOT NULL, "
    "checksum TEXT NOT NULL)",
}
#: those of journals from before entries had checksums
FORMER = {
    "about": "CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "jobs": "CREATE TABLE jobs (key TEXT PRIMARY KEY, outcomes BLOB NOT NULL)",
}
#: no entry is smaller, in bytes: its arrays have headers
SMALLEST = 1024


class JournalError(ValueError):
    """A journal that cannot be used: of another search, damaged, in use, or out of reach."""


class Entry(NamedTuple):
    """A machine's name, some of its lams as JSON, and its outcome at these as bytes."""

    machine: str
    lams: str
    outcome: bytes

    def sealed(self, seal: str) -> tuple[str | bytes, ...]:
        """The row to write, with its checksum; the seal is that of data and settings."""
        return *self, _checksum(seal, *self)

    @classmethod
    def opened(cls, row: tuple[Any, ...], seal: str) -> Entry | None:
        """What a row holds; None unless it is as it was written, under this seal."""
        *parts, checksum = row
        return cls(*parts) if _checksum(seal, *parts) == checksum else None


class SealedFile:
    """An open file of entries.

    Parameters
    ----------
    path : Path
    about : dict
        Data and settings in words, by name.

    Attributes
    ----------
    rows : dict
        By the name of an entry, the intact ones: their lams, and the numbers of their rows.
    """

    def __init__(self, path: Path, about: dict[str, str]) -> None:
        self.path, self.about = path, about
        self.file = Path(os.path.realpath(path))
        self.seal = _checksum(*sorted(about.items()))
        self.rows: dict[str, list[tuple[tuple[float, ...], int]]] = {}
        with self._telling():
            self.connection = _connect(self.file)

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()

    def begin(self) -> None:
        """Make a new journal, or look through an old one: refuse what is of another search."""
        with self._telling():
            # else SQLite reads nothing of a file that was cut off
            self.connection.execute("PRAGMA writable_schema = ON")
            if not self._tables() and self.file.stat().st_size == 0:
                _make(self.connection, self.about)
            self._check_tables()
            if not self._look_through():
                self._mend()
            self.connection.execute("PRAGMA writable_schema = OFF")

    def check_writable(self) -> None:
        """Refuse, before any work, what cannot be written."""
        with self._telling(), self.connection:
            self.connection.execute("UPDATE about SET value = value")

    def append(self, entries: list[Entry]) -> None:
        """Keep entries: all of them, or none if anything goes wrong."""
        with self._telling(), self.connection:
            rows = [
                _insert(self.connection, "jobs", one.sealed(self.seal)).lastrowid or 0
                for one in entries
            ]
        for entry, row in zip(entries, rows, strict=True):
            self._note(entry, row)

    def read(self, row: int) -> Entry | None:
        """An entry by the number of its row, if it is intact."""
        query = "SELECT machine, lams, outcome, checksum FROM jobs WHERE rowid = ?"
        with self._telling(), _skipping_damage():
            found = self.connection.execute(query, (row,)).fetchone()
            return None if found is None else Entry.opened(found, self.seal)
        return None

    def _note(self, entry: Entry, row: int) -> None:
        self.rows.setdefault(entry.machine, []).append((tuple(json.loads(entry.lams)), row))

    def _count(self) -> int:
        return sum(map(len, self.rows.values()))

    def _entries(self, kind: str = "") -> str:
        count = self._count()
        return f"{count} {kind}{'entry' if count == 1 else 'entries'}"

    def _tables(self) -> dict[str, Any]:
        return dict(
            self.connection.execute(
                "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
            )
        )

    def _check_tables(self) -> None:
        """Refuse a database of something else."""
        tables = self._tables()
        names = ", ".join(map(repr, tables)) or "none"
        if tables == FORMER:
            rows = self.connection.execute("SELECT value FROM about WHERE name = 'onefit'")
            raise self._other_version(str(*next(iter(rows), ("?",))) + ", without checksums")
        if tables != TABLES:
            raise JournalError(
                f"journal={str(self.path)!r} is not a journal, or damaged: the tables of this "
                f"database ({names}) are not those of one; name another file"
            )

    def _other_version(self, version: str) -> JournalError:
        return JournalError(
            f"journal={str(self.path)!r} was written by another version of onefit ({version}), "
            f"this is {_version.__version__}. Name another file, or remove this one"
        )

    def _look_through(self) -> bool:
        """Find the intact entries; whether nothing else is in the file."""
        self.rows.clear()
        sound = self._is_sound()
        proven = self._agree(sound)
        last = self._last_row()
        for row in range(1, last + 1):
            entry = self.read(row)
            if entry is not None:
                self._note(entry, row)
        if not proven and self._count() == 0:
            raise JournalError(
                f"journal={str(self.path)!r} is damaged: neither an entry nor what it says of data "
                "and settings tells whether it is of this search. Restore a copy of it, or name "
                "another file; nothing in it was changed"
            )
        return sound and proven and self._count() == last

    def _agree(self, sound: bool) -> bool:
        """Refuse other data or settings; whether all that the journal says of them is intact."""
        known, intact = {}, sound
        for name, value, checksum in self._said():
            if _checksum(name, value) == checksum:
                known[name] = value
            else:
                intact = False
        if known.get("onefit", _version.__version__) != _version.__version__:
            raise self._other_version(known["onefit"])
        names = {**self.about, **known} if intact else known
        others = [name for name in names if self.about.get(name) != known.get(name)]
        if others:
            differences = "; ".join(
                f"{name} was {_brief(known.get(name))}, is {_brief(self.about.get(name))}"
                for name in others
            )
            raise JournalError(
                f"journal={str(self.path)!r} was made from other data or settings: {differences}. "
                "Name another file, or remove this one"
            )
        return known == self.about

    def _said(self) -> Iterator[tuple[Any, ...]]:
        """The rows on data and settings, as far as they can be read."""
        with _skipping_damage():
            yield from self.connection.execute("SELECT name, value, checksum FROM about")

    def _is_sound(self) -> bool:
        """Whether SQLite finds nothing wrong with the file."""
        with _skipping_damage():
            return bool(self.connection.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))
        return False

    def _last_row(self) -> int:
        """The number of the last entry; rows are numbered from 1, and none is ever removed."""
        most = self.file.stat().st_size // SMALLEST
        with _skipping_damage():
            (last,) = self.connection.execute("SELECT max(rowid) FROM jobs").fetchone()
            return min(last or 0, most)
        return most

    def _mend(self) -> None:
        """Put a file with the intact entries in the place of the damaged one, which is kept."""
        new = self.file.with_name(f"{self.file.name}.mended")
        damaged = self.file.with_name(f"{self.file.name}.damaged")
        new.unlink(missing_ok=True)
        try:
            self._copy_intact(new)
            self.connection.close()
            shutil.copyfile(self.file, damaged)
            os.replace(new, self.file)
        finally:
            new.unlink(missing_ok=True)
        self.connection = _connect(self.file)
        self._look_through()
        warnings.warn(
            f"journal={str(self.path)!r} was damaged: it keeps {self._entries('intact ')}, and "
            "whatever else it held is computed again; the damaged file is kept, too, as "
            f"{str(damaged)!r}",
            stacklevel=7,
        )

    def _copy_intact(self, path: Path) -> None:
        with closing(_connect(path)) as copy:
            _make(copy, self.about)
            with copy:
                for _, row in chain.from_iterable(self.rows.values()):
                    entry = self.read(row)
                    if entry is not None:
                        _insert(copy, "jobs", entry.sealed(self.seal))

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Whatever SQLite or the system says, as a JournalError that tells what is kept."""
        import sqlite3

        try:
            yield
        except (sqlite3.Error, OSError) as error:
            count = self._count()
            kept = f"It still holds {self._entries()}" if count else "Nothing in it was changed"
            raise JournalError(f"journal={str(self.path)!r} {_trouble(error)}. {kept}") from error


def _connect(path: Path) -> sqlite3.Connection:
    import sqlite3

    connection = sqlite3.connect(path, timeout=PATIENCE)
    connection.text_factory = lambda text: text.decode(errors="replace")  # may be damaged
    return connection


def _make(connection: sqlite3.Connection, about: dict[str, str]) -> None:
    """Make the tables and write data and settings down, unless another process just did."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT name FROM sqlite_master").fetchone() is None:
            for table in TABLES.values():
                connection.execute(table)
            for name, value in about.items():
                _insert(connection, "about", (name, value, _checksum(name, value)))


def _insert(
    connection: sqlite3.Connection, table: str, row: tuple[str | bytes, ...]
) -> sqlite3.Cursor:
    return connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)


def _trouble(error: Exception) -> str:
    """What is wrong with a journal, and what to do, from an error of SQLite's or the system's."""
    import sqlite3

    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return (
            f"is in use by another process (waited {PATIENCE:g} s for it); wait until that has "
            "ended, or name another file"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return (
            f"cannot be written ({error}); make the file and its folder writable, or name another "
            "file"
        )
    if code == sqlite3.SQLITE_NOTADB:
        return f"is not a journal, or damaged from its first bytes on ({error}); name another file"
    if _is_damage(error):
        return f"is damaged ({error}); restore a copy of it, or name another file"
    return (
        f"cannot be read and written ({error}); make room on its disk and run the search again, "
        "or name a file on another disk"
    )


def _code(error: Exception) -> int:
    """SQLite's primary code of an error; 0 if it is none of SQLite's."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _is_damage(error: Exception) -> bool:
    """Whether an error comes from what stands in the file, not from its surroundings."""
    import sqlite3

    codes = (
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FORMAT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_TOOBIG,
    )
    return _code(error) in codes


@contextmanager
def _skipping_damage() -> Iterator[None]:
    """Leave out what SQLite cannot read because the file is damaged."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        if not _is_damage(error):
            raise


def _brief(text: str | None) -> str:
    if text is None:
        return "absent"
    return text if len(text) <= 120 else f"{text[:80]}... ({digest(text.encode())})"


def _checksum(*parts: Any) -> str:
    """SHA-256 of values one after the other, each with its kind and length."""
    found = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        found.update(f"{type(part).__name__} {len(data)} ".encode())
        found.update(data)
    return found.hexdigest()
