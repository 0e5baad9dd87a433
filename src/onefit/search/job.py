"""One job of a search: a kernel matrix, and every model on it.

Where lam has an interval, its coarse grid comes first. Then every local minimum on the grid is
refined between its neighbours by Brent's bounded minimisation. What the method prepared and the
criterion decomposed for the grid is used again, since both are the same for any lam.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from onefit._types import Array
from onefit.criteria.evidence import Evidence
from onefit.heldout import HeldOutPath
from onefit.kernels import Geometry, Linear, Polynomial, Precomputed
from onefit.kernels.stationary import Stationary
from onefit.linalg import LinAlgError, arrays_of, is_elsewhere
from onefit.linalg.device import Device
from onefit.problem import Problem
from onefit.search.continuous import brackets
from onefit.search.criterion import evaluate
from onefit.search.grid import CandidateModel, Job
from onefit.search.outcome import Outcome, Task
from onefit.search.rows import FoldedSample

__all__ = ["run_job"]

#: width, in log lam, to which a minimum is found: lam within 1 %
LOG_LAM_TOLERANCE = 1e-2


def run_job(task: Task, job: Job, geometry: Geometry | None = None) -> list[Outcome]:
    """Build the kernel matrix and evaluate every model on it; the last one may overwrite it."""
    start, sample = perf_counter(), task.sample
    # matrices of these kernels are made for this job alone
    own = isinstance(job.kernel, (Stationary, Linear, Polynomial)) and task.criterion is None
    outcomes = []
    with _device_errors(job, sample):
        K = _matrix(job, sample, geometry)
        share = (perf_counter() - start) / len(job.models)
        for model in job.models:
            problem = model.spec.problem(
                K,
                sample.Y,
                sample.s,
                may_overwrite=own and model is job.models[-1],
                definite=job.kernel.definite,
            )
            start = perf_counter() - share
            at = _Evaluator(task, job, model, problem)
            outcome = at(model.lams, start)
            if model.continuous:
                outcome = _refined(task, model, outcome, at)
            outcomes.append(replace(outcome, indices=model.indices))
    return outcomes


def _device_errors(job: Job, sample: FoldedSample) -> AbstractContextManager[Any]:
    """A context in which a device that runs out of memory raises an error with advice."""
    arrays = arrays_of(sample.X)
    if not isinstance(arrays, Device):
        return nullcontext()
    return arrays.within_memory(f"{job.kernel!r} on {sample.folds.n} rows")


def _matrix(job: Job, sample: FoldedSample, geometry: Geometry | None) -> Any:
    """The kernel matrix: by tiles, kept or not, for methods that need its products only."""
    approximation = job.models[0].spec.approximation
    if approximation is not None:
        return approximation.expand(job.kernel, sample.X, sample.s)
    products = all(model.method.products_only for model in job.models)  # type: ignore[union-attr]
    if is_elsewhere(sample.X):
        there: Any = job.kernel.tiles(sample.X)
        return there if job.tiled else there.hold()
    if not products or isinstance(job.kernel, Precomputed):
        return job.kernel.matrix(geometry or Geometry(sample.X, keep=False))
    tiles = job.kernel.tiles(sample.X)
    return tiles if job.tiled else tiles.hold()


class _Evaluator:
    """A model on its kernel matrix, prepared: its outcomes at any lambdas, of no candidates yet."""

    def __init__(self, task: Task, job: Job, model: CandidateModel, problem: Problem) -> None:
        method, folds = model.method, task.sample.folds
        assert method is not None
        self.task, self.job, self.model, self.problem = task, job, model, problem
        self.method = method.name
        self.failed = partial(HeldOutPath.failed, problem, folds, method.name)
        self.predict: Callable[[Array], HeldOutPath]
        try:
            self.predict = method.prepare(problem, folds).predict
        except (LinAlgError, FloatingPointError) as error:
            self.predict = partial(self.failed, str(error))
        self.kept: dict[str, Any] = {}  # what the criterion decomposed

    def __call__(self, lams: Sequence[float], start: float) -> Outcome:
        """The outcome at some lambdas, whose work began at ``start``."""
        try:
            held = self.predict(np.array(lams))
        except (LinAlgError, FloatingPointError) as error:
            held = self.failed(str(error), np.array(lams))
        task, fitted, share = self.task, perf_counter(), 1.0 / len(lams)
        outcome = Outcome.of(task, self.model, held, self.method)
        if task.criterion is not None:
            kernel = self.job.kernel
            evidence = Evidence(self.problem, kernel, tuple(lams), held.each(), self.kept)
            criterion, remarks = evaluate(task.criterion, evidence)
            reasons = [a or b for a, b in zip(outcome.reasons, remarks, strict=True)]
            outcome = replace(outcome, criterion=criterion, reasons=reasons)
        return replace(
            outcome,
            fit_seconds=(fitted - start) * share,
            score_seconds=(perf_counter() - fitted) * share,
        )


def _refined(
    task: Task, model: CandidateModel, coarse: Outcome, at: Callable[[list[float], float], Outcome]
) -> Outcome:
    """The coarse grid of an interval, and every lambda tried between its best neighbours."""
    costs, lams, parts = coarse.costs(task.metric), list[float](), [coarse]
    largest = float(np.max(costs, where=np.isfinite(costs), initial=-np.inf))

    def cost(log_lam: float) -> float:
        lams.append(math.exp(log_lam))
        parts.append(at(lams[-1:], perf_counter()))
        value = float(parts[-1].costs(task.metric)[0])
        return value if math.isfinite(value) else largest

    for low, high in brackets(np.array(model.lams), costs):
        minimize_scalar(
            cost,
            bounds=(math.log(low), math.log(high)),
            method="bounded",
            options={"xatol": LOG_LAM_TOLERANCE},
        )
    return replace(Outcome.joined(parts), refined=tuple(lams))
