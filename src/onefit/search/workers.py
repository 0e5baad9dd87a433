"""The work of a search: one job per kernel, side by side in processes or one after the other.

BLAS calls hold the interpreter's lock, so workers are processes (joblib's default); each gets its
share of the cores for BLAS. X travels to a worker, scores and held-out values come back, and a
kernel matrix never leaves its process. Jobs that run one
after the other in this process share the distances between the rows.

A LAPACK call cannot be interrupted. So a single worker is a process of its own too where such a
call may take long: this process handles Ctrl-C at once, and finished work is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from multiprocessing import Manager
from typing import Any

from joblib import cpu_count, effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from onefit.kernels import Geometry
from onefit.linalg import is_elsewhere
from onefit.linalg.which import named_device
from onefit.search.grid import Job
from onefit.search.job import run_job
from onefit.search.outcome import Outcome, Task

#: rows up to which BLAS threads spend more time waiting for each other than they save
MAX_SINGLE_THREAD_ROWS = 1000
#: rows beyond which a LAPACK call may delay Ctrl-C noticeably
MAX_UNINTERRUPTIBLE_ROWS = 3000

__all__ = [
    "MAX_UNINTERRUPTIBLE_ROWS",
    "WorkerPlan",
    "in_turn",
    "in_workers",
    "run_jobs",
]


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
    """BLAS threads of each worker: its share of the cores, at most the limit of the environment."""
    pools: list[int] = [
        one["num_threads"] for one in _threads().info() if one["user_api"] == "blas"
    ]
    return max(1, min(int(cpu_count()) // workers, max(pools, default=1)))


def limited(threads: int | None) -> AbstractContextManager[Any]:
    """A context with this number of BLAS threads; None does not change it."""
    if threads is None:
        return nullcontext()
    limit: AbstractContextManager[Any] = _threads().limit(limits=threads)
    return limit


def run_jobs(
    task: Task, jobs: Sequence[Job], worker_plan: WorkerPlan
) -> Iterator[tuple[int, list[Outcome]]]:
    """Yield (place, outcomes) of every job as it is done."""
    if worker_plan.devices:
        return _on_devices(task, jobs, worker_plan)
    if worker_plan.workers == 1 and not _uninterruptible(task, jobs):
        return _sharing_distances(task, jobs, worker_plan.threads)
    return in_workers(worker_plan, partial(run_job, task), jobs)


def in_workers(
    worker_plan: WorkerPlan, function: Callable[[Any], Any], items: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Yield (place, result) of a function of every item, computed in other processes.

    With one worker it is another process, too, so that this one can be interrupted at once.
    """
    alone, (backend, _) = worker_plan.workers == 1, get_active_backend()
    streams = getattr(backend, "supports_return_generator", False)  # results as they are done
    parallel = Parallel(
        # one item at a time needs a second worker, without which joblib stays in this process
        n_jobs=max(2, worker_plan.workers),
        pre_dispatch=1 if alone else "2 * n_jobs",
        return_as="generator_unordered" if streams else "list",
        batch_size=1,
    )
    inside = None if worker_plan.shared else worker_plan.threads
    with limited(worker_plan.threads if worker_plan.shared else None):
        yield from parallel(
            delayed(_placed)(inside, place, function, item) for place, item in enumerate(items)
        )


def in_turn(
    worker_plan: WorkerPlan, function: Callable[[Any], Any], items: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """The same in this process, one item after the other."""
    for place, item in enumerate(items):
        with limited(worker_plan.threads):
            found = function(item)
        yield place, found


def _placed(
    threads: int | None, place: int, function: Callable[[Any], Any], item: Any
) -> tuple[int, Any]:
    with limited(threads):
        return place, function(item)


def _on_devices(
    task: Task, jobs: Sequence[Job], worker_plan: WorkerPlan
) -> Iterator[tuple[int, list[Outcome]]]:
    """One process per device; each job takes a device that is free."""
    with Manager() as manager:
        free = manager.Queue()
        for name in worker_plan.devices:
            free.put(name)
        yield from in_workers(worker_plan, partial(_on_free_device, task, free), jobs)


def _on_free_device(task: Task, free: Any, job: Job) -> list[Outcome]:
    """A job on a device that is free."""
    name = free.get()
    try:
        device = named_device(name)
        assert device is not None
        sample = replace(task.sample, X=device.asarray(task.sample.X))
        return run_job(replace(task, sample=sample), job)
    finally:
        free.put(name)


def _uninterruptible(task: Task, jobs: Sequence[Job]) -> bool:
    """Whether a call may take long that no signal reaches, and can be made in another process."""
    models = [model for job in jobs for model in job.models]
    return (
        task.sample.folds.n > MAX_UNINTERRUPTIBLE_ROWS
        and not is_elsewhere(task.sample.X)
        and not all(model.method.products_only for model in models)  # type: ignore[union-attr]
    )


def _sharing_distances(
    task: Task, jobs: Sequence[Job], threads: int
) -> Iterator[tuple[int, list[Outcome]]]:
    """One after the other, ordered by the distances they need, which are computed once."""
    order = sorted(range(len(jobs)), key=lambda i: jobs[i].kernel.metrics)
    geometry = Geometry(task.sample.X, keep=len(jobs) > 1)
    for turn, place in enumerate(order):
        with limited(threads):
            outcomes = run_job(task, jobs[place], geometry)
        yield place, outcomes
        later = {metric for i in order[turn + 1 :] for metric in jobs[i].kernel.metrics}
        for metric in set(jobs[place].kernel.metrics) - later:
            geometry.drop(metric)
