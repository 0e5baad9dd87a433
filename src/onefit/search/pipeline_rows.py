"""The rows of a search over pipelines: see :mod:`onefit.search.pipeline` for what is computed."""

from __future__ import annotations

import warnings
from collections import Counter
from copy import copy
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import indexable

from onefit import plan
from onefit._describe import describe
from onefit._indexing import n_rows
from onefit.config import get_config as onefit_config
from onefit.heldout import HeldOutPath
from onefit.heldout.train_test import TrainTest
from onefit.linalg import HOST, arrays_of, is_elsewhere
from onefit.linalg.which import named_device
from onefit.predict import check_training
from onefit.search.grid import CandidateModel
from onefit.search.in_memory import HeldRows, followed
from onefit.search.inputs import resolve_scorers, route
from onefit.search.outcome import Outcome, Task
from onefit.search.pipeline import Setting, Work, run_units, settings_of, units_of
from onefit.search.preprocess import (
    kernel_estimator,
    kernel_path,
    kernel_weight,
    metadata_of_fit,
)
from onefit.search.resume import Runner, data_words
from onefit.search.rows import FoldedSample
from onefit.search.scorers import FitInputs
from onefit.search.setup import Setup, draw_folds
from onefit.search.workers import WorkerPlan

Array = NDArray[Any]

__all__ = [
    "PipelineRows",
    "as_kernel_search",
    "outcomes_of",
    "set_up_pipeline",
]


class PipelineRows(HeldRows):
    """Rows in memory of a search over pipelines: their steps are fitted in each training part.

    Parameters
    ----------
    search, X, y, params
        See :class:`onefit.search.in_memory.RowsInMemory`.
    """

    def __init__(self, search: Any, X: Any, y: Any, params: dict[str, Any]) -> None:
        scorers = resolve_scorers(search)
        _check_options(search)
        if is_elsewhere(X):
            raise ValueError(
                f"the steps of a {type(search.estimator).__name__} are fitted on the host, and X "
                f"is on {arrays_of(X)!r}: pass it as a NumPy array; kernels are computed on a "
                "device that is configured (onefit.config)"
            )
        self.device = named_device(onefit_config()["device"])
        X, y = indexable(X, y)
        routed = route(search, scorers, params)
        self.fit_params = metadata_of_fit(search.estimator, dict(routed.estimator.fit))
        split = routed.splitter.split
        weight = kernel_weight(search.estimator, self.fit_params)
        given = FitInputs(scorers, X, y, weight, routed.scorer.score, split.get("groups"))
        super().__init__(search, set_up_pipeline(search, X, y, split), given)

    def check(self, metric: Any) -> None:
        """Refuse what would not fit into memory."""
        self.setup.check_memory()

    def explain(self) -> plan.Explanation:
        """Fits of the steps, kernel matrices and decompositions."""
        setup, k = self.setup, len(self.setup.folds)
        candidates, steps = len(setup.candidates), len(setup.jobs)
        text = (
            f"{candidates} candidates, {k} splits: preprocessing is fitted in every training part\n"
            f"{steps} settings of the preprocessing, fitted {steps * k} times\n"
            f"{len(setup.models) * k} kernel matrices and decompositions or paths of solutions "
            f"(GridSearchCV: {candidates * k} fits)\n"
            f"{setup.worker_plan.workers} workers with {setup.worker_plan.threads} BLAS threads\n"
            f"{plan.explain_splits(setup.works)}"
        )
        return plan.Explanation(text, setup.refusal())

    def evaluate(self, metric: Any, context: Any) -> None:
        """Fit the steps of every setting in every training part, and score the candidates."""
        search, setup, given = self.search, self.setup, self.given
        k, total = len(setup.folds), len(setup.jobs) * len(setup.folds)
        work = Work(given.X, given.y, self.fit_params, setup.folds, search.error_score, self.device)
        run = partial(run_units, work, setup.worker_plan)
        runner = Runner(run, search.journal, partial(_fingerprint, search, work))
        if search.verbose > 0:
            print(
                f"{len(setup.candidates)} candidates, {len(setup.jobs)} settings of the "
                f"preprocessing, {k} splits, {setup.worker_plan.workers} workers"
            )

        def words(place: int, one: list[Outcome] | str) -> str:
            done = one if isinstance(one, str) else f"{sum(map(_seconds, one)):.2g} s"
            return f"setting {place // k}, split {place % k}: {done}"

        units, found = runner(units_of(setup.jobs, k)), {}
        for place, one in followed(search, context, "split", total, units, words):
            found[divmod(place, k)] = one
        failures = [one for one in found.values() if isinstance(one, str)]
        _warn_of_failures(failures, total, search)
        self.outcomes = outcomes_of(self.task, setup.jobs, found, search.error_score)

    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        return self.fit_winner(self.given.X, self.fit_params, fitted, context, self.device)


