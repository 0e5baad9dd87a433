"""k-fold cross-validation of any loss, by any held-out method.

    CV = (1/k) sum_k (1/|S_k|) sum_{i in S_k} ell(y_i, u_i^(-k)),

u^(-k) the model without the fold S_k (ICML 2014, section 2; ECML 2014, section 3). Nearly
unbiased for the error at the size of the training parts; its variance is what the other criteria
fight. Cost: that of the method, about one fit. When to use: by default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.base import Criterion
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.folds import Folds
from onefit.heldout import METHODS, HeldOut, HeldOutMethod
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

Array = NDArray[Any]

__all__ = ["CrossValidation", "cross_validation", "exact_method", "held_out_loss"]


def cross_validation(
    problem: Problem,
    lam: float,
    folds: Folds,
    loss: str | Pointwise | None = None,
    method: HeldOutMethod | None = None,
) -> float:
    """Mean over the splits of the mean loss of their test rows.

    Parameters
    ----------
    problem : Problem
    lam : float
    folds : Folds
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
        What to judge by; None is the model's own loss.
    method : HeldOutMethod, default=None
        An exact one by default.
    """
    chosen = method or exact_method(problem)
    held = chosen.prepare(problem, folds).predict(np.array([lam]))
    return held_out_loss(held[0], problem, loss)


def exact_method(problem: Problem) -> HeldOutMethod:
    """The exact method for the loss."""
    return METHODS["eigen" if problem.quadratic else "exact"]()


def held_out_loss(held: HeldOut, problem: Problem, loss: str | Pointwise | None = None) -> float:
    """The mean loss of held-out values: of every split, then over the splits."""
    rows, starts = held.folds.rows, held.folds.offsets[:-1]
    values = pointwise(loss, problem)(problem.Y[rows], held.values).mean(axis=1)
    weights = problem.s[rows]
    total = np.add.reduceat(weights, starts)
    sums = np.add.reduceat(weights * values, starts)[total > 0]
    return float((sums / total[total > 0]).mean())


def of_heldouts(evidence: Evidence, value: Callable[[HeldOut], float]) -> Callable[[int], float]:
    """A function of the held-out values of the i-th lambda; NaN where there are none."""

    def value_at(i: int) -> float:
        held = evidence.heldouts[i]
        return float("nan") if held is None else value(held)

    return value_at


@dataclass(frozen=True)
class CrossValidation(Criterion):
    """Mean held-out loss of the search's own splits.

    Parameters
    ----------
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    """

    loss: str | Pointwise | None = None
    name = "cv"
    features = "any"

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        return of_heldouts(evidence, lambda held: held_out_loss(held, evidence.problem, self.loss))
