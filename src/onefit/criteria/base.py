"""What all criteria share: the losses they fit, the guard, and the walk along the lambdas."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.identity import near_identity
from onefit.linalg import LinAlgError
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

Array = NDArray[Any]

__all__ = ["Criterion", "check_loss", "weighted_mean"]


@dataclass(frozen=True, kw_only=True)
class Criterion(ABC):
    """A criterion as a search takes it.

    Parameters
    ----------
    guard : bool, default=True
        Whether a near-identity kernel matrix (ICML 2014, footnote 2) makes the value +inf.

    Attributes
    ----------
    name : str
    losses : tuple of str, or None
        Names of the only losses it fits.
    features : {"any", "squared", ""}
        Losses for which it can be had from features instead of the kernel matrix.
    """

    guard: bool = True
    name: ClassVar[str]
    losses: ClassVar[tuple[str, ...] | None] = None
    features: ClassVar[str] = ""

    def check(self, problem: Problem) -> None:
        """Refuse, before any work, a loss that the criterion does not fit."""
        check_loss(problem, self.name, self.losses)

    def check_features(self, problem: Problem) -> None:
        """Refuse, before any work, what features instead of the kernel matrix do not give."""
        if self.features == "any" or (self.features == "squared" and problem.quadratic):
            return
        why = (
            f"takes a system for every row with {problem.loss!r}"
            if self.features
            else "looks at the whole kernel matrix"
        )
        raise ValueError(
            f"criterion {self.name!r} {why}, which an approximation does without; use 'cv', or for "
            "the squared loss 'gcv', 'cv_hat', 'loo' or 'influence_loo'"
        )

    @abstractmethod
    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        """Do what the lambdas share; return the value at the i-th lambda."""

    def evaluate(self, evidence: Evidence) -> tuple[Array, list[str]]:
        """One value a lambda, the smaller the better, and one reason, empty where all is well."""
        self.check(evidence.problem)
        size = len(evidence.lams)
        values, reasons = np.full(size, np.inf), [""] * size
        whole = evidence.problem.K.features is None
        reason = near_identity(evidence.problem.K) if self.guard and whole else ""
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


def check_loss(problem: Problem, name: str, losses: tuple[str, ...] | None) -> None:
    """Refuse a loss that is not among the fitting ones, and say which criteria would fit it."""
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


def weighted_mean(values: Array, s: Array) -> float:
    """The mean over targets of the weighted mean over rows of an (n, q) array."""
    return float((s @ values).mean() / s.sum())
