"""A search over rows in memory: jobs by kernel, whose outcomes carry held-out values."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import indexable

from onefit._types import Array
from onefit.callbacks import callbacks_of
from onefit.config import get_config
from onefit.estimators.device import HostData, model_to_host
from onefit.estimators.unused import UnusedParameterWarning
from onefit.heldout import HeldOut
from onefit.plan import spread
from onefit.scoring import ROW_METRICS, one_standard_error
from onefit.search import continuous
from onefit.search.criterion import get_criterion, release
from onefit.search.descend import Descent, descend
from onefit.search.evaluation import Evaluated, SearchRows
from onefit.search.explore import Explorer
from onefit.search.grid import Job
from onefit.search.inputs import FitInputs, only_weight, route
from onefit.search.intervals import interval_columns, supports
from onefit.search.race import prove, race, racing
from onefit.search.results import Results, heldout_of, tabulate
from onefit.search.resume import Run, Runner, fingerprint, make_runner
from onefit.search.scorers import Scoring, build_scoring
from onefit.search.setup import Setup, set_up
from onefit.search.winner import values_of
from onefit.search.workers import Outcome, Task

__all__ = ["EvaluatedInMemory", "RowsInMemory", "ended", "fit_winner", "make_task"]


class RowsInMemory(SearchRows):
    """Rows in memory, of the host or of a device.

    Parameters
    ----------
    search : KernelSearchCV
    X, y, params : what ``fit`` was given
    scorers : what scikit-learn makes of ``scoring``
    metric : str or bool
        See :func:`onefit.search.inputs.resolve_scorers`.
    """

    def __init__(
        self, search: Any, X: Any, y: Any, params: dict[str, Any], scorers: Any, metric: Any
    ) -> None:
        self.search = search
        self.host = host = HostData.of(get_config()["device"], X, y, params)
        self.X, self.y = indexable(host.X, host.y)
        routed = route(search, scorers, host.params)
        self.weight = only_weight(routed.estimator.fit)
        self.groups = routed.splitter.split.get("groups")
        setup = set_up(
            search, self.X, self.y, self.weight, routed.splitter.split, host.device, host.names
        )
        for callback in callbacks_of(search):
            if hasattr(callback, "on_iteration"):
                setup = setup.watched(callback.on_iteration)
        if search._deadline is not None:
            setup = setup.watched(search._deadline.check)
        self.setup = setup
        score_params = routed.scorer.score
        self.task = make_task(search, setup, scorers, self.X, self.y, score_params, metric)
        self.given = FitInputs(
            scorers, self.X, self.y, self.weight, score_params, self.groups is not None
        )
        self.names = self.task.scoring.names
        self.subtasks = 1 + (search.refit is not False)

    def check(self, metric: Any) -> None:
        """Refuse what does not go with the metric, or would not fit into memory."""
        if self.setup.continuous or self.setup.ranges:
            continuous.check(self.search, metric)
        how = racing(self.search.method)
        if how is not None and how.proven and not supports(self.task.scoring, metric):
            known = ", ".join(func.__name__ for func in ROW_METRICS)
            raise ValueError(
                f"Race(proven=True) needs a score whose interval follows from bounds of held-out "
                f"values ({known}), not scoring={self.search.scoring!r}; use method='exact'"
            )
        self.setup.check_memory()

    def evaluate(self, metric: Any, context: Any) -> EvaluatedInMemory:
        """Run one job per kernel; then repair, descend or refine, if the search asks for that."""
        search, setup, task = self.search, self.setup, self.task
        about = partial(fingerprint, search, self.X, self.y, self.weight, setup, metric)
        run = make_runner(search.journal, about, task, setup.worker_plan)
        explorer = Explorer(task, setup.worker_plan, metric, run, search.journal is not None)
        outcomes = _run(search, setup, explorer if setup.continuous else run, context)
        setup, outcomes = setup.tried(outcomes)
        attributes = {"folds_": setup.folds, "groups_": self.groups}
        if racing(search.method):
            outcomes = _race(search, setup, task, run, outcomes, metric)
        if setup.ranges:
            setup, outcomes, descents = _descend(search, setup, task, run, outcomes, metric)
            attributes["descents_"] = descents
        if setup.continuous:
            setup, outcomes = explorer.extend(setup, outcomes)
        release(task.criterion)  # the winner's fit needs the memory
        sizes = np.diff(setup.folds.offsets)
        grouped = self.given.grouped
        return EvaluatedInMemory(
            setup, outcomes, sizes, grouped, attributes, task, self.given, self._refit
        )

    def _refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        X = self.host.to_device(self.X)
        params = {"sample_weight": self.weight}
        found = fit_winner(self.search, X, self.y, params, fitted, context)
        if not self.host.given:
            model_to_host(found["best_estimator_"])
        return found


@dataclass
class EvaluatedInMemory(Evaluated):
    """Outcomes with held-out values.

    Attributes
    ----------
    task : Task
    given : FitInputs
    fit_all : callable
        Fits the winner to all rows.
    """

    task: Task = field(repr=False)
    given: FitInputs = field(repr=False)
    fit_all: Any = field(repr=False)

    @property
    def scoring(self) -> Scoring:
        return self.task.scoring

    def intervals(self) -> dict[str, Array]:
        return interval_columns(self.task, self.outcomes, len(self.setup.candidates))

    def held_out(self, index: int) -> HeldOut:
        held = heldout_of(index, self.outcomes, self.setup.folds)
        known = self.setup.spec_of(index).coding.decoders
        return replace(held, targets=self.given.y, sample_weight=self.given.weight, **known)

    def heldouts(self) -> list[HeldOut]:
        return [self.held_out(i) for i in range(len(self.setup.candidates))]

    def judged_by(self, index: int, held: HeldOut) -> tuple[FitInputs, Scoring]:
        return self.given, self.task.scoring

    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        found: dict[str, Any] = self.fit_all(fitted, context)
        return found


def make_task(
    search: Any, setup: Any, scorers: Any, X: Any, y: Any, params: Any, metric: Any
) -> Task:
    """What the workers need, every scorer tried once."""
    build = partial(
        build_scoring, scorers, setup.model, X, y, params, setup.folds, plain=setup.plain
    )
    pooled = None
    if search.aggregate == "pooled":
        pooled = build(pooled=True)
    scoring = build(undefined=pooled is not None)
    criterion = get_criterion(search.criterion, keep=setup.continuous)
    return Task(setup.sample, scoring, pooled, search.aggregate, criterion)


def _run(search: Any, setup: Setup, run: Run, context: Any) -> list[Outcome]:
    """Run all jobs, telling callbacks and reader when each is done."""
    jobs, deadline = setup.jobs, search._deadline
    if deadline is not None:  # whatever it has time for covers the grid
        jobs = [jobs[i] for i in spread(len(jobs))]
    parent = context.subcontext(
        task_name="search", max_subtasks=len(jobs), sequential_subtasks=False
    ).call_on_fit_task_begin(estimator=search)
    tasks = [parent.subcontext(task_name="kernel", task_id=i) for i in range(len(jobs))]
    for one in tasks:
        one.call_on_fit_task_begin(estimator=search)
    if search.verbose > 0:
        print(
            f"{len(setup.candidates)} candidates on {len(jobs)} kernels, "
            f"{len(setup.folds)} splits, "
            f"{setup.worker_plan.workers} workers with {setup.worker_plan.threads} threads"
        )
    outcomes: list[Outcome] = []
    with ended(run(jobs)) as found_so_far:
        for done, (place, found) in enumerate(found_so_far, start=1):
            outcomes += found
            tasks[place].call_on_fit_task_end(estimator=search)
            if search.verbose > 1:
                methods = ", ".join(dict.fromkeys(one.method for one in found))
                print(f"[{done}/{len(jobs)}] {jobs[place].kernel} by {methods}")
            if deadline is not None and done < len(jobs) and deadline.stops(done, len(jobs)):
                break
    parent.call_on_fit_task_end(estimator=search)
    return sorted(outcomes, key=lambda one: min(one.indices))


@contextmanager
def ended(runs: Iterator[Any]) -> Iterator[Iterator[Any]]:
    """Jobs that are ended with the context; of tasks cancelled for that, joblib need not warn."""
    try:
        yield runs
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            if isinstance(runs, Generator):
                runs.close()


def _race(
    search: Any, setup: Setup, task: Task, run: Run, outcomes: list[Outcome], metric: str
) -> list[Outcome]:
    """Exact values for the candidates that can win."""

    def totals(found: list[Outcome]) -> Any:
        return _tabulated(search, setup, task, found).totals[metric]

    def repair(jobs: list[Job]) -> list[Outcome]:
        return [one for _, found in run(jobs) for one in found]

    how = racing(search.method)
    assert how is not None
    if search._deadline is not None and search._deadline.left <= search._deadline.reserve:
        return outcomes  # those of the limit, flagged as not exact
    if how.proven:
        return prove(
            setup.jobs, outcomes, totals, repair, task, metric, search.refit is one_standard_error
        )
    return race(setup.jobs, outcomes, totals, repair)


def _descend(
    search: Any, setup: Setup, task: Task, run: Runner, outcomes: list[Outcome], metric: Any
) -> tuple[Setup, list[Outcome], list[Descent]]:
    """Further candidates, at the ends of descents from the best ones."""
    how = search._descent
    results = _tabulated(search, setup, task, outcomes)
    return descend(setup, run, outcomes, values_of(results, metric), metric, how)


def _tabulated(search: Any, setup: Setup, task: Task, outcomes: list[Outcome]) -> Results:
    sizes, names = np.diff(setup.folds.offsets), task.scoring.names
    return tabulate(setup.candidates, outcomes, names, sizes, search.aggregate)


def fit_winner(
    search: Any, X: Any, y: Any, params: dict[str, Any], fitted: dict[str, Any], context: Any
) -> dict[str, Any]:
    """The winner fitted to all rows with ``params``, metadata of the estimator's fit."""
    task = context.subcontext(task_name="refit-with-best-params")
    task.call_on_fit_task_begin(estimator=search, X=X, y=y)
    start = time.perf_counter()
    best = clone(search.estimator).set_params(**clone(fitted["best_params_"], safe=False))
    with warnings.catch_warnings():
        # a grid may pair a kernel with parameters of another, which the winner has too
        warnings.simplefilter("ignore", UnusedParameterWarning)
        best.fit(X, y, **params)
    found = {"best_estimator_": best, "refit_time_": time.perf_counter() - start}
    if hasattr(best, "feature_names_in_"):
        found["feature_names_in_"] = best.feature_names_in_
    task.call_on_fit_task_end(estimator=search, X=X, y=y)
    return found
