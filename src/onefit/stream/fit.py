"""The machine of all rows in feature space, for every target."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.problem import Problem
from onefit.stream.anyloss import fit_primal
from onefit.stream.newton import warn_unfinished
from onefit.stream.squared import fit_squared

__all__ = ["FeatureFit", "fit_features"]


@dataclass(frozen=True)
class FeatureFit:
    """u = phi'w + b for q targets.

    Attributes
    ----------
    W : (m, q) array
    b : (q,) array
    steps : int
    """

    W: Array = field(repr=False)
    b: Array
    steps: int


@linalg.overflowing
def fit_features(problem: Problem, lam: float) -> tuple[FeatureFit, Problem]:
    """The minimiser, and the problem with the loss that it was found for."""
    if problem.quadratic:
        found = fit_squared(problem, lam)
        if found.reasons[0]:
            raise linalg.LinAlgError(found.reasons[0])
        return FeatureFit(np.asfortranarray(found.W[:, 0]), found.b[0], 1), problem
    problem = problem.resolved
    m, q = problem.K.features.size, problem.Y.shape[1]
    W, b, steps = np.zeros((m, q), order="F"), np.zeros(q), 1
    whole = np.zeros(problem.n, dtype=np.intp)
    for j in range(q):
        one = fit_primal(problem, lam, j, whole)
        if not one.converged:
            warn_unfinished(problem.loss, lam)
        W[:, j], b[j] = one.theta[:m], one.theta[-1] if problem.fit_intercept else 0.0
        steps = max(steps, one.steps)
    return FeatureFit(W, b, steps), problem
