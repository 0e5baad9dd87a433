"""A search over pipelines: preprocessing is fitted in every training part.

Candidates that share their preprocessing are one *setting*. A setting and a split are one *unit* of
work: the steps are fitted once, to the training rows; every kernel of the setting has one matrix
on training and test rows, made from distances that all of its gammas share; and all lams of a
kernel share one decomposition or path, or one iteration where there are many rows, on a device if
one is configured (onefit.heldout.train_test). So k decompositions per kernel replace k fits per
kernel and lam, and every score is that of an honest refit: gamma="scale",
class weights and widths of a loss come from the training rows too, as in GridSearchCV. A finished
unit is kept in the journal.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from onefit._describe import describe
from onefit.estimators.unused import UnusedParameterWarning
from onefit.folds import Folds
from onefit.heldout import HeldOutPath, Iterative
from onefit.heldout.train_test import TrainTest
from onefit.kernels import Bank, Geometry, is_objects
from onefit.linalg import HOST, LinAlgError
from onefit.linalg.device import Device
from onefit.plan.choice import MIN_ITERATED_ROWS
from onefit.search.continuous import Interval
from onefit.search.grid import (
    CandidateModel,
    Job,
    candidate_models,
    check_names,
    check_rows,
    jobs,
    parts,
    settings,
)
from onefit.search.job import run_job
from onefit.search.outcome import Outcome, Task
from onefit.search.preprocess import (
    Preprocessed,
    StepError,
    kernel_estimator,
    kernel_path,
    preprocess,
    with_stand_in,
)
from onefit.search.rows import FoldedSample
from onefit.search.scorers import Scoring
from onefit.search.workers import MAX_UNINTERRUPTIBLE_ROWS, WorkerPlan, in_turn, in_workers

Array = NDArray[Any]

__all__ = ["Setting", "Unit", "Work", "run_unit", "run_units", "settings_of", "units_of"]

#: rows up to which the distances of a split are kept for all of its kernels
MAX_KEPT_DISTANCE_ROWS = 6000


@dataclass(frozen=True)
class Setting:
    """Candidates that share their preprocessing.

    Attributes
    ----------
    estimator : the whole estimator, with a placeholder for the kernel estimator
    models : list of CandidateModel, whose indices are those of the candidates of the search
    indices : list of int
        The candidates, in the order of the search.
    own : list of dict
        Of each of these, the parameters of the kernel estimator that the grid sets.
    words : str
        The preprocessing in words, for journals.
    """

    estimator: Any
    models: list[CandidateModel]
    words: str
    indices: list[int]
    own: list[dict[str, Any]]


def settings_of(search: Any) -> tuple[list[dict[str, Any]], list[Setting]]:
    """The candidates of a grid over a pipeline, and their settings."""
    values = [value for part in parts(search.param_grid) for value in part.values()]
    if any(isinstance(one, Interval | Bank) for one in values):
        raise ValueError(
            "param_grid has an Interval or a Bank, whose values are found on one kernel matrix of "
            "all rows; for a pipeline give a list of values, or transform X first and search the "
            "kernel estimator alone"
        )
    found = settings(search.param_grid, search.n_iter, search.random_state)
    path = kernel_path(search.estimator)
    assert path
    prefix = "__".join(path)
    groups: dict[Hashable, list[int]] = {}
    for index, candidate in enumerate(found):
        key = frozenset(
            (name, _words(value))
            for name, value in candidate.items()
            if not name.startswith(f"{prefix}__")
        )
        groups.setdefault(key, []).append(index)
    return found, [_setting(search, found, some, prefix) for some in groups.values()]


def _words(value: Any) -> Hashable:
    """A key that differs for different values of a parameter."""
    try:
        hash(value)
    except TypeError:
        return describe(value)
    return type(value).__name__, value


def _setting(search: Any, found: list[dict[str, Any]], indices: list[int], prefix: str) -> Setting:
    shared = {
        name: value
        for name, value in found[indices[0]].items()
        if not name.startswith(f"{prefix}__")
    }
    whole = clone(search.estimator).set_params(**clone(shared, safe=False))
    if kernel_path(whole) is None:
        raise TypeError(
            f"param_grid puts {kernel_estimator(whole)!r} at the end of the pipeline; "
            "KernelSearchCV needs a KernelRegressor or KernelClassifier there"
        )
    leaf = kernel_estimator(whole)
    own = [
        {name[len(prefix) + 2 :]: value for name, value in found[i].items() if name not in shared}
        for i in indices
    ]
    check_names(leaf, own, f"{prefix}__")
    group = [
        replace(one, indices=tuple(indices[i] for i in one.indices))
        for one in candidate_models(leaf, own)
    ]
    stand_in = with_stand_in(whole)
    return Setting(stand_in, group, describe(stand_in), indices, own)


@dataclass(frozen=True)
class Work:
    """What every unit needs.

    Attributes
    ----------
    X, y : all rows
    params : metadata of the fits
    folds : Folds
    error_score : "raise" or a number
    device : Device or None
        Where kernels are computed.
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    folds: Folds
    error_score: Any = "raise"
    device: Device | None = None