def _check_options(search: Any) -> None:
    """Refuse what works on one full-sample fit, naming both sides."""
    name, device = type(search.estimator).__name__, onefit_config()["device"]
    all_rows = search.method == "all_rows"
    moved = isinstance(search.estimator, Pipeline) and not all_rows
    refused = {
        f"method={search.method!r}": search.method not in ("auto", "refit", "exact", "all_rows"),
        f"criterion={search.criterion!r}": search.criterion != "cv",
        type(search).__name__: search._descends,
        f"device={device!r}": device is not None and not (moved and isinstance(device, str)),
    }
    why = (
        "method='all_rows' searches a grid by cross-validation"
        if all_rows
        else "its steps are fitted in every training part, so that there is no single fit to all "
        "rows to work on"
    )
    for option, asked in refused.items():
        if asked:
            raise ValueError(
                f"{option} does not work with a {name}: {why}; leave it out, or transform X first "
                "and search the kernel estimator alone"
            )


def set_up_pipeline(search: Any, X: Any, y: Any, split_params: Any) -> Setup:
    """Draw the splits and check grid, targets and training parts, before any step is fitted."""
    candidates, group = settings_of(search)
    model = clone(group[0].models[0].estimator)
    Y = model._code_targets(y, np.float64)
    folds = draw_folds(search.cv, model, X, y, split_params)
    s = np.ones(n_rows(X))
    check_training(folds, s, y, getattr(model, "classes_", None))
    for setting in group:
        for one in setting.models:
            one.estimator._copy_data_attributes(model)
    worker_plan = WorkerPlan.from_n_jobs(search.n_jobs, len(group) * len(folds), n_rows(X))
    sample = FoldedSample(None, Y, s, folds)  # kernels see the rows of a split only
    models = [one for setting in group for one in setting.models]
    works = _works(models, sample, worker_plan)
    return Setup(candidates, model, models, [], group, folds, sample, worker_plan, works)


def _works(
    models: list[CandidateModel], sample: FoldedSample, worker_plan: WorkerPlan
) -> dict[plan.Workload, plan.Estimate]:
    """The distinct workloads of all splits and kernel estimators, with what they will cost."""
    folds = sample.folds
    tests = [test.size for test in folds.test]
    rows = max(train.size + test.size for train, test in folds)
    counts: Counter[plan.Workload] = Counter()
    for one in models:
        load = replace(
            one.estimator._workload(one.spec.coding.columns(sample.Y), sample.s),
            n=rows,
            lams=len(one.lams),
            removed=(max(tests),),
            workers=worker_plan.workers,
            threads=worker_plan.threads,
        )
        counts[load] += len(folds)
    loads = [replace(load, kernels=count) for load, count in counts.items()]
    return {load: plan.split_estimate(load) for load in loads}


def _fingerprint(search: Any, work: Work) -> dict[str, str]:
    """Everything but the candidates that the values depend on, in words, by name."""
    names = getattr(work.X, "columns", None)
    return data_words(work.X, work.y, work.folds) | {
        "columns": describe(None if names is None else [str(name) for name in names]),
        "params": describe(work.params),
        "estimator": f"{type(search.estimator).__name__}, fitted in the training parts",
    }


