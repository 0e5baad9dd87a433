"""Every problem by a factor of its own.

Where few points have curvature, a Cholesky factor of K_AA + diag(c) costs a problem no more than
changing a factor that all of them share (onefit.heldout.downdate), and every problem may have its
own Lambda. In the terms of that file, without leaving or entering points,

    (K_AA + diag(c)) da_A + db = e_A,      1'da_A = -(sum of all other coefficients).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.heldout.full import Norms, Target
from onefit.heldout.model import Model, afresh, by_column
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["Apart"]


@dataclass(frozen=True)
class Apart:
    """Factors of their own for several problems.

    Attributes
    ----------
    ridge : (k,) array
        Lambda of each problem.
    bend : float
        The largest s_i d_i of the full problem.
    """

    problem: Problem
    norms: Norms
    ridge: Array
    bend: float

    @classmethod
    def of(cls, target: Target, norms: Norms, ridge: Array) -> Apart:
        """Those of a target and its folds."""
        bend = float((target.problem.s * target.d).max())
        return cls(target.problem, norms, ridge, bend)

    @property
    def condition(self) -> Array:
        """A bound on the condition number of each problem's I + C^(-1/2) K C^(-1/2)."""
        return 1.0 + self.norms.row_sum * self.bend / (2.0 * self.ridge)

    def take(self, columns: Any) -> Apart:
        """Those of some of the problems."""
        return Apart(self.problem, self.norms, self.ridge[columns], self.bend)

    def solve(self, model: Model) -> tuple[Array, Array, NDArray[np.bool_]]:
        """As :meth:`onefit.heldout.model.Solver.solve`."""
        problem, curved = self.problem, model.d > 0.0
        a, b = np.zeros_like(model.fixed), np.zeros_like(model.total)
        c = 2.0 * self.ridge / (problem.s[:, None] * model.d + ~curved)
        for j, rows in enumerate(by_column(curved)):
            if rows.size == 0:
                continue
            e, total = model.missing[rows, j], float(model.total[j])
            try:
                a[rows, j], b[j] = self._solve(rows, c[rows, j], e, total)
            except linalg.LinAlgError:
                a[rows, j], b[j] = afresh(problem, float(self.ridge[j]), model, j, rows)
        return a, b, np.asarray(curved.any(axis=0) | (not problem.fit_intercept))

    def _solve(
        self, rows: NDArray[np.intp], c: Array, e: Array, total: float
    ) -> tuple[Array, float]:
        K = linalg.submatrix(self.problem.K, rows, rows)
        K.ravel()[:: rows.size + 1] += c
        if not self.problem.fit_intercept:
            return linalg.solve_spd(K.T, e[:, None], overwrite=True)[:, 0], 0.0
        right = np.ones((2, rows.size), dtype=e.dtype).T
        right[:, 0] = e
        x = linalg.solve_spd(K.T, right, overwrite=True)
        sums = x.sum(axis=0)
        db = float((sums[0] + total) / sums[1])
        return x[:, 0] - db * x[:, 1], db
