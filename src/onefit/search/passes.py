"""Passes of a search over streamed rows, each for all models that share it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.callbacks import callbacks_of
from onefit.criteria.streamed import CriterionSums
from onefit.features.fold_models import FoldModels, newton, squared
from onefit.features.hashed import Lengths, StreamedFeatures, hashed_folds
from onefit.features.held_out import feature_method
from onefit.features.leave_one import HatBasis
from onefit.features.moments import Moments, MomentSums, chunk_rows
from onefit.features.parts import MAX_MOMENT_ELEMENTS
from onefit.features.scores import Scores, of_models
from onefit.features.values import Kept, Values
from onefit.kernels import Kernel, named_kernel, takes_gamma
from onefit.kernels.resolve import scale_gamma
from onefit.linalg import LinAlgError
from onefit.rows.accumulate import Joint, OfModel
from onefit.rows.one_pass import CHUNK_ROWS, run
from onefit.rows.sample import DrawnRows, RowSampler
from onefit.rows.source import Source
from onefit.rows.survey import Survey, Surveyed, class_totals, reweighted, spread_over
from onefit.scoring import Metric, RowSums
from onefit.search.criterion import get_criterion
from onefit.search.grid import CandidateModel, Job, jobs_by
from onefit.spec import LabelCoding, Spec

Array = NDArray[Any]
#: the seed drawn from a random state, and its sample of rows
Seeded = dict[Hashable, tuple[int, DrawnRows]]

__all__ = ["Passes", "StreamedModel", "batches", "make_work", "stream_jobs"]


@dataclass(frozen=True)
class StreamedModel:
    """A model of the search with its features.

    Attributes
    ----------
    model : CandidateModel
    rows : StreamedFeatures
    spec : Spec
    method : str
    classes : array or None
        Weights of the classes.
    """

    model: CandidateModel
    rows: StreamedFeatures
    spec: Spec
    method: str
    classes: Array | None = None

    @property
    def lams(self) -> Array:
        """Descending."""
        return np.array(self.model.lams)

    @property
    def sums(self) -> tuple[Any, ...]:
        """Models with the same value have the same moments."""
        weights = () if self.classes is None else tuple(self.classes.tolist())
        return id(self.rows), self.spec.fit_intercept, weights

    def weighted(self, accumulator: Any) -> Any:
        """The accumulator with the columns and class weights of the model."""
        coding = self.spec.coding
        columns = None if coding.columns_are_targets else coding.columns
        return OfModel(accumulator, columns, self.classes)

    def surveyed(self, survey: Surveyed) -> Surveyed:
        """The survey with the columns and class weights of the model."""
        survey = survey if self.classes is None else reweighted(survey, self.classes)
        coding = self.spec.coding
        if coding.columns_are_targets:
            return survey
        return spread_over(survey, coding.columns(np.zeros((1, survey.scale.size))).shape[1])

    @property
    def shared(self) -> tuple[int, int]:
        """Models with the same value are scored together."""
        return id(self.rows), 0 if self.spec.coding.columns_are_targets else id(self)

    @property
    def by_class(self) -> Callable[[Array], Array] | None:
        """From the values of pairs of classes to decision values of the classes, if they differ."""
        coding = self.spec.coding
        if isinstance(coding, LabelCoding) and not coding.columns_are_targets:
            return coding.by_class
        return None


def stream_jobs(group: list[CandidateModel], survey: Surveyed, drawn: Seeded) -> list[Job]:
    """The jobs of streamed rows, with kernels resolved from the survey."""
    _, some = next(iter(drawn.values()))
    return jobs_by(group, partial(_resolve, survey, some))


def _resolve(survey: Surveyed, some: DrawnRows, spec: Spec) -> Kernel:
    """The kernel of all rows; gamma="scale" depends on the variance of their entries."""
    variance, d = float(survey.entries.variance[0]), some.X.shape[1]
    by_scale = isinstance(spec.gamma, str) and spec.gamma == "scale"
    if by_scale and takes_gamma(spec.kernel):
        spec = replace(spec, gamma=scale_gamma(named_kernel(spec.kernel), d, variance))
    return spec.resolve_kernel(some.X, np.ones(some.row.size))


def make_work(
    found: list[Job], survey: Surveyed, drawn: Seeded, method: Any
) -> Iterator[StreamedModel]:
    """Every model with its features, grouped by features."""
    for job in found:
        rows = _rows(job, drawn)
        for model in job.models:
            spec, classes = model.spec, None
            name = feature_method(getattr(method, "name", method), spec.quadratic)
            if isinstance(spec.coding, LabelCoding) and spec.coding.class_weight is not None:
                totals = class_totals(survey).sum(axis=0)
                classes = spec.coding.class_weights(np.arange(totals.size), totals)
            yield StreamedModel(model, rows, spec, name, classes)


def _rows(job: Job, drawn: Seeded) -> StreamedFeatures:
    approximation = job.models[0].spec.approximation
    seed, sample = drawn[approximation.randomness]
    kind = approximation.features
    features, landmarks = kind.make_map(job.kernel, sample.smallest(kind.sample_rows), seed)
    return StreamedFeatures(job.kernel, features, landmarks, kind.keep_landmarks, sample)


def _basis(one: StreamedModel, moments: Moments) -> HatBasis | Exception:
    """The hat matrices of all rows, or why they cannot be computed."""
    try:
        return HatBasis.of(moments.without(()), moments.centre, one.spec.fit_intercept)
    except (LinAlgError, FloatingPointError) as error:
        return error


def batches(work: list[StreamedModel], survey: Surveyed) -> Iterator[list[StreamedModel]]:
    """Models whose moments fit into memory together."""
    batch: list[StreamedModel] = []
    held = 0
    for one in work:
        size = survey.rows.size * one.rows.features.size**2
        if batch and held + size > MAX_MOMENT_ELEMENTS:
            yield batch
            batch, held = [], 0
        batch.append(one)
        held += size
    yield batch


class Passes:
    """Passes over the rows of one search, and how long they took."""

    def __init__(self, source: Source, search: Any) -> None:
        self.source, self.seconds, self.count = source, 0.0, 0
        self.n_jobs, self.journal = search.n_jobs, search.journal
        self.criterion: Any = get_criterion(search.criterion)
        self.judged: dict[int, tuple[Array, list[str]]] = {}
        found = (getattr(one, "on_rows", None) for one in callbacks_of(search))
        self.watchers = [one for one in found if one is not None]

    def report(self, done: int) -> None:
        """Report the progress of the pass to the watchers."""
        for watcher in self.watchers:
            watcher(self.count, done, len(self.source.pieces))

    def run(self, accumulator: Any, features: int = 1) -> Any:
        """One pass, in chunks whose ``features`` fit into memory."""
        start = perf_counter()
        self.count += 1
        self.report(0)
        found = run(
            accumulator,
            self.source,
            n_jobs=self.n_jobs,
            journal=self.journal,
            chunk_rows=min(CHUNK_ROWS, chunk_rows(features)),
            watch=self.report if self.watchers else None,
        )
        self.seconds += perf_counter() - start
        return found

    def survey(self, group: list[CandidateModel], q: int) -> tuple[Surveyed, Seeded]:
        """The survey, and for every random state its seed and the largest sample needed."""
        seeds: dict[Hashable, int] = {}
        sizes: dict[Hashable, int] = {}
        for one in group:
            approximation = one.spec.approximation
            name = approximation.randomness
            seeds[name] = seeds[name] if name in seeds else approximation.draw_seed()
            sizes[name] = max(approximation.features.sample_rows, sizes.get(name, 0))
        samples = [RowSampler(sizes[name], seed) for name, seed in seeds.items()]
        k = self.source.reading.cv.n_splits
        survey, *drawn = self.run(Joint((Survey(k, q), *samples)))
        return survey, dict(zip(seeds, zip(seeds.values(), drawn, strict=True), strict=True))

    def models(self, batch: list[StreamedModel], survey: Surveyed) -> list[FoldModels]:
        """Models of every fold: those of the squared loss from one pass."""
        k, widest = survey.rows.size, max(one.rows.features.size for one in batch)
        sums, lengths = self._sums(batch, k, widest)
        if self.criterion is not None:
            self._judge(batch, sums, widest)
        found = []
        for one in batch:
            longest, run = lengths[id(one.rows)], partial(self._weighted, one, widest)
            folds = hashed_folds(one.rows, one.spec, one.surveyed(survey), longest, run)
            if one.spec.quadratic:
                found.append(squared(folds, sums[one.sums], one.lams))
            else:
                found.append(newton(folds, one.lams, refined=one.method == "exact"))
        return found

    def _weighted(self, one: StreamedModel, widest: int, accumulator: Any) -> Any:
        """A pass for one model."""
        return self.run(one.weighted(accumulator), widest)

    def _sums(
        self, batch: list[StreamedModel], k: int, widest: int
    ) -> tuple[dict[tuple[Any, ...], Moments], dict[int, Array]]:
        """Moments for the squared loss, and the lengths of all features, by one pass."""
        grams: dict[tuple[Any, ...], Any] = {}
        lengths: dict[int, Lengths] = {}
        for one in batch:
            lengths.setdefault(id(one.rows), Lengths(one.rows.features, k))
            if one.spec.quadratic:
                centre = one.rows.centre(one.spec.fit_intercept)
                grams.setdefault(one.sums, one.weighted(MomentSums(one.rows.features, centre)))
        found = self.run(Joint((*grams.values(), *lengths.values())), widest)
        first, rest = found[: len(grams)], found[len(grams) :]
        return dict(zip(grams, first, strict=True)), dict(zip(lengths, rest, strict=True))

    def _judge(
        self, batch: list[StreamedModel], sums: dict[tuple[Any, ...], Moments], widest: int
    ) -> None:
        """The criterion of every model, by one pass."""
        shared = {one.sums: one for one in batch}
        bases = {name: _basis(one, sums[name]) for name, one in shared.items()}
        asked = [one for one in batch if isinstance(bases[one.sums], HatBasis)]
        parts = tuple(one.weighted(self._judged(one, bases[one.sums])) for one in asked)
        values = self.run(Joint(parts), widest) if parts else ()
        for one in batch:
            why, L = str(bases[one.sums]), one.lams.size
            self.judged[id(one)] = np.full(L, np.inf), [why] * L
        for one, own in zip(asked, values, strict=True):
            pairs = [self.criterion.accept(*pair) for pair in zip(own, one.lams, strict=True)]
            self.judged[id(one)] = np.array([v for v, _ in pairs]), [why for _, why in pairs]

    def _judged(self, one: StreamedModel, basis: Any) -> CriterionSums:
        rows, spec = one.rows, one.spec
        landmarks = None if rows.dropped is None else rows.dropped.row
        form = spec.loss, spec.scaling, one.lams
        return CriterionSums(self.criterion, rows.features, landmarks, basis, *form)

    def values(self, one: StreamedModel, found: FoldModels, i: int) -> Kept:
        """The held-out values of a model at its i-th lambda, row by row."""
        accumulator = Values(one.rows.features, found.W[:-1, :, i], found.b[:-1, i])
        kept: Kept = self.run(accumulator, one.rows.features.size)
        return kept

    def scores(
        self,
        work: list[StreamedModel],
        found: list[FoldModels],
        reach: list[Array],
        metrics: list[tuple[Metric, ...]],
    ) -> list[tuple[RowSums, ...]]:
        """Row sums of the metrics of every model, from one pass.

        ``reach`` has for each model bounds (k, L) on the errors of its held-out values, and
        ``metrics`` its metrics.
        """
        units = list(zip(work, found, reach, metrics, strict=True))
        shared = [list(own) for _, own in groupby(units, key=lambda unit: unit[0].shared)]
        scores = [
            Scores(
                own[0][0].rows.features,
                np.concatenate([models.W[:-1] for _, models, _, _ in own], axis=2),
                np.concatenate([models.b[:-1] for _, models, _, _ in own], axis=1),
                np.concatenate([bound for _, _, bound, _ in own], axis=1),
                own[0][3],
                own[0][0].by_class,
            )
            for own in shared
        ]
        widest = max(one.features.size for one in scores)
        sums = self.run(Joint(tuple(scores)), widest)
        by_model = []
        for own, total in zip(shared, sums, strict=True):
            first = 0
            for one, *_ in own:
                by_model.append(of_models(total, slice(first, first + one.lams.size)))
                first += one.lams.size
        return by_model
