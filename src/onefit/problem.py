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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Indices
from onefit.losses.base import Loss

Array = NDArray[Any]

__all__ = ["Problem", "Solution"]


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
        return lam * float(self.s.sum() if train is None else self.s[train].sum())

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
