"""Leave-one-out: JMLR 2008, equation 17, exact.

    LOO = (1/n) sum_i ell(y_i, u_i^(-i)).

For the squared loss u^(-i) comes from Cawley's formula y_i - u_i^(-i) = a_i / P_ii, with the ridge
of n - 1 rows under mean scaling, from one eigendecomposition for all lambdas. For other losses n
leave-out problems are solved by Newton steps from the full solution. Almost unbiased, of high
variance; no splits to draw. When to use: small samples, and wherever random folds are a nuisance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.base import Criterion, positive, weighted_mean
from onefit.criteria.crossval import exact_method
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.folds import Folds, Indices
from onefit.heldout import HeldOutMethod
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.search.criterion import Evidence

Array = NDArray[Any]

__all__ = ["LeaveOneOut", "leave_one_out", "loo"]


@dataclass(frozen=True)
class _AllButOne(Sequence[Indices]):
    """Training sets of leave-one-out, written out when asked for."""

    n: int

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: Any) -> Any:
        if not -self.n <= i < self.n:
            raise IndexError(i)
        return np.delete(np.arange(self.n), i)


def leave_one_out(n: int) -> Folds:
    """The n splits, without their n^2 training indices."""
    rows = list(np.arange(n)[:, None])
    folds = Folds(n, _AllButOne(n), rows)
    vars(folds).update(removed=rows, disjoint=[True] * n)  # cached properties, known already
    return folds


def loo(
    problem: Problem,
    lam: float,
    loss: str | Pointwise | None = None,
    method: HeldOutMethod | None = None,
) -> float:
    """Mean loss of the leave-one-out predictions.

    Parameters
    ----------
    problem : Problem
    lam : float
    loss : {"squared", "absolute", "zero_one", "hinge"}, callable or None, default=None
        What to judge by; None is the machine's own loss.
    method : HeldOutMethod, default=None
        An exact one by default.
    """
    return loo_path(problem, np.array([lam]), loss, method)(lam)


def loo_path(
    problem: Problem,
    lams: Array,
    loss: str | Pointwise | None = None,
    method: HeldOutMethod | None = None,
) -> Callable[[float], float]:
    """The criterion as a function of lambda, what the lambdas share done once."""
    kept = positive(problem)
    value = pointwise(loss, kept)
    prepared = (method or exact_method(kept)).prepare(kept, leave_one_out(kept.n), lams)
    return lambda lam: weighted_mean(value(kept.Y, prepared.predict(lam).values), kept.s)


@dataclass(frozen=True)
class LeaveOneOut(Criterion):
    """Exact leave-one-out, whatever the splits of the search.

    Parameters
    ----------
    loss : {"squared", "absolute", "zero_one", "hinge"}, callable or None, default=None
    """

    loss: str | Pointwise | None = None
    name = "loo"

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        value = loo_path(evidence.problem, np.array(evidence.lams), self.loss)
        return lambda i: value(evidence.lams[i])