@dataclass(frozen=True)
class Unit:
    """A setting on a split.

    Attributes
    ----------
    setting : Setting
    split : int
    models : tuple of CandidateModel
        Those that are wanted.
    """

    setting: Setting
    split: int
    models: tuple[CandidateModel, ...]

    @property
    def words(self) -> list[Any]:
        """Preprocessing and split in words, for journals."""
        return [self.setting.words, self.split]


def units_of(group: list[Setting], splits: int) -> list[Unit]:
    """Every setting on every split, split by split."""
    return [Unit(one, split, tuple(one.models)) for one in group for split in range(splits)]


def run_units(
    work: Work, worker_plan: WorkerPlan, units: Sequence[Unit]
) -> Iterator[tuple[int, list[Outcome] | str]]:
    """Yield (place, outcomes) of every unit as it is done."""
    apart = worker_plan.workers > 1 or work.folds.n > MAX_UNINTERRUPTIBLE_ROWS
    apart = apart and work.device is None
    return (in_workers if apart else in_turn)(worker_plan, partial(run_unit, work), units)


def run_unit(work: Work, unit: Unit) -> list[Outcome] | str:
    """Fit the steps of a setting to the training part of a split, and predict its test rows.

    Returns an outcome of this split, without scores, for every model; or why a step failed.
    """
    start, split, found = perf_counter(), unit.split, list[Outcome]()
    train, test = work.folds.train[split], work.folds.test[split]
    try:
        data = preprocess(unit.setting.estimator, work.X, work.y, work.params, train, test, split)
        models, task = _task(unit, data)
    except StepError as error:
        if isinstance(work.error_score, str):
            raise
        return str(error)
    with warnings.catch_warnings():
        # a grid may pair a kernel with parameters of another
        warnings.simplefilter("ignore", UnusedParameterWarning)
        fits, ready, task = _planned(models, task, train.size, work.device)
        seconds = (perf_counter() - start) / sum(len(one.lams) for one in models)
        for one in fits:
            found.append(_by_fits(task, one, data))
        kept = len(ready) > 1 and task.sample.folds.n <= MAX_KEPT_DISTANCE_ROWS
        geometry = Geometry(task.sample.X, keep=kept)
        for job in ready:
            found += run_job(task, job, geometry)
    places = {one.indices: i for i, one in enumerate(models)}
    found.sort(key=lambda one: places[one.indices])
    return [
        replace(one, method=TrainTest.name, fit_seconds=seconds + one.fit_seconds)
        for one in (_back(data, found) if data.wrappers else found)
    ]


def _task(unit: Unit, data: Preprocessed) -> tuple[list[CandidateModel], Task]:
    """The models, and training rows with test rows of weight zero as a sample with one split."""
    models = [replace(one, estimator=clone(one.estimator)) for one in unit.models]
    first = models[0].estimator
    try:
        rows, Y, s = check_rows(models, data.X, data.y, data.sample_weight)
        first._check_weighted(Y, s)
        test = first._validate_X(data.X_test, reset=False)
    except ValueError as error:
        raise StepError(
            f"{type(first).__name__} cannot use what the steps return on split {unit.split}: "
            f"{error}"
        ) from error
    n, m = rows.shape[0], test.shape[0]
    sparse = sp.issparse(rows) or sp.issparse(test)
    both = sp.csr_array(sp.vstack([rows, test])) if sparse else np.concatenate([rows, test])
    # targets of test rows are not used
    Y = np.asfortranarray(np.concatenate([Y, np.repeat(Y[:1], m, axis=0)]))
    folds = Folds(n + m, [np.flatnonzero(s)], [np.arange(n, n + m)])
    sample = FoldedSample(both, Y, np.concatenate([s, np.zeros(m, dtype=s.dtype)]), folds)
    return models, Task(sample, Scoring.nothing(), None, "mean")


