"""One problem, its weights, and its solution.

Every machine of the package minimises, over f in the space of the kernel and b,

    sum_i w_i V(y_i, u_i) + lam ||f||^2,     u_i = f(x_i) + b,   f = sum_j a_j K(x_j, .)

and everything about scaling, folds and sample weights s is in w: with "mean" scaling
w_i = s_i / sum(s over the training part), the papers' choice; with "total" scaling w_i = s_i,
scikit-learn's KernelRidge and libsvm's. Multiplying the objective by sum(s) turns both into the
normal form used from here on,

    sum_i s_i V(y_i, u_i) + Lambda ||f||^2,   Lambda = lam sum(s over the training part)   (mean)
                                              Lambda = lam                                 (total)

with stationarity   2 Lambda a_i = -s_i g_i   and, with an intercept,   sum_i a_i = 0.
Leaving rows out only sets their s to zero and, under mean scaling, shrinks Lambda with them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Indices
from onefit.losses.base import Loss

Array = NDArray[Any]

__all__ = ["Norms", "Problem", "Solution"]


@dataclass(frozen=True)
class Norms:
    """Sizes of a kernel matrix, which error bounds are made of.

    Attributes
    ----------
    roots : (n,) array
        Roots of the diagonal: |K_ij| <= roots_i roots_j.
    row_sum : float
        The largest absolute row sum, no less than the largest eigenvalue.
    """

    K: Array = field(repr=False)
    roots: Array = field(repr=False)
    row_sum: float

    @classmethod
    def of(cls, K: Array) -> Norms:
        """Of a kernel matrix, which is kept for the eigenvalue."""
        sums = [float(np.abs(K[i : i + 512]).sum(axis=1).max()) for i in range(0, K.shape[0], 512)]
        diagonal = np.einsum("ii->i", K).astype(np.float64)
        return cls(K, np.sqrt(np.maximum(diagonal, 0.0)), max(sums))

    @property
    def diagonal(self) -> float:
        """The largest diagonal entry."""
        return float(self.roots.max() ** 2)

    @property
    def root(self) -> float:
        """The largest root of the diagonal, 1 for a matrix of zeros."""
        return float(self.roots.max()) or 1.0

    @cached_property
    def negative(self) -> float:
        """How far below zero the smallest eigenvalue may be.

        A Cholesky factor of K shifted by what rounding makes of one proves that it is no further
        below than twice that; only where there is none is the eigenvalue itself computed.
        """
        n = self.K.shape[0]
        epsilon = float(np.finfo(self.K.dtype).eps)
        shift = max(
            (8.0 + 6.0 * n**0.5) * epsilon * self.diagonal, float(np.finfo(np.float32).tiny)
        )
        shifted = linalg.fortran(self.K)
        shifted[np.diag_indices_from(shifted)] += self.K.dtype.type(shift)
        try:
            linalg.cholesky(shifted, overwrite=True)
        except linalg.LinAlgError:
            return float(max(0.0, -linalg.smallest_eigenvalue(self.K)) + shift)
        return float(2.0 * shift)


@dataclass(frozen=True)
class Problem:
    """A kernel matrix, targets, weights and a loss; everything but lambda.

    Parameters
    ----------
    K : (n, n) array
        Kernel matrix.
    Y : (n, q) array
        One column a target (regression) or a one-vs-rest coding in {-1, +1} (classification).
    s : (n,) array
        Sample weights; all ones by default.
    loss : Loss
    fit_intercept : bool
    scaling : {"mean", "total"}
    disposable : bool
        Whether a method may overwrite K: nobody needs it afterwards.
    """

    K: Array = field(repr=False)
    Y: Array = field(repr=False)
    s: Array = field(repr=False)
    loss: Loss
    fit_intercept: bool = True
    scaling: str = "mean"
    disposable: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.Y.shape[0])

    @property
    def weighted(self) -> bool:
        """Whether the sample weights are not all one."""
        return bool(np.any(self.s != 1.0))

    def ridge(self, lam: float, train: Indices | None = None) -> float:
        """Lambda of the normal form for the training rows (all of them by default)."""
        if self.scaling == "total":
            return lam
        s = self.s if train is None else self.s[train]
        return lam * float(s.sum(dtype=np.float64))

    @cached_property
    def norms(self) -> Norms:
        """Sizes of the kernel matrix."""
        return Norms.of(self.K)

    @cached_property
    def scale(self) -> Array:
        """The unit in which an error is judged, one number per target.

        It is 1 for labels -1 and +1, whose margin is 1, and the weighted standard deviation of any
        other target. A constant target has its size for a unit.
        """
        weighted = self.s > 0
        Y, s = self.Y[weighted].astype(np.float64), self.s[weighted].astype(np.float64)
        size = np.abs(Y).max(axis=0)
        mean = np.average(Y, axis=0, weights=s)
        spread = np.sqrt(np.average(np.square(Y - mean), axis=0, weights=s))
        constant = (Y[0] == Y).all(axis=0)
        labels = np.all(np.abs(Y) == 1.0, axis=0)
        return np.where(labels | (size == 0.0), 1.0, np.where(constant, size, spread))

    def take(self, rows: Indices) -> Problem:
        """The problem on some of the rows."""
        K = linalg.submatrix(self.K, rows, rows)
        return Problem(K, self.Y[rows], self.s[rows], self.loss, self.fit_intercept, self.scaling)

    def objective(self, lam: float, solution: Solution) -> Array:
        """Value of the normal form at a solution, one number a target."""
        f = solution.decision - solution.intercept
        fit = (self.s[:, None] * self.loss.value(self.Y, solution.decision)).sum(axis=0)
        return np.asarray(fit + self.ridge(lam) * (solution.coef * f).sum(axis=0))


@dataclass(frozen=True)
class Solution:
    """Minimiser of a problem at one lambda.

    Attributes
    ----------
    coef : (n, q) array
        a, the coefficients of f.
    intercept : (q,) array
    decision : (n, q) array
        u, the predictions on the sample itself.
    steps : int
        Newton or reweighting steps taken, 1 for a direct solution.
    converged : bool
    """

    coef: Array = field(repr=False)
    intercept: Array
    decision: Array = field(repr=False)
    steps: int = 1
    converged: bool = True
