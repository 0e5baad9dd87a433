"""Exact k-fold of least squares in feature space, for all lambdas from one pass and a second one.

The first pass adds up the moments of every part of the rows (onefit.features.moments). A split is
then a matter of small matrices (onefit.features.ridge): the sum of the parts it trains on, without
the landmarks that it holds out, reduced once for all lambdas. A second pass predicts its test rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from onefit._types import Array
from onefit.features.in_memory import all_rows, moments, split_problem
from onefit.features.leave_one import FeatureHat, HatBasis
from onefit.features.moments import Moments
from onefit.features.parts import MAX_MOMENT_ELEMENTS, Partition, partitions
from onefit.features.ridge import RidgeModels
from onefit.features.split_problem import SplitProblem
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.problem import Problem

__all__ = ["GramFolds", "make_hat"]

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


def make_hat(problem: Problem) -> FeatureHat:
    """The hat matrices of the rows of positive weight."""
    rows = problem.positive
    kept = problem if rows.size == problem.n else problem.take(rows)
    sums = moments(kept, Partition.whole(kept.n))
    basis = HatBasis.of(sums.without(()), sums.centre, kept.fit_intercept)
    return FeatureHat(kept, basis)


@dataclass
class GramPrepared(Prepared):
    """The moments of all parts."""

    problem: Problem = field(repr=False)
    folds: Folds

    @cached_property
    def groups(self) -> list[tuple[Partition, SplitProblem, Moments]]:
        """Parts of the rows, and their sums."""
        problem, folds = self.problem, self.folds
        found = partitions(folds, max(2, MAX_MOMENT_ELEMENTS // problem.K.features.size**2))
        return [(one, split_problem(problem, folds, one), moments(problem, one)) for one in found]

    def _solved(self, lams: Array) -> Iterator[tuple[int, RidgeModels, Array]]:
        """The models of every split, and bounds on what they predict."""
        for part, splits, sums in self.groups:
            for place, split in enumerate(part.splits):
                yield split, *splits.squared(sums, lams, place)

    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, GramFolds.name, lams)
        if self._one_row_each:
            return self._leave_one_out(path)
        for split, found, errors in self._solved(path.lams):
            values = self.problem.K.values(self.folds.test[split], found.W) + found.b
            for i, reason in enumerate(found.reasons):
                if reason and not path.reasons[i]:
                    path.fail(i, reason)
                if not path.reasons[i]:
                    path.fill(i, split, slice(None), values[:, i], errors[i])
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
        """Hat matrices at the rows of positive weight."""
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
            sums = moments(self.problem, Partition.whole(self.problem.n))
            full, errors = all_rows(self.problem).squared(sums, path.lams)
            predicted = self.problem.K.values(outside, full.W) + full.b
            values[:, outside] = np.moveaxis(predicted, 0, 1)
            bounds[:, outside] = errors[:, None]
        values, bounds = values[:, self.folds.rows], bounds[:, self.folds.rows]
        path.values[:] = values
        path.bounds[:] = bounds + np.abs(path.values - values)
        return path.judged(self.problem)

    def models(self, lam: float) -> tuple[Array, Array]:
        """Weights (m, splits, q) and intercepts (splits, q) of all splits at one lambda."""
        m, q = self.problem.K.features.size, self.problem.Y.shape[1]
        W, b = np.zeros((m, len(self.folds), q)), np.zeros((len(self.folds), q))
        for split, found, _ in self._solved(np.array([lam])):
            W[:, split], b[split] = found.W[:, 0], found.b[0]
        return W, b
