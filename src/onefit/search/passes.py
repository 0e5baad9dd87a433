"""Passes of a search over streamed rows, each for as many machines as share it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.estimators import inside
from onefit.search.grid import Job, Machine, jobs
from onefit.stream.gram import Gram, Moments
from onefit.stream.joint import Joint
from onefit.stream.machines import FoldMachines, Lengths, Rows, Setting, newton, squared
from onefit.stream.methods import feature_method
from onefit.stream.one_pass import CHUNK, run
from onefit.stream.sample import Drawn, Sample
from onefit.stream.scores import Errors, Scores
from onefit.stream.source import Source
from onefit.stream.survey import Survey, Surveyed

Array = NDArray[Any]

__all__ = ["Passes", "Work", "batches", "make_work"]

#: numbers in the moments of all kernels of a pass, and in the features of a chunk
ROOM, FEATURES = 2**27, 2**24


@dataclass(frozen=True)
class Work:
    """A machine of the search on its features.

    Attributes
    ----------
    machine : Machine
    rows : Rows
    setting : Setting
    method : str
    """

    machine: Machine
    rows: Rows
    setting: Setting
    method: str

    @property
    def lams(self) -> Array:
        """Descending."""
        return np.array(self.machine.lams)

    @property
    def quadratic(self) -> bool:
        """Whether moments are enough."""
        return bool(getattr(self.setting.loss, "quadratic", False))

    @property
    def sums(self) -> tuple[int, bool]:
        """What its moments depend on."""
        return id(self.rows), self.setting.intercept


def make_work(
    group: list[Machine], survey: Surveyed, drawn: dict[int, Drawn], method: Any
) -> Iterator[Work]:
    """Every machine with its features, machines on the same features one after the other."""
    for job in jobs(group, *_stand_in(survey, next(iter(drawn.values())))):
        rows = _rows(job, drawn)
        for machine in job.machines:
            estimator = machine.estimator
            loss = inside.loss_of(estimator)
            quadratic = bool(getattr(loss, "quadratic", False))
            name = feature_method(getattr(method, "name", method), quadratic)
            setting = Setting(loss, estimator.fit_intercept, estimator.scaling, name == "exact")
            yield Work(machine, rows, setting, name)


def _stand_in(survey: Surveyed, drawn: Drawn) -> tuple[Array, Array, Array]:
    """Two rows with the variance of all entries, which is what gamma="scale" looks at.

    Their targets do not matter: weights of classes are refused before.
    """
    deviation = float(np.sqrt(survey.entries.variance[0]))
    row = np.full(drawn.X.shape[1], deviation)
    return np.stack([row, -row]), np.zeros((2, 1)), np.ones(2)


def _rows(job: Job, drawn: dict[int, Drawn]) -> Rows:
    machine = job.machines[0].estimator
    size, seed = inside.rows_to_draw(machine)
    features, landmarks, chosen = inside.features_of(
        machine, job.kernel, drawn[seed].smallest(size)
    )
    kept = landmarks is None or machine.keep_landmarks
    return Rows(job.kernel, features, landmarks, None if kept else chosen.fold, drawn[seed])


def batches(work: list[Work], survey: Surveyed) -> Iterator[list[Work]]:
    """Machines whose moments fit into memory together."""
    batch: list[Work] = []
    held = 0
    for one in work:
        size = survey.rows.size * one.rows.features.size**2
        if batch and held + size > ROOM:
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += size
    yield batch


class Passes:
    """Passes over the rows of one search, and how long they took."""

    def __init__(self, source: Source, search: Any) -> None:
        self.source, self.seconds = source, 0.0
        self.n_jobs, self.checkpoint = search.n_jobs, search.journal

    def run(self, accumulator: Any, features: int = 1) -> Any:
        """One pass; chunks are so small that their features have room."""
        start = perf_counter()
        rows = max(256, min(CHUNK, FEATURES // features))
        found = run(
            accumulator,
            self.source,
            n_jobs=self.n_jobs,
            checkpoint=self.checkpoint,
            chunk_rows=rows,
        )
        self.seconds += perf_counter() - start
        return found

    def survey(self, group: list[Machine], q: int) -> tuple[Surveyed, dict[int, Drawn]]:
        """The survey, and for every seed the largest sample that any machine wants."""
        wanted: dict[int, int] = {}
        for one in group:
            size, seed = inside.rows_to_draw(one.estimator)
            wanted[seed] = max(size, wanted.get(seed, 0))
        samples = [Sample(size, seed) for seed, size in wanted.items()]
        k = self.source.reading.cv.n_splits
        survey, *drawn = self.run(Joint((Survey(k, q), *samples)))
        return survey, dict(zip(wanted, drawn, strict=True))

    def machines(self, batch: list[Work], survey: Surveyed) -> list[FoldMachines]:
        """Machines of every fold: those of the squared loss from one pass."""
        k, widest = survey.rows.size, max(one.rows.features.size for one in batch)
        sums, lengths = self._sums(batch, k, widest)
        found = []
        for one in batch:
            if one.quadratic:
                moments = sums[one.sums]
                found.append(squared(one.rows, one.setting, moments, one.lams, k))
            else:
                one_pass = partial(self.run, features=widest)
                far = lengths[id(one.rows)]
                found.append(newton(one.rows, one.setting, survey, far, one.lams, one_pass))
        return found

    def _sums(
        self, batch: list[Work], k: int, widest: int
    ) -> tuple[dict[tuple[int, bool], Moments], dict[int, Array]]:
        """Moments for the squared loss, lengths of features for the others, by one pass."""
        grams: dict[tuple[int, bool], Gram] = {}
        lengths: dict[int, Lengths] = {}
        for one in batch:
            if one.quadratic:
                centre = one.rows.centre(one.setting.intercept)
                grams.setdefault(one.sums, Gram(one.rows.features, centre))
            else:
                lengths.setdefault(id(one.rows), Lengths(one.rows.features, k))
        found = self.run(Joint((*grams.values(), *lengths.values())), widest)
        first, rest = found[: len(grams)], found[len(grams) :]
        return dict(zip(grams, first, strict=True)), dict(zip(lengths, rest, strict=True))

    def errors(self, work: list[Work], found: list[FoldMachines]) -> list[Errors]:
        """Sums that scores are made of, machines on the same features together."""
        pairs = list(zip(work, found, strict=True))
        shared = [list(own) for _, own in groupby(pairs, key=lambda pair: id(pair[0].rows))]
        scores = [
            Scores(
                own[0][0].rows.features,
                np.concatenate([machines.W for _, machines in own], axis=2),
                np.concatenate([machines.b for _, machines in own], axis=1),
            )
            for own in shared
        ]
        widest = max(one.features.size for one in scores)
        sums = self.run(Joint(tuple(scores)), widest)
        errors = []
        for own, total in zip(shared, sums, strict=True):
            first = 0
            for one, _ in own:
                errors.append(total.take(slice(first, first + one.lams.size)))
                first += one.lams.size
        return errors
