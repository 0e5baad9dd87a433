"""Systems of Newton steps by conjugate gradients (onefit.inverse.krylov)."""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit._types import Array
from onefit.inverse.krylov import CG_RESIDUAL, Ridged, bordered
from onefit.inverse.low_rank import LowRank
from onefit.problem import Problem
from onefit.systems.base import NewtonModel, System

__all__ = ["KrylovSystem"]

#: relative residual of a loss with one Newton step
ONE_STEP_RESIDUAL = 1e-11


class KrylovSystem(System):
    """The systems of a Newton step by conjugate gradients.

    Parameters
    ----------
    problem : Problem
    ridge : (k,) array
        Lambda of each column.
    low_rank : LowRank, default=None
        Factor of the kernel matrix; computed if not given.
    tolerance : float, default=None
        Relative residual of a solution. The default is smaller for a loss with one step than for
        losses whose next Newton step corrects it.
    """

    def __init__(
        self,
        problem: Problem,
        ridge: Array,
        low_rank: LowRank | None = None,
        tolerance: float | None = None,
    ) -> None:
        self.problem, self.ridge = problem, ridge
        self.low_rank = low_rank or LowRank(problem.K, problem.s)
        usual = ONE_STEP_RESIDUAL if problem.quadratic else CG_RESIDUAL
        self.tolerance = usual if tolerance is None else tolerance

    def take(self, columns: Any) -> KrylovSystem:
        return KrylovSystem(self.problem, self.ridge[columns], self.low_rank, self.tolerance)

    def _solve(self, model: NewtonModel) -> tuple[Array, Array]:
        problem, k = self.problem, self.ridge.size
        root = np.sqrt(problem.s[:, None] * model.d / (2.0 * self.ridge)).astype(problem.K.dtype)
        group, ones = np.arange(k), np.ones(k, dtype=root.dtype)
        F = self.low_rank.factor(1.0 / np.square(root).max(axis=0), group)
        systems = Ridged.prepare(problem.K, F, root, group, ones, problem.fit_intercept)
        return bordered(systems, root, model.missing, model.total, self.tolerance)
