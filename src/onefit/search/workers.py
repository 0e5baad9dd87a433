"""The work of a search: one job per kernel, side by side in processes or one after the other.

BLAS calls hold the interpreter's lock, so workers are processes (joblib's default); each gets its
share of the cores for BLAS. X travels to a worker, scores and held-out values come back, and a
kernel matrix never leaves its process. Jobs of one process share the distances between the rows:
all of them one after the other, those of a worker if the sample is small.

A LAPACK call cannot be interrupted. So a single worker is a process of its own too where such a
call may take long: whoever presses Ctrl-C is answered by this process, and what is finished stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing import Manager
from time import perf_counter
from typing import Any
from uuid import uuid4

import numpy as np
from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from numpy.typing import NDArray
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from onefit.criteria.evidence import Evidence
from onefit.heldout import HeldOutPath
from onefit.kernels import Geometry, Linear, Polynomial, Precomputed
from onefit.kernels.stationary import Stationary
from onefit.linalg import LinAlgError, arrays_of, is_elsewhere
from onefit.linalg.device import Device
from onefit.linalg.which import named_device
from onefit.problem import Problem
from onefit.search.criterion import CriterionLike, release
from onefit.search.grid import CandidateModel, Job
from onefit.search.rows import Sample
from onefit.search.scorers import Scoring

Array = NDArray[Any]

#: rows up to which BLAS threads spend more time waiting for each other than they save
MAX_SINGLE_THREAD_ROWS = 1000
#: rows beyond which a LAPACK call may take longer than a user who presses Ctrl-C wants to wait
MAX_UNINTERRUPTIBLE_ROWS = 3000
#: rows up to which a worker keeps distances, a few megabytes, from job to job
MAX_CACHED_DISTANCE_ROWS = 600

__all__ = [
    "MAX_UNINTERRUPTIBLE_ROWS",
    "Outcome",
    "Task",
    "WorkerPlan",
    "limited",
    "run_job",
    "run_jobs",
    "run_model",
]


@dataclass(frozen=True)
class Task:
    """What every job of a search needs beside its kernel.

    Attributes
    ----------
    sample : Sample
    scoring, pooled : Scoring
        By split; of all test rows at once, if the aggregate wants that.
    how : str
        The aggregate.
    criterion : CriterionLike or None
    """

    sample: Sample
    scoring: Scoring
    pooled: Scoring | None
    how: str
    criterion: CriterionLike | None = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of one model; L lambdas, k splits, N test rows, q targets.

    Attributes
    ----------
    indices : the candidates, one per lambda
    method : str
    scores : name -> (L, k) array
    pooled : name -> (L,) array
    values : (L, N, q) array
    exact, error, moved, steps : (L, k) arrays, see :class:`onefit.heldout.HeldOut`
    order : int or None
    reasons : list of str
        Why a candidate has no score, empty where it has one.
    criterion : (L,) array or None
    full : (L, n + 1, q) array or None
        See :class:`onefit.heldout.HeldOutPath`.
    fit_seconds, score_seconds : float
        A lambda's share.
    """

    indices: tuple[int, ...]
    method: str
    scores: dict[str, Array]
    pooled: dict[str, Array]
    values: Array = field(repr=False)
    exact: Array
    error: Array
    moved: Array
    steps: Array
    order: int | None
    reasons: list[str]
    criterion: Array | None
    fit_seconds: float
    score_seconds: float
    full: Array | None = field(repr=False, default=None)

    def take(self, places: list[int]) -> Outcome:
        """The outcome of some of the lambdas."""
        return replace(
            self,
            indices=tuple(self.indices[i] for i in places),
            scores={name: one[places] for name, one in self.scores.items()},
            pooled={name: one[places] for name, one in self.pooled.items()},
            reasons=[self.reasons[i] for i in places],
            criterion=None if self.criterion is None else self.criterion[places],
            full=None if self.full is None else self.full[places],
            **{
                name: getattr(self, name)[places]
                for name in ("values", "exact", "error", "moved", "steps")
            },
        )


def run_job(task: Task, job: Job, geometry: Geometry | None = None) -> list[Outcome]:
    """Build the kernel matrix and evaluate every model on it; the last one may overwrite it."""
    arrays = arrays_of(task.sample.X)
    if not isinstance(arrays, Device):
        return _run_job(task, job, geometry)
    with arrays.within_memory(f"{job.kernel!r} on {task.sample.folds.n} rows"):
        return _run_job(task, job, geometry)


