"""A search over pipelines: preprocessing is fitted in every training part.

Candidates that share their preprocessing are one *setting*. A setting and a split are one unit of
work: the steps are fitted once, to the training rows; every kernel of the setting has one matrix
on training and test rows, made from distances that all of its gammas share; and all lams of a
kernel share one decomposition or path (onefit.heldout.train_test). So k decompositions per kernel
replace k fits per kernel and lam, and every score is that of an honest refit: gamma="scale",
class weights and widths of a loss come from the training rows too, as in GridSearchCV.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed

from onefit._describe import describe
from onefit._validation import check_weights
from onefit.certificate import EXACT_TOLERANCE
from onefit.estimators.unused import UnusedParameterWarning
from onefit.folds import Folds
from onefit.heldout.train_test import TestValues, predict_test
from onefit.journal import Journal
from onefit.kernels import Geometry, is_objects, number_type
from onefit.linalg import LinAlgError
from onefit.search.grid import CandidateModel, candidate_models, jobs
from onefit.search.preprocess import (
    Preprocessed,
    StepError,
    kernel_estimator,
    kernel_path,
    preprocess,
    with_stand_in,
)
from onefit.search.random import settings
from onefit.search.workers import Outcome, Task, WorkerPlan
from onefit.spec import Spec

Array = NDArray[Any]

__all__ = ["Found", "PipelineSetup", "Setting", "Work", "outcomes_of", "run_units", "settings_of"]

#: rows up to which the distances of a split are kept for all of its kernels
MAX_ROWS_KEPT = 6000


@dataclass(frozen=True)
class Setting:
    """Candidates that share their preprocessing.

    Attributes
    ----------
    estimator : the whole estimator, with a stand-in for the kernel estimator
    machines : list of CandidateModel, whose indices are those of the candidates of the search
    words : str
        The preprocessing in words, for journals.
    """

    estimator: Any
    machines: list[CandidateModel]
    words: str


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
    """What tells two values of a parameter apart."""
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
    return Setting(stand_in, group, describe(stand_in))


@dataclass(frozen=True)
class Work:
    """What every unit needs.

    Attributes
    ----------
    X, y : all rows
    params : metadata of the fits
    folds : Folds
    error_score : "raise" or a number
    """

    X: Any = field(repr=False)
    y: Any = field(repr=False)
    params: dict[str, Any] = field(repr=False)
    folds: Folds
    error_score: Any = "raise"


@dataclass(frozen=True)
class Found:
    """Values of one split by the machines of one setting.

    Attributes
    ----------
    values : list of TestValues, one per machine
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


def run_unit(work: Work, setting: Setting, split: int) -> Found:
    """Fit the steps to the training part of a split, and predict its test rows."""
    start = perf_counter()
    train, test = work.folds.train[split], work.folds.test[split]
    try:
        data = preprocess(setting.estimator, work.X, work.y, work.params, train, test, split)
        with warnings.catch_warnings():
            # a grid may pair a kernel with parameters of another
            warnings.simplefilter("ignore", UnusedParameterWarning)
            values = _evaluate(setting, data)
    except StepError as error:
        if isinstance(work.error_score, str):
            raise
        empty = [TestValues.empty(len(one.lams), test.size, 1) for one in setting.machines]
        return Found(empty, False, str(error), perf_counter() - start)
    return Found(values, data.sample_weight is not None, "", perf_counter() - start)


def _evaluate(setting: Setting, data: Preprocessed) -> list[TestValues]:
    first = clone(setting.machines[0].estimator)
    rows = first._validate_X(data.X, ensure_min_samples=2)
    Y = first._code_targets(data.y, number_type(rows))
    s = check_weights(data.sample_weight, rows)
    test = first._validate_X(data.X_test, reset=False)
    found: dict[tuple[int, ...], TestValues] = {}
    ready = []
    for machine in setting.machines:
        one = replace(machine, estimator=clone(machine.estimator))
        one.estimator._copy_data_attributes(first)
        if one.spec.precomputed or one.spec.approximation is not None or is_objects(rows):
            found[one.indices] = _by_fits(one, data)
        else:
            ready.append(one)
    if ready:
        found |= _on_kernels(ready, rows, test, Y, s)
    values = [found[machine.indices] for machine in setting.machines]
    return [_back(data, one) for one in values] if data.wrappers else values


