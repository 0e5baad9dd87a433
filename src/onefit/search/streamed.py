"""A search over rows that are streamed: a few passes, whatever the number of rows.

    pass 1   classes, if they are needed
    pass 2   folds, spreads and a sample of rows, from which come kernels and landmarks
    pass 3   moments of every fold, for all kernels with the squared loss together; other losses
             take passes of their own at every lambda; a criterion takes one more
    pass 4   held-out scores of all candidates
    pass 5   held-out values of the winner, where there is room for a few numbers per row

The winner is fitted already: its machine of all rows comes from the same sums. Held-out values of
all candidates are not kept, only what metrics and their intervals are made of
(:class:`onefit.scoring.RowSums`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils.multiclass import check_classification_targets

from onefit.certificate import EXACT_TOLERANCE
from onefit.criteria.by_row import ByRow
from onefit.heldout import HeldOut
from onefit.losses import Quantile
from onefit.problem import Problem
from onefit.quantiles import levels_of, neg_pinball_loss
from onefit.scoring import ROW_METRICS, Metric, RowSums
from onefit.scoring.aggregate import aggregate
from onefit.scoring.metrics import loss_metric
from onefit.search.continuous import expand, listed
from onefit.search.criterion import CRITERIA, get_criterion
from onefit.search.grid import Machine, candidates, machines
from onefit.search.passes import Passes, Work, batches, make_work
from onefit.search.scorers import check_defined, fast_metric
from onefit.search.workers import Outcome
from onefit.spec.coding import encode_labels
from onefit.stream.fit import FeatureFit
from onefit.stream.machines import FoldMachines
from onefit.stream.one_pass import run
from onefit.stream.open_rows import open_rows
from onefit.stream.scores import finished
from onefit.stream.source import Source
from onefit.stream.survey import Labels, Surveyed
from onefit.stream.values import ROOM, numbers

Array = NDArray[Any]

__all__ = ["NotKept", "Streamed", "search_streamed"]

#: criteria that judge rows as they come
BY_ROW = [repr(name) for name, one in CRITERIA.items() if isinstance(one, ByRow)]


class NotKept:
    """A fitted attribute that, where it is not there, says why; one that is set hides this."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, search: Any, owner: Any = None) -> Any:
        if search is None:
            return self
        reason = vars(search).get("_not_kept")
        why = f": {reason}" if reason else ""
        kind = type(search).__name__
        raise AttributeError(f"{kind!r} object has no attribute {self.name!r}{why}")


@dataclass(frozen=True)
class Streamed:
    """What a search over streamed rows comes back with.

    Attributes
    ----------
    candidates : list of dict
    outcomes : list of Outcome
    sizes : (k,) array
        Rows of each fold.
    names : list of str
        Metrics.
    lams, gammas : (C,) arrays
    intervals : dict
        Columns ``low_test_<metric>`` and ``high_test_<metric>``.
    grouped : bool
        Whether folds keep groups together.
    plain : bool
        Whether held-out values have the columns of the targets: no levels, no pairs of classes.
    model : estimator
        Unfitted; knows columns and classes.
    """

    candidates: list[dict[str, Any]]
    outcomes: list[Outcome]
    sizes: Array
    names: list[str]
    lams: Array
    gammas: Array
    intervals: dict[str, Array] = field(repr=False)
    grouped: bool
    plain: bool
    fitted: dict[int, _Fitted] = field(repr=False)
    model: Any = field(repr=False)
    passes: Passes = field(repr=False)

    def best_estimator(self, best: int) -> Any:
        """The winner, fitted to all rows."""
        machine = self.unfitted(best)
        work, found, i = self.fitted[best]
        W, b = found.whole
        rows, steps = work.rows, int(found.steps[:, i].max())
        error = self.passes.whole_error(work, found, i)
        whole = FeatureFit(np.asfortranarray(W[:, i]), b[i].copy(), steps, error)
        if is_classifier(machine):
            ones = np.ones(len(machine.classes_))
            machine.class_weight_ = ones if work.classes is None else work.classes
        machine._adopt(rows.kernel, rows.features, rows.landmarks, whole)
        return machine

    def unfitted(self, best: int) -> Any:
        """The estimator of a candidate, which knows columns and classes."""
        return self.model._with_params(**clone(self.candidates[best], safe=False))

    @property
    def too_many(self) -> str:
        """Why there are no held-out values row by row, if there are too many rows for that."""
        rows, q = int(self.sizes.sum()), next(iter(self.fitted.values()))[1].b.shape[2]
        if numbers(rows, q) <= ROOM:
            return ""
        return (
            f"held-out values of {rows:,} streamed rows are not kept, nor what is made of them; "
            f"they are for up to {ROOM // numbers(1, q):,} rows: take some, as by "
            "onefit.stream.open_rows(..., filter=...)"
        )

    def held(self, best: int) -> tuple[HeldOut, Array]:
        """The held-out values of a candidate, with targets and weights, and these weights."""
        work, found, i = self.fitted[best]
        kept = self.passes.values(work, found, i)
        folds = kept.folds(self.sizes.size)
        outcome = next(one for one in self.outcomes if best in one.indices)
        given = kept.s if (kept.s != 1.0).any() else None
        held = HeldOut(
            kept.u[folds.rows],
            folds,
            outcome.method,
            outcome.exact[i],
            outcome.error[i],
            outcome.moved[i],
            outcome.steps[i],
            seconds=outcome.fit_seconds,
            targets=self.model.spec().coding.targets(kept.Y),
            sample_weight=given,
        )
        return held, kept.s


