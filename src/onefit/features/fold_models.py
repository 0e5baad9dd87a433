"""The models of every fold and of all rows, from passes over rows that lie anywhere.

Rows are known by their fold alone: fold k is what split k holds out, so the parts of the rows are
the folds. The squared loss takes its models from the moments of one pass; other losses take
Newton steps, a few passes for each lambda, all folds side by side (onefit.features.newton).
Landmarks know their folds, and the models of a fold do not use its landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array, Indices
from onefit.features.feature_gram import CENTRE_ROWS
from onefit.features.maps import FeatureMap
from onefit.features.moments import Centre, Moments
from onefit.features.passes import Run
from onefit.features.split_problem import SplitProblem
from onefit.kernels import Kernel
from onefit.linalg import LinAlgError
from onefit.rows.accumulate import Chunk
from onefit.rows.sample import DrawnRows
from onefit.rows.survey import Surveyed
from onefit.spec import Spec

__all__ = ["FoldModels", "Lengths", "Rows", "hashed_folds", "newton", "squared"]


@dataclass(frozen=True)
class Rows:
    """What stands for the kernel matrix of streamed rows.

    Attributes
    ----------
    kernel : Kernel
    features : FeatureMap
    landmarks : (M,) array of int, or None
        Numbers of the rows that the landmarks are.
    fold : (M,) array of int, or None
        Their folds; None where they may be kept.
    some : DrawnRows
        A few rows.
    """

    kernel: Kernel
    features: FeatureMap
    landmarks: Indices | None = field(repr=False)
    fold: Indices | None = field(repr=False)
    some: DrawnRows = field(repr=False)

    def dropped(self, k: int) -> Indices:
        """The landmarks, by their place, that lie in a fold and may not be used without it."""
        none = np.empty(0, dtype=np.intp)
        return none if self.fold is None else np.flatnonzero(self.fold == k)

    def lost(self, k: int) -> Array:
        """The functions that split k may not use, (m, d)."""
        return self.features.lost(self.dropped(k))

    def centre(self, intercept: bool) -> Centre:
        """Constants near the means, for an intercept to take back."""
        q = self.some.Y.shape[1]
        if not intercept:
            return Centre.zero(self.features.size, q)
        few = self.some.take(slice(0, CENTRE_ROWS))
        return Centre.of(self.features, few.X, few.Y)


@dataclass(frozen=True)
class FoldModels:
    """u = phi'w + b of every fold and of all rows, at L lambdas for q targets.

    Attributes
    ----------
    W : (k, m, L, q) array
    b : (k, L, q) array
    whole : (m, L, q) and (L, q) arrays
        Of all rows.
    bounds : (k, L, q) array
        On the errors of held-out values.
    errors : (L, q) array
        On those of the model of all rows, for any of them.
    unfinished : list of str
        Why a lambda has no model of all rows, empty where it has one.
    steps : (k, L) array of int
    reasons : list of str
        Why a lambda has no model, empty where it has one.
    """

    W: Array = field(repr=False)
    b: Array = field(repr=False)
    whole: tuple[Array, Array] = field(repr=False)
    bounds: Array = field(repr=False)
    errors: Array = field(repr=False)
    unfinished: list[str]
    steps: Array = field(repr=False)
    reasons: list[str]


def hashed_folds(
    rows: Rows, spec: Spec, survey: Surveyed, longest: Array, run: Run
) -> SplitProblem:
    """The models without each fold, and that of all rows; ``longest`` is the |phi| of each fold."""
    weights = survey.weights
    total = float(weights.sum())
    return SplitProblem(
        features=rows.features,
        loss=spec.loss,
        fit_intercept=spec.fit_intercept,
        scaling=spec.scaling,
        scale=survey.scale,
        weight=total,
        weights=total - weights,
        train=~np.eye(weights.size, dtype=bool),
        lost=rows.lost,
        longest=longest,
        farthest=float(longest.max()),
        run=run,
    )


def squared(folds: SplitProblem, moments: Moments, lams: Array) -> FoldModels:
    """Least squares, from the moments of one pass."""
    k = folds.weights.size
    (whole, errors), *found = (folds.squared(moments, lams, c) for c in (None, *range(k)))
    by_lam = zip(whole.reasons, *(one.reasons for one, _ in found), strict=True)
    return FoldModels(
        W=np.stack([one.W for one, _ in found]),
        b=np.stack([one.b for one, _ in found]),
        whole=(whole.W, whole.b),
        bounds=np.stack([bounds for _, bounds in found]),
        errors=errors,
        unfinished=[""] * lams.size,
        steps=np.ones((k, lams.size), dtype=np.intp),
        reasons=[next(filter(None, texts), "") for texts in by_lam],
    )


def newton(folds: SplitProblem, lams: Array, refined: bool) -> FoldModels:
    """Any loss, by passes at every lambda, the largest first.

    ``refined`` folds take steps until they are exact, others one.
    """
    k, q, L, m = folds.weights.size, folds.scale.size, lams.size, folds.features.size
    found = FoldModels(
        W=np.zeros((k, m, L, q)),
        b=np.zeros((k, L, q)),
        whole=(np.zeros((m, L, q)), np.zeros((L, q))),
        bounds=np.full((k, L, q), np.inf),
        errors=np.full((L, q), np.inf),
        unfinished=[""] * L,
        steps=np.ones((k, L), dtype=np.intp),
        reasons=[""] * L,
    )
    for j in range(q):
        start = None
        for i in np.argsort(-lams, kind="stable").tolist():
            if found.reasons[i]:
                continue
            lam = float(lams[i])
            try:
                full = folds.whole(lam, j, start)
                found.errors[i, j], why = folds.error(lam, j, full)
                theta, found.bounds[:, i, j], steps = folds.splits(lam, j, full, refined)
            except (LinAlgError, FloatingPointError) as error:
                found.reasons[i] = f"lam={lam:g}: {error}; raise lam"
                continue
            start = full.theta
            found.unfinished[i] = found.unfinished[i] or why
            found.steps[:, i] = np.maximum(found.steps[:, i], steps)
            found.W[:, :, i, j], found.whole[0][:, i, j] = theta[:m].T, start[:m]
            if folds.fit_intercept:
                found.b[:, i, j], found.whole[1][i, j] = theta[-1], start[-1]
    return found


@dataclass(frozen=True)
class Lengths:
    """The accumulator of the largest |phi| of each fold."""

    features: FeatureMap
    folds: int

    def init(self) -> Array:
        return np.zeros(self.folds)

    def update(self, state: Array, chunk: Chunk) -> Array:
        np.maximum.at(state, chunk.fold, self.features.lengths(chunk.X))
        return state

    def merge(self, one: Array, other: Array) -> Array:
        return np.maximum(one, other)

    def finish(self, state: Array) -> Array:
        return state
