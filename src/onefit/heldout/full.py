"""A full-sample solution, as influence methods start from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._precise import EPSILON, summation
from onefit.problem import Problem, Solution

Array = NDArray[Any]

__all__ = ["Target"]


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
    scale: float

    @cached_property
    def drift(self) -> float:
        """What rounding may have made of u = K a + b, in units of the root of K_ii."""
        roots, epsilon = self.problem.norms.roots, float(np.finfo(self.problem.K.dtype).eps)
        size = float(roots @ np.abs(self.a)) * (epsilon / EPSILON)
        return (
            summation(self.a.size) * size
            + epsilon * float(np.abs(self.u).max()) / self.problem.norms.root
        )

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
        scale = float(problem.scale[j])
        return cls(problem, lam, y, a, b, u, g, d, np.flatnonzero(d > 0.0), sure, scale)