def _on_kernels(
    ready: list[CandidateModel], rows: Any, test: Any, Y: Array, s: Array
) -> dict[tuple[int, ...], TestValues]:
    """Values of machines with a kernel matrix, one for all that share a kernel."""
    work = sorted(jobs(ready, rows, Y, s), key=lambda job: job.kernel.metrics)
    m = test.shape[0]
    sparse = sp.issparse(rows) or sp.issparse(test)
    both = sp.csr_array(sp.vstack([rows, test])) if sparse else np.concatenate([rows, test])
    geometry = Geometry(both, keep=len(work) > 1 and both.shape[0] <= MAX_ROWS_KEPT)
    # targets of test rows are not used
    Y = np.asfortranarray(np.concatenate([Y, np.repeat(Y[:1], m, axis=0)]))
    s = np.concatenate([s, np.zeros(m, dtype=s.dtype)])
    found = {}
    for job in work:
        K = job.kernel.matrix(geometry)
        for machine in job.models:
            problem = machine.spec.problem(K, Y, s, definite=job.kernel.definite)
            values = predict_test(problem, np.array(machine.lams))
            # training rows of weight zero come before the test rows
            found[machine.indices] = replace(values, values=values.values[:, -m:])
    return found


def _by_fits(machine: CandidateModel, data: Preprocessed) -> TestValues:
    """A fit per lam, where there is no kernel matrix of the test rows."""
    parts: list[tuple[Array | None, float, bool, int, str]] = []
    found = None
    for lam in machine.lams:
        model = clone(machine.estimator).set_params(lam=lam)
        try:
            model.fit(data.X, data.y, sample_weight=data.sample_weight)
            values = np.asarray(model._decision(data.X_test), dtype=np.float64)
        except (LinAlgError, FloatingPointError) as error:
            parts.append((None, np.nan, False, 0, str(error)))
            continue
        scale = (
            max(float(np.std(np.asarray(data.y, dtype=float))), 1e-300) if _numbers(data.y) else 1.0
        )
        exact = bool(model.error_ <= EXACT_TOLERANCE * scale)
        parts.append((values, float(model.error_), exact, int(np.max(model.n_iter_)), ""))
        found = values
    shape = (1, 1) if found is None else found.shape
    none = np.full(shape, np.nan)
    return TestValues(
        np.stack([none if one[0] is None else one[0] for one in parts]),
        np.array([one[1] for one in parts]),
        np.array([one[2] for one in parts]),
        np.array([one[3] for one in parts], dtype=np.intp),
        [one[4] for one in parts],
    )


def _numbers(y: Any) -> bool:
    return np.asarray(y).dtype.kind in "fiu"


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
) -> Iterator[tuple[int, int, Found]]:
    """Yield (setting, split, values) of every unit, those of the journal first."""
    left: list[tuple[int, int]] = []
    for i, setting in enumerate(group):
        for split in range(len(work.folds)):
            known = None if journal is None else _recall(journal, setting, split)
            if known is None:
                left.append((i, split))
            else:
                yield i, split, known
    if not left:
        return
    if journal is not None:
        journal.check_writable()
    if worker_plan.workers == 1:
        done: Any = (_work(work, group[i], i, split) for i, split in left)
    else:
        parallel = Parallel(
            n_jobs=worker_plan.workers, return_as="generator_unordered", batch_size=1
        )
        done = parallel(delayed(_work)(work, group[i], i, split) for i, split in left)
    for i, split, found in done:
        if journal is not None and not found.failed:
            for machine, values in zip(group[i].machines, found.values, strict=True):
                lams = list(machine.lams)
                entry = lams, values, found.weighted
                journal.write(_key(group[i], machine, split), entry, part=json.dumps(lams))
        yield i, split, found


def _work(work: Work, setting: Setting, i: int, split: int) -> tuple[int, int, Found]:
    return i, split, run_unit(work, setting, split)


def _key(setting: Setting, machine: CandidateModel, split: int) -> str:
    words = machine.spec.words()
    del words["lam"]
    return json.dumps([setting.words, split, words])


def _recall(journal: Journal, setting: Setting, split: int) -> Found | None:
    """A unit from the journal, if it has all of its lams."""
    values, weighted = [], False
    for machine in setting.machines:
        parts: dict[float, TestValues] = {}
        for lams, known, with_weights in journal.read(_key(setting, machine, split)):
            weighted |= bool(with_weights)
            parts |= {lam: known.take([i]) for i, lam in enumerate(lams)}
        if not all(lam in parts for lam in machine.lams):
            return None
        values.append(TestValues.stack([parts[lam] for lam in machine.lams]))
    return Found(values, weighted, "", 0.0)


