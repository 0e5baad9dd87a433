"""The models of every split and of all rows, in memory or streamed.

For the squared loss they follow from the moments of one pass; other losses need Newton steps, a few
passes for each lambda, all splits side by side (onefit.features.side_by_side).
"""

from __future__ import annotations

from dataclasses import dataclass, field

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
    """u = phi'w + b of k splits and of all rows, at L lambdas for q targets.

    Attributes
    ----------
    W : (k, m, L, q) array
    b : (k, L, q) array
    bounds : (k, L, q) array
        On the errors of held-out values.
    steps : (k, L) array of int
    whole : (m, L, q) and (L, q) arrays
        Weights and intercepts of all rows.
    errors : (L, q) array
        Bounds on the errors of the model of all rows at these rows; infinite if not computed.
    whole_steps : (L,) array of int
    unfinished : list of str
        For each lambda why the model of all rows failed; empty if it did not.
    reasons : list of str
        For each lambda the reason why there is no model at all; empty if there are models.
    """

    W: Array = field(repr=False)
    b: Array = field(repr=False)
    bounds: Array = field(repr=False)
    steps: Array = field(repr=False)
    whole: tuple[Array, Array] = field(repr=False)
    errors: Array = field(repr=False)
    whole_steps: Array
    unfinished: list[str]
    reasons: list[str]

    @classmethod
    def empty(cls, rows: SplitProblem, L: int) -> FoldModels:
        """No models yet."""
        k, q, m = rows.weights.size, rows.scale.size, rows.features.size
        return cls(
            W=np.zeros((k, m, L, q)),
            b=np.zeros((k, L, q)),
            bounds=np.full((k, L, q), np.inf),
            steps=np.zeros((k, L), dtype=np.intp),
            whole=(np.zeros((m, L, q)), np.zeros((L, q))),
            errors=np.full((L, q), np.inf),
            whole_steps=np.ones(L, dtype=np.intp),
            unfinished=[""] * L,
            reasons=[""] * L,
        )

    def fit(self, i: int) -> FeatureFit:
        """The model of all rows at the i-th lambda."""
        if why := self.reasons[i] or self.unfinished[i]:
            raise FitError(why)
        (W, b), error = self.whole, float(self.errors[i].max())
        steps = int(self.whole_steps[i])
        return FeatureFit(np.asfortranarray(W[:, i]), b[i].copy(), steps, error)


def squared(rows: SplitProblem, moments: Moments, lams: Array, whole: bool = True) -> FoldModels:
    """Least squares, from the moments of one pass; also of all rows if ``whole``."""
    models = FoldModels.empty(rows, lams.size)
    for c in [*([None] if whole else []), *range(rows.weights.size)]:
        found, errors = rows.squared(moments, lams, c)
        if c is None:
            models.whole[0][:], models.whole[1][:], models.errors[:] = found.W, found.b, errors
        else:
            models.W[c], models.b[c], models.bounds[c] = found.W, found.b, errors
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
    models, m = FoldModels.empty(rows, lams.size), rows.features.size
    for j in range(rows.scale.size):
        start = None
        for i in np.argsort(-lams, kind="stable").tolist():
            lam = float(lams[i])
            if models.reasons[i]:
                continue
            if near is not None and not near.reasons[i]:
                start = _theta(near, i, j, rows.fit_intercept)
            try:
                full = rows.whole(lam, j, start)
                if whole:
                    models.errors[i, j], why = rows.error(lam, j, full)
                    models.unfinished[i] = models.unfinished[i] or why
                if rows.weights.size:
                    theta, models.bounds[:, i, j], steps = rows.splits(lam, j, full, refined)
                    models.W[:, :, i, j] = theta[:m].T
                    models.b[:, i, j] = theta[-1] if rows.fit_intercept else 0.0
                    models.steps[:, i] = np.maximum(models.steps[:, i], steps)
            except (LinAlgError, FloatingPointError) as error:
                models.reasons[i] = f"lam={lam:g}: {error}; raise lam"
                continue
            start = full.theta
            models.whole[0][:, i, j] = start[:m]
            models.whole[1][i, j] = start[-1] if rows.fit_intercept else 0.0
            models.whole_steps[i] = max(models.whole_steps[i], full.steps)
    return models


def _theta(models: FoldModels, i: int, j: int, intercept: bool) -> Array:
    """The model of all rows at a lambda, for one target."""
    (W, b) = models.whole
    return np.append(W[:, i, j], b[i, j]) if intercept else W[:, i, j].copy()
