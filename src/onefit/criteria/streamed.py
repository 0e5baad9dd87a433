"""Criteria of streamed rows, by one more pass with the hat matrices of all rows.

The pass of the moments gives the eigenvectors V of A and all that does not depend on single rows
(:class:`onefit.features.leave_one.HatBasis`). A chunk is then treated like a small sample in
memory, with the weight of all rows: its features are multiplied by V once for all lambdas, which
takes m^2 operations per row. "gcv" needs no leverages of single rows, hence no such product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.criteria.base import ByRow
from onefit.features.feature_gram import FeatureGram
from onefit.features.leave_one import FeatureHat, HatBasis
from onefit.features.maps import FeatureMap
from onefit.losses.base import Loss
from onefit.problem import Problem
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = ["CriterionSums"]


@dataclass(frozen=True)
class CriterionSums(Accumulator[Array, Array]):
    """The accumulator of a criterion for one model, a number per lambda.

    Attributes
    ----------
    criterion : ByRow
    features : FeatureMap
    landmarks : (M,) array of int, or None
        Numbers of the rows that the landmarks are; None where they may be kept.
    basis : HatBasis
        Of all rows.
    loss : Loss
    scaling : {"mean", "total"}
    lams : (L,) array
    """

    criterion: ByRow
    features: FeatureMap
    landmarks: Array | None = field(repr=False)
    basis: HatBasis
    loss: Loss
    scaling: str
    lams: Array

    def init(self) -> Array:
        return np.zeros((self.lams.size, self.basis.z.shape[1]))

    def update(self, state: Array, chunk: Chunk) -> Array:
        some = np.flatnonzero(chunk.s > 0)
        if some.size == 0:
            return state
        hat = self._hat(chunk, some)
        part, measure = hat.problem, self.criterion.measure(hat.problem)
        for i, lam in enumerate(self.lams.tolist()):
            u = self.criterion.predictions(hat, lam)  # type: ignore[arg-type]
            state[i] += part.s @ measure(part.Y, u)
        return state

    def finish(self, state: Array) -> Array:
        return np.asarray(state.mean(axis=1) / self.basis.weight)

    def _hat(self, chunk: Chunk, some: Array) -> _ChunkHat:
        """Hat matrices at the rows of positive weight."""
        X = linalg.arrays_of(chunk.X).rows(chunk.X, some)
        Y, s = (one[some].astype(np.float64, copy=False) for one in (chunk.Y, chunk.s))
        rows = FeatureGram(X, self.features, self._places(chunk.row[some]), keep_features=False)
        part = Problem(rows, Y, s, self.loss, self.basis.intercept, self.scaling)
        part = part.part_of(self.basis.weight)
        return _ChunkHat(part, self.basis, self.lams, self._models)

    def _places(self, row: Array) -> Array | None:
        """Positions of the landmarks among some rows, -1 for those that are not there."""
        if self.landmarks is None:
            return None
        places = np.full(self.landmarks.size, -1, dtype=np.intp)
        _, here, which = np.intersect1d(row, self.landmarks, return_indices=True)
        places[which] = here
        return places

    @cached_property
    def _models(self) -> tuple[Array, Array]:
        """Models of all rows, at every lambda."""
        ridges = self.lams * (1.0 if self.scaling == "total" else self.basis.weight)
        return self.basis.models(ridges)


class _ChunkHat(FeatureHat):
    """The hat matrices at the rows of a chunk, with predictions at all lambdas from one product.

    That is a product with the features, not with kernel values: features need the solution of a
    triangular system, but the coefficients of kernel values are so large that their product loses
    digits where lam is small.

    Parameters
    ----------
    lams : (L,) array
    models : (m, L, q) and (L, q) arrays
        Weights and intercepts.
    """

    def __init__(
        self, problem: Problem, basis: HatBasis, lams: Array, models: tuple[Array, Array]
    ) -> None:
        super().__init__(problem, basis)
        self.lams, self.models = lams.tolist(), models

    def residual(self, lam: float) -> Array:
        return np.asarray(self.problem.Y - self._fitted[:, self.lams.index(lam)])

    def features(self, some: slice) -> Any:
        return linalg.arrays_of(self._phi).rows(self._phi, some)

    @cached_property
    def _phi(self) -> Any:
        X, features = self.rows.kept
        return features.read(X)

    @cached_property
    def _fitted(self) -> Array:
        """(n, L, q)."""
        (W, b), xp = self.models, linalg.arrays_of(self._phi)
        flat = xp.asarray(np.asfortranarray(W.reshape(W.shape[0], -1)))
        return xp.host(xp.matmul(self._phi, flat)).reshape(-1, *b.shape) + b
