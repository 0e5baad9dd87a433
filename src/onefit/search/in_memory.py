"""A search over rows in memory, whose outcomes carry held-out values."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import indexable

from onefit._types import Array
from onefit.callbacks import callbacks_of
from onefit.config import get_config
from onefit.estimators.device import HostData, model_to_host
from onefit.estimators.unused import UnusedParameterWarning
from onefit.heldout import HeldOut
from onefit.linalg.device import Device
from onefit.plan import Explanation, spread
from onefit.search import continuous
from onefit.search.criterion import get_criterion
from onefit.search.descend import descend
from onefit.search.evaluation import SearchRows
from onefit.search.inputs import only_weight, resolve_scorers, route
from onefit.search.outcome import Outcome, Task
from onefit.search.race import left_out, racing, without_scores
from onefit.search.resume import Runner, fingerprint
from onefit.search.scorers import FitInputs, Scoring
from onefit.search.setup import Setup, set_up
from onefit.search.workers import run_jobs

__all__ = ["HeldRows", "RowsInMemory", "followed"]


class HeldRows(SearchRows):
    """Rows in memory: held-out values of every candidate are kept, and scored by any scorer.

    Parameters
    ----------
    search : KernelSearchCV
    setup : Setup
    given : FitInputs
    """

    setup: Setup

    def __init__(self, search: Any, setup: Setup, given: FitInputs) -> None:
        self.search, self.setup, self.given = search, setup, given
        self.scorers = given.scorers
        build = partial(given.scoring, setup.model, setup.folds, plain=setup.plain)
        pooled = build(pooled=True) if search.aggregate == "pooled" else None
        scoring = build(undefined=pooled is not None)
        criterion = get_criterion(search.criterion)
        self.task = Task(setup.sample, scoring, pooled, search.aggregate, criterion)
        self.names = scoring.names
        self.subtasks = 1 + bool(search.refit)
        self.attributes = {"folds_": setup.folds, "groups_": given.groups}

    @property
    def sizes(self) -> Array:
        return np.diff(self.setup.folds.offsets)

    @property
    def scoring(self) -> Scoring:
        return self.task.scoring

    def held_out(self, index: int) -> HeldOut:
        outcome = next(one for one in self.outcomes if index in one.indices)
        held, known = outcome.heldout(index, self.setup.folds), self.setup.spec_of(index)
        given = {"targets": np.asarray(self.given.y), "sample_weight": self.given.weight}
        return replace(held, **given, **known.coding.decoders)

    def heldouts(self) -> list[HeldOut]:
        return [self.held_out(i) for i in range(len(self.setup.candidates))]

    def judged_by(self, index: int, held: HeldOut) -> tuple[FitInputs, Scoring]:
        return self.given, self.scoring

    def fit_winner(
        self,
        X: Any,
        params: dict[str, Any],
        fitted: dict[str, Any],
        context: Any,
        device: Device | None = None,
    ) -> dict[str, Any]:
        """The winner fitted to all rows with ``params``, metadata of the estimator's fit.

        The kernel estimator of a pipeline is fitted on ``device``, and returned to the host.
        """
        search, y = self.search, self.given.y
        task = context.subcontext(task_name="refit-with-best-params")
        task.call_on_fit_task_begin(estimator=search, X=X, y=y)
        start = time.perf_counter()
        best = clone(search.estimator).set_params(**clone(fitted["best_params_"], safe=False))
        with warnings.catch_warnings():
            # a grid may pair a kernel with parameters of another, which the winner has too
            warnings.simplefilter("ignore", UnusedParameterWarning)
            if device is None:
                best.fit(X, y, **params)
            else:
                moved = ("to the device", FunctionTransformer(device.asarray))
                fit = Pipeline([*best.steps[:-1], moved, best.steps[-1]]).fit(X, y, **params)
                best.steps = [*fit.steps[:-2], fit.steps[-1]]
                model_to_host(best[-1])
        found = {"best_estimator_": best, "refit_time_": time.perf_counter() - start}
        if hasattr(best, "feature_names_in_"):
            found["feature_names_in_"] = best.feature_names_in_
        task.call_on_fit_task_end(estimator=search, X=X, y=y)
        return found


class RowsInMemory(HeldRows):
    """Rows in memory, of the host or of a device.

    Parameters
    ----------
    search : KernelSearchCV
    X, y, params : what ``fit`` was given
    """

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        scorers = resolve_scorers(search)
        self.host = host = HostData.of(get_config()["device"], X, y, params)
        self.X, self.y = indexable(host.X, host.y)
        self.params = host.params
        routed = route(search, scorers, host.params)
        weight, split = only_weight(routed.estimator.fit), routed.splitter.split
        setup = set_up(search, self.X, self.y, weight, split, host.device, host.names)
        for callback in callbacks_of(search):
            if hasattr(callback, "on_iteration"):
                setup = setup.watched(callback.on_iteration)
        if search._deadline is not None:
            setup = setup.watched(search._deadline.check)
        scored = routed.scorer.score
        given = FitInputs(scorers, self.X, self.y, weight, scored, split.get("groups"))
        super().__init__(search, setup, given)

    def explain(self) -> Explanation:
        return self.setup.explain()

    def check(self, metric: Any) -> None:
        """Refuse what does not go with the metric, or would not fit into memory."""
        if self.setup.continuous or self.setup.ranges:
            continuous.check(self.search, metric)
        if metric is None and racing(self.search.method):
            raise ValueError(
                "method='race' leaves out candidates by one score; name the metric in refit, or "
                "use method='auto'"
            )
        self.setup.check_memory()

    def evaluate(self, metric: Any, context: Any) -> None:
        """Run one job per kernel; then descend, if the search asks for that."""
        search, setup, task = self.search, self.setup, replace(self.task, metric=metric)
        reasons, workers = self._left_out(metric), setup.worker_plan
        jobs = [job for one in setup.jobs if (job := one.without(reasons)).models]
        if search._deadline is not None:  # whatever it has time for covers the grid
            jobs = [jobs[i] for i in spread(len(jobs))]
        if search.verbose > 0:
            print(
                f"{len(setup.candidates)} candidates on {len(jobs)} kernels, "
                f"{len(setup.folds)} splits, {workers.workers} workers with "
                f"{workers.threads} threads"
            )

        def words(place: int, found: list[Outcome]) -> str:
            methods = ", ".join(dict.fromkeys(one.method for one in found))
            return f"{jobs[place].kernel} by {methods}"

        about = partial(fingerprint, search, self.X, self.given, setup.folds)
        work = partial(run_jobs, task, worker_plan=workers)
        run, outcomes = Runner(work, search.journal, about, metric), list[Outcome]()
        for _, found in followed(search, context, "kernel", len(jobs), run(jobs), words):
            outcomes += found
        outcomes += without_scores(setup.models, reasons, outcomes[0])
        outcomes.sort(key=lambda one: min(one.indices))
        setup, outcomes = setup.evaluated(outcomes)
        if setup.ranges:
            setup, outcomes, descents = descend(search, setup, task, run, outcomes)
            self.attributes["descents_"] = descents
        self.setup, self.outcomes = setup, outcomes

    def _left_out(self, metric: Any) -> dict[int, str]:
        """Candidates that a race leaves out, and why. With a deadline there is no time for one."""
        search, setup = self.search, self.setup
        if not racing(search.method) or search._deadline is not None:
            return {}
        return left_out(search, setup, self.X, self.y, self.params, metric)

    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        params = {"sample_weight": self.given.weight}
        found = self.fit_winner(self.host.to_device(self.X), params, fitted, context)
        if not self.host.given:
            model_to_host(found["best_estimator_"])
        return found


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
        Name of a part.
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
    try:
        for done, (place, found) in enumerate(runs, start=1):
            yield place, found
            tasks[place].call_on_fit_task_end(estimator=search)
            if search.verbose > 1:
                print(f"[{done}/{total}] {words(place, found)}")
            if deadline is not None and done < total and deadline.stops(done, total):
                break
    finally:
        with warnings.catch_warnings():
            # joblib need not warn of tasks that are cancelled here
            warnings.simplefilter("ignore", UserWarning)
            if isinstance(runs, Generator):
                runs.close()
    parent.call_on_fit_task_end(estimator=search)
