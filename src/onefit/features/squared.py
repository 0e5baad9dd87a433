"""Exact k-fold of least squares in feature space, for all lambdas from one pass and a second one.

The first pass adds up the moments of every part of the rows (onefit.features.moments). A split is
then a matter of small matrices (onefit.features.ridge): the sum of the parts it trains on, without
the landmarks that it holds out, reduced once for all lambdas. A second pass predicts its test rows.

**Parts.** Rows that the same splits remove are one part, and sums over the rows that a split trains
on are sums over the parts that it does not remove. The k folds of a k-fold are k parts, and k
splits of a time series are k + 1. Splits that cut across each other, as repetitions do, have too
many parts in common: they are grouped, and each group gets parts of its own, and a pass over the
rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from onefit._types import Array, Indices
from onefit.features.feature_gram import FeatureGram, run
from onefit.features.leave_one import FeatureHat, HatBasis
from onefit.features.moments import Moments, MomentSums
from onefit.features.ridge import Ridge, RidgeModels
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.problem import Problem

__all__ = [
    "MAX_MOMENT_ELEMENTS",
    "GramFolds",
    "Partition",
    "fit_squared",
    "make_hat",
    "partitions",
    "put",
]

#: numbers in the matrices of all parts that a pass adds up
MAX_MOMENT_ELEMENTS = 2**28
#: splits of one row each beyond which a closed form serves them
MAX_SINGLE_ROW_REDUCTIONS = 20


@dataclass(frozen=True)
class Partition:
    """Parts of the rows that some splits remove or keep as wholes.

    Attributes
    ----------
    label : (n,) array of int
        The part of every row.
    splits : list of int
        The splits that are served.
    removed : list of index arrays
        The parts that each of these removes.
    """

    label: Indices = field(repr=False)
    splits: list[int]
    removed: list[Indices]

    @classmethod
    def whole(cls, n: int) -> Partition:
        """One part, and no split."""
        return cls(np.zeros(n, dtype=np.intp), [], [])

    def extended(self, split: int, rows: Indices) -> Partition:
        """With one split more, which cuts the parts that it removes some rows of."""
        outside = np.ones(self.label.size, dtype=np.intp)
        outside[rows] = 0
        pairs, label = np.unique(2 * self.label + outside, return_inverse=True)
        old, kept = np.divmod(pairs, 2)
        removed = [np.flatnonzero(np.isin(old, parts)) for parts in self.removed]
        return Partition(label, [*self.splits, split], [*removed, np.flatnonzero(kept == 0)])

    @property
    def parts(self) -> int:
        """How many there are."""
        return int(self.label.max()) + 1


def partitions(folds: Folds, most: int) -> list[Partition]:
    """Groups of splits, in order, none with more than one part a split (and one), or ``most``."""
    found: list[Partition] = []
    current = Partition.whole(folds.n)
    for split, rows in enumerate(folds.removed):
        wider = current.extended(split, rows)
        if current.splits and (wider.parts > len(wider.splits) + 1 or wider.parts > most):
            found.append(current)
            wider = Partition.whole(folds.n).extended(split, rows)
        current = wider
    return [*found, current]


class GramFolds(HeldOutMethod):
    """Least squares by sums of products of features."""

    name = "gram"
    requires = ()
    quadratic_only = True
    products_only = True

    def prepare(self, problem: Problem, folds: Folds) -> GramPrepared:
        self.check(problem)
        return GramPrepared(problem, folds)


def moments(problem: Problem, part: Partition) -> Moments:
    """The sums of every part of the rows."""
    rows: FeatureGram = problem.K
    gram = MomentSums(rows.kept[1], rows.centre(problem.Y, problem.s, problem.fit_intercept))
    return run(gram, rows.whole(problem.Y, problem.s, part.label))


def make_hat(problem: Problem) -> FeatureHat:
    """The hat matrices of the rows of positive weight."""
    rows = problem.positive
    kept = problem if rows.size == problem.n else problem.take(rows)
    sums = moments(kept, Partition.whole(kept.n))
    basis = HatBasis.of(sums.without(()), sums.centre, kept.fit_intercept)
    return FeatureHat(kept, basis)


def fit_squared(problem: Problem, *lams: float) -> RidgeModels:
    """The models of all rows."""
    sums = moments(problem, Partition.whole(problem.n))
    ridge = Ridge(sums.without(()), sums.centre, problem.fit_intercept, problem.scaling)
    return ridge.models(np.array(lams))


@dataclass
class GramPrepared(Prepared):
    """The moments of all parts."""

    problem: Problem = field(repr=False)
    folds: Folds

    @cached_property
    def groups(self) -> list[tuple[Partition, Moments]]:
        """Parts of the rows, and their sums."""
        most = max(2, MAX_MOMENT_ELEMENTS // self.problem.K.features.size**2)
        return [(one, moments(self.problem, one)) for one in partitions(self.folds, most)]

    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, GramFolds.name, lams)
        if self._one_row_each:
            return self._leave_one_out(path)
        for part, sums in self.groups:
            for split, removed in zip(part.splits, part.removed, strict=True):
                found = self._ridge(sums, split, removed).models(path.lams)
                put(path, self.problem.K, split, found)
        return path.judged(self.problem)

    @cached_property
    def _one_row_each(self) -> bool:
        """Whether every split tests the one row that it removes, and there are many."""
        removed, test = self.folds.removed, self.folds.test
        return len(removed) > MAX_SINGLE_ROW_REDUCTIONS and all(
            a.size == 1 and np.array_equal(a, b) for a, b in zip(removed, test, strict=True)
        )

    @cached_property
    def hat(self) -> FeatureHat:
        """Of the rows of positive weight."""
        return make_hat(self.problem)

    def _leave_one_out(self, path: HeldOutPath) -> HeldOutPath:
        kept = self.problem.positive
        values = np.empty((path.lams.size, *self.problem.Y.shape))
        bounds = np.empty_like(values)
        for i, lam in enumerate(path.lams):
            left, bounds[i, kept] = self.hat.left_out_with_bounds(float(lam))
            values[i, kept] = self.problem.Y[kept] - left
        # rows that no model was trained on
        outside = np.setdiff1d(self.folds.rows, kept)
        if outside.size:
            full = fit_squared(self.problem, *path.lams)
            predicted, errors = _predicted(self.problem.K, outside, full)
            values[:, outside] = np.moveaxis(predicted, 0, 1)
            bounds[:, outside] = errors[:, None]
        values, bounds = values[:, self.folds.rows], bounds[:, self.folds.rows]
        path.values[:] = values
        path.bounds[:] = bounds + np.abs(path.values - values)
        return path.judged(self.problem)

    def _ridge(self, sums: Moments, split: int, removed: Array) -> Ridge:
        lost = self.problem.K.lost(self.folds.removed[split])
        form = self.problem.fit_intercept, self.problem.scaling
        return Ridge.without(sums, removed.tolist(), *form, lost)

    def models(self, lam: float) -> list[RidgeModels]:
        """The models of all splits at one lambda."""
        return [
            self._ridge(sums, split, removed).models(np.array([lam]))
            for part, sums in self.groups
            for split, removed in zip(part.splits, part.removed, strict=True)
        ]


def put(path: HeldOutPath, rows: FeatureGram, split: int, found: RidgeModels) -> None:
    """Predict the test rows of a split by its models, one per lambda."""
    values, errors = _predicted(rows, path.folds.test[split], found)
    for i, reason in enumerate(found.reasons):
        if reason and not path.reasons[i]:
            path.fail(i, reason)
        if not path.reasons[i]:
            path.fill(i, split, slice(None), values[:, i], errors[i])


def _predicted(rows: FeatureGram, some: Indices, found: RidgeModels) -> tuple[Array, Array]:
    """Predictions (n, L, q) of some rows, and bounds (L, q) on their errors."""
    values = rows.values(some, found.W) + found.b
    drift = rows.kept[1].drift(np.asfortranarray(found.W.reshape(found.W.shape[0], -1)))
    return values, found.errors(rows.lengths[some], drift)