def _run_job(task: Task, job: Job, geometry: Geometry | None) -> list[Outcome]:
    start = perf_counter()
    sample = task.sample
    release(task.criterion)
    K = _matrix(job, sample, geometry)
    share = (perf_counter() - start) / len(job.models)
    # matrices of these kernels are made for this job alone
    own = isinstance(job.kernel, (Stationary, Linear, Polynomial)) and task.criterion is None
    outcomes = []
    for model in job.models:
        problem = model.spec.problem(
            K,
            sample.Y,
            sample.s,
            may_overwrite=own and model is job.models[-1],
            definite=job.kernel.definite,
        )
        outcomes.append(run_model(task, job, model, problem, share))
    return outcomes


def _matrix(job: Job, sample: Sample, geometry: Geometry | None) -> Any:
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


def run_model(
    task: Task, job: Job, model: CandidateModel, problem: Problem, seconds: float
) -> Outcome:
    """Evaluate one model on its kernel matrix, which took ``seconds`` of its share to build."""
    start = perf_counter()
    held = _predict(task, model, problem)
    fitted = perf_counter()
    done, reasons = held.done, held.reasons
    scores = _scatter(
        task.scoring.score(model.estimator, held.values[done]) if done.any() else {}, done
    )
    pooled = {}
    if task.pooled is not None and done.any():
        found = task.pooled.score(model.estimator, held.values[done])
        pooled = {name: one[:, 0] for name, one in _scatter(found, done).items()}
    criterion = None
    if task.criterion is not None:
        criterion, remarks = task.criterion.evaluate(
            Evidence(problem, job.kernel, model.lams, held.each())
        )
        reasons = [a or b for a, b in zip(reasons, remarks, strict=True)]
    # counts are mostly small, or zero, and with leave-one-out there are many
    counts = (x.astype(np.min_scalar_type(x.max(initial=0))) for x in (held.moved, held.steps))
    moved, steps = counts
    share = 1.0 / len(model.lams)
    return Outcome(
        indices=model.indices,
        method=model.method.name,  # type: ignore[union-attr]
        scores=scores,
        pooled=pooled,
        values=held.values,
        exact=held.exact,
        error=held.error,
        moved=moved,
        steps=steps,
        order=held.order,
        reasons=reasons,
        criterion=criterion,
        fit_seconds=(seconds + fitted - start) * share,
        score_seconds=(perf_counter() - fitted) * share,
        full=held.full,
    )


def _predict(task: Task, model: CandidateModel, problem: Problem) -> HeldOutPath:
    """Held-out values at every lambda, with reasons where the numerics fail."""
    assert model.method is not None
    folds, lams = task.sample.folds, np.array(model.lams)
    try:
        return model.method.prepare(problem, folds).predict(lams)
    except (LinAlgError, FloatingPointError) as error:
        held = HeldOutPath.empty(problem, folds, model.method.name, lams)
        for i in range(len(held)):
            held.fail(i, str(error))
        return held


def _scatter(scores: dict[str, Array], done: Array) -> dict[str, Array]:
    """Scores of the lambdas that were done, with NaN for the others."""
    full = {}
    for name, one in scores.items():
        full[name] = np.full((done.size, one.shape[1]), np.nan)
        full[name][done] = one
    return full


