"""A pass that survives being killed: what is finished is kept in a folder.

Each pass has a file of its own there, under a digest of its accumulator, with the state after so
many pieces. It is written beside the old one and takes its place in one step, so that a file is
whole or not there. It is a zip file of arrays (NumPy's npz), every one with a checksum; a damaged
file is set aside with a warning and its pass begins anew. ``about.json`` says in words which rows
the passes went over, and a folder of other rows is refused, with the difference named.

Nothing is unpickled: a state is arrays, numbers, texts, and tuples, lists, dicts and dataclasses of
these, and a dataclass is looked up by name in this package and in the module of the accumulator.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from onefit import _version
from onefit._describe import describe, digest
from onefit._types import Array

__all__ = ["CheckpointError", "Keeper", "open_checkpoint"]

#: seconds between two writes
PAUSE = 30.0
ABOUT = "about.json"


class CheckpointError(ValueError):
    """A checkpoint that cannot be used: of other rows, or out of reach."""


@dataclass
class Keeper:
    """Where the state of a pass is kept; nowhere without a path.

    Attributes
    ----------
    watch : callable or None
        Told how many pieces are done.
    """

    path: Path | None = None
    classes: tuple[str, ...] = ()
    written: float = -np.inf
    watch: Callable[[int], None] | None = None

    def begin(self, accumulator: Any) -> tuple[Any, int]:
        """The state to begin with, and the pieces that are in it already."""
        self.written = time.monotonic()
        found = None if self.path is None else self._read(self.path)
        return (accumulator.init(), 0) if found is None else found

    def keep(self, state: Any, done: int, last: bool = False) -> None:
        """Write the state after so many pieces, unless that was done a moment ago."""
        if self.watch is not None:
            self.watch(done)
        if self.path is None or (not last and time.monotonic() - self.written < PAUSE):
            return
        new = self.path.with_suffix(".new")
        arrays: list[Array] = []
        plain = json.dumps({"done": done, "state": _flat(state, arrays)})
        parts = {f"array_{i}": one for i, one in enumerate(arrays)}
        try:
            with open(new, "wb") as file:
                np.savez(file, allow_pickle=False, plain=np.array(plain), **parts)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
        except OSError as error:
            raise CheckpointError(
                f"checkpoint={str(self.path.parent)!r} cannot be written ({error}); make room, or "
                "name another folder"
            ) from error
        self.written = time.monotonic()

    def _read(self, path: Path) -> tuple[Any, int] | None:
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as file:
                plain = json.loads(str(file["plain"]))
                return _built(plain["state"], file, self.classes), int(plain["done"])
        except (zipfile.BadZipFile, OSError, ValueError, KeyError, EOFError) as error:
            aside = path.with_suffix(".damaged")
            os.replace(path, aside)
            warnings.warn(
                f"checkpoint {str(path)!r} is damaged ({error}) and set aside as {aside.name!r}; "
                "its pass begins anew",
                stacklevel=5,
            )
            return None


def open_checkpoint(folder: Any, accumulator: Any, source: Any) -> Keeper:
    """What keeps the state of a pass in a folder, or nowhere if that is None."""
    if folder is None:
        return Keeper()
    place = Path(folder)
    about = {"onefit": _version.__version__, **source.about}
    try:
        place.mkdir(exist_ok=True)
        _agree(place / ABOUT, about, place)
    except OSError as error:
        raise CheckpointError(
            f"checkpoint={str(folder)!r} cannot be used as a folder ({error}); name another one"
        ) from error
    words = [describe(accumulator), describe(source.reading), [one.start for one in source.pieces]]
    name = digest(json.dumps(words).encode())
    return Keeper(place / f"{name}.npz", ("onefit", type(accumulator).__module__))


def _agree(file: Path, about: dict[str, str], folder: Path) -> None:
    """Write what the passes are about, or refuse a folder that is about something else."""
    if not file.exists():
        new = file.with_suffix(".new")
        new.write_text(json.dumps(about, indent=1), encoding="utf-8")
        os.replace(new, file)
        return
    try:
        known = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"{str(file)!r} is damaged ({error}); name another folder") from error
    others = [
        f"{name} was {known.get(name)}, is {about.get(name)}"
        for name in {**known, **about}
        if known.get(name) != about.get(name)
    ]
    if others:
        raise CheckpointError(
            f"checkpoint={str(folder)!r} was made from other rows or settings: "
            f"{'; '.join(others)}. Name another folder, or remove this one"
        )


def _flat(value: Any, arrays: list[Array]) -> Any:
    """A value as JSON, with its arrays moved to a list."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        arrays.append(np.asarray(value))
        return {"array": len(arrays) - 1, "scalar": isinstance(value, np.generic)}
    if isinstance(value, (list, tuple)):
        return {type(value).__name__: [_flat(one, arrays) for one in value]}
    if isinstance(value, dict):
        return {"dict": [[_flat(key, arrays), _flat(one, arrays)] for key, one in value.items()]}
    if is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: _flat(getattr(value, one.name), arrays) for one in fields(value)}
        kind = type(value)
        return {"class": [kind.__module__, kind.__qualname__], "fields": parts}
    raise TypeError(f"a state with a {type(value).__name__} in it cannot be kept in a checkpoint")


def _built(value: Any, arrays: Any, classes: tuple[str, ...]) -> Any:
    """The value that was made flat."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        found = arrays[f"array_{value['array']}"]
        return found[()] if value["scalar"] else found
    if "class" in value:
        module, name = value["class"]
        kind = _class(module, name, classes)
        return kind(**{name: _built(one, arrays, classes) for name, one in value["fields"].items()})
    if "dict" in value:
        pairs = value["dict"]
        return {_built(a, arrays, classes): _built(b, arrays, classes) for a, b in pairs}
    ((name, items),) = value.items()
    found = [_built(one, arrays, classes) for one in items]
    return tuple(found) if name == "tuple" else found


def _class(module: str, name: str, classes: tuple[str, ...]) -> Any:
    if not any(module == one or module.startswith(f"{one}.") for one in classes):
        raise ValueError(f"a {module}.{name} does not belong in it")
    kind = sys.modules[module]
    for part in name.split("."):
        kind = getattr(kind, part)
    if not is_dataclass(kind):
        raise ValueError(f"{module}.{name} is no dataclass")
    return kind
