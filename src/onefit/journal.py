"""Journals: finished work of a search, or of a pass over streamed rows, kept in a folder.

``journal.json`` is the fingerprint of the work: the version, the data and the settings, each in
words under its name. A journal of another fingerprint is refused, with the difference named.

Every other file is an entry: a SHA-256 checksum, followed by arrays and JSON (NumPy's npz). Its
name is a digest of the fingerprint and of the key that the work is looked up by, both of which are
part of the checksum. So an entry is taken as it was written, for the work it was written for, or
not at all: a damaged one is renamed with a warning, and computed again.

A file is written under a temporary name, flushed to disk and renamed. It is whole or absent after
a kill or a power cut; several processes may use one journal without locks, and the last of those
that write the same entry, which is the same work, wins. Nothing is unpickled: an entry is arrays,
numbers, texts, and tuples, lists, dicts and dataclasses of these.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

import numpy as np

from onefit import _version
from onefit._describe import digest
from onefit._types import Array

__all__ = ["Journal", "JournalError"]

FINGERPRINT = "journal.json"
SUFFIX = ".entry"
CHECKSUM_BYTES = hashlib.sha256().digest_size


class JournalError(ValueError):
    """A journal that cannot be used: of other work, damaged, or in a place that does not work."""


class Journal:
    """An open journal; the folder is created if it does not exist.

    Parameters
    ----------
    path : str or Path
        A folder: a new one, an empty one or a journal.
    about : dict
        Data and settings in words, by name.
    """

    def __init__(self, path: Any, about: dict[str, str]) -> None:
        self.path, self.folder = path, _folder(path)
        self.about = {"onefit": _version.__version__, **about}
        self._seal = json.dumps(self.about, sort_keys=True)
        with self._clear_errors():
            known = self._known()
            if known is None:
                with self._new_file(FINGERPRINT) as file:
                    file.write(json.dumps(self.about, indent=1).encode())
            else:
                self._agree(known)
            self._files: dict[str, set[str]] = {}
            for name in sorted(os.listdir(self.folder)):
                if name.endswith(SUFFIX):
                    self._files.setdefault(name.split("-")[0], set()).add(name)

    def read(self, key: str, modules: tuple[str, ...] = ("onefit",)) -> list[Any]:
        """The values under a key, without the damaged ones.

        Parameters
        ----------
        key : str
        modules : tuple of str
            Packages and modules in which dataclasses are looked up.
        """
        found = []
        for name in sorted(self._files.get(self._name(key), ())):
            with self._clear_errors():
                value, damage = self._read(self.folder / name, key, modules)
            if damage:
                self._set_aside(name, damage)
            else:
                found.append(value)
        return found

    def write(self, key: str, value: Any, part: str = "") -> None:
        """Keep a value; it replaces the one under the same key and part, if there is one."""
        arrays: list[Array] = []
        plain = np.frombuffer(json.dumps(_encode(value, arrays)).encode(), dtype=np.uint8)
        stem = self._name(key)
        name = f"{stem}-{digest(part.encode())}{SUFFIX}"
        with self._clear_errors(), self._new_file(name) as file:
            file.write(bytes(CHECKSUM_BYTES))
            named = {f"array_{i}": one for i, one in enumerate(arrays)}
            np.savez(file, allow_pickle=False, plain=plain, **named)
            checksum = self._checksum(file, key)
            file.seek(0)
            file.write(checksum)
        self._files.setdefault(stem, set()).add(name)

    def check_writable(self) -> None:
        """Refuse a folder that cannot be written, before any work is done."""
        with self._clear_errors():
            new = self.folder / f".{uuid4().hex}"
            new.touch()
            new.unlink()

    def _known(self) -> dict[str, str] | None:
        """The fingerprint in the folder; None if the journal is new."""
        file = self.folder / FINGERPRINT
        self.folder.mkdir(exist_ok=True)
        names = os.listdir(self.folder)  # once: another process may be writing the first files
        if FINGERPRINT not in names:
            others = [name for name in names if not name.startswith(".")]
            if others:
                raise JournalError(
                    f"journal={str(self.path)!r} is not a journal: it is a folder without "
                    f"{FINGERPRINT}, with {others[0]!r} in it. Name a new folder"
                )
            return None
        try:
            return {str(name): str(value) for name, value in json.loads(file.read_bytes()).items()}
        except (ValueError, AttributeError) as error:
            raise JournalError(
                f"journal={str(self.path)!r} is damaged: {FINGERPRINT} cannot be read ({error}). "
                "Restore that file, or name another folder; nothing in it was changed"
            ) from error

    def _agree(self, known: dict[str, str]) -> None:
        """Refuse other data, settings or versions."""
        version = known.get("onefit")
        if version != _version.__version__:
            raise JournalError(
                f"journal={str(self.path)!r} was written by another version of onefit ({version}), "
                f"this is {_version.__version__}. Name another folder, or remove this one"
            )
        differences = "; ".join(
            f"{name} was {_brief(known.get(name))}, is {_brief(self.about.get(name))}"
            for name in {**self.about, **known}
            if self.about.get(name) != known.get(name)
        )
        if differences:
            raise JournalError(
                f"journal={str(self.path)!r} was made from other data or settings: {differences}. "
                "Name another folder, or remove this one"
            )

    def _name(self, key: str) -> str:
        return digest(self._seal.encode(), key.encode())

    def _checksum(self, file: IO[bytes], key: str) -> bytes:
        """The checksum of an open entry, with its key and the fingerprint."""
        file.seek(CHECKSUM_BYTES)
        begun = hashlib.sha256(json.dumps([self._seal, key]).encode())
        return hashlib.file_digest(file, lambda: begun).digest()  # type: ignore[arg-type]

    def _read(self, path: Path, key: str, modules: tuple[str, ...]) -> tuple[Any, str]:
        """The value of an entry, and a description of its damage, empty if it is intact."""
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return None, "it is gone"
        with file:
            if file.read(CHECKSUM_BYTES) != self._checksum(file, key):
                return None, "its checksum does not match"
            file.seek(CHECKSUM_BYTES)
            with np.load(file, allow_pickle=False) as arrays:
                try:
                    return _decode(json.loads(arrays["plain"].tobytes()), arrays, modules), ""
                except LookupError as error:
                    return None, str(error)

    def _set_aside(self, name: str, damage: str) -> None:
        for names in self._files.values():
            names.discard(name)
        with suppress(OSError):  # the folder may be read-only
            os.replace(self.folder / name, self.folder / f"{name}.damaged")
        warnings.warn(
            f"journal={str(self.path)!r}: entry {name} is damaged ({damage}) and set aside; it is "
            "computed again",
            stacklevel=4,
        )

    @contextmanager
    def _new_file(self, name: str) -> Iterator[IO[bytes]]:
        """A file that appears in the folder, or replaces the old one, when it is complete."""
        new = self.folder / f".{uuid4().hex}"
        try:
            with new.open("x+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.folder / name)
        finally:
            new.unlink(missing_ok=True)

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Errors of the file system as a JournalError that says what to do."""
        try:
            yield
        except OSError as error:
            kept = sum(map(len, getattr(self, "_files", {}).values()))
            entries = f"{kept} {'entry' if kept == 1 else 'entries'}"
            raise JournalError(
                f"journal={str(self.path)!r} {_trouble(error)}. "
                + (f"It still holds {entries}" if kept else "Nothing in it was changed")
            ) from error