@dataclass(frozen=True)
class WorkerPlan:
    """How many workers, and how many BLAS threads each.

    Attributes
    ----------
    shared : bool
        Whether the workers are threads of this process.
    devices : tuple of str
        Where they compute, a device for each worker; empty for where the rows are.
    """

    workers: int
    threads: int
    shared: bool = False
    devices: tuple[str, ...] = ()

    @classmethod
    def from_n_jobs(cls, n_jobs: int | None, jobs: int, n: int | None = None) -> WorkerPlan:
        """The number of workers of ``n_jobs`` and joblib's active backend, at most one per job.

        A worker never gets more BLAS threads than this process was started with
        (``OPENBLAS_NUM_THREADS`` and the like); one that works alone on few rows gets a single one.
        """
        workers = max(1, min(effective_n_jobs(n_jobs), jobs))
        backend, _ = get_active_backend()
        shared = bool(getattr(backend, "supports_sharedmem", False))
        few = workers == 1 and n is not None and n <= MAX_SINGLE_THREAD_ROWS
        return cls(workers, 1 if few else _threads_each(workers), shared)

    @property
    def streams(self) -> bool:
        """Whether joblib's active backend yields results as they are done."""
        backend, _ = get_active_backend()
        return bool(getattr(backend, "supports_return_generator", False))

    @classmethod
    def on_devices(cls, devices: tuple[Any, ...], jobs: int) -> WorkerPlan:
        """A worker for each device; one alone is this process."""
        names = devices[:jobs] if len(devices) > 1 else ()
        workers = max(1, len(names))
        return cls(workers, _threads_each(workers), devices=names if workers > 1 else ())


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _threads_each(workers: int) -> int:
    """BLAS threads of each worker: its share of the cores, or what the environment allows."""
    pools: list[int] = [
        one["num_threads"] for one in _threads().info() if one["user_api"] == "blas"
    ]
    return max(1, min(int(cpu_count()) // workers, max(pools, default=1)))


def limited(threads: int | None) -> AbstractContextManager[Any]:
    """A context with so many BLAS threads; None leaves them as they are."""
    if threads is None:
        return nullcontext()
    limit: AbstractContextManager[Any] = _threads().limit(limits=threads)
    return limit


#: the distances of the last search with a small sample that this process worked for
_geometries: dict[str, Geometry] = {}


def _distances(search: str, X: Any) -> Geometry:
    """Those that the jobs of a search share in this process, unless they would take much memory."""
    if X.shape[0] > MAX_CACHED_DISTANCE_ROWS:
        return Geometry(X, keep=False)
    geometry = _geometries.get(search)
    if geometry is None:
        geometry = Geometry(X)
        _geometries.clear()
        _geometries[search] = geometry
    # not from the cache again: another thread may be clearing it
    return geometry


def _work(
    task: Task, job: Job, place: int, search: str, threads: int | None
) -> tuple[int, list[Outcome]]:
    with limited(threads):
        return place, run_job(task, job, _distances(search, task.sample.X))


def run_jobs(
    task: Task, jobs: list[Job], worker_plan: WorkerPlan
) -> Iterator[tuple[int, list[Outcome]]]:
    """Yield (place, outcomes) of every job as it is done."""
    if worker_plan.devices:
        yield from _on_devices(task, jobs, worker_plan)
        return
    alone = worker_plan.workers == 1
    if alone and not _uninterruptible(task, jobs):
        with limited(worker_plan.threads):
            yield from _in_turn(task, jobs)
        return
    parallel = Parallel(
        # one job at a time needs a second worker, without which joblib stays in this process
        n_jobs=max(2, worker_plan.workers),
        pre_dispatch=1 if alone else "2 * n_jobs",
        return_as="generator_unordered" if worker_plan.streams else "list",
        batch_size=1,
    )
    search = uuid4().hex
    inside = None if worker_plan.shared else worker_plan.threads
    try:
        with limited(worker_plan.threads if worker_plan.shared else None):
            yield from parallel(
                delayed(_work)(task, job, i, search, inside) for i, job in enumerate(jobs)
            )
    finally:
        _geometries.pop(search, None)


def _on_devices(
    task: Task, jobs: list[Job], worker_plan: WorkerPlan
) -> Iterator[tuple[int, list[Outcome]]]:
    """One process per device; each job takes a device that is free."""
    with Manager() as manager:
        free = manager.Queue()
        for name in worker_plan.devices:
            free.put(name)
        parallel = Parallel(
            n_jobs=worker_plan.workers,
            backend="loky",
            return_as="generator_unordered",
            batch_size=1,
        )
        yield from parallel(
            delayed(_on_free_device)(task, job, i, free, worker_plan.threads)
            for i, job in enumerate(jobs)
        )


def _on_free_device(
    task: Task, job: Job, place: int, free: Any, threads: int
) -> tuple[int, list[Outcome]]:
    """A job on a device that is free."""
    name = free.get()
    try:
        device = named_device(name)
        assert device is not None
        sample = replace(task.sample, X=device.asarray(task.sample.X))
        with limited(threads):
            return place, run_job(replace(task, sample=sample), job)
    finally:
        free.put(name)


def _uninterruptible(task: Task, jobs: list[Job]) -> bool:
    """Whether a call may take long that no signal reaches, and can be made in another process."""
    models = [model for job in jobs for model in job.models]
    return (
        task.sample.folds.n > MAX_UNINTERRUPTIBLE_ROWS
        and not is_elsewhere(task.sample.X)
        and not any(model.continuous for model in models)
        and not all(model.method.products_only for model in models)  # type: ignore[union-attr]
    )


def _in_turn(task: Task, jobs: list[Job]) -> Iterator[tuple[int, list[Outcome]]]:
    """One after the other, ordered by the distances they need, which are computed once."""
    order = sorted(range(len(jobs)), key=lambda i: jobs[i].kernel.metrics)
    geometry = Geometry(task.sample.X, keep=len(jobs) > 1)
    for turn, place in enumerate(order):
        yield place, run_job(task, jobs[place], geometry)
        later = {metric for i in order[turn + 1 :] for metric in jobs[i].kernel.metrics}
        for metric in set(jobs[place].kernel.metrics) - later:
            geometry.drop(metric)
