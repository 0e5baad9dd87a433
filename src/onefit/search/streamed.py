"""A search over streamed rows, in a few passes.

::

    pass 1   classes, if they are needed
    pass 2   folds, spreads and a sample of rows, from which come kernels and landmarks
    pass 3   moments of every fold, for all kernels with the squared loss together; other losses
             need further passes at every lambda; a criterion needs one more
    pass 4   held-out scores of all candidates
    pass 5   held-out values of the winner, if they fit into memory

The winner is fitted already: its model of all rows comes from the same sums. Held-out values of
all candidates are not kept, only the row statistics of metrics and their intervals
(:class:`onefit.scoring.RowSums`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.multiclass import check_classification_targets

from onefit.features.fold_models import FoldModels
from onefit.features.scores import finished
from onefit.features.values import MAX_KEPT_ELEMENTS, numbers
from onefit.heldout import HeldOut
from onefit.problem import Problem
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.rows.one_pass import run
from onefit.rows.open_rows import open_rows
from onefit.rows.source import Source
from onefit.rows.survey import DistinctLabels, Surveyed
from onefit.scoring import RowSums
from onefit.scoring.aggregate import aggregate
from onefit.search.continuous import expand, listed
from onefit.search.criterion import get_criterion
from onefit.search.evaluation import SearchRows
from onefit.search.grid import PlannedSearch, candidate_models, candidates
from onefit.search.inputs import only_weight, resolve_scorers
from onefit.search.outcome import ByMetric, Outcome
from onefit.search.passes import Passes, StreamedModel, batches, make_work, stream_jobs
from onefit.search.scorers import FitInputs, Scoring, check_defined
from onefit.search.stream_checks import (
    Metrics,
    check_levels,
    check_model,
    check_search,
    check_survey,
    metrics_of,
)
from onefit.spec.coding import encode_labels

Array = NDArray[Any]

__all__ = ["StreamedRows"]


class StreamedRows(SearchRows):
    """Rows that are read chunk by chunk, as often as passes need them.

    Parameters
    ----------
    search : KernelSearchCV
    X, y, params : what ``fit`` was given
    """

    subtasks = 0

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        self.search, self.scorers = search, resolve_scorers(search)
        check_search(search)
        self.candidates = _listed_candidates(search)
        self.group = candidate_models(search.estimator, self.candidates)
        self.table = self.scorers.table
        self.names = list(self.table)
        check_levels(self.group)
        for one in self.group:
            metrics_of(self.table, one)  # refuses those that are not of means over rows
            check_model(one, get_criterion(search.criterion))
        weight = only_weight({name: one for name, one in params.items() if name != "groups"})
        groups = params.get("groups")
        self.grouped = groups is not None
        self.source = open_rows(X, y, sample_weight=weight, groups=groups, cv=search.cv)
        self.attributes = {}

    def check(self, metric: Any) -> None:
        """Nothing: what needs no pass was checked already."""

    def evaluate(self, metric: Any, context: Any) -> None:
        """Survey the rows, make features, and score every candidate from sums over rows."""
        search, group = self.search, self.group
        source, model, q = _targets(search, self.source)
        for one in group:
            one.estimator._copy_data_attributes(model)
            one.spec.coding.columns(np.zeros((1, q)))  # refuses levels of several targets
        passes = self.passes = Passes(source, search)
        survey, drawn = passes.survey(group, q)
        check_survey(source, survey, getattr(model, "classes_", None))
        self.survey = survey
        for name, (one_metric, _) in metrics_of(self.table, group[0]).items():
            if search.aggregate != "pooled":
                check_defined(one_metric, survey.rows, name)
        self.setup = PlannedSearch(self.candidates, model, group, [])
        work = list(make_work(stream_jobs(group, survey, drawn), survey, drawn, search.method))
        _check_criterion(passes.criterion, work[0])
        found = [one for batch in batches(work, survey) for one in passes.models(batch, survey)]
        reach = [_reach(one.bounds[:-1], survey) for one in found]
        metrics = [metrics_of(self.table, unit.model) for unit in work]
        chosen = [tuple(m for m, _ in one.values()) for one in metrics]
        sums = passes.scores(work, found, reach, chosen)
        scored = partial(_scores, search.aggregate, survey, self.setup.plain)
        scores = [scored(*three) for three in zip(metrics, sums, found, strict=True)]
        self.outcomes = [
            _outcome(*three, survey, passes.seconds / len(work), passes.judged.get(id(three[0])))
            for three in zip(work, found, scores, strict=True)
        ]
        self.models = {
            place: (unit, result, i)
            for unit, result in zip(work, found, strict=True)
            for i, place in enumerate(unit.model.indices)
        }

    @property
    def sizes(self) -> Array:
        return self.survey.rows

    @property
    def not_kept(self) -> str:
        rows, q = int(self.sizes.sum()), next(iter(self.models.values()))[1].b.shape[2]
        if numbers(rows, q) <= MAX_KEPT_ELEMENTS:
            return ""
        return (
            f"held-out values of {rows:,} streamed rows are not kept, nor what is made of them; "
            f"they are for up to {MAX_KEPT_ELEMENTS // numbers(1, q):,} rows: take some, as by "
            "onefit.rows.open_rows(..., filter=...)"
        )

    def held_out(self, index: int) -> HeldOut:
        """Held-out values of a candidate, by one more pass."""
        work, found, i = self.models[index]
        kept = self.passes.values(work, found, i)
        folds = kept.folds(self.sizes.size)
        outcome = next(one for one in self.outcomes if index in one.indices)
        return replace(
            outcome.heldout(index, folds),
            values=kept.u[folds.rows],
            targets=self.setup.model.spec().coding.targets(kept.Y),
            sample_weight=kept.s if (kept.s != 1.0).any() else None,
            **self.setup.spec_of(index).coding.decoders,
        )

    def judged_by(self, index: int, held: HeldOut) -> tuple[FitInputs, Scoring]:
        folds, groups = held.folds, None
        if self.grouped:  # a fold holds whole groups, and stands for them
            groups = np.empty(folds.n, dtype=np.intp)
            groups[folds.rows] = np.repeat(np.arange(len(folds)), np.diff(folds.offsets))
        # scorers of streamed rows get the numbers of the rows, not their features
        rows, weight = np.arange(held.folds.n)[:, None], held.sample_weight
        params = {} if weight is None else {"sample_weight": weight}
        given = FitInputs(self.scorers, rows, held.targets, weight, params, groups)
        model, plain = self.setup.model_of(index), self.setup.plain
        return given, given.scoring(model, held.folds, undefined=True, plain=plain)

    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        """The winner is fitted already: the passes gave its model of all rows, too."""
        index = fitted["best_index_"]
        model = self.setup.model_of(index)
        work, found, i = self.models[index]
        rows = work.rows
        if is_classifier(model):
            ones = np.ones(len(model.classes_))
            model.class_weight_ = ones if work.classes is None else work.classes
        landmarks = None if rows.landmarks is None else rows.landmarks.row
        model._adopt(rows.kernel, rows.features, landmarks, found.fit(i))
        fitted = {"best_estimator_": model, "refit_time_": 0.0}
        if hasattr(model, "feature_names_in_"):
            fitted["feature_names_in_"] = model.feature_names_in_
        return fitted


def _listed_candidates(search: Any) -> list[dict[str, Any]]:
    grid = listed(search.param_grid)
    drawn = candidates(search.estimator, grid, search.n_iter, search.random_state)
    found, intervals = expand(drawn)
    if intervals:
        raise ValueError("param_grid has an Interval, but streamed rows need lists of values")
    return found


def _check_criterion(criterion: Any, work: StreamedModel) -> None:
    """Refuse a criterion that does not fit a few of the targets."""
    if criterion is not None:
        some = work.rows.some
        criterion.measure(Problem(None, some.Y, np.ones(some.row.size), work.spec.loss))


def _targets(search: Any, source: Source) -> tuple[Source, Any, int]:
    """Targets as numbers, an estimator that knows columns and classes, and number of targets."""
    shape, model = source.target_shape, clone(search.estimator)
    model.n_features_in_ = source.n_features
    if source.names is not None:
        model.feature_names_in_ = np.array(source.names, dtype=object)
    if shape is None:
        raise ValueError("streamed rows need a target: the name of a column, or a value per row")
    if not is_classifier(search.estimator):
        model._y_ndim = 2 if shape else 1
        return source, model, shape[0] if shape else 1
    if shape not in ((), (1,)):
        raise ValueError(f"a classifier needs one target, got {shape[0]} columns")
    classes = run(DistinctLabels(), source.raw, n_jobs=search.n_jobs, journal=search.journal)
    check_classification_targets(classes)
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {classes.tolist()[0]!r}; a classifier needs at least two"
        )
    model.classes_ = classes
    encoded = source.encoded(partial(encode_labels, classes))
    return encoded, model, 1 if len(classes) == 2 else len(classes)


def _outcome(
    one: StreamedModel,
    found: FoldModels,
    scores: tuple[ByMetric, ByMetric, ByMetric],
    survey: Surveyed,
    seconds: float,
    judged: tuple[Array, list[str]] | None,
) -> Outcome:
    """Scores and bounds of a model, lambda by lambda."""
    criterion, remarks = (None, [""] * len(found.reasons)) if judged is None else judged
    bounds = np.moveaxis(found.bounds[:-1], 0, 1)  # (L, k, q)
    L, k, _ = bounds.shape
    by_split, totals, ends = scores
    return Outcome(
        indices=one.model.indices,
        method=one.method,
        scores=by_split,
        totals=totals,
        ends=ends,
        values=np.empty((L, 0, bounds.shape[2])),
        exact=np.asarray((bounds <= EXACT_TOLERANCE * one.surveyed(survey).scale).all(axis=2)),
        error=np.asarray(bounds.max(axis=2)),
        moved=np.zeros((L, k), dtype=np.intp),
        steps=found.steps[:-1].T,
        order=None,
        reasons=[a or b for a, b in zip(found.reasons, remarks, strict=True)],
        criterion=criterion,
        fit_seconds=seconds / L,
        score_seconds=0.0,
    )


def _reach(bound: Array, survey: Surveyed) -> Array:
    """Bounds on held-out values for intervals of scores, (k, L), as in onefit.search.outcome."""
    unit = EXACT_TOLERANCE * float(survey.scale.max())
    largest = bound.max(axis=2)
    return np.asarray(np.where(np.isnan(largest), np.inf, largest) + unit)


def _scores(
    how: str,
    survey: Surveyed,
    plain: bool,
    metrics: Metrics,
    sums: tuple[RowSums, ...],
    found: FoldModels,
) -> tuple[ByMetric, ByMetric, ByMetric]:
    """Scores and totals of an outcome; ends too if held-out values are one per target."""
    scores, totals, ends = ByMetric(), ByMetric(), ByMetric()
    known = np.array([not reason for reason in found.reasons])
    for (name, (metric, sign)), one in zip(metrics.items(), sums, strict=True):
        # axes (1 or 3, k, L), and pooled: the scores and, if they are known, their ends
        by_fold, pooled = (sign * each for each in finished(metric, one, survey))
        if sign < 0:  # the least score is that of the largest error
            by_fold[1:], pooled[1:] = by_fold[:0:-1].copy(), pooled[:0:-1].copy()
        by_fold = np.where(known[:, None], np.moveaxis(by_fold, 1, 2), np.nan)
        pooled = np.where(known, pooled, np.nan)
        total, *both = aggregate(how, np.ascontiguousarray(by_fold), survey.rows, pooled)
        scores[name], totals[name] = by_fold[0], total
        if both and plain:
            ends[name] = np.stack(both, axis=1)
    return scores, totals, ends
