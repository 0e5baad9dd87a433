"""The model of all rows in feature space, for every target."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.columns.fit import FitError
from onefit.features.any_loss import PrimalExact, PrimalLimit, fit_primal, primal_error
from onefit.features.squared import GramFolds, fit_squared
from onefit.heldout.base import HeldOutMethod
from onefit.problem import Problem
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = ["FEATURE_METHODS", "FeatureFit", "feature_method", "fit_features", "not_converged"]


@dataclass(frozen=True)
class FeatureFit:
    """u = phi'w + b for q targets.

    Attributes
    ----------
    W : (m, q) array
    b : (q,) array
    steps : int
    error : float
        Bound on how far a prediction for a row of the sample is from that of the minimiser.
    """

    W: Array = field(repr=False)
    b: Array
    steps: int
    error: float


@linalg.overflowing
def fit_features(problem: Problem, lam: float) -> tuple[FeatureFit, Problem]:
    """The minimiser, and the problem with the loss that it was found for."""
    if problem.quadratic:
        return _squared(problem, lam), problem
    problem = problem.resolved
    m, q = problem.K.features.size, problem.Y.shape[1]
    W, b, steps, error = np.zeros((m, q), order="F"), np.zeros(q), 1, 0.0
    whole = np.zeros(problem.n, dtype=np.intp)
    for j in range(q):
        one = fit_primal(problem, lam, j, whole)
        own = primal_error(problem, lam, j, one.theta)
        if not (one.converged or own <= EXACT_TOLERANCE * problem.scale[j]):
            raise not_converged(problem.loss, lam, one.steps, own, float(problem.scale[j]))
        W[:, j], b[j] = one.theta[:m], one.theta[-1] if problem.fit_intercept else 0.0
        steps, error = max(steps, one.steps), max(error, own)
    return FeatureFit(W, b, steps, error), problem


def _squared(problem: Problem, lam: float) -> FeatureFit:
    """Least squares, from the sums of one pass."""
    found = fit_squared(problem, lam)
    if found.reasons[0]:
        raise FitError(found.reasons[0])
    W, rows = np.asfortranarray(found.W[:, 0]), problem.K
    error = found.errors(rows.lengths, rows.kept[1].drift(W))
    return FeatureFit(W, found.b[0], 1, float(error.max()))


def not_converged(loss: object, lam: float, steps: int, error: float, scale: float) -> FitError:
    """What was measured, and what to do about it."""
    bounded = f"an error of at most {error:.1e}" if np.isfinite(error) else "no bound"
    return FitError(
        f"the fit did not reach its minimum (loss {loss!r}, lam={lam:g}, {steps} steps): its "
        f"predictions have {bounded} (at most {EXACT_TOLERANCE * scale:.1e} is needed); raise lam, "
        "or scale the data"
    )


FEATURE_METHODS: dict[str, type[HeldOutMethod]] = {
    method.name: method for method in (GramFolds, PrimalLimit, PrimalExact)
}


def feature_method(name: str, quadratic: bool) -> str:
    """The method that a name means: sums of products serve the squared loss under every name."""
    known = ("auto", "gram", "limit", "exact")
    if name not in known:
        raise ValueError(
            f"method {name!r} works on the whole kernel matrix; with an approximation use "
            "'auto', 'exact' or 'limit'"
        )
    if quadratic:
        return "gram"
    if name == "gram":
        raise ValueError("method 'gram' works for the squared loss only; use 'exact' or 'limit'")
    return "exact" if name == "auto" else name