_Fitted = tuple[Work, FoldMachines, int]


def search_streamed(
    search: Any, X: Any, y: Any, sample_weight: Any, groups: Any, scorers: Any
) -> Streamed:
    """Evaluate every candidate of a search on rows that are streamed."""
    _check_search(search)
    settings, intervals = expand(
        candidates(search.estimator, listed(search.param_grid), search.n_iter, search.random_state)
    )
    if intervals:
        raise ValueError("param_grid has an Interval, but streamed rows need lists of values")
    group = machines(search.estimator, settings)
    table = getattr(scorers, "_scorers", {"score": scorers})
    _check_levels(group)
    for one in group:
        _metrics(table, one)  # refuses those that are not of means over rows
        _check_machine(one, get_criterion(search.criterion))
    source = open_rows(X, y, sample_weight=sample_weight, groups=groups, cv=search.cv)
    source, model, q = _targets(search, source)
    for one in group:
        one.estimator._copy_data_attributes(model)
        one.spec.coding.columns(np.zeros((1, q)))  # refuses levels of several targets
    rows = Passes(source, search)
    survey, drawn = rows.survey(group, q)
    _check_survey(source, survey, getattr(model, "classes_", None))
    for name, (metric, _) in _metrics(table, group[0]).items():
        if search.aggregate != "pooled":
            check_defined(metric, survey.rows, name)
    work = list(make_work(group, survey, drawn, search.method))
    if rows.criterion is not None:
        # what it measures may not fit the targets, of which a few are known
        some = work[0].rows.some
        few = Problem(None, some.Y, np.ones(some.row.size), work[0].spec.loss)
        rows.criterion.measure(few)
    found = [one for batch in batches(work, survey) for one in rows.machines(batch, survey)]
    bounds = [rows.bound(*pair) for pair in zip(work, found, strict=True)]
    reach = [_reach(bound, survey) for bound in bounds]
    metrics = [_metrics(table, unit.machine) for unit in work]
    sums = rows.scores(work, found, reach, [tuple(m for m, _ in one.values()) for one in metrics])
    scored = [_scored(*three, survey) for three in zip(metrics, sums, found, strict=True)]
    outcomes = [
        _outcome(*four, survey, rows.seconds / len(work), rows.judged.get(id(four[0])))
        for four in zip(work, found, bounds, scored, strict=True)
    ]
    fitted = {
        place: (unit, result, i)
        for unit, result in zip(work, found, strict=True)
        for i, place in enumerate(unit.machine.indices)
    }
    lams, gammas = np.empty(len(settings)), np.empty(len(settings))
    for unit in work:
        places = list(unit.machine.indices)
        lams[places] = unit.machine.lams
        gammas[places] = np.mean(getattr(unit.rows.kernel, "gamma", np.inf))
    plain = all(unit.spec.coding.columns_are_targets for unit in work)
    columns = _interval_columns(search.aggregate, work, scored, survey) if plain else {}
    return Streamed(
        settings, outcomes, survey.rows, list(table), lams, gammas, columns,
        groups is not None, plain, fitted, model, rows,
    )  # fmt: skip


