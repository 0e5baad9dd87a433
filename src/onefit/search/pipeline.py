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

import json
import warnings
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from onefit._describe import describe
from onefit._indexing import n_rows
from onefit._validation import check_weights
from onefit.estimators.unused import UnusedParameterWarning
from onefit.folds import Folds
from onefit.heldout.train_test import TestValues, iterate_test, predict_test
from onefit.journal import Journal
from onefit.kernels import Geometry, is_objects, number_type
from onefit.linalg import LinAlgError
from onefit.linalg.device import Device
from onefit.plan.choice import MIN_ITERATED_ROWS
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.proof.norms import target_scale
from onefit.search.grid import CandidateModel, candidate_models, jobs, settings
from onefit.search.preprocess import (
    Preprocessed,
    StepError,
    kernel_estimator,
    kernel_path,
    preprocess,
    with_stand_in,
)
from onefit.search.workers import MAX_UNINTERRUPTIBLE_ROWS, WorkerPlan, in_turn, in_workers

Array = NDArray[Any]

__all__ = ["Found", "Setting", "Work", "run_unit", "run_units", "settings_of"]

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
    found = settings(search.param_grid, search.n_iter, search.random_state)
    if not found:
        raise ValueError(
            f"param_grid={search.param_grid!r} holds no candidate at all; use {{}} for one"
        )
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
    known = leaf.get_params(deep=True)
    for name in dict.fromkeys(name for one in own for name in one):
        if name not in known and name.partition("__")[0] not in known:
            raise ValueError(
                f"param_grid names {prefix + '__' + name!r}, but {type(leaf).__name__} has no "
                f"parameter {name!r}"
            )
        if name == "lam" and any(not np.isscalar(one.get("lam", 1.0)) for one in own):
            raise ValueError(
                "param_grid has an Interval for lam, which is refined on one full-sample fit; "
                "with preprocessing in the folds give a list of values"
            )
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
class Found:
    """Values of one split by the models of one setting.

    Attributes
    ----------
    values : list of TestValues, one per candidate
    weighted : bool
        Whether the kernel estimator was given sample weights.
    failed : str
        Why the steps could not be fitted; empty if they could.
    seconds : float
    """

    values: list[TestValues]
    weighted: bool
    failed: str
    seconds: float


def run_unit(work: Work, unit: tuple[Setting, int]) -> Found:
    """Fit the steps of a setting to the training part of a split, and predict its test rows."""
    start, (setting, split) = perf_counter(), unit
    train, test = work.folds.train[split], work.folds.test[split]
    try:
        data = preprocess(setting.estimator, work.X, work.y, work.params, train, test, split)
        with warnings.catch_warnings():
            # a grid may pair a kernel with parameters of another
            warnings.simplefilter("ignore", UnusedParameterWarning)
            values = _predicted(setting, data, split, work.device)
    except StepError as error:
        if isinstance(work.error_score, str):
            raise
        empty = [TestValues.empty(len(one.lams), test.size, 1) for one in setting.models]
        return Found(empty, False, str(error), perf_counter() - start)
    return Found(values, data.sample_weight is not None, "", perf_counter() - start)


def _predicted(
    setting: Setting, data: Preprocessed, split: int, device: Device | None
) -> list[TestValues]:
    """Values of the test rows by every model of a setting."""
    first = clone(setting.models[0].estimator)
    try:
        rows = first._validate_X(data.X, ensure_min_samples=2)
        Y = first._code_targets(data.y, number_type(rows))
        s = check_weights(data.sample_weight, rows)
        first._check_weighted(Y, s)
        test = first._validate_X(data.X_test, reset=False)
    except ValueError as error:
        raise StepError(
            f"{type(first).__name__} cannot use what the steps return on split {split}: {error}"
        ) from error
    if device is not None and (sp.issparse(rows) or is_objects(rows)):  # the winner is fitted there
        kind = "sparse" if sp.issparse(rows) else "no vectors of numbers"
        raise ValueError(
            f"the rows that the steps return are {kind}, which {device!r} does not support; leave "
            "the device out"
        )
    found: dict[tuple[int, ...], TestValues] = {}
    ready = []
    for candidate in setting.models:
        one = replace(candidate, estimator=clone(candidate.estimator))
        one.estimator._copy_data_attributes(first)
        if one.spec.precomputed or one.spec.approximation is not None or is_objects(rows):
            found[one.indices] = _by_fits(one, data, Y, s)
        else:
            ready.append(one)
    if ready:
        found |= _on_kernels(ready, rows, test, Y, s, device)
    values = [found[candidate.indices] for candidate in setting.models]
    return [_back(data, one) for one in values] if data.wrappers else values


