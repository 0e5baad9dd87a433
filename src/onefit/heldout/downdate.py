"""Leave-out Newton steps as small changes of the full solution's factor.

Newton's model of the leave-S-out problem at predictions u (see onefit.solvers.newton) is a bordered
least-squares system on the training points with curvature, A_k, with ridge c_i = 2 Lambda_k / (s_i d_i). Its
matrix differs from that of the *full* solution's active set A only by the rows R = A \\ A_k that drop out
(the fold's, and points that lost their curvature) and the rows E = A_k \\ A that come in. With
rho_i = c_i^(-1/2) on A and the factor taken once,

    M = I + diag(rho) K_AA diag(rho) = L L',     W = L^-1,

leaving R out means a_R = 0 with free residuals t, so that the unknowns beside a_A are y = (a_E, b, t):

    a_A / rho = W' (W beta - X y),    X = W [diag(rho) K_AE, rho, I_R],     beta = rho (z - K_{A,fixed} a_fixed)

    (X'X - Z) y = X' W beta - (beta_E, h, 0),     Z = [[K_EE + diag(c_E), 1, 0], [1', 0, 0], [0, 0, 0]],

with z = u - g/d the working response, the coefficients of points without curvature fixed at
a_i = -s_i g_i / (2 Lambda_k), and h = -sum(a_fixed). A step costs p^2 |E| for the entering rows and
p (|E| + |R|)^2 for the small system, where a new factor would cost p^3 / 3.

The first step, from the full solution with E empty, is the sum of the whole influence series (its limit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.heldout.full import Target

Array = NDArray[Any]

__all__ = ["Downdate", "Model"]


@dataclass(frozen=True)
class Model:
    """The Newton model of several leave-out problems at their current predictions, as columns.

    Attributes
    ----------
    g, d : (n, k) arrays
        Gradient and curvature; zero on rows that the problem does without.
    u : (n, k) array
    """

    g: Array
    d: Array
    u: Array


class Downdate:
    """The factor of one full solution at the Lambda_k that some splits share."""

    def __init__(self, target: Target, ridge: float, max_change: float = 0.5) -> None:
        problem = target.problem
        self.K, self.s, self.ridge = problem.K, problem.s, ridge
        self.fit_intercept = problem.fit_intercept
        self.active = active = target.active
        self.position = np.full(problem.n, -1, dtype=np.intp)
        self.position[active] = np.arange(active.size)
        self.d = target.d
        self.max_change = max_change
        self.rho = np.sqrt(self.s[active] * target.d[active] / (2.0 * ridge))
        if active.size:
            self.W = self._inverse_factor()
            self.W_rho = linalg.matmul(self.W, self.rho)

    def _inverse_factor(self) -> Array:
        whole = self.active.size == self.K.shape[0]
        M = linalg.fortran(self.K if whole else self.K[np.ix_(self.active, self.active)])
        M *= self.rho[:, None]
        M *= self.rho[None, :]
        M[np.diag_indices_from(M)] += 1.0
        return linalg.triangular_inverse(linalg.cholesky(M, overwrite=True), overwrite=True)

    def solve(self, model: Model) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Minimisers of the models: coefficients (n, k), intercepts (k,), and which were solved.

        A model that is too far from the full solution for a small change (or whose intercept no
        point with curvature determines) is left unsolved, to be refitted.
        """
        n, k = model.g.shape
        curved = model.d > 0.0
        a = np.where(curved, 0.0, -self.s[:, None] * model.g / (2.0 * self.ridge))
        fixed = linalg.matmul(self.K, np.asfortranarray(a))
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(curved, model.u - model.g / model.d - fixed, 0.0)
        h = -a.sum(axis=0)
        b, solved = np.zeros(k), np.zeros(k, dtype=bool)
        if self.active.size:
            W_beta = linalg.matmul(self.W, np.asfortranarray(self.rho[:, None] * z[self.active]))
        for column in range(k):
            rows_in, rows_out = self._changes(curved[:, column], model.d[:, column])
            kept = self.active.size - rows_out.size + rows_in.size
            if kept == 0 and not self.fit_intercept:
                solved[column] = True  # every coefficient is fixed
                continue
            far = rows_in.size + rows_out.size > self.max_change * self.active.size
            if kept == 0 or not self.active.size or far:
                continue
            values = self._solve_one(
                W_beta[:, column], z[:, column], model.d[:, column], rows_in, rows_out, h[column]
            )
            if values is not None:
                a_active, a_in, b[column] = values
                a[self.active, column] = np.where(
                    curved[self.active, column], a_active, a[self.active, column]
                )
                a[rows_in, column] = a_in
                solved[column] = True
        return a, b, solved

    def _changes(self, curved: Array, d: Array) -> tuple[Array, Array]:
        """Rows that enter the active set, and positions in it of those that leave.

        A point whose curvature changed from one positive value to another does both.
        """
        differs = curved != (self.position >= 0)
        both = curved & ~differs & (d != self.d)
        rows_in = np.flatnonzero((differs & curved) | both)
        rows_out = self.position[np.flatnonzero((differs & ~curved) | both)]
        return rows_in, rows_out

    def _solve_one(
        self, W_beta: Array, z: Array, d: Array, rows_in: Array, rows_out: Array, h: float
    ) -> tuple[Array, Array, float] | None:
        """The small system of one model."""
        q = rows_in.size
        bordered = int(self.fit_intercept)
        size = q + bordered + rows_out.size
        X = np.empty((self.active.size, size), order="F", dtype=self.W.dtype)
        if q:
            entering = self.K[np.ix_(self.active, rows_in)]
            X[:, :q] = linalg.matmul(self.W, np.asfortranarray(self.rho[:, None] * entering))
        if bordered:
            X[:, q] = self.W_rho
        X[:, q + bordered :] = self.W[:, rows_out]
        if size == 0:
            return self.rho * linalg.matmul(self.W.T, W_beta), np.empty(0), 0.0
        small = linalg.gram(X)
        right = linalg.matmul(X.T, W_beta)
        right[:q] -= z[rows_in]
        if q:
            small[:q, :q] -= np.tril(self.K[np.ix_(rows_in, rows_in)])
            ridge = 2.0 * self.ridge / (self.s[rows_in] * d[rows_in])
            small[np.arange(q), np.arange(q)] -= ridge
        if bordered:
            small[q, :q] -= 1.0
            right[q] -= h
        y = _solve_small(small, right, definite=q == 0)
        if y is None:
            return None
        v = W_beta - linalg.matmul(X, y)
        b = float(y[q]) if bordered else 0.0
        return self.rho * linalg.matmul(self.W.T, v), y[:q], b


def _solve_small(a: Array, right: Array, definite: bool) -> Array | None:
    try:
        solver = linalg.solve_spd if definite else linalg.solve_symmetric
        y = solver(a, right[:, None])[:, 0]
    except linalg.LinAlgError:
        return None
    return y if np.isfinite(y).all() else None