def _check_search(search: Any) -> None:
    refused = {
        "criterion": (
            not isinstance(get_criterion(search.criterion), ByRow | None),
            f"choose by {', '.join(BY_ROW)}, or by the score of the folds, criterion='cv'",
        ),
        "search": (search.search != "grid", "search a grid"),
        "lam_per_target": (search.lam_per_target, "search the targets one by one"),
        "keep_heldout": (search.keep_heldout == "all", "keep those of the winner, 'best'"),
    }
    for name, (asked, advice) in refused.items():
        if asked:
            raise ValueError(
                f"{name}={getattr(search, name)!r} needs all rows in memory, but they are "
                f"streamed; {advice}, or load the rows"
            )


def _check_machine(one: Machine, criterion: Any) -> None:
    machine, spec = one.estimator, one.spec
    if spec.approximation is None:
        raise ValueError(
            "streamed rows need features in place of the kernel matrix; use "
            "approximation='nystrom' or 'fourier' in the estimator, or load the rows into memory"
        )
    if getattr(spec.loss, "relative", False):
        raise ValueError(
            "a width of 'mad' is a median over the targets of each training part, which are "
            "streamed; give threshold or delta in units of the target"
        )
    if spec.coding.class_weight is not None and isinstance(machine.gamma, str):
        raise ValueError(
            f"gamma={machine.gamma!r} looks at rows as they are weighted by class_weight, which "
            "streamed rows are not yet; give gamma numbers, as onefit.default_grid makes them of a "
            "sample of rows"
        )
    if criterion is not None:
        nothing = Problem(np.empty((0, 0)), np.empty((0, 1)), np.empty(0), spec.loss)
        criterion.check(nothing)
        criterion.check_features(nothing)


_Metrics = dict[str, tuple[Metric, int]]
#: by metric, with axes (1 or 3, L, k), and pooled: scores, their least and largest values if known
_Scored = dict[str, tuple[Array, Array]]


def _check_levels(group: list[Machine]) -> None:
    if len({len(levels_of(one.estimator)) > 1 for one in group}) > 1:
        raise ValueError(
            "some machines have several levels and others have not, and their scores are of "
            "different kinds; search them one after the other"
        )


def _metrics(scorers: dict[str, Any], one: Machine) -> _Metrics:
    """What a machine is scored by: name -> (metric, sign)."""
    found: _Metrics = {}
    for name, scorer in scorers.items():
        if len(levels_of(one.estimator)) > 1:
            found[name] = _of_levels(scorer, one.estimator, name), -1
            continue
        metric, sign = fast_metric(scorer, one.estimator)
        if metric is None:
            task = "classification" if is_classifier(one.estimator) else "regression"
            known = ", ".join(f.__name__ for f, m in ROW_METRICS.items() if m.task == task)
            raise ValueError(
                f"scoring={name!r} is no function of means over rows, which streamed rows need; "
                f"use a scorer of {known}, or a onefit.scoring.Metric"
            )
        found[name] = metric, sign
    return found


def _of_levels(scorer: Any, machine: Any, name: str) -> Metric:
    """What a machine of several levels is scored by: its own loss."""
    loss = machine.spec().loss
    if hasattr(scorer, "_estimator") or (scorer is neg_pinball_loss and isinstance(loss, Quantile)):
        return loss_metric(loss.name, getattr(loss, "unrounded", loss.value))
    raise ValueError(
        f"scoring={name!r} is of one value per row, and several levels of streamed rows are scored "
        "by their own loss; leave scoring at None"
    )


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
    classes = run(Labels(), source.raw, n_jobs=search.n_jobs, journal=search.journal)
    check_classification_targets(classes)
    if len(classes) < 2:
        raise ValueError(f"y holds one class only, {classes[0]!r}; a classifier needs two at least")
    model.classes_ = classes
    encoded = source.encoded(partial(encode_labels, classes))
    return encoded, model, 1 if len(classes) == 2 else len(classes)


