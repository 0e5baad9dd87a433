"""The full-sample solutions that influence methods start from, and the splits they serve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.folds import Folds
from onefit.problem import Problem, Solution
from onefit.solvers import solve

Array = NDArray[Any]

__all__ = ["FullPath", "Norms", "Target"]


@dataclass(frozen=True)
class Target:
    """One target at one lambda: the full solution and its derivatives.

    Attributes
    ----------
    y, s : (n,) arrays
    a, b, u : the solution
    g, d : (n,) arrays
        Gradient and curvature of the loss at u, zero where the weight is.
    active : index array
        A, the points with curvature.
    """

    problem: Problem
    lam: float
    y: Array
    a: Array
    b: float
    u: Array
    g: Array
    d: Array
    active: NDArray[np.intp]
    converged: bool

    @classmethod
    def at(cls, problem: Problem, lam: float, solution: Solution, j: int) -> Target:
        """Target ``j`` of a solution."""
        y, u = problem.Y[:, j], solution.decision[:, j]
        weighted = problem.s > 0
        g = np.where(weighted, problem.loss.gradient(y, u), 0.0)
        d = np.where(weighted, problem.loss.curvature(y, u), 0.0)
        return cls(
            problem, lam, y, solution.coef[:, j], float(solution.intercept[j]), u, g, d,
            np.flatnonzero(d > 0.0), solution.converged,
        )  # fmt: skip


@dataclass(frozen=True)
class Norms:
    """Sizes of a kernel matrix: its largest diagonal entry and its largest absolute row sum."""

    diagonal: float
    row_sum: float

    @classmethod
    def of(cls, K: Array) -> Norms:
        sums = [float(np.abs(K[i : i + 512]).sum(axis=1).max()) for i in range(0, K.shape[0], 512)]
        return cls(float(np.einsum("ii->i", K).max()), max(sums))


class FullPath:
    """Full-sample solutions along the lambdas, from the largest down, each starting the next.

    Attributes
    ----------
    near : list of int
        Splits that a leave-out formula serves; ``far`` ones keep fewer rows than they remove, or
        test rows they train on, and are refitted.
    removed : (n, len(near)) bool array
        The rows each near split does without, those of weight zero among them.
    weight : (len(near),) array
        Lambda / lam of each near split.
    """

    def __init__(self, problem: Problem, folds: Folds, lams: Array) -> None:
        self.problem, self.folds, self.norms = problem, folds, Norms.of(problem.K)
        self.positive = folds.without(np.flatnonzero(problem.s == 0))
        self.solutions = self._solve(lams)
        sizes = [rows.size for rows in self.positive.removed]
        fits = [
            2 * size <= problem.n and disjoint
            for size, disjoint in zip(sizes, self.positive.disjoint, strict=True)
        ]
        self.near = [k for k, fit in enumerate(fits) if fit]
        self.far = [k for k, fit in enumerate(fits) if not fit]
        self.removed = np.zeros((problem.n, len(self.near)), dtype=bool)
        for column, k in enumerate(self.near):
            self.removed[self.positive.removed[k], column] = True
        self.weight = np.array([problem.ridge(1.0, self.positive.train[k]) for k in self.near])

    def _solve(self, lams: Array) -> dict[float, Solution]:
        """Solutions on the rows of positive weight; the others are predicted, not fitted."""
        kept = np.flatnonzero(self.problem.s)
        whole = kept.size == self.problem.n
        part = self.problem if whole else self.problem.take(kept)
        solutions, start = {}, None
        for lam in sorted({float(lam) for lam in lams}, reverse=True):
            start = solve(part, lam, start=start)
            solutions[lam] = start if whole else self._spread(start, kept)
        return solutions

    def _spread(self, solution: Solution, kept: NDArray[np.intp]) -> Solution:
        coef = np.zeros_like(self.problem.Y)
        coef[kept] = solution.coef
        decision = self.problem.K[:, kept] @ solution.coef + solution.intercept
        return Solution(coef, solution.intercept, decision, solution.steps, solution.converged)

    def target(self, lam: float, j: int) -> Target:
        """Target ``j`` at one of the prepared lambdas."""
        return Target.at(self.problem, lam, self.solutions[float(lam)], j)

    def groups(self) -> list[tuple[float, NDArray[np.intp]]]:
        """The near splits by Lambda / lam: those with one value share a factorisation."""
        return [(float(w), np.flatnonzero(self.weight == w)) for w in np.unique(self.weight)]
