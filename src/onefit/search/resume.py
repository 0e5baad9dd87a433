"""A search that continues where it was stopped: finished kernels are kept in a journal.

The values that are tried are not part of the fingerprint. An entry is the outcome of one model
at some lams, under its kernel and parameters; a search takes the lams it wants from the journal
and computes the others. So a grid may grow or shrink, and finished work stays finished. Of an
interval the entry is the outcome of its coarse grid and of all lams tried after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from onefit._describe import describe, digest
from onefit.folds import Folds
from onefit.heldout import METHODS
from onefit.journal import Journal
from onefit.kernels import as_rows
from onefit.search.grid import CandidateModel
from onefit.search.outcome import Outcome
from onefit.search.scorers import FitInputs

__all__ = ["Runner", "data_words", "fingerprint"]

#: from jobs to (place, outcomes) of each, as they are done
Run = Callable[[Sequence[Any]], Iterator[tuple[int, Any]]]
#: methods with equal values and inputs: one may continue a journal of the other
DIRECT = {"block", "eigen"}


class Runner:
    """Runs jobs: all of them, or those that the journal does not hold yet.

    Parameters
    ----------
    run : callable
        Yields (place, outcomes) of every job of a list. Where a job fails, a message replaces its
        outcomes; it is not kept.
    path : str, Path or None
        Path of the journal.
    about : callable
        Returns the fingerprint of the search; called only if there is a journal.
    metric : str, default=None
        The score to choose by, which the lams that are tried in an interval depend on.
    """

    def __init__(
        self, run: Run, path: Any, about: Callable[[], dict[str, str]], metric: str | None = None
    ) -> None:
        self.run, self.metric = run, metric
        self.journal = None if path is None else Journal(path, about())

    def __call__(self, jobs: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        """Yield (place, outcomes) of every job, which has ``models`` and ``words`` for keys."""
        if self.journal is None:
            return self.run(jobs)
        return self._resumed(jobs, self.journal)

    def recall(self, key: str) -> Any:
        """The value kept under a key, or None."""
        known = [] if self.journal is None else self.journal.read(key)
        return known[0] if known else None

    def note(self, key: str, value: Any) -> None:
        """Keep a value that is not the outcome of a model."""
        if self.journal is not None:
            self.journal.write(key, value)

    def _resumed(self, jobs: Sequence[Any], journal: Journal) -> Iterator[tuple[int, Any]]:
        """Outcomes from the journal first, then those of the other jobs as they are done."""
        left: list[tuple[int, list[_Recalled]]] = []
        for place, job in enumerate(jobs):
            recalled = [self._recall(journal, job, model) for model in job.models]
            if any(one.missing.lams for one in recalled):
                left.append((place, recalled))
            else:
                yield place, [one.whole(iter(())) for one in recalled]
        if not left:
            return
        journal.check_writable()
        wanted = [[one for one in recalled if one.missing.lams] for _, recalled in left]
        todo = [
            replace(jobs[place], models=tuple(one.missing for one in some))
            for (place, _), some in zip(left, wanted, strict=True)
        ]
        for done, outcomes in self.run(todo):
            place, recalled = left[done]
            if isinstance(outcomes, str):
                yield place, outcomes
                continue
            for one, outcome in zip(wanted[done], outcomes, strict=True):
                lams = list(one.missing.lams)
                journal.write(one.key, (lams, outcome), part=json.dumps(lams))
            found = iter(outcomes)
            yield place, [one.whole(found) for one in recalled]

    def _recall(self, journal: Journal, job: Any, model: CandidateModel) -> _Recalled:
        """What the journal has of a model, for most of its lams.

        An outcome has one method. The one that the cost model chose for some lams continues with
        the others, even if it would choose another for all of them: more lams must not undo what
        is finished. A direct method and an iteration cannot continue each other: all are missing.
        """
        key = self._key(journal, job, model)
        left = dict(zip(model.indices, model.lams, strict=True))
        kept: list[Outcome] = []
        wanted = set(model.lams)
        entries = journal.read(key)
        if model.continuous:
            kept = [replace(one, indices=model.indices) for _, one in entries[:1]]
            return _Recalled(
                key, model, kept, replace(model, lams=(), indices=()) if kept else model
            )
        for lams, outcome in sorted(entries, key=lambda one: -len(wanted & {*one[0]})):
            here = [index for index, lam in left.items() if lam in lams]
            if here:
                places = [lams.index(left.pop(index)) for index in here]
                kept.append(replace(outcome.take(places), indices=tuple(here)))
        begun = {one.method for one in kept}
        chosen = begun | ({model.method.name} if left and model.method else set())
        if len(chosen) > 1:
            if len(begun) > 1 or not chosen <= DIRECT:
                return _Recalled(key, model, [], model)
            model = replace(model, method=METHODS[begun.pop()]())
        missing = replace(model, lams=tuple(left.values()), indices=tuple(left))
        return _Recalled(key, model, kept, missing)

    def _key(self, journal: Journal, job: Any, model: CandidateModel) -> str:
        """A model in words: what its job shares, settings except lam, and method.

        A method that the cost model chose is left out: it may choose another one next time.
        """
        words = model.spec.words()
        del words["lam"]
        planned = model.method is None or journal.about["method"] == describe("auto")
        key: list[Any] = [job.words, words, "" if planned else model.method.name]  # type: ignore[union-attr]
        if model.continuous:  # the refined lams depend on the whole grid
            key += [list(model.lams), self.metric]
        return json.dumps(key)


class _Recalled(NamedTuple):
    """Outcomes of a model from a journal, at some of its lams. The others are missing."""

    key: str
    model: CandidateModel
    kept: list[Outcome]
    missing: CandidateModel

    def whole(self, found: Iterator[Outcome]) -> Outcome:
        """The outcome of all lams; that of the missing ones, if any are, is the next one found."""
        parts = [*self.kept, next(found)] if self.missing.lams else self.kept
        if len(parts) == 1:
            return parts[0]
        joined = Outcome.joined(parts)
        return joined.take([joined.indices.index(index) for index in self.model.indices])


def data_words(X: Any, y: Any, folds: Folds) -> dict[str, str]:
    """Rows, targets and splits in words, by name."""
    return {
        "X": describe(X if hasattr(X, "shape") else np.asarray(as_rows(X))),
        "y": describe(y if hasattr(y, "shape") else np.asarray(y)),
        "splits": f"{len(folds)} splits ({digest(folds.rows, folds.offsets, *folds.removed)})",
    }


def fingerprint(search: Any, X: Any, given: FitInputs, folds: Folds) -> dict[str, str]:
    """Everything but the candidates that the outcomes of a search depend on, in words, by name."""
    weight = given.weight
    scored = {name: value for name, value in given.params.items() if value is not weight}
    about = data_words(X, given.y, folds) | {
        "sample_weight": describe(weight if weight is None else np.asarray(weight)),
        "metadata of the scorers": describe(scored),
        "estimator": type(search.estimator).__name__,
        "scoring": describe(search.scoring),
        "criterion": describe(search.criterion),
        "method": describe(search.method),
        "aggregate": search.aggregate,
    }
    words = search.estimator.spec().words()
    return about | {f"estimator.{name}": value for name, value in words.items()}
