"""A search that survives being killed: finished kernels are kept in a file.

**Grids.** The values that are tried are no setting. An entry is what one machine came back with,
under its kernel, its parameters and its lams; a search takes from the journal whatever it wants of
that and runs the rest. So a grid may grow or shrink, and what is finished stays finished.

How entries are kept, checked and mended is in :mod:`onefit.search.sealed`. Nothing is unpickled:
outcomes are arrays (NumPy's npz) and JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from onefit._describe import describe, digest
from onefit.heldout import METHODS
from onefit.search.grid import Job, Machine
from onefit.search.pack import join, pack, unpack
from onefit.search.sealed import SMALLEST, Entry, JournalError, SealedFile
from onefit.search.workers import Crew, Outcome, Task, run_jobs

Run = Callable[[list[Job]], Iterator[tuple[int, list[Outcome]]]]

__all__ = ["JournalError", "Runner", "journalled"]

#: the method as :func:`settings` says it where it is left to the cost model
AUTO = "'auto'"
#: methods with the same values that need the same of a job: one may go on where another began
DIRECT = {"block", "eigen"}


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


class _Journal(SealedFile):
    """An open journal of a search: what machines came back with, and notes."""

    def recall(self, job: Job, machine: Machine) -> _Recalled:
        """What is known of a machine, at as many of its lams as possible.

        An outcome names one method. The one that the cost model chose for some lams goes on with
        the others, though it might choose another for all of them: more lams must not undo what is
        finished. Where that cannot be, as with a direct method and an iteration, all are missing.
        """
        name = self._name(job, machine)
        left = dict(zip(machine.indices, machine.lams, strict=True))
        kept: list[Outcome] = []
        wanted = set(machine.lams)
        for lams, row in sorted(self.rows.get(name, []), key=lambda one: -len(wanted & {*one[0]})):
            here = [index for index, lam in left.items() if lam in lams]
            entry = self.read(row) if here else None
            if entry is not None:
                places = [lams.index(left.pop(index)) for index in here]
                kept.append(replace(unpack(entry.outcome).take(places), indices=tuple(here)))
        begun = {one.method for one in kept}
        chosen = begun | ({_method(machine)} if left else set())
        if len(chosen) > 1:
            if len(begun) > 1 or not chosen <= DIRECT:
                return _Recalled(name, machine, [], machine)
            machine = replace(machine, method=METHODS[begun.pop()]())
        missing = replace(machine, lams=tuple(left.values()), indices=tuple(left))
        return _Recalled(name, machine, kept, missing)

    def write(self, found: list[_Recalled], outcomes: list[Outcome]) -> None:
        """Keep the outcomes of what was missing: all of them, or none if anything goes wrong."""
        self.append(
            [
                Entry(one.name, json.dumps(one.missing.lams), pack(outcome))
                for one, outcome in zip(found, outcomes, strict=True)
            ]
        )

    def noted(self, name: str) -> Any:
        """What was jotted down last under a name, or None."""
        for _, row in reversed(self.rows.get(name, [])):
            entry = self.read(row)
            if entry is not None:
                return json.loads(entry.outcome)
        return None

    def jot(self, name: str, value: Any) -> None:
        """Keep a value that JSON knows."""
        self.append([Entry(name, "[]", json.dumps(value).encode().ljust(SMALLEST))])

    def _name(self, job: Job, machine: Machine) -> str:
        """A machine's name: kernel, parameters but lam, and method.

        A method that the cost model chose is left out: it may choose another when asked again.
        """
        params = machine.estimator.get_params(deep=False)
        del params["lam"]
        method = "" if self.about["method"] == AUTO else _method(machine)
        kind = type(machine.estimator).__name__
        return digest(json.dumps([describe(job.kernel), kind, describe(params), method]).encode())


def _method(machine: Machine) -> str:
    return "" if machine.method is None else machine.method.name