def _warn_of_failures(failures: list[str], total: int, search: Any) -> None:
    """Warn of splits on which the steps failed; raise if all failed."""
    if failures and len(failures) == total:
        raise ValueError(f"the preprocessing failed on every split; first: {failures[0]}")
    if failures:
        warnings.warn(
            f"the preprocessing failed on {len(failures)} of {total} splits, whose score is "
            f"error_score={search.error_score}; the first message is: {failures[0]}",
            stacklevel=5,
        )


def _seconds(one: Outcome) -> float:
    return one.fit_seconds * len(one.reasons)


def outcomes_of(
    task: Task,
    group: list[Setting],
    found: dict[tuple[int, int], list[Outcome] | str],
    error_score: Any,
) -> list[Outcome]:
    """Scores of all candidates, from the outcomes of all units."""
    folds, outcomes = task.sample.folds, []
    for i, setting in enumerate(group):
        units = [found[i, k] for k in range(len(folds))]
        for place, candidate in enumerate(setting.models):
            parts = [one if isinstance(one, str) else one[place] for one in units]
            outcomes.append(_outcome(task, candidate, parts, error_score))
    return sorted(outcomes, key=lambda one: min(one.indices))


def _outcome(
    task: Task, candidate: CandidateModel, parts: list[Outcome | str], error_score: Any
) -> Outcome:
    """The outcome of one model; splits on which a step failed have ``error_score``."""
    start, L = perf_counter(), len(candidate.lams)
    why = next((one for one in parts if isinstance(one, str)), "")
    outcome = Outcome.of(task, candidate, _side_by_side(task, candidate, parts), TrainTest.name)
    if why:
        failed = np.array([isinstance(one, str) for one in parts])
        none = np.full((L, len(parts)), np.nan)
        scores = {name: outcome.scores.get(name, none.copy()) for name in task.scoring.names}
        for one in scores.values():
            one[:, failed] = error_score
        pooled = dict.fromkeys(scores, none[:, :1])
        values = outcome.values.copy()
        values[:, np.repeat(failed, np.diff(task.sample.folds.offsets))] = np.nan
        outcome = replace(
            outcome,
            scores=scores,
            totals=task.totals(scores, pooled),
            ends={},
            values=values,
            reasons=[reason or why for reason in outcome.reasons],
        )
    return replace(
        outcome,
        fit_seconds=sum(one.fit_seconds for one in parts if isinstance(one, Outcome)),
        score_seconds=(perf_counter() - start) / L,
    )


def _side_by_side(task: Task, candidate: CandidateModel, parts: list[Outcome | str]) -> HeldOutPath:
    """Values of all splits; zero on those where a step failed, which are scored too."""
    folds, lams = task.sample.folds, np.array(candidate.lams)
    columns, nothing = candidate.spec.coding.columns(task.sample.Y), HOST.empty((0, 0), np.float64)
    coded = candidate.spec.coded_problem(nothing, columns, task.sample.s)
    found = HeldOutPath.empty(coded, folds, TrainTest.name, lams)
    for k, part in enumerate(parts):
        if isinstance(part, str):
            found.values[:, folds.place(k)] = 0.0
            continue
        found.values[:, folds.place(k)] = part.values
        found.bounds[:, k], found.exact[:, k] = part.error, part.exact[:, 0]
        found.steps[:, k] = part.steps[:, 0]
        for i, reason in enumerate(part.reasons):
            found.reasons[i] = found.reasons[i] or (reason and f"split {k}: {reason}")
    return found


def as_kernel_search(search: Any) -> Any:
    """A fitted search as one over its kernel estimator, for reports and plots.

    Parameters of the kernel estimator lose the names of the steps; those of other steps keep them.
    """
    path = kernel_path(search.estimator)
    if not path:
        return search
    prefix = "__".join(path) + "__"
    shown = copy(search)
    shown.estimator = kernel_estimator(search.estimator)
    table = {
        name.replace(f"param_{prefix}", "param_"): value
        for name, value in search.cv_results_.items()
    }
    table["params"] = [_short(one, prefix) for one in table["params"]]
    shown.cv_results_ = table
    if hasattr(search, "best_params_"):
        shown.best_params_ = _short(search.best_params_, prefix)
    if "best_estimator_" in vars(search):
        shown.best_estimator_ = kernel_estimator(search.best_estimator_)
    return shown


def _short(params: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in params.items()}
