"""Leave-one-out: JMLR 2008, equation 17, exact.

    LOO = (1/n) sum_i ell(y_i, u_i^(-i)).

For the squared loss u^(-i) comes from Cawley's formula y_i - u_i^(-i) = a_i / P_ii, with the ridge
of n - 1 rows under mean scaling, from one eigendecomposition for all lambdas
(:meth:`HatSpectrum.left_out`). For other losses n leave-out problems are solved by Newton steps
from the full solution. Almost unbiased, of high variance; no splits to draw. When to use: small
samples, and wherever random folds are a nuisance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.base import weighted_mean
from onefit.criteria.by_row import ByRow
from onefit.criteria.crossval import exact_method
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.criteria.solutions import positive
from onefit.criteria.spectrum import HatSpectrum, hat_spectrum
from onefit.folds import leave_one_out
from onefit.heldout import HeldOutMethod
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

Array = NDArray[Any]

__all__ = ["LeaveOneOut", "loo", "loo_predictions"]


def loo(
    problem: Problem,
    lam: float,
    loss: str | Pointwise | None = None,
    method: HeldOutMethod | None = None,
) -> float:
    """Mean loss of the leave-one-out predictions.

    Parameters
    ----------
    problem, lam, loss, method
        As in :func:`cross_validation`.
    """
    kept = positive(problem)
    return _mean_loss(kept, loo_predictions(kept, lam, method), loss)


def loo_predictions(problem: Problem, lam: float, method: HeldOutMethod | None = None) -> Array:
    """The (n, q) leave-one-out predictions behind the criterion; weights must be positive."""
    if method is None and problem.quadratic:
        return problem.Y - hat_spectrum(problem).left_out(lam)
    prepared = (method or exact_method(problem)).prepare(problem, leave_one_out(problem.n))
    return prepared.predict(np.array([lam]))[0].values


def _mean_loss(problem: Problem, u: Array, loss: str | Pointwise | None) -> float:
    return weighted_mean(pointwise(loss, problem)(problem.Y, u), problem.s)


@dataclass(frozen=True)
class LeaveOneOut(ByRow):
    """Exact leave-one-out, whatever the splits of the search.

    Parameters
    ----------
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    """

    loss: str | Pointwise | None = None
    name = "loo"

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        values, kept = left_out(evidence), positive(evidence.problem)
        return lambda i: _mean_loss(kept, values(i), self.loss)

    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        return np.asarray(spectrum.problem.Y - spectrum.left_out(lam))

    def measure(self, problem: Problem) -> Pointwise:
        return pointwise(self.loss, problem)


def left_out(evidence: Evidence) -> Callable[[int], Array]:
    """The leave-one-out predictions of the rows of positive weight at the i-th lambda."""
    if evidence.problem.quadratic:
        spectrum = evidence.spectrum
        return lambda i: spectrum.problem.Y - spectrum.left_out(evidence.lams[i])
    kept = positive(evidence.problem)
    prepared = exact_method(kept).prepare(kept, leave_one_out(kept.n))
    path = prepared.predict(np.array(evidence.lams))
    return lambda i: path[i].values