def _on_kernels(
    ready: list[CandidateModel], rows: Any, test: Any, Y: Array, s: Array, device: Device | None
) -> dict[tuple[int, ...], TestValues]:
    """Values of models with a kernel matrix, one for all that share a kernel."""
    work = sorted(jobs(ready, rows, Y, s), key=lambda job: job.kernel.metrics)
    if device is not None:
        for job in work:
            job.kernel.require_device(device)
    m = test.shape[0]
    sparse = sp.issparse(rows) or sp.issparse(test)
    both = sp.csr_array(sp.vstack([rows, test])) if sparse else np.concatenate([rows, test])
    many = rows.shape[0] >= MIN_ITERATED_ROWS  # the limit of other searches
    device = device if many else None
    if device is not None:
        both = device.asarray(both)
    geometry = Geometry(both, keep=len(work) > 1 and both.shape[0] <= MAX_KEPT_DISTANCE_ROWS)
    # targets of test rows are not used
    Y = np.asfortranarray(np.concatenate([Y, np.repeat(Y[:1], m, axis=0)]))
    s = np.concatenate([s, np.zeros(m, dtype=s.dtype)])
    found = {}
    for job in work:
        quadratic = all(candidate.spec.quadratic for candidate in job.models)
        iterated = device is not None or (many and quadratic)
        K: Any = job.kernel.tiles(both).hold() if iterated else job.kernel.matrix(geometry)
        for candidate in job.models:
            problem = candidate.spec.problem(K, Y, s, definite=job.kernel.definite)
            values = (iterate_test if iterated else predict_test)(problem, np.array(candidate.lams))
            # training rows of weight zero come before the test rows
            found[candidate.indices] = replace(values, values=values.values[:, -m:])
        del K, problem  # before the next one takes their memory
    return found


def _by_fits(candidate: CandidateModel, data: Preprocessed, Y: Array, s: Array) -> TestValues:
    """A fit per lam, where there is no kernel matrix of the test rows."""
    columns = candidate.spec.coding.columns(Y)
    unit = EXACT_TOLERANCE * float(target_scale(columns, s).min())
    parts = []
    for lam in candidate.lams:
        model = clone(candidate.estimator).set_params(lam=lam)
        try:
            model.fit(data.X, data.y, sample_weight=data.sample_weight)
            values = np.asarray(model._decision(data.X_test), dtype=np.float64)
        except (LinAlgError, FloatingPointError) as error:
            shape = 1, n_rows(data.X_test), columns.shape[1]
            parts.append(TestValues.empty(*shape, str(error)))
            continue
        bound = np.array([float(model.error_)])
        steps = np.array([int(np.max(model.n_iter_))], dtype=np.intp)
        parts.append(TestValues(values[None], bound, bound <= unit, steps, [""]))
    return TestValues.stack(parts)


def _back(data: Preprocessed, found: TestValues) -> TestValues:
    """Values in the units of the targets that the search was given.

    The bound goes through a monotone inverse: the ends of a value's interval are transformed too.
    """
    values: list[Array | None] = []
    error = found.error.copy()
    for i, (u, reason) in enumerate(zip(found.values, found.reasons, strict=True)):
        if reason:
            values.append(None)
            continue
        at = data.back(u)
        if np.isfinite(error[i]):
            with np.errstate(all="ignore"):
                ends = [np.abs(data.back(u + e) - at).max() for e in (-error[i], error[i])]
            error[i] = float(np.max(ends))
        values.append(at)
    shape = next((one.shape for one in values if one is not None), found.values.shape[1:])
    none = np.full(shape, np.nan)
    stacked = np.stack([none if one is None else one for one in values])
    return replace(found, values=stacked, error=error)


def run_units(
    work: Work, group: list[Setting], worker_plan: WorkerPlan, journal: Journal | None
) -> Iterator[tuple[int, Found]]:
    """Yield (place, values) of every unit, those of the journal first; places go split by split."""
    units = [(setting, split) for setting in group for split in range(len(work.folds))]
    left: list[int] = []
    for place, unit in enumerate(units):
        known = None if journal is None else _recall(journal, *unit)
        if known is None:
            left.append(place)
        else:
            yield place, known
    if not left:
        return
    if journal is not None:
        journal.check_writable()
    todo = [units[place] for place in left]
    apart = worker_plan.workers > 1 or work.folds.n > MAX_UNINTERRUPTIBLE_ROWS
    apart = apart and work.device is None
    runs = (in_workers if apart else in_turn)(worker_plan, partial(run_unit, work), todo)
    for done, found in runs:
        setting, split = units[left[done]]
        if journal is not None and not found.failed:
            for candidate, values in zip(setting.models, found.values, strict=True):
                lams = list(candidate.lams)
                entry = lams, values, found.weighted
                journal.write(_key(setting, candidate, split), entry, part=json.dumps(lams))
        yield left[done], found


def _key(setting: Setting, candidate: CandidateModel, split: int) -> str:
    words = candidate.spec.words()
    del words["lam"]
    return json.dumps([setting.words, split, words])


def _recall(journal: Journal, setting: Setting, split: int) -> Found | None:
    """A unit from the journal, if it has all of its lams."""
    values, weighted = [], False
    for candidate in setting.models:
        parts: dict[float, TestValues] = {}
        for lams, known, with_weights in journal.read(_key(setting, candidate, split)):
            weighted |= bool(with_weights)
            parts |= {lam: known.take([i]) for i, lam in enumerate(lams)}
        if not all(lam in parts for lam in candidate.lams):
            return None
        values.append(TestValues.stack([parts[lam] for lam in candidate.lams]))
    return Found(values, weighted, "", 0.0)
