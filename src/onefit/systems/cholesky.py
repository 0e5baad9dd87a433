"""A Cholesky factor per column: columns are independent, with any curvature.

With R = diag(c)^(-1/2) the factored matrix is I + R K_AA R, whose eigenvalues are at least one
for any Lambda. If rounding makes it indefinite nevertheless (K singular, and Lambda below the
rounding of its norm), an eigendecomposition replaces the factor, with negative eigenvalues set to
zero. Neighbouring columns with the same matrix, such as the targets of least squares, share it.

Matrix and factor are on the device of K; the vectors are NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.gram import Gram
from onefit.inverse import EigenInverse, FactorInverse, RidgeInverse
from onefit.problem import Problem
from onefit.systems.base import NewtonModel, System, by_column

__all__ = ["Cholesky", "CurvedFactor"]


class Cholesky(System):
    """One factor at a time.

    Parameters
    ----------
    problem : Problem
    ridge : (k,) array
        Lambda of each column.
    """

    def __init__(self, problem: Problem, ridge: Array) -> None:
        self.problem, self.ridge = problem, ridge

    def take(self, columns: Any) -> Cholesky:
        return Cholesky(self.problem, self.ridge[columns])

    def _solve(self, model: NewtonModel) -> tuple[Array, Array]:
        problem, factor = self.problem, None
        a, b = np.zeros_like(model.fixed), np.zeros_like(model.total)
        for k, rows in enumerate(by_column(model.d > 0.0)):
            root = np.sqrt(problem.s[rows] * model.d[rows, k] / (2.0 * self.ridge[k]))
            root = root.astype(problem.K.dtype, copy=False)
            if factor is None or not factor.serves(rows, root):
                factor = None  # free its memory before there is another
                factor = CurvedFactor(problem.K, rows, root)
            missing, total = model.missing[rows, k], model.total[k]
            a[rows, k], b[k] = factor.solve(missing, total, problem.fit_intercept)
        return a, b


class CurvedFactor:
    """I + R K R on some rows, factored.

    Parameters
    ----------
    K : Gram
    rows : index array
    root : array
        The diagonal of R, a number for each of the rows.
    """

    def __init__(self, K: Gram, rows: Indices, root: Array) -> None:
        self.rows, self.root, self.arrays = rows, root, K.arrays
        self.K, xp = K.block(rows), K.arrays
        self.inverse: RidgeInverse
        try:
            self.inverse = FactorInverse(xp.unit_ridge(self.K, root), root, arrays=xp)
        except linalg.LinAlgError:
            M = xp.add_diagonal(xp.unit_ridge(self.K, root), -1.0)
            self.inverse = EigenInverse.of(M, 1.0, root)

    def serves(self, rows: Indices, root: Array) -> bool:
        """Whether this is the factor of that matrix."""
        return np.array_equal(rows, self.rows) and np.array_equal(root, self.root)

    def _product(self, x: Array) -> Array:
        """K x on the rows."""
        xp = self.arrays
        return xp.host(xp.matmul(self.K, xp.asarray(x, self.root.dtype)))

    def solve(self, z: Array, total: float, fit_intercept: bool) -> tuple[Array, float]:
        """Solve (K + R^-2) a + b = z, with 1'a = -total if there is an intercept.

        In terms of x = R^-1 a. With an intercept, a is the difference of two larger vectors; a
        second round, on the residual of the first, recovers the digits lost in it.
        """
        root, apply = self.root, self.inverse.apply
        if not fit_intercept:
            return root * apply(root * z), 0.0
        ones, x = apply(np.stack([root, root * z], axis=1)).T
        b = (root @ x + total) / (root @ ones)
        x = x - b * ones
        x = x + apply(root * (z - b - self._product(root * x)) - x)
        shift = (root @ x + total) / (root @ ones)
        return root * (x - shift * ones), float(b + shift)
