"""Refine lam where it has an interval, while the kernel is prepared.

A model with an interval is a job of its own: kernel matrix, preparation (the eigendecomposition
of method "eigen") and coarse grid first, then Brent's bounded minimisation around every local
minimum of the grid, on the same preparation: a method is prepared once and serves any lam. Criteria
keep what they decomposed, too.

**Journal.** The coarse grid is kept in it, and a search that is resumed from its journal refines
again, to the same numbers. With several workers *and* a journal, the grid is written down before
the refinement begins, which then prepares each kernel a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.utils.parallel import Parallel, delayed

from onefit.folds import Folds
from onefit.heldout import HeldOutMethod, Prepared
from onefit.problem import Problem
from onefit.scoring.aggregate import aggregate
from onefit.search.continuous import brackets
from onefit.search.grid import Job
from onefit.search.resume import Run
from onefit.search.workers import Outcome, Task, WorkerPlan, run_job, run_model

if TYPE_CHECKING:
    from onefit.search.setup import Setup

Array = NDArray[Any]
#: the lambdas tried beyond the coarse grid, and what came of them
Path = list[tuple[float, Outcome]]

__all__ = ["Explorer"]

#: width, in log lam, to which a minimum is found, and the most evaluations spent on one
LOG_LAM_TOLERANCE, MAX_EVALUATIONS_PER_MINIMUM = 1e-2, 20


@dataclass
class Explorer:
    """Runs jobs as ``run`` does, and refines those with an interval.

    Parameters
    ----------
    task : Task
    worker_plan : WorkerPlan
    metric : str or None
        The score to refine, unless the task has a criterion.
    run : callable
        Runs jobs as they are.
    journalled : bool
        Whether ``run`` keeps what it did in a journal.
    """

    task: Task
    worker_plan: WorkerPlan
    metric: str | None
    run: Run
    journalled: bool
    paths: dict[tuple[int, ...], Path] = field(default_factory=dict)

    def __call__(self, jobs: list[Job]) -> Iterator[tuple[int, list[Outcome]]]:
        """Yield (place, outcomes) of every job's coarse grid once it is refined."""
        if self.worker_plan.workers == 1:
            yield from self._in_turn(jobs)
            return
        known = dict(self.run(jobs)) if self.journalled else {}
        parallel = Parallel(n_jobs=self.worker_plan.workers)
        found = parallel(
            delayed(_explore)(self.task, job, self.metric, known.get(i))
            for i, job in enumerate(jobs)
        )
        for place, (outcomes, path) in enumerate(found):
            self.paths[outcomes[0].indices] = path
            yield place, outcomes

    def _in_turn(self, jobs: list[Job]) -> Iterator[tuple[int, list[Outcome]]]:
        live = [_keeping(job) for job in jobs]
        for place, outcomes in self.run(live):
            path = _refine(self.task, live[place], outcomes[0], self.metric)
            self.paths[outcomes[0].indices] = path
            live[place] = jobs[place]  # releases the kernel matrix
            yield place, outcomes

    def extend(self, setup: Setup, outcomes: list[Outcome]) -> tuple[Setup, list[Outcome]]:
        """The search with the lambdas found as candidates behind the others."""
        candidates, outcomes, jobs = list(setup.candidates), list(outcomes), []
        for job in setup.jobs:
            new = []
            for lam, outcome in self.paths[job.models[0].indices]:
                new.append((lam, len(candidates)))
                outcomes.append(replace(outcome, indices=(len(candidates),)))
                candidates.append(candidates[job.models[0].indices[0]] | {"lam": lam})
            jobs.append(_extended(job, new) if new else job)
        return replace(setup, candidates=candidates, jobs=jobs), outcomes


def _extended(job: Job, new: list[tuple[float, int]]) -> Job:
    """The job of one model with further lams, descending again."""
    (model,) = job.models
    both = sorted([*zip(model.lams, model.indices, strict=True), *new], key=lambda p: -p[0])
    lams, indices = zip(*both, strict=True)
    return replace(job, models=(replace(model, lams=lams, indices=indices),))


def _explore(
    task: Task, job: Job, metric: str | None, known: list[Outcome] | None
) -> tuple[list[Outcome], Path]:
    """The coarse grid of a job, unless it is known, and its refinement."""
    live = _keeping(job)
    outcomes = run_job(task, live) if known is None else known
    return outcomes, _refine(task, live, outcomes[0], metric)


def _refine(task: Task, job: Job, outcome: Outcome, metric: str | None) -> Path:
    """Every lambda evaluated between the neighbours of the local minima, and its outcome."""
    model, path = job.models[0], Path()
    if not model.continuous:
        return path
    values = _objective(task, outcome, metric)
    largest = float(np.max(values, where=np.isfinite(values), initial=-np.inf))

    def objective(x: float) -> float:
        lam = math.exp(x)
        path.append((lam, _evaluate(task, job, lam)))
        value = float(_objective(task, path[-1][1], metric)[0])
        return value if math.isfinite(value) else largest

    for low, high in brackets(np.array(model.lams), values):
        minimize_scalar(
            objective,
            bounds=(math.log(low), math.log(high)),
            method="bounded",
            options={"xatol": LOG_LAM_TOLERANCE, "maxiter": MAX_EVALUATIONS_PER_MINIMUM},
        )
    return path


def _evaluate(task: Task, job: Job, lam: float) -> Outcome:
    """A job's model at one more lambda."""
    (model,) = job.models
    alone = replace(model, lams=(lam,), indices=(0,))
    assert isinstance(model.method, _Kept)
    if model.method.problem is None:  # the coarse grid came from a journal
        (outcome,) = run_job(task, replace(job, models=(alone,)))
        return outcome
    return run_model(task, job, alone, model.method.problem, 0.0)


def _objective(task: Task, outcome: Outcome, metric: str | None) -> Array:
    """What is minimised, one number per lambda: the criterion, or the score turned round."""
    if outcome.criterion is not None:
        return outcome.criterion
    if metric is None or metric not in outcome.scores:
        return np.full(len(outcome.indices), np.nan)
    sizes = np.diff(task.sample.folds.offsets)
    pooled = outcome.pooled.get(metric)
    return -aggregate(task.how, outcome.scores[metric], sizes, pooled)


def _keeping(job: Job) -> Job:
    """The job, its model keeping what it was prepared with if it is to be refined."""
    first = job.models[0]
    if not first.continuous:
        return job
    assert first.method is not None
    return replace(job, models=(replace(first, method=_Kept(first.method)),))


class _Kept(HeldOutMethod):
    """A method with the problem it was prepared for; prepared once, it serves any lam."""

    def __init__(self, method: HeldOutMethod) -> None:
        self.method = method
        self.name = method.name  # type: ignore[misc]
        self.products_only = method.products_only  # type: ignore[misc]
        self.problem: Problem | None = None
        self.prepared: Prepared | None = None

    def prepare(self, problem: Problem, folds: Folds) -> Prepared:
        if self.prepared is None:
            self.problem = problem
            self.prepared = self.method.prepare(problem, folds)
        return self.prepared
