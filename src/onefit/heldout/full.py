"""A full-sample solution, as influence methods start from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.problem import Problem, Solution

Array = NDArray[Any]

__all__ = ["Norms", "Target"]


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
        a, b, u = solution.coef[:, j], float(solution.intercept[j]), solution.decision[:, j]
        return cls.of(problem, lam, j, a, b, u, solution.converged)

    @classmethod
    def of(
        cls, problem: Problem, lam: float, j: int, a: Array, b: float, u: Array, sure: bool = True
    ) -> Target:
        """Target ``j`` at some coefficients, intercept and predictions."""
        y, weighted = problem.Y[:, j], problem.s > 0
        g = np.where(weighted, problem.loss.gradient(y, u), 0.0)
        d = np.where(weighted, problem.loss.curvature(y, u), 0.0)
        return cls(problem, lam, y, a, b, u, g, d, np.flatnonzero(d > 0.0), sure)

    def take(self, rows: NDArray[np.intp]) -> Target:
        """On some of the rows."""
        a, u, y, g, d = (x[rows] for x in (self.a, self.u, self.y, self.g, self.d))
        return replace(
            self, problem=self.problem.take(rows), y=y, a=a, u=u, g=g, d=d,
            active=np.flatnonzero(d > 0.0),
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
