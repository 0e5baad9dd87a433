"""The systems of a Newton step by conjugate gradients (onefit.inverse.krylov)."""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit._types import Array, Mask
from onefit.inverse.krylov import Ridged, bordered
from onefit.inverse.low_rank import LowRank
from onefit.problem import Problem
from onefit.systems.base import NewtonModel

__all__ = ["KrylovSystem"]

#: the part of a Newton step's residual that may be left, for a loss with one step and for others
ONE_STEP_RESIDUAL, NEWTON_RESIDUAL = 1e-11, 1e-3


class KrylovSystem:
    """The systems of a Newton step by conjugate gradients.

    Parameters
    ----------
    problem : Problem
    ridge : (k,) array
        Lambda of each column.
    low_rank : LowRank, default=None
        Of the kernel matrix, if it is there already.
    tolerance : float, default=None
        The part of a residual that may be left: little if one step is all it takes, more for losses
        whose next Newton step takes care of it.
    """

    curvature: Array | None = None

    def __init__(
        self,
        problem: Problem,
        ridge: Array,
        low_rank: LowRank | None = None,
        tolerance: float | None = None,
    ) -> None:
        self.problem, self.ridge = problem, ridge
        self.low_rank = low_rank or LowRank(problem.K, problem.s)
        usual = ONE_STEP_RESIDUAL if problem.quadratic else NEWTON_RESIDUAL
        self.tolerance = usual if tolerance is None else tolerance

    def take(self, columns: Any) -> KrylovSystem:
        """The system of some of the columns."""
        return KrylovSystem(self.problem, self.ridge[columns], self.low_rank, self.tolerance)

    def solve(self, model: NewtonModel) -> tuple[Array, Array, Mask]:
        """Changes da and db of every column, and which intercepts are determined."""
        problem, curved = self.problem, model.d > 0.0
        some = np.flatnonzero(curved.any(axis=0))
        a, b = np.zeros_like(model.fixed), np.zeros_like(model.total)
        if some.size:
            root = np.sqrt(problem.s[:, None] * model.d[:, some] / (2.0 * self.ridge[some]))
            a[:, some], b[some] = self._solve(root.astype(problem.K.dtype), model.take(some))
        return a, b, np.asarray(curved.any(axis=0) | (not problem.fit_intercept))

    def _solve(self, root: Array, model: NewtonModel) -> tuple[Array, Array]:
        k, centred = root.shape[1], self.problem.fit_intercept
        F = self.low_rank.factor(1.0 / np.square(root).max(axis=0), k)
        ones = np.ones(k, dtype=root.dtype)
        systems = Ridged.prepare(self.problem.K, F, root, np.arange(k), ones, centred)
        return bordered(systems, root, model.missing, model.total, self.tolerance)
