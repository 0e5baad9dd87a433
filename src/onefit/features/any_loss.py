"""Held-out values of any loss in feature space: the limit of every split, and exact ones.

One model of all rows at a lambda, by Newton's method (onefit.features.newton); its last pass leaves
gradient and curvature part by part, from which every split takes its first step. The limit ends
there, with a bound from one more pass. The exact method continues, all splits side by side, until
the bound is below what counts as exact. Lambdas are taken from the largest down, each model
starting the next; targets one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from onefit._types import Array
from onefit.features.feature_gram import FeatureGram
from onefit.features.in_memory import split_problem
from onefit.features.parts import MAX_MOMENT_ELEMENTS, Partition, partitions
from onefit.features.split_problem import SplitProblem
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.linalg import LinAlgError
from onefit.problem import Problem

__all__ = ["PrimalExact", "PrimalLimit"]

#: largest number of splits
MAX_SPLITS = 1000


class _Primal(HeldOutMethod):
    refined: ClassVar[bool]
    products_only = True

    def prepare(self, problem: Problem, folds: Folds) -> PrimalPrepared:
        self.check(problem)
        if len(folds) > MAX_SPLITS:
            raise ValueError(
                f"method {self.name!r} with an approximation carries a model for each of the "
                f"{len(folds)} splits through every pass over the rows; use at most "
                f"{MAX_SPLITS} splits, or for leave-one-out loss='squared', which has a closed form"
            )
        return PrimalPrepared(problem, folds, self.name, self.refined)


class PrimalLimit(_Primal):
    """One Newton step of every split from the model of all rows, with a bound."""

    name = "limit"
    refined = False


class PrimalExact(_Primal):
    """Newton steps of all splits until they are exact."""

    name = "exact"
    refined = True


@dataclass
class PrimalPrepared(Prepared):
    """Splits as sums of parts."""

    problem: Problem = field(repr=False)
    folds: Folds
    name: str
    refined: bool

    @cached_property
    def groups(self) -> list[tuple[Partition, SplitProblem]]:
        """Splits that share parts."""
        most = max(2, MAX_MOMENT_ELEMENTS // (2 * (self.problem.K.features.size + 1) ** 2))
        found = partitions(self.folds, most)
        return [(part, split_problem(self.problem, self.folds, part)) for part in found]

    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, self.name, lams)
        starts: list[Array | None] = [None] * self.problem.Y.shape[1]
        for i in np.argsort(-path.lams, kind="stable").tolist():
            try:
                for j, part, solved in self._solved(float(path.lams[i]), starts):
                    self._put(path, i, j, part, *solved)
            except (LinAlgError, FloatingPointError) as error:
                path.fail(i, f"lam={path.lams[i]:g}: {error}; raise lam")
        return path.judged(self.problem)

    def models(self, lam: float) -> tuple[Array, Array]:
        """Weights (m, splits, q) and intercepts (splits, q) of all splits at one lambda."""
        m, q = self.problem.K.features.size, self.problem.Y.shape[1]
        W, b = np.zeros((m, len(self.folds), q)), np.zeros((len(self.folds), q))
        for j, part, (theta, _, _) in self._solved(lam, [None] * q):
            W[:, part.splits, j] = theta[:m]
            b[part.splits, j] = theta[-1] if self.problem.fit_intercept else 0.0
        return W, b

    def _solved(
        self, lam: float, starts: list[Array | None]
    ) -> Iterator[tuple[int, Partition, tuple[Array, Array, Array]]]:
        """Models, bounds and steps of the splits of every group, target by target.

        ``starts`` has models of all rows to begin with, and is given those that are found.
        """
        for j in range(len(starts)):
            for part, splits in self.groups:
                full = splits.whole(lam, j, starts[j])
                starts[j] = full.theta
                yield j, part, splits.splits(lam, j, full, self.refined)

    def _put(
        self,
        path: HeldOutPath,
        i: int,
        j: int,
        part: Partition,
        theta: Array,
        bounds: Array,
        steps: Array,
    ) -> None:
        rows: FeatureGram = self.problem.K
        m = rows.features.size
        for c, split in enumerate(part.splits):
            values = rows.values(self.folds.test[split], theta[:m, [c]])[:, 0]
            values = values + theta[-1, c] if self.problem.fit_intercept else values
            path.fill(i, split, j, values, bounds[c])
        path.steps[i, part.splits] = np.maximum(path.steps[i, part.splits], steps)
