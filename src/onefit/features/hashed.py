"""Rows that lie anywhere as the passes of a split problem (onefit.features.split_problem).

Rows are known by their fold alone: fold k is what split k holds out, so the parts of the rows are
the folds. Landmarks know their folds, and the models of a fold do not use its landmarks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array, Indices
from onefit.features.feature_gram import CENTRE_ROWS
from onefit.features.maps import FeatureMap
from onefit.features.moments import Centre
from onefit.features.passes import Run
from onefit.features.split_problem import SplitProblem
from onefit.kernels import Kernel
from onefit.rows.accumulate import Chunk
from onefit.rows.sample import DrawnRows
from onefit.rows.survey import Surveyed
from onefit.spec import Spec

__all__ = ["Lengths", "Rows", "hashed_folds"]


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
