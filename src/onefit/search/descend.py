"""Kernel parameters by gradient: from the best of a coarse grid down to minima of cross-validation.

``{"gamma": Interval(1e-4, 1e2, per_feature=True), "lam": Interval(1e-8, 1e1)}`` has as many
parameters as X has columns and one more, where a grid has no chance. A coarse grid with one gamma
for all columns comes first, as any other search; from the best of its candidates L-BFGS-B follows
the exact gradient (onefit.gradient) in the logarithms of the parameters, within their intervals.

What is followed is a smooth function of held-out values: the squared error where the score is one
(R^2 and its root among them), Huber's loss for the absolute error, the rounded loss of its levels
for any other score of a machine of quantiles, a softened error rate for the accuracy, the log loss
for any other score of a classifier. Every point that a descent ends at is
then scored as any candidate, beside those of the grid: the winner is never worse than the grid's.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize
from sklearn.base import is_classifier

from onefit._types import Array
from onefit.estimators import inside
from onefit.gradient import Pointwise, SmoothedError, cv_gradient
from onefit.linalg import LinAlgError
from onefit.losses import Huber, Log, Quantile, Squared
from onefit.search.continuous import Interval
from onefit.search.grid import Job, Machine
from onefit.search.metrics import absolute_error, accuracy
from onefit.search.workers import Outcome, Task, run_job

if TYPE_CHECKING:
    from onefit.search.setup import Setup

__all__ = ["Descent", "descend"]

#: descents for each kind of machine with a gamma per column, and with one; the most steps of one,
#: and the relative gain of a step that ends it (benchmarks/gradient.py)
STARTS, ALONE, STEPS, GAIN = 3, 2, 60, 1e-4
#: the corner of Huber's loss that stands for the absolute error, in standard deviations, and the
#: width of the step that stands for the error rate
CORNER, WIDTH = 0.1, 0.3


@dataclass(frozen=True)
class Descent:
    """One way down.

    Attributes
    ----------
    start, end : dict
        gamma and lam.
    first, last : float
        What was minimised, there and here.
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
    setup: Setup, task: Task, outcomes: list[Outcome], totals: Array, metric: str
) -> tuple[Setup, list[Outcome], list[Descent]]:
    """The search with the ends of its descents as candidates behind the others.

    Parameters
    ----------
    setup : Setup
    task : Task
    outcomes : list of Outcome
    totals : (candidates,) array
        Scores, the larger the better.
    metric : str
        Their name.
    """
    candidates, outcomes, jobs = list(setup.candidates), list(outcomes), list(setup.jobs)
    descents = []
    for machine, index in _starts(setup, totals):
        way = _Way(machine, task, setup.ranges[index], _pointwise(task, metric, machine))
        descent = way.down(candidates[index])
        descents.append(descent)
        new = replace(machine, lams=(descent.end["lam"],), indices=(len(candidates),))
        job = Job(way.kernel(descent.end["gamma"]), (way.at(new, descent.end["gamma"]),))
        outcomes += run_job(task, job)
        jobs.append(job)
        candidates.append(candidates[index] | descent.end)
    return replace(setup, candidates=candidates, jobs=jobs), outcomes, descents


def _starts(setup: Setup, totals: Array) -> Iterator[tuple[Machine, int]]:
    """The best candidates of every kind of machine, each with a gamma of its own."""
    of = {i: machine for job in setup.jobs for machine in job.machines for i in machine.indices}
    taken: dict[str, list[Any]] = {}
    for index in np.argsort(-np.where(np.isfinite(totals), totals, -np.inf), kind="stable"):
        if index not in setup.ranges or not np.isfinite(totals[index]):
            continue
        params = setup.candidates[index]
        kind = repr(sorted((k, repr(v)) for k, v in params.items() if k not in ("gamma", "lam")))
        gammas = taken.setdefault(kind, [])
        most = STARTS if setup.ranges[index]["gamma"].per_feature else ALONE
        if len(gammas) < most and params["gamma"] not in gammas:
            gammas.append(params["gamma"])
            yield of[int(index)], int(index)