def _check_survey(source: Source, survey: Surveyed, classes: Array | None) -> None:
    """Refuse folds without rows or weight, and training parts of one class."""
    source.reading.cv.check_counts(survey.rows)
    if (survey.weights <= 0).any():
        empty = int(np.flatnonzero(survey.weights <= 0)[0])
        raise ValueError(f"the rows of fold {empty} all have sample_weight 0; give them weight")
    for k in range(survey.rows.size if classes is not None else 0):
        others = survey.without(k)
        if (others.low == others.high).any():
            raise ValueError(
                f"without fold {k} a class is missing from training; use fewer folds, or other "
                "groups"
            )


def _outcome(
    one: Work,
    found: FoldMachines,
    bound: Array,
    scored: _Scored,
    survey: Surveyed,
    seconds: float,
    judged: tuple[Array, list[str]] | None,
) -> Outcome:
    """Scores and bounds of a machine, lambda by lambda."""
    criterion, remarks = (None, [""] * len(found.reasons)) if judged is None else judged
    bounds = np.moveaxis(bound, 0, 1)  # (L, k, q)
    L, k, _ = bounds.shape
    return Outcome(
        indices=one.machine.indices,
        method=one.method,
        scores={name: by_fold[0] for name, (by_fold, _) in scored.items()},
        pooled={name: pooled[0] for name, (_, pooled) in scored.items()},
        values=np.empty((L, 0, bounds.shape[2])),
        exact=np.asarray((bounds <= EXACT_TOLERANCE * one.surveyed(survey).scale).all(axis=2)),
        error=np.asarray(bounds.max(axis=2)),
        moved=np.zeros((L, k), dtype=np.intp),
        steps=found.steps.T,
        order=None,
        reasons=[a or b for a, b in zip(found.reasons, remarks, strict=True)],
        per_target=None,
        criterion=criterion,
        fit_seconds=seconds / L,
        score_seconds=0.0,
    )


def _reach(bound: Array, survey: Surveyed) -> Array:
    """How far scores count a held-out value to be off, (k, L), as onefit.search.intervals does."""
    unit = EXACT_TOLERANCE * float(np.sqrt(survey.whole.variance).max(initial=0.0))
    largest = bound.max(axis=2)
    return np.asarray(np.where(np.isnan(largest), np.inf, largest) + unit)


def _scored(
    metrics: _Metrics, sums: tuple[RowSums, ...], found: FoldMachines, survey: Surveyed
) -> _Scored:
    """Scores of a machine, lambda by lambda, and their ends."""
    known = np.array([not reason for reason in found.reasons])
    scored: _Scored = {}
    for (name, (metric, sign)), one in zip(metrics.items(), sums, strict=True):
        by_fold, pooled = (sign * each for each in finished(metric, one, survey))
        if sign < 0:  # the least score is that of the largest error
            by_fold[1:], pooled[1:] = by_fold[:0:-1].copy(), pooled[:0:-1].copy()
        by_fold = np.moveaxis(by_fold, 1, 2)
        scored[name] = np.where(known[:, None], by_fold, np.nan), np.where(known, pooled, np.nan)
    return scored


def _interval_columns(
    how: str, work: list[Work], scored: list[_Scored], survey: Surveyed
) -> dict[str, Array]:
    """``low_test_<metric>`` and ``high_test_<metric>`` of all candidates, where there are any."""
    size = sum(len(one.machine.indices) for one in work)
    columns: dict[str, Array] = {}
    for one, own in zip(work, scored, strict=True):
        for name, (by_fold, pooled) in own.items():
            for i, side in enumerate(("low", "high")[: len(pooled) - 1], start=1):
                column = columns.setdefault(f"{side}_test_{name}", np.full(size, np.nan))
                ends = aggregate(how, by_fold[i], survey.rows, pooled[i])
                column[list(one.machine.indices)] = ends
    return columns
