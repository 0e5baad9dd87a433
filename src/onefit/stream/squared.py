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
from onefit.stream.partition import Partition, partitions
from onefit.stream.ridge import Machines, Ridge

__all__ = ["GramFolds", "fit_squared", "put"]

#: numbers in all matrices of a pass
ROOM = 2**28


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
    return run(gram, rows.chunks(problem.Y, problem.s, part.label))


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
        most = max(2, ROOM // self.problem.K.features.size ** 2)
        return [(one, moments(self.problem, one)) for one in partitions(self.folds, most)]

    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, GramFolds.name, lams)
        for part, sums in self.groups:
            for split, removed in zip(part.splits, part.removed, strict=True):
                found = self._ridge(sums, split, removed).machines(path.lams)
                put(path, self.problem.K, split, found)
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
