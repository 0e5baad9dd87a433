"""The splits of one cross-validation, sorted by what can be done for them.

The leave-out formulas start from the full sample, and serve a split that removes no more rows than
it keeps and tests none that it trains on. Any other split is refitted. Rows of weight zero are
trained on by nobody: they are among the rows that every split removes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from onefit._types import Array, Indices, Mask
from onefit.folds import Folds
from onefit.problem import Problem

__all__ = ["Splits"]


@dataclass(frozen=True)
class Splits:
    """Splits by formula and by refit.

    Attributes
    ----------
    problem : Problem
    folds : Folds
        As drawn.
    positive : Folds
        With the rows of weight zero taken out of training.
    by_formula, by_refit : index arrays
    """

    problem: Problem
    folds: Folds
    positive: Folds
    by_formula: Indices
    by_refit: Indices

    @classmethod
    def sort(cls, problem: Problem, folds: Folds) -> Splits:
        """Splits that the leave-out formulas serve, and all others."""
        positive = folds.without(np.flatnonzero(problem.s == 0))
        pairs = zip(positive.removed, positive.disjoint, strict=True)
        fits = np.array([2 * rows.size <= problem.n and disjoint for rows, disjoint in pairs])
        return cls(problem, folds, positive, np.flatnonzero(fits), np.flatnonzero(~fits))

    @classmethod
    def refitted(cls, problem: Problem, folds: Folds) -> Splits:
        """All of them by refit."""
        positive, none = folds.without(np.flatnonzero(problem.s == 0)), np.empty(0, dtype=np.intp)
        return cls(problem, folds, positive, none, np.arange(len(folds)))

    @classmethod
    def columns(cls, problem: Problem, folds: Folds) -> Splits:
        """All of them by formula: a column of its own serves any split."""
        whole = cls.refitted(problem, folds)
        return replace(whole, by_formula=whole.by_refit, by_refit=whole.by_formula)

    @cached_property
    def removed(self) -> list[Indices]:
        """The rows that each split by formula leaves out."""
        return [self.positive.removed[k] for k in self.by_formula]

    @cached_property
    def weight(self) -> Array:
        """Lambda / lam of each split by formula."""
        train = self.positive.train
        return np.array([self.problem.ridge(1.0, train[k]) for k in self.by_formula])

    @cached_property
    def groups(self) -> list[tuple[float, Indices]]:
        """Splits by formula with one value of Lambda / lam, which share a factorisation."""
        return [(float(w), np.flatnonzero(self.weight == w)) for w in np.unique(self.weight)]

    def train(self, members: Indices) -> Mask:
        """The rows that some of the splits by formula are trained on, (n, k)."""
        mask = np.ones((self.problem.n, members.size), dtype=bool)
        for column, i in enumerate(members):
            mask[self.removed[i], column] = False
        return mask

    def tested(self, members: Indices) -> Mask:
        """The rows that some of the splits by formula test, (n, k)."""
        mask = np.zeros((self.problem.n, members.size), dtype=bool)
        for column, i in enumerate(members):
            mask[self.folds.test[self.by_formula[i]], column] = True
        return mask

    @cached_property
    def one_row_each(self) -> bool:
        """Whether every split by formula removes a single row."""
        return len(self.removed) > 1 and all(rows.size == 1 for rows in self.removed)
