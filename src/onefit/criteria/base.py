"""Base classes of criteria."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone, is_classifier

from onefit._types import Array
from onefit.criteria.evidence import Evidence
from onefit.criteria.identity import near_identity
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.criteria.spectrum import HatSpectrum
from onefit.folds import Folds
from onefit.heldout import METHODS, HeldOut, HeldOutMethod
from onefit.kernels import Kernel
from onefit.linalg import LinAlgError
from onefit.problem import Problem, Solution

__all__ = ["ByRow", "Criterion", "OfSolution", "check_loss", "exact_method", "weighted_mean"]


@dataclass(frozen=True, kw_only=True)
class Criterion(ABC):
    """One number per candidate, the smaller the better: alone, or as ``criterion=`` of a search.

    Parameters
    ----------
    guard : bool, default=True
        Whether a near-identity kernel matrix (ICML 2014, footnote 2) makes the value +inf.

    Attributes
    ----------
    name : str
    losses : tuple of str, or None
        Names of the losses that it is defined for; None for any loss.
    features : {"any", "squared", ""}
        Losses for which it can be computed from features instead of the kernel matrix.
    uses_folds : bool
        Whether it needs the held-out values of the folds.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> from onefit.criteria import Gcv
    >>> X, y = load_diabetes(return_X_y=True)
    >>> value = Gcv()(KernelRegressor(gamma=5.0, lam=1e-3), X, y)
    >>> grid = {"gamma": [5.0], "lam": [1e-3]}
    >>> search = KernelSearchCV(KernelRegressor(), grid, criterion=Gcv()).fit(X, y)
    >>> bool(abs(search.cv_results_["criterion"][0] / value - 1) < 1e-9)
    True
    """

    guard: bool = True
    name: ClassVar[str]
    losses: ClassVar[tuple[str, ...] | None] = None
    features: ClassVar[str] = ""
    uses_folds: ClassVar[bool] = False

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, cv: Any = 5
    ) -> float:
        """The value for one estimator, equal to that of a candidate in a search.

        Parameters
        ----------
        estimator : KernelRegressor or KernelClassifier
            Its parameters are used; it is not changed.
        X, y : training rows and targets
        sample_weight : array of shape (n,), default=None
        cv : int, splitter, iterable of splits or Folds, default=5
            Ignored unless the criterion ``uses_folds``.

        Returns
        -------
        float
            +inf, with a warning that gives the reason, if the criterion refuses the kernel matrix.
        """
        model = clone(estimator)
        problem = model._prepare(X, y, sample_weight)
        self.check(problem)
        if problem.K.features is not None:
            self.check_features(problem)
        folds = Folds.draw(cv, X, y, classifier=is_classifier(model)) if self.uses_folds else None
        values, reasons = self.evaluate(self._alone(problem, model.lam, model.kernel_, folds))
        if reasons[0]:
            warnings.warn(f"criterion {self.name!r} is infinite: {reasons[0]}", stacklevel=2)
        return float(values[0])

    def at(
        self,
        problem: Problem,
        lam: float,
        folds: Folds | None = None,
        method: HeldOutMethod | None = None,
        kernel: Kernel | None = None,
    ) -> float:
        """The value of one problem at one lambda, without the guard.

        Parameters
        ----------
        problem : Problem
        lam : float
        folds : Folds, default=None
            For criteria that use them.
        method : HeldOutMethod, default=None
            Method for the held-out values of the folds; an exact one by default.
        kernel : Kernel, default=None
            For criteria that use its parameters.
        """
        self.check(problem)
        return self.prepare(self._alone(problem, lam, kernel, folds, method))(0)

    def _alone(
        self,
        problem: Problem,
        lam: float,
        kernel: Kernel | None,
        folds: Folds | None,
        method: HeldOutMethod | None = None,
    ) -> Evidence:
        """The evidence of one lambda."""
        held: list[HeldOut | None] = [None]
        if self.uses_folds:
            if folds is None:
                raise ValueError(
                    f"criterion {self.name!r} needs folds; give folds=Folds.draw(5, X)"
                )
            prepared = (method or exact_method(problem)).prepare(problem, folds)
            held = [prepared.predict(np.array([lam]))[0]]
        return Evidence(problem, kernel, (lam,), held)

    def check(self, problem: Problem) -> None:
        """Refuse, before any work, a loss that the criterion is not defined for."""
        check_loss(problem, self.name, self.losses)

    def check_features(self, problem: Problem) -> None:
        """Refuse, before any work, features if the criterion needs the kernel matrix."""
        if self.features == "any" or (self.features == "squared" and problem.quadratic):
            return
        why = (
            f"needs a system for every row with {problem.loss!r}"
            if self.features
            else "needs the whole kernel matrix"
        )
        raise ValueError(
            f"criterion {self.name!r} {why}, which an approximation does not provide; use 'cv', or "
            "for the squared loss 'gcv', 'cv_hat', 'loo' or 'influence_loo'"
        )

    @abstractmethod
    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        """Compute what the lambdas share; return a function from i to the value at lambda i."""

    def evaluate(self, evidence: Evidence) -> tuple[Array, list[str]]:
        """Values of the lambdas, the smaller the better, and reasons for infinite ones."""
        self.check(evidence.problem)
        size = len(evidence.lams)
        values, reasons = np.full(size, np.inf), [""] * size
        whole = evidence.problem.K.features is None
        reason = near_identity(evidence.positive.K) if self.guard and whole else ""
        if reason:
            return values, [reason] * size
        try:
            value_at = self.prepare(evidence)
        except (LinAlgError, FloatingPointError) as error:
            return values, [str(error)] * size
        for i, lam in enumerate(evidence.lams):
            try:
                value = value_at(i)
            except (LinAlgError, FloatingPointError) as error:
                reasons[i] = str(error)
                continue
            values[i], reasons[i] = self.accept(value, lam)
        return values, reasons

    def accept(self, value: float, lam: float) -> tuple[float, str]:
        """A value and no reason; +inf and a reason where it is not finite."""
        if np.isnan(value) or value == np.inf:
            return np.inf, f"criterion {self.name!r} is not finite at lam={lam:g}; raise lam"
        return value, ""


@dataclass(frozen=True, kw_only=True)
class OfSolution(Criterion):
    """A criterion of the solution at each lambda, on the rows of positive weight."""

    @abstractmethod
    def of_solution(self, problem: Problem, lam: float, solution: Solution) -> float:
        """The value; all weights are positive."""

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        problem, lams = evidence.positive, evidence.lams
        return lambda i: self.of_solution(problem, lams[i], evidence.solution(i))


@dataclass(frozen=True)
class ByRow(Criterion):
    """A mean over rows of a loss of leave-one-out predictions, at least for the squared loss.

    With features instead of the kernel matrix the hat matrices of these predictions follow from
    sums over all rows (onefit.features.leave_one), in memory or streamed
    (onefit.criteria.streamed).

    Parameters
    ----------
    loss : str, callable or None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    """

    loss: str | Pointwise | None = None
    features = "squared"

    @abstractmethod
    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        """The (n, q) leave-one-out predictions of the criterion, for the squared loss."""

    def measure(self, problem: Problem) -> Pointwise:
        """The pointwise loss of these predictions."""
        return pointwise(self.loss, problem)

    def left_out(self, evidence: Evidence) -> Callable[[int], Array]:
        """The leave-one-out predictions of the rows of positive weight at the i-th lambda."""
        spectrum = evidence.spectrum
        return lambda i: self.predictions(spectrum, evidence.lams[i])

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        rows, left_out = evidence.positive, self.left_out(evidence)
        measure = self.measure(rows)
        return lambda i: weighted_mean(measure(rows.Y, left_out(i)), rows.s)


def check_loss(problem: Problem, name: str, losses: tuple[str, ...] | None) -> None:
    """Refuse a loss that is not listed, and name criteria that are defined for it."""
    if losses is None or problem.loss.name in losses:
        return
    hinges = ("smoothed_hinge", "squared_hinge")
    fitting = ["'loo'", "'influence_loo'", "'kernel_stability'"]
    if problem.loss.name in hinges:
        fitting += ["'span'", "'sv_count'"]
    if problem.loss.name == "squared_hinge":
        fitting += ["'radius_margin'"]
    if problem.quadratic:
        fitting += ["'cv_hat'", "'gcv'", "'bayes_loo'"]
    wanted = " and ".join(repr(loss) for loss in losses)
    raise ValueError(
        f"criterion {name!r} fits models with loss {wanted} only, not {problem.loss!r}; "
        f"use another criterion, such as {', '.join(fitting)}, or another loss"
    )


def exact_method(problem: Problem) -> HeldOutMethod:
    """An exact held-out method for the loss."""
    return METHODS["eigen" if problem.quadratic else "exact"]()


def weighted_mean(values: Array, s: Array) -> float:
    """The mean over targets of the weighted mean over rows of an (n, q) array."""
    return float((s @ values).mean() / s.sum())
