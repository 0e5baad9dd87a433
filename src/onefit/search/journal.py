"""A search that survives being killed: finished kernels are kept in an SQLite file.

Each finished job is written in a transaction of its own, so that after a kill the file holds
exactly the jobs that were finished. Data, splits and settings are written at the start, each under
its name, and a journal that was made from others is refused, with the difference named.

**Grids.** The values that are tried are no setting. An entry is what one machine came back with,
under its kernel, its parameters and its lams; a search takes from the journal whatever it wants of
that and runs the rest. So a grid may grow or shrink, and what is finished stays finished.

**Damage.** Every entry carries a SHA-256 checksum over itself and over data and settings, hence is
taken as it was written, for the search it was written for, or not at all. Where anything is amiss,
the intact entries are copied to a new file, a warning says how many they are, and the others are
computed again; the damaged file stays beside it. Only a file of which nothing can be proved is
refused. Whatever goes wrong with a journal is a :class:`JournalError`.

Nothing is unpickled: outcomes are arrays (NumPy's npz) and JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from onefit import _version
from onefit._describe import describe, digest
from onefit.search.grid import Job, Machine
from onefit.search.pack import join, pack, unpack
from onefit.search.workers import Crew, Outcome, Task, run_jobs

if TYPE_CHECKING:
    import sqlite3

Run = Callable[[list[Job]], Iterator[tuple[int, list[Outcome]]]]

__all__ = ["JournalError", "Runner", "journalled"]

#: how long to wait for another process that is writing, in seconds
PATIENCE = 30.0
#: the method as :func:`settings` says it where it is left to the cost model
AUTO = "'auto'"
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


class Runner:
    """Runs jobs, and keeps nothing.

    Parameters
    ----------
    task : Task
    crew : Crew
    """

    def __init__(self, task: Task, crew: Crew) -> None:
        self.task, self.crew = task, crew

    def __call__(self, jobs: list[Job]) -> Iterator[tuple[int, list[Outcome]]]:
        """Yield (place, outcomes) of every job."""
        return run_jobs(self.task, jobs, self.crew)

    def recall(self, about: str) -> Any:
        """What was noted under these words, or None."""
        return None

    def note(self, about: str, value: Any) -> None:
        """Keep something that is neither a kernel's nor a machine's, as JSON."""


class _Journalling(Runner):
    """Runs the jobs that a journal does not hold yet, and keeps them there."""

    def __init__(self, journal: _Journal, task: Task, crew: Crew) -> None:
        super().__init__(task, crew)
        self.journal = journal

    def __call__(self, jobs: list[Job]) -> Iterator[tuple[int, list[Outcome]]]:
        return _continue(self.journal, self.task, jobs, self.crew)

    def recall(self, about: str) -> Any:
        return self.journal.noted(digest(about.encode()))

    def note(self, about: str, value: Any) -> None:
        self.journal.jot(digest(about.encode()), value)


@contextmanager
def journalled(
    path: Any, about: Callable[[], dict[str, str]], task: Task, crew: Crew
) -> Iterator[Runner]:
    """What runs jobs: all of them, or those that the journal at ``path`` does not hold yet.

    Parameters
    ----------
    path : str, Path or None
        None for no journal.
    about : callable
        Returns data and settings in words, by name; called for a journal only.
    task : Task
    crew : Crew
    """
    if path is None:
        yield Runner(task, crew)
        return
    with closing(_Journal(_place(path), about())) as journal:
        journal.begin()
        yield _Journalling(journal, task, crew)


def _place(path: Any) -> Path:
    """The file that an argument names, refused where it can be none."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str) or not name or "\0" in name:
        raise JournalError(f"journal={path!r} names no file; give a path, or None for no journal")
    if os.path.isdir(name):
        raise JournalError(f"journal={name!r} is a folder; name a file in it")
    if not os.path.isdir(os.path.dirname(os.path.abspath(name))):
        raise JournalError(
            f"journal={name!r}: there is no folder {os.path.dirname(name)!r}; make it, or name "
            "another file"
        )
    if os.path.exists(name) and not os.path.isfile(name):
        raise JournalError(f"journal={name!r} is no file that keeps anything; name another one")
    return Path(name)


class _Recalled(NamedTuple):
    """What a journal knows of a machine: outcomes of some of its lams. The others are missing."""

    name: str
    machine: Machine
    kept: list[Outcome]
    missing: Machine

    def whole(self, found: Iterator[Outcome]) -> Outcome:
        """The outcome of all lams; that of the missing ones, if any are, is the next one found."""
        return join([*self.kept, next(found)] if self.missing.lams else self.kept, self.machine)


