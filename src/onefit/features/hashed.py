"""The split problem (onefit.features.split_problem) of streamed rows in hashed folds.

Split k holds out fold k, so the parts of the rows are the folds. A split does not use the landmarks
in its fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array
from onefit.features.maps import FeatureMap
from onefit.features.moments import Centre
from onefit.features.passes import Run
from onefit.features.split_problem import SplitProblem
from onefit.kernels import Kernel
from onefit.kernels.distances import CENTRE_SAMPLE_ROWS
from onefit.rows.accumulate import Accumulator, Chunk
from onefit.rows.sample import DrawnRows
from onefit.rows.survey import Surveyed
from onefit.spec import Spec

__all__ = ["Lengths", "StreamedFeatures", "hashed_folds"]


@dataclass(frozen=True)
class StreamedFeatures:
    """The features that replace the kernel matrix of streamed rows.

    Attributes
    ----------
    kernel : Kernel
    features : FeatureMap
    landmarks : DrawnRows or None
    keep_landmarks : bool
        Whether landmarks may lie in held-out folds.
    some : DrawnRows
        A few rows.
    """

    kernel: Kernel
    features: FeatureMap
    landmarks: DrawnRows | None = field(repr=False)
    keep_landmarks: bool
    some: DrawnRows = field(repr=False)

    @property
    def dropped(self) -> DrawnRows | None:
        """The landmarks, if models of the folds that they are in may not use them."""
        return None if self.keep_landmarks else self.landmarks

    def lost(self, k: int) -> Array:
        """The functions that split k may not use, (m, d)."""
        if self.dropped is None:
            return np.empty((self.features.size, 0))
        return self.features.lost(np.flatnonzero(self.dropped.fold == k))

    def centre(self, intercept: bool) -> Centre:
        """Constants near the means of features and targets; zero without an intercept."""
        q = self.some.Y.shape[1]
        if not intercept:
            return Centre.zero(self.features.size, q)
        few = self.some.take(slice(0, CENTRE_SAMPLE_ROWS))
        return Centre.of(self.features, few.X, few.Y)


def hashed_folds(
    rows: StreamedFeatures, spec: Spec, survey: Surveyed, longest: Array, run: Run
) -> SplitProblem:
    """The models without each fold, and that of all rows; ``longest`` is the |phi| of each fold."""
    weights = survey.weights
    train = np.column_stack([~np.eye(weights.size, dtype=bool), np.ones_like(weights, dtype=bool)])
    return SplitProblem(
        features=rows.features,
        loss=spec.loss,
        fit_intercept=spec.fit_intercept,
        scaling=spec.scaling,
        scale=survey.scale,
        # a sum: a difference would lose the digits of small weights
        weights=weights @ train,
        train=train,
        lost=rows.lost,
        longest=np.append(longest, longest.max()),
        run=run,
    )


@dataclass(frozen=True)
class Lengths(Accumulator[Array, Array]):
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
