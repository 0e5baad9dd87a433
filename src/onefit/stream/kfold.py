"""k-fold of least squares over rows that nobody holds: three passes, whoever runs them.

A pass is a function that takes an accumulator over all rows and returns its result; the rows bring
their folds along. The first pass draws landmarks, the second adds up the moments of every fold, and
the third sums what the held-out values of each fold's machines are judged by. Between passes there
are small matrices only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.kernels import Kernel
from onefit.stream.accumulate import Chunk
from onefit.stream.approximation import Nystrom
from onefit.stream.expansion import SOME
from onefit.stream.features import FeatureMap
from onefit.stream.gram import Centre, Gram, Moments
from onefit.stream.ridge import Machines, Ridge
from onefit.stream.sample import Drawn, Sample

__all__ = ["Errors", "HeldOutErrors", "Streamed", "cross_validate"]

UNIFORM = Nystrom()
#: a pass over all rows: of an accumulator, its result
Pass = Callable[[Any], Any]


@dataclass(frozen=True)
class Errors:
    """Sums over the rows of every fold; L lambdas, q targets.

    Attributes
    ----------
    squared, absolute, wrong : dict of fold -> (L, q) array
        sum s (y - u)^2, sum s |y - u|, and sum s over rows with u > 0 unlike y > 0.
    weight : dict of fold -> float
        sum s.
    y, yy : dict of fold -> (q,) array
        sum s (y - c) and sum s (y - c)^2, c the centre of the targets.
    rows : int
    """

    squared: dict[int, Array] = field(repr=False)
    absolute: dict[int, Array] = field(repr=False)
    wrong: dict[int, Array] = field(repr=False)
    weight: dict[int, float]
    y: dict[int, Array] = field(repr=False)
    yy: dict[int, Array] = field(repr=False)
    rows: int

    @property
    def folds(self) -> list[int]:
        """Their names, in order."""
        return sorted(self.weight)

    def mean(self, name: str) -> Array:
        """Mean error of every lambda, fold and target, (L, k, q), by the name of the sums."""
        sums = getattr(self, name)
        return np.stack([sums[k] / self.weight[k] for k in self.folds], axis=1)

    def r2(self) -> Array:
        """R^2 of every lambda, fold and target, (L, k, q)."""
        spread = [self.yy[k] - np.square(self.y[k]) / self.weight[k] for k in self.folds]
        return 1.0 - np.stack(
            [self.squared[k] / one for k, one in zip(self.folds, spread, strict=True)], axis=1
        )


@dataclass(frozen=True)
class HeldOutErrors:
    """The accumulator of errors of held-out values, each row by its fold's machines."""

    features: FeatureMap
    machines: dict[int, Machines] = field(repr=False)
    centre: Array

    def init(self) -> tuple[dict[int, list[Any]], int]:
        return {}, 0

    def update(
        self, state: tuple[dict[int, list[Any]], int], chunk: Chunk
    ) -> tuple[dict[int, list[Any]], int]:
        found: dict[int, list[Any]] = {}
        positive = chunk.s > 0
        for name in np.unique(chunk.fold[positive]).tolist():
            some = np.flatnonzero((chunk.fold == name) & positive)
            found[name] = self._sums(name, chunk, some)
        return self.merge(state, (found, int(np.count_nonzero(positive))))

    def _sums(self, name: int, chunk: Chunk, some: Array) -> list[Any]:
        machines = self.machines[name]
        W = np.asfortranarray(machines.W.reshape(self.features.size, -1))
        u = self.features.product(chunk.X[some], W).reshape(some.size, *machines.b.shape)
        u += machines.b
        y, s = chunk.Y[some].astype(np.float64), chunk.s[some].astype(np.float64)
        gap, near = np.abs(y[:, None] - u), y - self.centre
        wrong = (u > 0.0) != (y[:, None] > 0.0)
        sums = [np.tensordot(s, one, axes=1) for one in (np.square(gap), gap, wrong)]
        return [*sums, float(s.sum()), s @ near, s @ np.square(near)]

    def merge(
        self, one: tuple[dict[int, list[Any]], int], other: tuple[dict[int, list[Any]], int]
    ) -> tuple[dict[int, list[Any]], int]:
        joined = dict(one[0])
        for name, sums in other[0].items():
            known = joined.get(name)
            joined[name] = (
                sums if known is None else [a + b for a, b in zip(known, sums, strict=True)]
            )
        return joined, one[1] + other[1]

    def finish(self, state: tuple[dict[int, list[Any]], int]) -> Errors:
        columns: Any = [{name: sums[i] for name, sums in state[0].items()} for i in range(6)]
        squared, absolute, wrong, weight, y, yy = columns
        return Errors(squared, absolute, wrong, weight, y, yy, state[1])


@dataclass(frozen=True)
class Streamed:
    """What cross-validation of a stream comes back with.

    Attributes
    ----------
    features : FeatureMap
    landmarks : (m,) array of row numbers, or None
    errors : Errors
    machines : dict of fold -> Machines
        Those without each fold.
    whole : Machines
        Those of all rows, one per lambda.
    """

    features: FeatureMap
    landmarks: Array | None = field(repr=False)
    errors: Errors = field(repr=False)
    machines: dict[int, Machines] = field(repr=False)
    whole: Machines = field(repr=False)


def cross_validate(
    run: Pass,
    kernel: Kernel,
    lams: Array,
    approximation: Any = UNIFORM,
    n_components: int | str = 2000,
    seed: int = 0,
    keep_landmarks: bool = False,
    fit_intercept: bool = True,
    scaling: str = "mean",
) -> Streamed:
    """Exact k-fold of least squares at every lambda, by three passes over rows with folds.

    Parameters
    ----------
    run : callable
        A pass: of an accumulator, its result over all rows.
    kernel : Kernel
    lams : (L,) array
    approximation : Nystrom or Fourier
    n_components, seed, keep_landmarks, fit_intercept, scaling
        As the estimators have them; ``seed`` is their ``random_state``.
    """
    lams = np.asarray(lams, dtype=np.float64)
    approximation.check(n_components, keep_landmarks)
    drawn: Drawn = run(Sample(max(SOME, approximation.wanted(n_components)), seed))
    first = drawn.take(slice(0, approximation.wanted(n_components)))
    features, landmarks, chosen = approximation.features(kernel, first, n_components, seed)
    near = drawn.take(slice(0, SOME))
    centre = Centre.zero(features.size, drawn.Y.shape[1])
    if fit_intercept:
        centre = Centre.of(features, near.X, near.Y)
    moments: Moments = run(Gram(features, centre))

    def machines(removed: list[int]) -> Machines:
        lost = np.empty((features.size, 0))
        if landmarks is not None and not keep_landmarks and removed:
            lost = features.lost(np.flatnonzero(np.isin(chosen.fold, removed)))
        complement = linalg.Complement.of(lost) if lost.shape[1] else None
        sums = moments.without(removed)
        return Ridge(sums, moments.centre, fit_intercept, scaling, complement).machines(lams)

    without = {name: machines([name]) for name in sorted(moments.folds)}
    errors = run(HeldOutErrors(features, without, centre.y))
    return Streamed(features, landmarks, errors, without, machines([]))