def _folder(path: Any) -> Path:
    """The folder that an argument names, refused where there can be none."""
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
    if not isinstance(name, str) or not name or "\0" in name:
        raise JournalError(f"journal={path!r} is not a path; name a folder, or None for no journal")
    if os.path.exists(name) and not os.path.isdir(name):
        raise JournalError(f"journal={name!r} is a file, but a journal is a folder; name a new one")
    folder = Path(name)
    if not os.path.isdir(folder.absolute().parent):
        raise JournalError(
            f"journal={name!r}: there is no folder {str(folder.parent)!r}; create it, or name "
            "another one"
        )
    return folder


def _trouble(error: OSError) -> str:
    """The problem with a journal, and advice, from an error of the file system."""
    why = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"cannot be written ({why}); make the folder writable, or name another one"
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return f"cannot be written ({why}); free disk space and run the search again"
    return f"cannot be used ({why}); name another folder"


def _brief(text: str | None) -> str:
    if text is None:
        return "absent"
    return text if len(text) <= 120 else f"{text[:80]}... ({digest(text.encode())})"


def _encode(value: Any, arrays: list[Array]) -> Any:
    """A value as JSON, its arrays moved to a list."""
    if isinstance(value, (np.ndarray, np.generic)):
        arrays.append(np.asarray(value))
        if arrays[-1].dtype.hasobject:
            raise TypeError("an array of Python objects cannot be kept in a journal")
        return {"array": len(arrays) - 1, "scalar": isinstance(value, np.generic)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if type(value) in (list, tuple):
        return {type(value).__name__: [_encode(one, arrays) for one in value]}
    if isinstance(value, dict):
        pairs = [[_encode(key, arrays), _encode(one, arrays)] for key, one in value.items()]
        return {"dict": pairs}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: _encode(getattr(value, one.name), arrays) for one in fields(value)}
        return {"class": [type(value).__module__, type(value).__qualname__], "fields": parts}
    raise TypeError(f"a {type(value).__name__} cannot be kept in a journal")


def _decode(value: Any, arrays: Any, modules: tuple[str, ...]) -> Any:
    """The value that was encoded."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        found = arrays[f"array_{value['array']}"]
        return found[()] if value["scalar"] else found
    if "class" in value:
        (module, name), parts = value["class"], value["fields"]
        kind = _dataclass(module, name, modules)
        return kind(**{name: _decode(one, arrays, modules) for name, one in parts.items()})
    if "dict" in value:
        pairs = value["dict"]
        return {_decode(a, arrays, modules): _decode(b, arrays, modules) for a, b in pairs}
    ((name, items),) = value.items()
    found = [_decode(one, arrays, modules) for one in items]
    return tuple(found) if name == "tuple" else found


def _dataclass(module: str, name: str, modules: tuple[str, ...]) -> Any:
    """A dataclass by its name, of a module that is imported already and may be looked into."""
    allowed = any(module == one or module.startswith(f"{one}.") for one in modules)
    kind: Any = sys.modules.get(module) if allowed else None
    for part in name.split("."):
        kind = getattr(kind, part, None)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        raise LookupError(f"{module}.{name} is not a dataclass that may be in it")
    return kind
