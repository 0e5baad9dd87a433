"""Kernel parameters by gradient: from the best of a coarse grid down to minima of cross-validation.

``{"gamma": Interval(1e-4, 1e2, per_feature=True), "lam": Interval(1e-8, 1e1)}`` has one parameter
for each column of X and one more, ``{"kernel": Bank([...])}`` one for each kernel: too many for a
grid. A coarse grid comes first, as any other search (one gamma for all columns; all
kernels of the bank alike and, if they are few, each alone). From the best of its candidates
L-BFGS-B follows the exact gradient of a smooth objective (onefit.search.objective) in the variables
of a direction (onefit.search.directions) and in log lam. On the way from the best one to a gamma
per column the best single gamma is found first.

The end of every descent is then evaluated as a candidate, like those of the grid: the winner is
never worse than that of the grid. Finished descents are kept in the journal, if there is one.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize

from onefit._describe import describe
from onefit._types import Array
from onefit.search.grid import CandidateModel, Job
from onefit.search.objective import Objective
from onefit.search.outcome import Outcome, Task, values_of
from onefit.search.resume import Runner

if TYPE_CHECKING:
    from onefit.search.setup import Setup

__all__ = ["Descent", "descend"]

#: descents for each kind of model with many parameters, and with one gamma; the relative decrease
#: by a step below which a descent ends (benchmarks/gradient.py)
STARTS_OF_MANY_PARAMETERS, STARTS_OF_ONE_GAMMA, MIN_RELATIVE_GAIN = 3, 1, 1e-4


@dataclass(frozen=True)
class Descent:
    """One descent.

    Attributes
    ----------
    start, end : dict
        Parameters, lam among them.
    first, last : float
        Value of the objective at start and end; with early stopping, on the watched splits.
    steps : int
        Evaluations of value and gradient.
    converged : bool
    message : str
        The optimiser's.
    """

    start: dict[str, Any]
    end: dict[str, Any]
    first: float
    last: float
    steps: int
    converged: bool
    message: str


def descend(
    search: Any, setup: Setup, task: Task, run: Runner, outcomes: list[Outcome]
) -> tuple[Setup, list[Outcome], list[Descent]]:
    """The search with the ends of its descents as candidates behind the others.

    Parameters
    ----------
    search : KernelGradientSearchCV
    setup : Setup
    task : Task
    run : Runner
        Runs jobs, and keeps descents that are finished.
    outcomes : list of Outcome
    """
    candidates, outcomes, models = list(setup.candidates), list(outcomes), list(setup.models)
    descents: list[Descent] = []
    sample, values = task.sample, values_of(task.metric, outcomes, len(candidates))

    def follow(
        model: CandidateModel, ranges: dict[str, Any], start: dict[str, Any], usual: Any
    ) -> Any:
        """Add a descent, and its end as a candidate."""
        objective = Objective(model, task, ranges, search, usual)
        descents.append(_recalled(run, objective, start))
        new = _moved(model, descents[-1].end, len(candidates))
        spec = new.spec
        kernel = spec.resolve_kernel(sample.X, spec.coding.weights(sample.Y, sample.s))
        ((_, found),) = run([Job(kernel, (new,))])
        outcomes.extend(found)
        models.append(new)
        candidates.append(start | descents[-1].end)
        return candidates[-1]

    for group in _starts(setup, values, search.starts):
        model, index = group[0]
        ranges, best = setup.ranges[index], candidates[index]
        single = _single(ranges)
        usual = None if single is None else follow(model, single, best, None)
        for place, (model, index) in enumerate(group):
            start = candidates[index] if place or usual is None else usual
            follow(model, ranges, start, usual)
    return replace(setup, candidates=candidates, models=models), outcomes, descents


def _single(ranges: dict[str, Any]) -> dict[str, Any] | None:
    """One gamma for all columns instead of one for each."""
    gamma = ranges.get("gamma")
    if gamma is None or not gamma.per_feature:
        return None
    return ranges | {"gamma": replace(gamma, per_feature=False)}


def _moved(model: CandidateModel, params: dict[str, Any], index: int) -> CandidateModel:
    """The model with parameters found, as candidate ``index``."""
    estimator = copy(model.estimator)
    for name, value in params.items():
        setattr(estimator, name, value)
    return replace(model, estimator=estimator, lams=(params["lam"],), indices=(index,))


def _recalled(run: Runner, objective: Objective, start: dict[str, Any]) -> Descent:
    """A descent from the journal, or a new one, which is then kept there."""
    metric, search = objective.task.metric, objective.search
    how = search.steps, search.prior, search.early_stopping
    about = "descent " + describe(
        [start, objective.estimator, objective.ranges, how, objective.usual, metric]
    )
    known = run.recall(about)
    if known is None:
        x, known = _down(objective, objective.begin(start))
        known["x"] = x.tolist()
        run.note(about, known)
        known = json.loads(json.dumps(known))
    end = objective.params(np.asarray(known.pop("x")))
    if "lam" not in objective.ranges:
        end["lam"] = start.get("lam", objective.estimator.lam)
    return Descent({name: start.get(name, value) for name, value in end.items()}, end, **known)


def _starts(
    setup: Setup, values: Array, most: int | None
) -> list[list[tuple[CandidateModel, int]]]:
    """The best candidates of every kind of model, each with a kernel of its own."""
    groups: dict[str, dict[str, tuple[CandidateModel, int]]] = {}
    for index in np.argsort(-np.where(np.isfinite(values), values, -np.inf), kind="stable"):
        if index not in setup.ranges or not np.isfinite(values[index]):
            continue
        params, ranges = setup.candidates[index], setup.ranges[index]
        varied = "kernel" if "kernel" in ranges else "gamma"
        kind = repr(sorted((k, repr(v)) for k, v in params.items() if k not in (varied, "lam")))
        group = groups.setdefault(kind, {})
        single = varied == "gamma" and not ranges["gamma"].per_feature
        if len(group) < (most or (STARTS_OF_ONE_GAMMA if single else STARTS_OF_MANY_PARAMETERS)):
            group.setdefault(repr(params[varied]), (setup.groups[int(index)], int(index)))
    return [list(group.values()) for group in groups.values()]


def _down(objective: Objective, begin: Array) -> tuple[Array, dict[str, Any]]:
    """Minimise from a point: the best variables, and facts about the descent."""
    free = np.append(np.ones(begin.size - 1, dtype=bool), "lam" in objective.ranges)
    best: tuple[float, Array] = (np.inf, begin)
    judged: list[float] = []
    origin, unit = np.nan, 1.0

    def scaled(part: Array) -> tuple[float, Array]:
        nonlocal best, origin, unit
        x = begin.copy()
        x[free] = part
        value, slope, watched = objective.evaluate(x)
        judged.append(watched)
        if watched < best[0]:
            best = watched, x
        if not np.isfinite(value):
            return 1e300, np.zeros(part.size)
        if np.isnan(origin):  # the optimiser's tolerance is absolute below 1, relative above
            origin, unit = (value, 1.0) if objective.has_prior else (0.0, abs(value) or 1.0)
        return (value - origin) / unit, slope[free] / unit

    found = minimize(
        scaled, begin[free], jac=True, method="L-BFGS-B", bounds=objective.bounds(),
        options={"maxiter": objective.search.steps, "ftol": MIN_RELATIVE_GAIN},
    )  # fmt: skip
    return best[1], {
        "first": judged[0], "last": best[0], "steps": len(judged),
        "converged": bool(found.success), "message": str(found.message),
    }  # fmt: skip