def _planned(
    models: list[CandidateModel], task: Task, n: int, device: Device | None
) -> tuple[list[CandidateModel], list[Job], Task]:
    """Models that are fitted one by one, jobs of the others, and the task where these compute."""
    sample = task.sample
    fits = [one for one in models if _has_no_matrix(one)]
    others = [one for one in models if not _has_no_matrix(one)]
    if device is not None and (sp.issparse(sample.X) or is_objects(sample.X)):
        kind = "sparse" if sp.issparse(sample.X) else "no vectors of numbers"
        raise ValueError(  # the winner is fitted there
            f"the rows that the steps return are {kind}, which {device!r} does not support; leave "
            "the device out"
        )
    work = jobs(others, sample.X[:n], sample.Y[:n], sample.s[:n])
    if device is not None:
        for job in work:
            job.kernel.require_device(device)
    many = n >= MIN_ITERATED_ROWS  # the limit of other searches
    if device is not None and many:
        task = replace(task, sample=replace(sample, X=device.asarray(sample.X)))
    ready = []
    for job in sorted(work, key=lambda job: job.kernel.metrics):
        quadratic = all(one.spec.quadratic for one in job.models)
        iterated = many and (device is not None or quadratic)
        method = Iterative(factor=device is None) if iterated else TrainTest()
        ready.append(replace(job, models=tuple(replace(one, method=method) for one in job.models)))
    return fits, ready, task


def _has_no_matrix(model: CandidateModel) -> bool:
    """Whether there is no kernel matrix of training and test rows."""
    return model.spec.precomputed or model.spec.approximation is not None


def _by_fits(task: Task, candidate: CandidateModel, data: Preprocessed) -> Outcome:
    """A fit per lam."""
    start, sample = perf_counter(), task.sample
    problem = candidate.spec.problem(HOST.empty((0, 0), sample.Y.dtype), sample.Y, sample.s)
    path = HeldOutPath.empty(problem, sample.folds, TrainTest.name, np.array(candidate.lams))
    for i, lam in enumerate(candidate.lams):
        model = clone(candidate.estimator).set_params(lam=lam)
        try:
            model.fit(data.X, data.y, sample_weight=data.sample_weight)
            path.fill(i, 0, slice(None), model._decision(data.X_test), float(model.error_))
        except (LinAlgError, FloatingPointError) as error:
            path.fail(i, str(error))
            continue
        path.steps[i] = int(np.max(model.n_iter_))
    outcome = Outcome.of(task, candidate, path.judged(problem), path.method)
    return replace(outcome, fit_seconds=(perf_counter() - start) / len(path))


def _back(data: Preprocessed, outcomes: list[Outcome]) -> Iterator[Outcome]:
    """Values in the units of the targets that the search was given.

    The bound goes through a monotone inverse: the ends of a value's interval are transformed too.
    """
    for found in outcomes:
        error, reasons, values = found.error.copy(), list(found.reasons), dict[int, Array]()
        for i in (i for i, reason in enumerate(reasons) if not reason):
            values[i] = at = data.back(found.values[i])
            if not np.isfinite(at).all():
                reasons[i] = "the inverse transformation gives values that are not finite"
            if np.isfinite(error[i, 0]):
                with np.errstate(all="ignore"):
                    around = [data.back(found.values[i] + e) for e in (-error[i], error[i])]
                    error[i] = np.max([np.abs(one - at).max() for one in around])
        shape = next((one.shape for one in values.values()), found.values.shape[1:])
        back = np.full((len(reasons), *shape), np.nan)
        for i, at in values.items():
            back[i] = at
        yield replace(found, values=back, error=error, reasons=reasons)
