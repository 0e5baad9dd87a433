"""The objective of a descent: a smooth cross-validation error, and restraints on over-fitting.

A smooth function of held-out values replaces the score: the squared error where the score is one
(R^2 and its root among them), Huber's loss for the absolute error, the rounded loss of its levels
for any other score of a model of quantiles, a softened error rate for the accuracy, the log loss
for any other score of a classifier. With ``criterion=KernelStability(eta)``
it is k-KS, its maximum smoothed (onefit.criteria.stability).

**Over-fitting.** Cross-validation of many parameters can be over-fitted like any other error, the
more the fewer the rows (docs, "Many parameters"). Three things restrain it: k-KS; a prior; and
early stopping, where the gradient is that of every other split, and a descent ends where the
remaining splits, which do not enter the gradient, have the smallest error.

The prior is that of Cawley and Talbot (JMLR 2007), who weigh the error Q and W = sum of squared
gammas / 2 (of standardised columns), and integrate the weights out: log Q + (d / n) log W is left.
That falls without end as all gammas go to zero, where with a small lam the kernel turns into a
polynomial one and Q need not rise. Here W_0 is added to W, that of the best single gamma: growing
gammas cost as before, vanishing ones gain little. Prior and early stopping together are the only
combination that was worse than a single gamma on none of ten data sets
(benchmarks/overfitting.py), and are the default for gammas per column; weights of a bank were
better with early stopping than without on all ten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from onefit._types import Array
from onefit.criteria import KernelStability
from onefit.criteria.stability import smoothed_stability
from onefit.gradient import SmoothCriterion, SmoothedError, cv_gradient
from onefit.linalg import LinAlgError
from onefit.losses import Huber, Log, Quantile, SmoothedHinge, Squared
from onefit.losses.base import resolved
from onefit.search.directions import Bandwidths, Mixture, make_direction
from onefit.search.grid import CandidateModel
from onefit.search.outcome import Task

__all__ = ["Objective"]

#: threshold of the Huber loss that replaces the absolute error, in standard deviations, and
#: width of the step that replaces the error rate
ABSOLUTE_CORNER_IN_SPREADS, ERROR_STEP_WIDTH = 0.1, 0.3


def _pointwise(task: Task, model: CandidateModel) -> SmoothCriterion:
    """The smooth function of held-out values that replaces a score, or the loss of k-KS."""
    corner = ABSOLUTE_CORNER_IN_SPREADS * float(np.std(task.sample.Y)) or 1.0
    criterion, metric = task.criterion, task.metric
    known: dict[Any, SmoothCriterion] = {
        "squared": Squared(), "absolute": Huber(corner), "hinge": SmoothedHinge(),
        "zero_one": SmoothedError(ERROR_STEP_WIDTH),
    }  # fmt: skip
    if isinstance(criterion, KernelStability):
        own = model.estimator.spec().loss
        own = resolved(own, task.sample.Y, task.sample.s[:, None])
        return own if criterion.loss is None else known[criterion.loss]
    if metric in task.scoring.fast and task.scoring.fast[metric][0].loss:
        return known[task.scoring.fast[metric][0].loss]
    if is_classifier(model.estimator):
        return Log()
    own = model.estimator.spec().loss
    if isinstance(own, Quantile):
        return Quantile(own.level, corner)
    return Squared()


def _weights(task: Task) -> Array | None:
    """Weights of the test rows in the score or in k-KS; None where all rows count alike."""
    if isinstance(task.criterion, KernelStability):
        return task.sample.s[task.sample.folds.rows]
    if task.metric in task.scoring.fast:
        return task.scoring.fast[task.metric][2].weights
    # a scorer that returns several scores has the name "score"
    name = task.metric if task.metric in task.scoring.slow else "score"
    given: list[Any] = [part.params[name].get("sample_weight") for part in task.scoring.parts]
    return None if given[0] is None else np.concatenate(given)


class Objective:
    """What is minimised for one kind of model: a function of a direction's variables and log lam.

    Parameters
    ----------
    model : CandidateModel
    task : Task
    ranges : dict
        An interval for gamma or a bank and, if it is not given, an interval for lam.
    search : KernelGradientSearchCV
    usual : dict or None
        The candidate with the best single gamma, which the prior compares with.
    """

    def __init__(
        self,
        model: CandidateModel,
        task: Task,
        ranges: dict[str, Any],
        search: Any,
        usual: dict[str, Any] | None = None,
    ) -> None:
        self.estimator, self.task, self.ranges = model.estimator, task, ranges
        self.search, self.usual = search, usual
        self.direction = make_direction(model.estimator, task.sample, ranges)
        self.pointwise, self.weights = _pointwise(task, model), _weights(task)
        criterion = task.criterion
        self.eta = criterion.eta if isinstance(criterion, KernelStability) else 0.0

    @property
    def has_prior(self) -> bool:
        """Whether the objective is a logarithm, with the prior added."""
        return self.usual is not None and self.search.prior

    def begin(self, candidate: dict[str, Any]) -> Array:
        """The variables of a candidate, log lam the last."""
        lam = np.log(candidate.get("lam", self.estimator.lam))
        return np.append(self.direction.begin(candidate), lam)

    def params(self, x: Array) -> dict[str, Any]:
        """Parameters of the estimator from variables."""
        return self.direction.params(x[:-1]) | {"lam": float(np.exp(x[-1]))}

    def bounds(self) -> list[tuple[float, float]]:
        """Bounds of the free variables."""
        lam = self.ranges.get("lam")
        ends = [] if lam is None else [(float(np.log(lam.low)), float(np.log(lam.high)))]
        return [*self.direction.bounds, *ends]

    def evaluate(self, x: Array) -> tuple[float, Array, float]:
        """Value, gradient, and the key of the best point; infinite where numerics fail."""
        try:
            return self._evaluate(x)
        except (LinAlgError, FloatingPointError):
            return np.inf, np.zeros(x.size), np.inf

    def _evaluate(self, x: Array) -> tuple[float, Array, float]:
        sample, estimator = self.task.sample, self.estimator
        K, followed = self.direction.matrix(x[:-1]), self._followed()
        problem = estimator.spec().problem(K, sample.Y, sample.s)
        found = cv_gradient(
            problem, np.exp(x[-1]), sample.folds, self.pointwise, followed, self.weights
        )
        value, left, right, lam = found.value, found.left, found.right, found.lam
        watched = value if followed is None else float(np.mean(found.parts[followed == 0.0]))
        if self.eta:
            stability, one, other = smoothed_stability(K)
            share = self.eta / K.shape[0]
            value, watched = value + share * stability, watched + share * stability
            left, right = np.hstack([left, share * one]), np.hstack([right, other])
        slope = np.append(self.direction.pull(x[:-1], left, right), lam)
        if self.has_prior:
            value, slope = self._with_prior(x, value, slope)
        return value, slope, value if followed is None else watched

    def _followed(self) -> Array | None:
        """The shares of splits when every other one is watched."""
        wanted = self.search.early_stopping
        if wanted is None:
            wanted = self.usual is not None or isinstance(self.direction, Mixture)
        if not wanted or len(self.task.sample.folds) < 2:
            return None
        even = np.arange(len(self.task.sample.folds)) % 2 == 0
        return np.asarray(even / even.sum())

    def _with_prior(self, x: Array, value: float, slope: Array) -> tuple[float, Array]:
        assert isinstance(self.direction, Bandwidths)
        assert self.usual is not None
        squares = self.direction.squares(x[:-1])
        usual = float(self.direction.squares(self.direction.begin(self.usual)).sum())
        share, total = squares.size / len(self.task.sample.Y), usual + float(squares.sum())
        own = np.append(share * 2.0 * squares / total, 0.0)
        return float(np.log(value) + share * np.log(total / usual)), slope / value + own
