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

from onefit._types import Array
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.linalg import Complement
from onefit.problem import Problem
from onefit.stream.expansion import Expansion, run
from onefit.stream.gram import Gram, Moments
from onefit.stream.leave_one import FeatureHat
from onefit.stream.partition import Partition, partitions
from onefit.stream.ridge import Machines, Ridge

__all__ = ["GramFolds", "fit_squared", "make_hat", "put"]

#: numbers in all matrices of a pass
ROOM = 2**28
#: splits of one row each beyond which a closed form serves them
FEW = 20


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
    rows: Expansion = problem.K
    gram = Gram(rows.kept[1], rows.centre(problem.Y, problem.s, problem.fit_intercept))
    return run(gram, rows.whole(problem.Y, problem.s, part.label))


def make_hat(problem: Problem) -> FeatureHat:
    """The hat matrices of the rows of positive weight."""
    rows = problem.positive
    kept = problem if rows.size == problem.n else problem.take(rows)
    sums = moments(kept, Partition.whole(kept.n))
    return FeatureHat(kept, sums.without(()), sums.centre)


def fit_squared(problem: Problem, lam: float) -> Machines:
    """The machine of all rows."""
    sums = moments(problem, Partition.whole(problem.n))
    ridge = Ridge(sums.without(()), sums.centre, problem.fit_intercept, problem.scaling)
    return ridge.machines(np.array([lam]))


@dataclass
class GramPrepared(Prepared):
    """The moments of all parts."""

    problem: Problem = field(repr=False)
    folds: Folds

    @cached_property
    def groups(self) -> list[tuple[Partition, Moments]]:
        """Parts of the rows, and their sums."""
        most = max(2, ROOM // self.problem.K.features.size**2)
        return [(one, moments(self.problem, one)) for one in partitions(self.folds, most)]

    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, GramFolds.name, lams)
        if self._one_row_each:
            return self._leave_one_out(path)
        for part, sums in self.groups:
            for split, removed in zip(part.splits, part.removed, strict=True):
                found = self._ridge(sums, split, removed).machines(path.lams)
                put(path, self.problem.K, split, found)
        return path.judged(self.problem)

    @cached_property
    def _one_row_each(self) -> bool:
        """Whether every split tests the one row that it removes, and there are many."""
        removed, test = self.folds.removed, self.folds.test
        return len(removed) > FEW and all(
            a.size == 1 and np.array_equal(a, b) for a, b in zip(removed, test, strict=True)
        )

    @cached_property
    def hat(self) -> FeatureHat:
        """Of the rows of positive weight."""
        return make_hat(self.problem)

    def _leave_one_out(self, path: HeldOutPath) -> HeldOutPath:
        rows, q = self.folds.rows, self.problem.Y.shape[1]
        kept = self.problem.positive
        outside = np.setdiff1d(rows, kept)
        for i, lam in enumerate(path.lams):
            values = np.empty((self.problem.n, q))
            bounds = np.empty_like(values)
            left, bounds[kept] = self.hat.left_out_with_bounds(float(lam))
            values[kept] = self.problem.Y[kept] - left
            if outside.size:
                # rows that no machine was trained on
                full = fit_squared(self.problem, float(lam))
                values[outside] = (self.problem.K.values(outside, full.W) + full.b)[:, 0]
                far = self.problem.K.lengths[outside]
                drift = np.zeros(q)
                bounds[outside] = full.errors(far, drift)[0]
            path.values[i] = values[rows]
            path.bounds[i] = bounds[rows] + np.abs(path.values[i] - values[rows])
        return path.judged(self.problem)

    def _ridge(self, sums: Moments, split: int, removed: Array) -> Ridge:
        rows: Expansion = self.problem.K
        lost = rows.lost(self.folds.removed[split])
        complement = Complement.of(lost) if lost.shape[1] else None
        form = self.problem.fit_intercept, self.problem.scaling
        return Ridge(sums.without(removed.tolist()), sums.centre, *form, complement)

    def machines(self, lam: float) -> list[Machines]:
        """The machines of all splits at one lambda."""
        return [
            self._ridge(sums, split, removed).machines(np.array([lam]))
            for part, sums in self.groups
            for split, removed in zip(part.splits, part.removed, strict=True)
        ]


def put(path: HeldOutPath, rows: Expansion, split: int, found: Machines) -> None:
    """Predict the test rows of a split by its machines, one per lambda."""
    tested = path.folds.test[split]
    values = rows.values(tested, found.W) + found.b
    drift = rows.kept[1].drift(np.asfortranarray(found.W.reshape(found.W.shape[0], -1)))
    errors = found.errors(rows.lengths[tested], drift)
    for i, reason in enumerate(found.reasons):
        if reason and not path.reasons[i]:
            path.fail(i, reason)
        if not path.reasons[i]:
            path.fill(i, split, slice(None), values[:, i], errors[i])
