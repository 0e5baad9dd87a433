"""The models of every split and of all rows, in memory or streamed.

For the squared loss they follow from the moments of one pass; other losses need Newton steps, a few
passes for each lambda, all splits side by side (onefit.features.side_by_side).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.columns.fit import FitError
from onefit.features.moments import Moments
from onefit.features.split_problem import SplitProblem
from onefit.linalg import LinAlgError

__all__ = ["FeatureFit", "FoldModels", "newton", "squared"]


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


@dataclass(frozen=True)
class FoldModels:
    """u = phi'w + b of k splits and, last, of all rows, at L lambdas for q targets.

    Attributes
    ----------
    W : (k + 1, m, L, q) array
    b : (k + 1, L, q) array
    bounds : (k + 1, L, q) array
        On the errors of held-out values, and of the model of all rows at these; infinite if not
        computed.
    steps : (k + 1, L) array of int
    unfinished : list of str
        For each lambda why the model of all rows failed; empty if it did not.
    reasons : list of str
        For each lambda the reason why there is no model at all; empty if there are models.
    """

    W: Array = field(repr=False)
    b: Array = field(repr=False)
    bounds: Array = field(repr=False)
    steps: Array = field(repr=False)
    unfinished: list[str]
    reasons: list[str]

    @classmethod
    def empty(cls, rows: SplitProblem, L: int) -> FoldModels:
        """No models yet."""
        k, q, m = rows.weights.size, rows.scale.size, rows.features.size
        steps = np.zeros((k, L), dtype=np.intp)
        steps[-1] = 1
        return cls(
            W=np.zeros((k, m, L, q)),
            b=np.zeros((k, L, q)),
            bounds=np.full((k, L, q), np.inf),
            steps=steps,
            unfinished=[""] * L,
            reasons=[""] * L,
        )

    def fit(self, i: int) -> FeatureFit:
        """The model of all rows at the i-th lambda."""
        if why := self.reasons[i] or self.unfinished[i]:
            raise FitError(why)
        error, steps = float(self.bounds[-1, i].max()), int(self.steps[-1, i])
        return FeatureFit(np.asfortranarray(self.W[-1, :, i]), self.b[-1, i].copy(), steps, error)

    def put(self, splits: Any, i: int, j: int, theta: Array, steps: Any) -> None:
        """Set the models of some splits at a lambda for a target, (splits, size)."""
        m = self.W.shape[1]
        self.W[splits, :, i, j] = theta[..., :m]
        self.b[splits, i, j] = theta[..., m] if theta.shape[-1] > m else 0.0
        self.steps[splits, i] = np.maximum(self.steps[splits, i], steps)

    def theta(self, i: int, j: int, intercept: bool) -> Array:
        """The model of all rows at a lambda for a target."""
        return np.append(self.W[-1, :, i, j], self.b[-1, i, j][None] if intercept else [])


def squared(rows: SplitProblem, moments: Moments, lams: Array, whole: bool = True) -> FoldModels:
    """Least squares, from the moments of one pass; also of all rows if ``whole``."""
    models = FoldModels.empty(rows, lams.size)
    for split in range(rows.folds + whole):
        found, models.bounds[split] = rows.squared(moments, lams, split)
        models.W[split], models.b[split] = found.W, found.b
        for i, why in enumerate(found.reasons):
            models.reasons[i] = models.reasons[i] or why
    return models


def newton(
    rows: SplitProblem,
    lams: Array,
    refined: bool,
    whole: bool = True,
    near: FoldModels | None = None,
) -> FoldModels:
    """Any loss, by passes at every lambda, the largest first.

    Splits take one step, or steps until they are exact if ``refined``. ``whole``: bound the error
    of the model of all rows. ``near``: models at the same lambdas, to start from.
    """
    models, splits = FoldModels.empty(rows, lams.size), slice(rows.folds)
    for j in range(rows.scale.size):
        start = None
        for i in np.argsort(-lams, kind="stable").tolist():
            lam = float(lams[i])
            if models.reasons[i]:
                continue
            if near is not None and not near.reasons[i]:
                start = near.theta(i, j, rows.fit_intercept)
            try:
                full = rows.whole(lam, j, start)
                centred = full.theta
                if whole:
                    centred, models.bounds[-1, i, j], why = rows.certified(lam, j, full)
                    models.unfinished[i] = models.unfinished[i] or why
                if rows.folds:
                    theta, models.bounds[splits, i, j], steps = rows.splits(lam, j, full, refined)
                    models.put(splits, i, j, theta.T, steps)
            except (LinAlgError, FloatingPointError) as error:
                models.reasons[i] = f"lam={lam:g}: {error}; raise lam"
                continue
            start = centred
            models.put(-1, i, j, start, full.steps)
    return models
