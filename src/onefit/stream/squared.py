"""Exact k-fold of least squares in feature space, for all lambdas from one pass and a second one.

The first pass adds up the moments of every part of the rows (onefit.stream.gram,
onefit.stream.partition). A split is then a matter of small matrices (onefit.stream.ridge): the sum
of the parts it trains on, without the landmarks that it holds out, reduced once for all lambdas. A
second pass predicts its test rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.problem import Problem
from onefit.stream.expansion import FeatureGram, run
from onefit.stream.gram import Moments, MomentSums
from onefit.stream.leave_one import FeatureHat, HatBasis
from onefit.stream.partition import MAX_MOMENT_ELEMENTS, Partition, partitions
from onefit.stream.ridge import Ridge, RidgeModels

__all__ = ["GramFolds", "fit_squared", "make_hat", "put"]

#: splits of one row each beyond which a closed form serves them
MAX_SINGLE_ROW_REDUCTIONS = 20


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