def outcomes_of(
    task: Task, group: list[Setting], found: dict[tuple[int, int], Found], error_score: Any
) -> list[Outcome]:
    """Scores of all candidates, from the values of all units."""
    folds, outcomes = task.sample.folds, []
    for i, setting in enumerate(group):
        units = [found[i, k] for k in range(len(folds))]
        seconds = sum(unit.seconds for unit in units)
        lams = sum(len(machine.lams) for machine in setting.machines)
        for place, machine in enumerate(setting.machines):
            outcomes.append(_outcome(task, machine, units, place, seconds / lams, error_score))
    return sorted(outcomes, key=lambda one: min(one.indices))


def _outcome(
    task: Task,
    machine: CandidateModel,
    units: list[Found],
    place: int,
    seconds: float,
    error_score: Any,
) -> Outcome:
    start = perf_counter()
    parts = [unit.values[place] for unit in units]
    q = max(one.values.shape[2] for one, unit in zip(parts, units, strict=True) if not unit.failed)
    values = np.concatenate(
        [
            np.full((*one.values.shape[:2], q), np.nan) if one.values.shape[2] != q else one.values
            for one in parts
        ],
        axis=1,
    )
    lost = np.stack([np.isnan(one.values).any(axis=(1, 2)) for one in parts], axis=1)
    reasons = [
        next(
            (
                unit.failed or f"split {k}: {part.reasons[i]}"
                for k, (part, unit) in enumerate(zip(parts, units, strict=True))
                if lost[i, k]
            ),
            "",
        )
        for i in range(len(machine.lams))
    ]
    done = np.array([not reason for reason in reasons])
    failed = np.array([bool(unit.failed) for unit in units])
    some = done if not failed.any() else np.ones_like(done)
    shown = values if not failed.any() else np.where(np.isnan(values), 0.0, values)
    scores: dict[str, Array] = {}
    pooled: dict[str, Array] = {}
    if some.any():
        for name, one in task.scoring.score(machine.estimator, shown[some]).items():
            scores[name] = np.full((some.size, one.shape[1]), np.nan)
            scores[name][some] = one
            fill = error_score if failed.any() else np.nan
            scores[name][lost] = fill
    if task.pooled is not None and done.any():
        for name, one in task.pooled.score(machine.estimator, values[done]).items():
            pooled[name] = np.full(done.size, np.nan)
            pooled[name][done] = one[:, 0]
    steps = np.stack([one.steps for one in parts], axis=1)
    return Outcome(
        indices=machine.indices,
        method="train_test",
        scores=scores,
        pooled=pooled,
        values=values,
        exact=np.stack([one.exact for one in parts], axis=1),
        error=np.stack([one.error for one in parts], axis=1),
        moved=np.zeros_like(steps),
        steps=steps,
        order=None,
        reasons=reasons,
        criterion=None,
        fit_seconds=seconds,
        score_seconds=(perf_counter() - start) / len(machine.lams),
    )


@dataclass(frozen=True)
class PipelineSetup:
    """What the end of a search needs to know of it, see :class:`onefit.search.setup.Setup`."""

    candidates: list[dict[str, Any]] = field(repr=False)
    model: Any
    settings: list[Setting] = field(repr=False)
    folds: Folds
    sample: Any = field(repr=False)
    worker_plan: WorkerPlan
    choices: list[Any] = field(default_factory=list)

    continuous = False

    def _of(self, index: int) -> CandidateModel:
        group = (one for setting in self.settings for one in setting.machines)
        return next(one for one in group if index in one.indices)

    @property
    def plain(self) -> bool:
        """Whether held-out values have the columns of the targets."""
        group = [one for setting in self.settings for one in setting.machines]
        return all(one.spec.coding.columns_are_targets for one in group)

    def model_of(self, index: int) -> Any:
        """The kernel estimator of a candidate, with all its parameters."""
        one = self._of(index)
        lam = one.lams[one.indices.index(index)]
        found = clone(one.estimator).set_params(lam=lam)
        found._copy_data_attributes(self.model)
        return found

    def spec_of(self, index: int) -> Spec:
        """The spec of a candidate."""
        found: Spec = self.model_of(index).spec()
        return found

    @cached_property
    def lams(self) -> Array:
        """The lam of every candidate."""
        return np.array([self.spec_of(i).lam for i in range(len(self.candidates))])

    @cached_property
    def gammas(self) -> Array:
        """The gamma of every candidate; infinite where it is a rule."""
        found = [self.spec_of(i).gamma for i in range(len(self.candidates))]
        return np.array([np.inf if isinstance(one, str) else np.mean(one) for one in found])
