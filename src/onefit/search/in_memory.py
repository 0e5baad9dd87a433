"""A search over rows in memory, whose outcomes carry held-out values."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
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
from onefit.plan import Explanation, spread
from onefit.search import continuous
from onefit.search.criterion import get_criterion
from onefit.search.descend import Descent, descend
from onefit.search.evaluation import Evaluated, SearchRows
from onefit.search.inputs import FitInputs, only_weight, route
from onefit.search.intervals import interval_columns
from onefit.search.outcome import Outcome, Task
from onefit.search.race import left_out, racing, without_scores
from onefit.search.results import Results, heldout_of, tabulate
from onefit.search.resume import Run, Runner, fingerprint, make_runner
from onefit.search.scorers import Scoring, build_scoring
from onefit.search.setup import Setup, set_up
from onefit.search.winner import values_of

__all__ = ["EvaluatedInMemory", "HeldRows", "RowsInMemory", "fit_winner", "followed"]


class HeldRows(SearchRows):
    """Rows in memory: held-out values of every candidate are kept, and scored by any scorer.

    Parameters
    ----------
    search : KernelSearchCV
    setup : Setup
    given : FitInputs
    groups : array or None
    """

    def __init__(self, search: Any, setup: Setup, given: FitInputs, groups: Any) -> None:
        self.search, self.setup, self.given, self.groups = search, setup, given, groups
        build = partial(
            build_scoring, given.scorers, setup.model, given.X, given.y, given.params, setup.folds,
            plain=setup.plain,
        )  # fmt: skip
        pooled = build(pooled=True) if search.aggregate == "pooled" else None
        scoring = build(undefined=pooled is not None)
        criterion = get_criterion(search.criterion)
        self.task = Task(setup.sample, scoring, pooled, search.aggregate, criterion)
        self.names = scoring.names
        self.subtasks = 1 + (search.refit is not False)

    def evaluated(
        self, setup: Setup, outcomes: list[Outcome], **attributes: Any
    ) -> EvaluatedInMemory:
        """The outcomes of all candidates of ``setup``."""
        attributes |= {"folds_": setup.folds, "groups_": self.groups}
        sizes = np.diff(setup.folds.offsets)
        return EvaluatedInMemory(setup, outcomes, sizes, self.given.grouped, attributes, self)

    @abstractmethod
    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        """The winner fitted to all rows, as fitted attributes."""

    def compared(self, fitted: dict[str, Any], metric: Any) -> dict[str, Any]:
        """The winner beside a stricter evaluation of it, as fitted attributes."""
        return {}


class RowsInMemory(HeldRows):
    """Rows in memory, of the host or of a device.

    Parameters
    ----------
    search : KernelSearchCV
    X, y, params : what ``fit`` was given
    scorers : what scikit-learn makes of ``scoring``
    """

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any], scorers: Any) -> None:
        self.host = host = HostData.of(get_config()["device"], X, y, params)
        self.X, self.y = indexable(host.X, host.y)
        routed = route(search, scorers, host.params)
        weight, split = only_weight(routed.estimator.fit), routed.splitter.split
        setup = set_up(search, self.X, self.y, weight, split, host.device, host.names)
        for callback in callbacks_of(search):
            if hasattr(callback, "on_iteration"):
                setup = setup.watched(callback.on_iteration)
        if search._deadline is not None:
            setup = setup.watched(search._deadline.check)
        groups = split.get("groups")
        scored = routed.scorer.score
        given = FitInputs(scorers, self.X, self.y, weight, scored, groups is not None)
        super().__init__(search, setup, given, groups)

    def explain(self) -> Explanation:
        return self.setup.explain()

    def check(self, metric: Any) -> None:
        """Refuse what does not go with the metric, or would not fit into memory."""
        if self.setup.continuous or self.setup.ranges:
            continuous.check(self.search, metric)
        self.setup.check_memory()

    def evaluate(self, metric: Any, context: Any) -> EvaluatedInMemory:
        """Run one job per kernel; then descend, if the search asks for that."""
        search, setup, task = self.search, self.setup, replace(self.task, metric=metric)
        about = partial(fingerprint, search, self.X, self.y, self.given.weight, setup)
        run = make_runner(search.journal, about, task, setup.worker_plan)
        reasons = self._left_out(metric)
        jobs = [job for one in setup.jobs if (job := one.without(reasons)).models]
        outcomes = _run(search, replace(setup, jobs=jobs), run, context)
        outcomes += without_scores(setup.jobs, reasons, outcomes[0])
        setup, outcomes = setup.tried(outcomes)
        setup, outcomes = setup.with_refined(outcomes)
        if not setup.ranges:
            return self.evaluated(setup, outcomes)
        setup, outcomes, descents = _descend(search, setup, task, run, outcomes, metric)
        return self.evaluated(setup, outcomes, descents_=descents)

    def _left_out(self, metric: Any) -> dict[int, str]:
        """Candidates that a race leaves out, and why. With a deadline there is no time for one."""
        search, setup = self.search, self.setup
        if not racing(search.method) or metric is None or search._deadline is not None:
            return {}
        given = self.X, self.y, self.host.params
        return left_out(search, setup, setup.folds, *given, metric)

    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        X = self.host.to_device(self.X)
        params = {"sample_weight": self.given.weight}
        found = fit_winner(self.search, X, self.y, params, fitted, context)
        if not self.host.given:
            model_to_host(found["best_estimator_"])
        return found


@dataclass
class EvaluatedInMemory(Evaluated):
    """Outcomes with held-out values.

    Attributes
    ----------
    rows : HeldRows
    """

    rows: HeldRows = field(repr=False)

    @property
    def scoring(self) -> Scoring:
        return self.rows.task.scoring

    def intervals(self) -> dict[str, Array]:
        return interval_columns(self.rows.task, self.outcomes, len(self.setup.candidates))

    def held_out(self, index: int) -> HeldOut:
        held, given = heldout_of(index, self.outcomes, self.setup.folds), self.rows.given
        known = self.setup.spec_of(index).coding.decoders
        return replace(held, targets=given.y, sample_weight=given.weight, **known)

    def heldouts(self) -> list[HeldOut]:
        return [self.held_out(i) for i in range(len(self.setup.candidates))]

    def judged_by(self, index: int, held: HeldOut) -> tuple[FitInputs, Scoring]:
        return self.rows.given, self.scoring

    def compared(self, fitted: dict[str, Any], metric: Any) -> dict[str, Any]:
        return self.rows.compared(fitted, metric)

    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        return self.rows.refit(fitted, context)


def _run(search: Any, setup: Setup, run: Run, context: Any) -> list[Outcome]:
    """Run all jobs, or those that there is time for."""
    jobs, plan = setup.jobs, setup.worker_plan
    if search._deadline is not None:  # whatever it has time for covers the grid
        jobs = [jobs[i] for i in spread(len(jobs))]
    if search.verbose > 0:
        print(
            f"{len(setup.candidates)} candidates on {len(jobs)} kernels, "
            f"{len(setup.folds)} splits, {plan.workers} workers with {plan.threads} threads"
        )

    def words(place: int, found: list[Outcome]) -> str:
        methods = ", ".join(dict.fromkeys(one.method for one in found))
        return f"{jobs[place].kernel} by {methods}"

    done = followed(search, context, "kernel", len(jobs), run(jobs), words)
    outcomes = [one for _, found in done for one in found]
    return sorted(outcomes, key=lambda one: min(one.indices))


def followed(
    search: Any,
    context: Any,
    name: str,
    total: int,
    runs: Iterator[tuple[int, Any]],
    words: Callable[[int, Any], str],
) -> Iterator[tuple[int, Any]]:
    """Results of parts of a search as they are done; callbacks and reader are notified of each.

    Parameters
    ----------
    search : KernelSearchCV
        Its deadline may end this early.
    context : context of scikit-learn's callbacks
    name : str
        Of a part.
    total : int
        How many parts there are.
    runs : iterator of (place, result)
    words : callable
        From place and result to what ``verbose=2`` prints.
    """
    parent = context.subcontext(
        task_name="search", max_subtasks=total, sequential_subtasks=False
    ).call_on_fit_task_begin(estimator=search)
    tasks = [parent.subcontext(task_name=name, task_id=i) for i in range(total)]
    for one in tasks:
        one.call_on_fit_task_begin(estimator=search)
    deadline = search._deadline
    with _ended(runs) as found_so_far:
        for done, (place, found) in enumerate(found_so_far, start=1):
            yield place, found
            tasks[place].call_on_fit_task_end(estimator=search)
            if search.verbose > 1:
                print(f"[{done}/{total}] {words(place, found)}")
            if deadline is not None and done < total and deadline.stops(done, total):
                break
    parent.call_on_fit_task_end(estimator=search)


@contextmanager
def _ended(runs: Iterator[Any]) -> Iterator[Iterator[Any]]:
    """Jobs that are ended with the context; of tasks cancelled for that, joblib need not warn."""
    try:
        yield runs
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            if isinstance(runs, Generator):
                runs.close()


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
