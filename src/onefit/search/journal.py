"""A search that survives being killed: finished kernels are kept in an SQLite file.

Each finished job is written in a transaction of its own, so that after a kill the file holds
exactly the jobs that were finished. A search that finds its journal takes their outcomes from it
and runs the rest. Data, splits and settings are written at the start, each under its name, and a
journal that was made from others is refused, with the difference named.

Nothing is unpickled: outcomes are arrays (NumPy's npz) and JSON.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

import onefit
from onefit.search.grid import Job
from onefit.search.workers import Crew, Outcome, Task, run_jobs

if TYPE_CHECKING:
    import sqlite3

Array = NDArray[Any]
Run = Callable[[list[Job]], Iterator[tuple[int, list[Outcome]]]]

__all__ = ["JournalError", "describe", "journalled", "settings"]

#: how long to wait for another process that is writing, in seconds
PATIENCE = 30.0
#: the method as :func:`settings` says it where it is left to the cost model
AUTO = "'auto'"
TABLES = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS jobs (key TEXT PRIMARY KEY, outcomes BLOB NOT NULL)",
)


class JournalError(ValueError):
    """A journal that cannot be used for this search."""


@contextmanager
def journalled(
    path: Any, about: Callable[[], dict[str, str]], task: Task, crew: Crew
) -> Iterator[Run]:
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
        yield lambda jobs: run_jobs(task, jobs, crew)
        return
    with closing(_open(Path(path))) as connection:
        words = about()
        _agree(connection, Path(path), words)
        by_plan = words["method"] == AUTO
        yield lambda jobs: _continue(connection, task, jobs, crew, by_plan)


def _open(path: Path) -> sqlite3.Connection:
    import sqlite3

    if not path.absolute().parent.is_dir():
        raise JournalError(f"journal={str(path)!r}: there is no folder {str(path.parent)!r}")
    connection = sqlite3.connect(path, timeout=PATIENCE)
    try:
        with connection:
            for table in TABLES:
                connection.execute(table)
    except sqlite3.DatabaseError as error:
        connection.close()
        raise JournalError(
            f"journal={str(path)!r} is not a journal ({error}); name another file"
        ) from error
    return connection


def _agree(connection: sqlite3.Connection, path: Path, about: dict[str, str]) -> None:
    """Write data and settings into a new journal; refuse an old one that has others."""
    with connection:
        known = dict(connection.execute("SELECT name, value FROM about"))
        if not known:
            connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
            return
    names = [name for name in {**about, **known} if about.get(name) != known.get(name)]
    if names:
        differences = "; ".join(
            f"{name} was {_brief(known.get(name))}, is {_brief(about.get(name))}" for name in names
        )
        raise JournalError(
            f"journal={str(path)!r} was made from other data or settings: {differences}. "
            "Name another file, or remove this one"
        )


def _brief(text: str | None) -> str:
    if text is None:
        return "absent"
    return text if len(text) <= 120 else f"{text[:80]}... ({_digest(text.encode())})"


def _continue(
    connection: sqlite3.Connection, task: Task, jobs: list[Job], crew: Crew, by_plan: bool
) -> Iterator[tuple[int, list[Outcome]]]:
    """Outcomes from the journal first, then those of the other jobs, written as they come."""
    keys = [_key(job, by_plan) for job in jobs]
    kept = dict(connection.execute("SELECT key, outcomes FROM jobs"))
    left = []
    for place, key in enumerate(keys):
        if key in kept:
            yield place, _unpack(kept[key])
        else:
            left.append(place)
    del kept
    if not left:
        return
    for done, outcomes in run_jobs(task, [jobs[place] for place in left], crew):
        with connection:
            row = keys[left[done]], _pack(outcomes)
            connection.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?)", row)
        yield left[done], outcomes


def _key(job: Job, by_plan: bool) -> str:
    """A job's name: kernel, parameters, lams and candidates of its machines, and their methods.

    Methods that the cost model chose are left out: it may choose others when it is asked again.
    """
    machines = [
        [
            describe(one.estimator),
            list(one.lams),
            list(one.indices),
            "" if by_plan or one.method is None else one.method.name,
        ]
        for one in job.machines
    ]
    return _digest(json.dumps([describe(job.kernel), machines]).encode())


def describe(value: Any) -> str:
    """A value in words that are the same in another process: no addresses, arrays by digest."""
    if isinstance(value, np.ndarray) or issparse(value):
        return _describe_array(value)
    if hasattr(value, "to_numpy") and hasattr(value, "shape"):  # a data frame or one of its columns
        return describe(value.to_numpy())
    if isinstance(value, BaseEstimator):
        return f"{type(value).__name__}({describe(value.get_params(deep=False))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}={describe(one)}' for key, one in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(describe(one) for one in value)}]"
    if isinstance(value, np.generic):
        return repr(value.item())
    if hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def _describe_array(value: Any) -> str:
    if hasattr(value, "tocsr"):
        rows = value.tocsr()
        parts = [rows.data, rows.indices, rows.indptr]
    elif value.dtype.hasobject or value.dtype.kind == "T":
        parts = [np.frombuffer(repr(value.tolist()).encode(), dtype=np.uint8)]
    else:
        parts = [value]
    digest = _digest(*(np.ascontiguousarray(part) for part in parts))
    return f"{value.dtype} array of shape {value.shape} ({digest})"


def _digest(*parts: Any) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()[:16]


def _pack(outcomes: list[Outcome]) -> bytes:
    """Outcomes as bytes: arrays under the names of their fields, everything else as JSON."""
    arrays: dict[str, Array] = {}
    others = []
    for i, outcome in enumerate(outcomes):
        plain: dict[str, Any] = {}
        for one in fields(Outcome):
            value = getattr(outcome, one.name)
            if isinstance(value, np.ndarray):
                arrays[f"{i}.{one.name}"] = value
            elif isinstance(value, dict):
                plain[one.name] = list(value)
                arrays |= {f"{i}.{one.name}.{j}": v for j, v in enumerate(value.values())}
            else:
                plain[one.name] = value
        others.append(plain)
    arrays["others"] = np.array(json.dumps(others))
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def _unpack(data: bytes) -> list[Outcome]:
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        found = []
        for i, plain in enumerate(json.loads(str(arrays["others"]))):
            for name in ("scores", "pooled"):
                names = plain[name]
                plain[name] = {key: arrays[f"{i}.{name}.{j}"] for j, key in enumerate(names)}
            plain["indices"] = tuple(plain["indices"])
            own = {one.name for one in fields(Outcome)} - set(plain)
            found.append(Outcome(**plain, **{name: arrays[f"{i}.{name}"] for name in own}))
        return found


def settings(search: Any, X: Any, y: Any, weight: Any, setup: Any, metric: Any) -> dict[str, str]:
    """Everything that the outcomes of a search depend on, in words, by name."""
    folds = setup.folds
    about = {
        "onefit": onefit.__version__,
        "X": describe(X if hasattr(X, "shape") else np.asarray(X)),
        "y": describe(y if hasattr(y, "shape") else np.asarray(y)),
        "sample_weight": describe(weight if weight is None else np.asarray(weight)),
        "splits": f"{len(folds)} splits ({_digest(folds.rows, folds.offsets, *folds.removed)})",
        "estimator": type(search.estimator).__name__,
        "scoring": describe(search.scoring),
        "criterion": describe(search.criterion),
        "method": describe(search.method),
        "order": describe(search.order),
        "aggregate": search.aggregate,
        "lam_per_target": f"{search.lam_per_target}" + (f" by {metric}" if metric else ""),
        "candidates": f"{len(setup.candidates)} ({_digest(describe(setup.candidates).encode())})",
    }
    for name, value in search.estimator.get_params(deep=False).items():
        about[f"estimator.{name}"] = describe(value)
    for name in dict.fromkeys(name for one in setup.candidates for name in one):
        values = dict.fromkeys(describe(one[name]) for one in setup.candidates if name in one)
        about[f"values of {name}"] = ", ".join(values)
    return about