def _continue(
    journal: _Journal, task: Task, jobs: list[Job], crew: Crew
) -> Iterator[tuple[int, list[Outcome]]]:
    """Outcomes from the journal first, then those of the other jobs, written as they come."""
    left: list[tuple[int, list[_Recalled]]] = []
    for place, job in enumerate(jobs):
        recalled = [journal.recall(job, machine) for machine in job.machines]
        if any(one.missing.lams for one in recalled):
            left.append((place, recalled))
        else:
            yield place, [one.whole(iter(())) for one in recalled]
    if not left:
        return
    journal.check_writable()
    wanted = [[one for one in recalled if one.missing.lams] for _, recalled in left]
    todo = [
        replace(jobs[place], machines=tuple(one.missing for one in some))
        for (place, _), some in zip(left, wanted, strict=True)
    ]
    for done, outcomes in run_jobs(task, todo, crew):
        journal.write(wanted[done], outcomes)
        place, recalled = left[done]
        found = iter(outcomes)
        yield place, [one.whole(found) for one in recalled]


class _Entry(NamedTuple):
    """A machine's name, some of its lams as JSON, and its outcome at these as bytes."""

    machine: str
    lams: str
    outcome: bytes

    def sealed(self, seal: str) -> tuple[str | bytes, ...]:
        """The row to write, with its checksum; the seal is that of data and settings."""
        return *self, _checksum(seal, *self)

    @classmethod
    def opened(cls, row: tuple[Any, ...], seal: str) -> _Entry | None:
        """What a row holds; None unless it is as it was written, under this seal."""
        *parts, checksum = row
        return cls(*parts) if _checksum(seal, *parts) == checksum else None


class _Journal:
    """An open journal.

    Parameters
    ----------
    path : Path
    about : dict
        Data and settings in words, by name.

    Attributes
    ----------
    rows : dict
        By the name of a machine, its intact entries: their lams, and the numbers of their rows.
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

    def recall(self, job: Job, machine: Machine) -> _Recalled:
        """What is known of a machine, at as many of its lams as possible.

        An outcome names one method. Where the cost model has taken several, all lams are missing.
        """
        name = self._name(job, machine)
        left = dict(zip(machine.indices, machine.lams, strict=True))
        kept: list[Outcome] = []
        wanted = set(machine.lams)
        for lams, row in sorted(self.rows.get(name, []), key=lambda one: -len(wanted & {*one[0]})):
            here = [index for index, lam in left.items() if lam in lams]
            entry = self._read(row) if here else None
            if entry is not None:
                places = [lams.index(left.pop(index)) for index in here]
                kept.append(replace(unpack(entry.outcome).take(places), indices=tuple(here)))
        methods = {one.method for one in kept} | ({_method(machine)} if left else set())
        if len(methods) > 1:
            return _Recalled(name, machine, [], machine)
        missing = replace(machine, lams=tuple(left.values()), indices=tuple(left))
        return _Recalled(name, machine, kept, missing)

    def check_writable(self) -> None:
        """Refuse, before any work, what cannot be written."""
        with self._telling(), self.connection:
            self.connection.execute("UPDATE about SET value = value")

    def write(self, found: list[_Recalled], outcomes: list[Outcome]) -> None:
        """Keep the outcomes of what was missing: all of them, or none if anything goes wrong."""
        new = []
        with self._telling(), self.connection:
            for one, outcome in zip(found, outcomes, strict=True):
                entry = _Entry(one.name, json.dumps(one.missing.lams), pack(outcome))
                row = _insert(self.connection, "jobs", entry.sealed(self.seal)).lastrowid
                new.append((entry, row or 0))
        for entry, row in new:
            self._note(entry, row)

    def noted(self, name: str) -> Any:
        """What was jotted down last under a name, or None."""
        for _, row in reversed(self.rows.get(name, [])):
            entry = self._read(row)
            if entry is not None:
                return json.loads(entry.outcome)
        return None

    def jot(self, name: str, value: Any) -> None:
        """Keep a value that JSON knows."""
        entry = _Entry(name, "[]", json.dumps(value).encode().ljust(SMALLEST))
        with self._telling(), self.connection:
            row = _insert(self.connection, "jobs", entry.sealed(self.seal)).lastrowid or 0
        self._note(entry, row)

    def _name(self, job: Job, machine: Machine) -> str:
        """A machine's name: kernel, parameters but lam, and method.

        A method that the cost model chose is left out: it may choose another when asked again.
        """
        params = machine.estimator.get_params(deep=False)
        del params["lam"]
        method = "" if self.about["method"] == AUTO else _method(machine)
        kind = type(machine.estimator).__name__
        return digest(json.dumps([describe(job.kernel), kind, describe(params), method]).encode())

    def _note(self, entry: _Entry, row: int) -> None:
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
            entry = self._read(row)
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

    def _read(self, row: int) -> _Entry | None:
        """An entry, if it is intact."""
        query = "SELECT machine, lams, outcome, checksum FROM jobs WHERE rowid = ?"
        with self._telling(), _skipping_damage():
            found = self.connection.execute(query, (row,)).fetchone()
            return None if found is None else _Entry.opened(found, self.seal)
        return None

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
                    entry = self._read(row)
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


def _method(machine: Machine) -> str:
    return "" if machine.method is None else machine.method.name


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
