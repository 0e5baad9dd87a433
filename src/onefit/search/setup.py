"""What a search decides and checks before its first kernel matrix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import LeaveOneOut, check_cv

from onefit import plan
from onefit._indexing import n_rows
from onefit.criteria import KernelStability
from onefit.criteria.base import Criterion as Own
from onefit.folds import Folds, leave_one_out
from onefit.heldout import METHODS, HeldOutMethod, Iterative
from onefit.inverse.krylov import Watch
from onefit.kernels import Bank, Kernel, check_precomputed, takes_gamma, takes_gammas
from onefit.linalg import HOST
from onefit.linalg.device import Device
from onefit.predict import check_training, make_method, make_planned, ridge_weights
from onefit.problem import Problem
from onefit.search.continuous import expand, listed
from onefit.search.criterion import CriterionLike, get_criterion
from onefit.search.grid import (
    CandidateModel,
    Job,
    PlannedSearch,
    candidate_models,
    candidates,
    check_rows,
    jobs,
)
from onefit.search.outcome import Outcome
from onefit.search.race import racing
from onefit.search.rows import FoldedSample, arrange, compact
from onefit.search.workers import WorkerPlan

Array = NDArray[Any]

__all__ = ["MethodChoice", "Setup", "draw_folds", "set_up"]


@dataclass(frozen=True)
class MethodChoice:
    """The method chosen for one model, and the expected cost of all such models.

    Attributes
    ----------
    kernel : Kernel
    method : str
    lams : int
    estimate : onefit.plan.Estimate, or None for a method that the cost model does not know
    """

    kernel: Kernel
    method: str
    lams: int
    estimate: plan.Estimate | None


@dataclass(frozen=True)
class Setup(PlannedSearch):
    """A search over rows in memory, ready to run.

    Attributes
    ----------
    candidates, model, models, choices : see :class:`onefit.search.grid.PlannedSearch`
    jobs : list
        Models that share work: of :class:`onefit.search.grid.Job`, or of
        :class:`onefit.search.pipeline.Setting`.
    folds : Folds in the caller's order
    sample : FoldedSample in the order of work
        For pipelines without rows: kernels are computed on the transformed rows of a split.
    worker_plan : WorkerPlan
    works : the distinct workloads that the cost model knows, with their expected costs
    ranges : intervals and banks of the candidates that a descent may start from
    device : Device or None
        Where the kernel matrices are computed, if that is not the host.
    """

    jobs: list[Any] = field(repr=False)
    folds: Folds
    sample: FoldedSample = field(repr=False)
    worker_plan: WorkerPlan
    works: dict[plan.Workload, plan.Estimate]
    ranges: dict[int, dict[str, Any]] = field(default_factory=dict)
    device: Device | None = None

    def watched(self, watch: Watch) -> Setup:
        """The same, with a function called at every step of iterations that run in this process."""
        if self.worker_plan.workers > 1:
            return self
        jobs = [
            replace(job, models=tuple(_watched(model, watch) for model in job.models))
            for job in self.jobs
        ]
        return replace(self, jobs=jobs)

    def evaluated(self, outcomes: list[Outcome]) -> tuple[Setup, list[Outcome]]:
        """The search as if it had been over the candidates with an outcome, and these renumbered.

        Lams that were found in intervals become candidates behind the others.
        """
        tried = sorted(i for one in outcomes for i in one.indices)
        new = {old: i for i, old in enumerate(tried)}
        candidates = [self.candidates[i] for i in tried]
        models, numbered = [], []
        for one in outcomes:
            own = self.groups[one.indices[0]].take(one.indices)
            indices = [new[i] for i in one.indices]
            indices += range(len(candidates), len(candidates) + len(one.refined))
            candidates += [candidates[indices[0]] | {"lam": lam} for lam in one.refined]
            models.append(replace(own, lams=own.lams + one.refined, indices=tuple(indices)))
            numbered.append(replace(one, indices=tuple(indices), refined=()))
        pairs = zip(self.models, self.choices, strict=True)
        found = replace(
            self,
            candidates=candidates,
            models=models,
            choices=[choice for one, choice in pairs if any(i in new for i in one.indices)],
            ranges={new[i]: own for i, own in self.ranges.items() if i in new},
        )
        return found, numbered

    def check_memory(self) -> None:
        """Refuse, with advice, what would not fit into the memory that is available."""
        for load, estimate in self.works.items():
            plan.check_memory(load, estimate, *self._room())

    def explain(self) -> plan.Explanation:
        """Expected costs of each workload, by the chosen method and by others."""
        rates, room = (self.device or HOST).rates, self._room()
        texts = [plan.explain(*pair, rates, *room) for pair in self.works.items()]
        return plan.Explanation("\n\n".join(texts), self.refusal())

    def _room(self) -> tuple[float | None, str]:
        """Free bytes of the device, and its name; None and "" for the host."""
        return (None, "") if self.device is None else (self.device.room(), repr(self.device))

    def refusal(self) -> str:
        """The reason why a fit would refuse; empty if it would not."""
        try:
            self.check_memory()
        except MemoryError as error:
            return str(error)
        return ""


def _watched(model: CandidateModel, watch: Watch) -> CandidateModel:
    if not isinstance(model.method, Iterative):
        return model
    return replace(model, method=model.method.watched(watch))


def set_up(
    search: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    split_params: Mapping[str, Any],
    device: Device | None = None,
    devices: tuple[str, ...] = (),
) -> Setup:
    """Check the data and the grid, draw the splits, group the candidates and choose methods.

    The data are NumPy's; with a device the rows go there once, in the order of work. Of several
    ``devices``, of which ``device`` is the first, each worker moves them to its own.
    """
    grid = listed(search.param_grid)
    drawn = candidates(search.estimator, grid, search.n_iter, search.random_state)
    found, intervals = expand(_settled(drawn, search, X))
    chosen = None if racing(search.method) else make_method(search.method)
    ranges = {i: own for i, own in intervals.items() if own.keys() & {"gamma", "kernel"}}
    _check_ranges(search, ranges)
    # lam alone is refined kernel by kernel; with gamma it is a matter of a descent
    group = [
        replace(one, continuous=any(i in intervals and i not in ranges for i in one.indices))
        for one in candidate_models(search.estimator, found)
    ]
    model, precomputed = group[0].estimator, group[0].spec.precomputed
    _check_one_kind(group)
    rows, Y, s = check_rows(group, X, y, sample_weight)
    if precomputed:
        check_precomputed(rows)
    folds = draw_folds(search.cv, model, X, y, split_params)
    check_training(folds, s, y, getattr(model, "classes_", None))
    for one in group:
        _check_gamma(one, ranges, s)
    work = jobs(group, rows, Y, s)
    on_host = WorkerPlan.from_n_jobs(search.n_jobs, len(work), Y.shape[0])
    worker_plan = WorkerPlan.on_devices(devices, len(work)) if device else on_host
    if any(one.estimator.approximation is not None for one in group):
        _check_features(search)
        # landmarks are drawn by the numbers that rows have
        sample = FoldedSample(rows, Y, s, folds)
    else:
        sample = arrange(rows, Y, s, folds, precomputed)
    criterion = get_criterion(search.criterion)
    if device is not None:
        for job in work:
            job.kernel.require_device(device)
        if worker_plan.devices and ranges:
            raise ValueError(
                f"device={','.join(devices)!r}: several devices share a list of kernels, "
                "not descents whose steps follow one another; name one device"
            )
        sample = sample if worker_plan.devices else replace(sample, X=device.asarray(sample.X))
    planned, choices, works = _plan(work, chosen, criterion, sample, worker_plan, device)
    models = [one for job in planned for one in job.models]
    return Setup(
        found, model, models, choices, planned, folds, sample, worker_plan, works, ranges, device
    )


def _check_features(search: Any) -> None:
    """Refuse what needs the whole kernel matrix."""
    refused = {
        f"method={search.method!r}": racing(search.method),
        type(search).__name__: search._descends,
    }
    for name, asked in refused.items():
        if asked:
            raise ValueError(
                f"{name} works on the whole kernel matrix; with an approximation search a grid, "
                "by method='auto', 'exact' or 'limit'"
            )


def _settled(drawn: list[dict[str, Any]], search: Any, X: Any) -> list[dict[str, Any]]:
    """Candidates whose banks know the rows of the fit."""
    found = []
    for setting in drawn:
        bank = setting.get("kernel")
        if isinstance(bank, Bank):
            model = clone(search.estimator).set_params(kernel=bank.kernels[0])
            setting = setting | {"kernel": bank.settled(model._validate_X(X))}
        found.append(setting)
    return found


def _check_ranges(search: Any, ranges: dict[int, dict[str, Any]]) -> None:
    if ranges and not search._descends:
        bank = "kernel" in next(iter(ranges.values()))
        name, what = ("kernel", "a Bank") if bank else ("gamma", "an Interval")
        raise ValueError(
            f"param_grid has {what} for {name!r}, which needs a KernelGradientSearchCV; or "
            f"give {name} a list of values or, with n_iter, a distribution"
        )
    if search._descends and not ranges:
        raise ValueError(
            "KernelGradientSearchCV needs an Interval for gamma in param_grid, such as "
            "Interval(1e-4, 1e2), with per_feature=True for one gamma per column, or a Bank for "
            "kernel"
        )
    if search._descends and not _followable(search.criterion):
        raise ValueError(
            "KernelGradientSearchCV follows the cross-validated score or k-KS; it needs "
            "criterion='cv' or 'kernel_stability' (whose loss is a name or None)"
        )


def _followable(criterion: Any) -> bool:
    found = get_criterion(criterion)
    return found is None or (isinstance(found, KernelStability) and not callable(found.loss))


def _check_gamma(model: CandidateModel, ranges: dict[int, dict[str, Any]], s: Array) -> None:
    """Refuse a descent in a gamma that the kernel does not have, or with rows of no weight."""
    own = [ranges[i] for i in model.indices if i in ranges]
    if not own:
        return
    if (s == 0.0).any():
        raise ValueError(
            "KernelGradientSearchCV needs positive sample weights; leave out the rows of "
            "weight zero"
        )
    if "kernel" in own[0]:
        return
    kernel, interval = model.estimator.kernel, own[0]["gamma"]
    if not takes_gamma(kernel):
        raise ValueError(
            f"param_grid has an Interval for gamma, which kernel={kernel!r} does not have; search "
            "it apart, or give one of rbf, laplacian, matern12, matern32, matern52 and poly"
        )
    if interval.per_feature and not takes_gammas(kernel):
        raise ValueError(
            f"kernel {kernel!r} takes a single gamma; per_feature=True is for rbf, laplacian and "
            "the Matern kernels"
        )


def _check_one_kind(group: list[CandidateModel]) -> None:
    kinds = {model.spec.precomputed for model in group}
    if len(kinds) > 1:
        raise ValueError(
            "param_grid mixes kernel='precomputed', for which X is a kernel matrix, with kernels "
            "that are computed from X; search them separately"
        )


def draw_folds(cv: Any, model: Any, X: Any, y: Any, split_params: Mapping[str, Any]) -> Folds:
    """The splits, drawn once, with training sets kept as complements."""
    if type(cv) is LeaveOneOut:
        return leave_one_out(n_rows(X))
    params = {name: value for name, value in split_params.items() if value is not None}
    classifier = is_classifier(model)
    if set(params) <= {"groups"}:
        folds = Folds.draw(cv, X, y, params.get("groups"), classifier=classifier)
        return compact(folds)
    splitter = check_cv(cv, y, classifier=classifier)
    return compact(Folds.draw(list(splitter.split(X, y, **params)), X, y))


def _plan(
    work: list[Job],
    chosen: HeldOutMethod | None,
    criterion: CriterionLike | None,
    sample: FoldedSample,
    worker_plan: WorkerPlan,
    device: Device | None,
) -> tuple[list[Job], list[MethodChoice], dict[plan.Workload, plan.Estimate]]:
    """Choose every model's method; equal workloads are estimated once."""
    planned: list[Job] = []
    choices: list[MethodChoice] = []
    works: dict[plan.Workload, plan.Estimate] = {}
    removed = tuple(rows.size for rows in sample.folds.removed)
    name = "auto" if chosen is None else chosen.name
    known = chosen is None or isinstance(chosen, METHODS.get(name, ()))
    rates, room = (device or HOST).rates, None if device is None else device.room()

    @cache
    def ridges(scaling: str, weights: bytes) -> int:
        return ridge_weights(sample.folds, np.frombuffer(weights, dtype=sample.s.dtype), scaling)

    def outlined(model: CandidateModel) -> tuple[Problem, plan.Workload]:
        """The problem of a model without its kernel matrix, and its workload."""
        spec = model.spec
        place = HOST if device is None or spec.approximation is not None else device
        problem = spec.problem(place.empty((0, 0), sample.Y.dtype), sample.Y, sample.s)
        load = replace(
            model.estimator._workload(problem.Y, problem.s),
            lams=len(model.lams),
            removed=removed,
            ridges=ridges(spec.scaling, problem.s.tobytes()),
            kernels=len(work),
            workers=worker_plan.workers,
            threads=worker_plan.threads,
            given=False,  # a search orders the rows of its own copy
        )
        return problem, load

    counts = Counter(outlined(model)[1] for job in work for model in job.models)
    for job in work:
        group, tiled = [], False
        for model in job.models:
            problem, load = outlined(model)
            load = replace(load, models=counts[load])
            if (known or load.features) and load not in works:
                if device is not None and not load.features:
                    _check_method(chosen or METHODS["exact"](), criterion, problem)
                # a criterion needs K itself, and n^3 operations on it
                works[load] = plan.choose(load, name, rates, room, products=criterion is None)
            best = works.get(load)
            if chosen is not None and not load.features:
                method = chosen
            else:
                assert best is not None
                method = make_planned(load, best, device)
            _check_method(method, criterion, problem)
            if load.features and isinstance(criterion, Own):
                criterion.check_features(problem)
            choices.append(MethodChoice(job.kernel, method.name, load.lams, best))
            group.append(replace(model, method=method))
            tiled |= best is not None and best.tiled
        planned.append(Job(job.kernel, tuple(group), tiled))
    return planned, choices, works


def _check_method(method: HeldOutMethod, criterion: CriterionLike | None, problem: Problem) -> None:
    method.check(problem)
    if criterion is not None and hasattr(criterion, "check"):
        criterion.check(problem)
