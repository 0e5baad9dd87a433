"""The model of all rows in feature space, for every target."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.columns.fit import FitError
from onefit.features.any_loss import PrimalExact, PrimalLimit
from onefit.features.in_memory import all_rows, moments
from onefit.features.parts import Partition
from onefit.features.squared import GramFolds
from onefit.heldout.base import HeldOutMethod
from onefit.problem import Problem

__all__ = ["FEATURE_METHODS", "FeatureFit", "feature_method", "fit_features"]


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
    m, q, rows = problem.K.features.size, problem.Y.shape[1], all_rows(problem)
    W, b, steps, error = np.zeros((m, q), order="F"), np.zeros(q), 1, 0.0
    for j in range(q):
        one = rows.whole(lam, j)
        own, why = rows.error(lam, j, one)
        if why:
            raise FitError(why)
        W[:, j], b[j] = one.theta[:m], one.theta[-1] if problem.fit_intercept else 0.0
        steps, error = max(steps, one.steps), max(error, own)
    return FeatureFit(W, b, steps, error), problem


def _squared(problem: Problem, lam: float) -> FeatureFit:
    """Least squares, from the sums of one pass."""
    sums = moments(problem, Partition.whole(problem.n))
    found, errors = all_rows(problem).squared(sums, np.array([lam]))
    if found.reasons[0]:
        raise FitError(found.reasons[0])
    return FeatureFit(np.asfortranarray(found.W[:, 0]), found.b[0], 1, float(errors.max()))


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