def _pointwise(task: Task, metric: str, machine: Machine) -> Pointwise:
    """The smooth function of held-out values that stands for a score."""
    fast = task.scoring.fast.get(metric, (None,))[0]
    if fast is accuracy:
        return SmoothedError(WIDTH)
    if is_classifier(machine.estimator):
        return Log()
    corner = CORNER * float(np.std(task.sample.Y))
    if fast is absolute_error:
        return Huber(corner)
    if fast is None and machine.estimator.loss == "quantile":
        return Quantile(machine.estimator.level, corner)
    return Squared()


class _Way:
    """Value and gradient for one kind of machine.

    Parameters
    ----------
    machine : Machine
    task : Task
    ranges : dict
        Intervals of gamma and, if it is not given, lam.
    criterion : Pointwise
    """

    def __init__(
        self, machine: Machine, task: Task, ranges: dict[str, Interval], criterion: Pointwise
    ) -> None:
        self.machine, self.sample, self.ranges = machine, task.sample, ranges
        self.criterion, self.columns = criterion, 1
        if ranges["gamma"].per_feature:
            self.columns = int(task.sample.X.shape[1])

    def at(self, machine: Machine, gamma: Any) -> Machine:
        """The machine with a gamma."""
        estimator = copy(machine.estimator)
        estimator.gamma = gamma
        return replace(machine, estimator=estimator)

    def kernel(self, gamma: Any) -> Any:
        """The kernel with a gamma."""
        estimator = self.at(self.machine, gamma).estimator
        s = inside.weights_of(estimator, self.sample.Y, self.sample.s)
        return inside.resolve_kernel(estimator, self.sample.X, s)

    def down(self, start: dict[str, Any]) -> Descent:
        """From a candidate to a minimum."""
        begin = np.log(np.append(np.full(self.columns, start["gamma"]), start["lam"]))
        free = np.append(np.ones(self.columns, dtype=bool), "lam" in self.ranges)
        bounds = [(float(np.log(r.low)), float(np.log(r.high))) for r in self._intervals()]
        best: tuple[float, Array] = (np.inf, begin)
        values: list[float] = []

        def objective(part: Array) -> tuple[float, Array]:
            nonlocal best
            x = begin.copy()
            x[free] = part
            value, slope = self._evaluate(x)
            values.append(value)
            if value < best[0]:
                best = value, x
            if not np.isfinite(value):
                return 1e300, np.zeros(part.size)
            # in units of the first: the optimiser's tolerance is an absolute one below 1
            unit = abs(values[0]) or 1.0
            return value / unit, slope[free] / unit

        found = minimize(
            objective, begin[free], jac=True, method="L-BFGS-B", bounds=bounds,
            options={"maxiter": STEPS, "ftol": GAIN},
        )  # fmt: skip
        value, x = best
        end = self._point(x)
        if "lam" not in self.ranges:
            end["lam"] = start["lam"]
        return Descent(
            {name: start[name] for name in ("gamma", "lam")}, end, values[0], value,
            len(values), bool(found.success), str(found.message),
        )  # fmt: skip

    def _intervals(self) -> list[Interval]:
        lam = [self.ranges["lam"]] if "lam" in self.ranges else []
        return [self.ranges["gamma"]] * self.columns + lam

    def _point(self, x: Array) -> dict[str, Any]:
        gamma = np.exp(x[:-1]) if self.ranges["gamma"].per_feature else float(np.exp(x[0]))
        return {"gamma": gamma, "lam": float(np.exp(x[-1]))}

    def _evaluate(self, x: Array) -> tuple[float, Array]:
        """Infinite where the numerics fail."""
        point, sample, estimator = self._point(x), self.sample, self.machine.estimator
        kernel = self.kernel(point["gamma"])
        K = kernel(sample.X)
        problem = inside.problem_of(estimator, K, sample.Y, sample.s, definite=kernel.definite)
        try:
            found = cv_gradient(problem, point["lam"], sample.folds, self.criterion)
        except (LinAlgError, FloatingPointError):
            return np.inf, np.zeros(x.size)
        gamma = np.ravel(found.kernel(kernel, sample.X)["gamma"])
        return found.value, np.append(gamma, found.lam)
