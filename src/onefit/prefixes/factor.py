"""Kernel ridge regression and LS-SVM on all leading parts of an ordered sample, by one factor.

Put the rows in an order and factor M = K + c I = L L'. The leading block L_m of L factors the
matrix of the first m rows. With v = L^-1 y and w = L^-1 1, both computed once, the model of the
first m rows has

    b_m = sum_{j<=m} w_j v_j / sum_{j<=m} w_j^2        (0 without an intercept),
    a_m = L_m^-T (v - b_m w)_{1..m}:

the intercept is a second column. (The first target is subtracted from all of them and added to the
intercepts at the end, so that targets with a large mean lose no digits.) Predictions need no
coefficients. With h_x = L^-1 k_x for the kernel values k_x of a row x against all n rows,

    u_m(x) = sum_{j<=m} h_xj (v_j - b_m w_j) + b_m,

so that the predictions of all n models are cumulative sums. A row x = x_i of the sample with i > m
has h_x = L_i., the factor's own row, and needs no solve at all; for the next row, i = m + 1,

    y_i - u_m(x_i) = L_ii (v_i - b_m w_i)                     (one-step-ahead residual).

**Evidence.** For a Gaussian process with covariance s^2 (K + c I) the density of the first m
targets factors into those of the one-step-ahead residuals. With the best s^2,

    log p_m = -(d/2) (log(2 pi e S_m / d)) - sum_{j<=m} log L_jj - (1/2) log sum_{j<=m} w_j^2,

with d = m - 1 with an intercept, which has a flat prior, and S_m the sum of squares of these
residuals over their variances,

    S_m = sum_{1<j<=m} (v_j - b_{j-1} w_j)^2 W_{j-1} / W_j,        W_j = sum_{i<=j} w_i^2;

without an intercept S_m = sum_{j<=m} v_j^2, d = m, and the last term is absent.

All this needs a ridge c that does not depend on m (``scaling="total"``). Under ``scaling="mean"``
c = lam m, and no factor of one size serves another.
"""

from __future__ import annotations

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices

__all__ = ["Prefixes"]


class Prefixes:
    """The models of all leading parts of an ordered sample, at one ridge.

    Parameters
    ----------
    M : (n, n) array
        Kernel matrix of the rows in their order.
    Y : (n, q) array
    ridge : float
        c.
    fit_intercept : bool
    overwrite : bool, default=False
        Whether M may be overwritten.

    Attributes
    ----------
    lower : (n, n) array
        L.
    origin : (q,) array
        The first target of each column, zero without an intercept.
    v, w : (n, q) and (n,) arrays
        v is that of the targets minus ``origin``.
    b : (n, q) array
        b_1 to b_n for the targets minus ``origin``.
    """

    def __init__(
        self, M: Array, Y: Array, ridge: float, fit_intercept: bool, overwrite: bool = False
    ) -> None:
        n = M.shape[0]
        matrix = M.T if overwrite and M.flags.c_contiguous else linalg.fortran(M)
        matrix[np.diag_indices(n)] += ridge
        self.ridge, self.fit_intercept = ridge, fit_intercept
        try:
            self.lower = linalg.cholesky(matrix, overwrite=True)
        except linalg.LinAlgError as error:
            raise ValueError(
                f"the kernel matrix plus its ridge ({ridge:.1e}) is not positive definite to "
                "working precision; raise lam"
            ) from error
        self.origin = Y[0] if fit_intercept else np.zeros_like(Y[0])
        right = np.asfortranarray(np.column_stack([Y - self.origin, np.ones(n, dtype=Y.dtype)]))
        solved = linalg.solve_lower(self.lower, right)
        self.v, self.w = solved[:, :-1], solved[:, -1]
        self.b = np.zeros_like(self.v)
        if fit_intercept:
            sums = np.cumsum(self.w[:, None] * self.v, axis=0)
            self.b = sums / np.cumsum(np.square(self.w))[:, None]

    @property
    def intercepts(self) -> Array:
        """b_1 to b_n, (n, q)."""
        return np.asarray(self.origin + self.b)

    def coefficients(self, sizes: Indices) -> Array:
        """a_m for some m, zero beyond the first m rows, (n, S, q), by one back substitution."""
        right = np.zeros((len(self.w), len(sizes), self.v.shape[1]), dtype=self.v.dtype)
        for place, m in enumerate(sizes):
            right[:m, place] = self.v[:m] - self.w[:m, None] * self.b[m - 1]
        columns = np.asfortranarray(right.reshape(len(right), -1))
        solved = linalg.solve_lower(self.lower, columns, transposed=True)
        return np.asarray(solved.reshape(right.shape))

    def all_predictions(self, across: Array) -> Array:
        """u_m of new rows for all m, (n, t, q), from their kernel values (t, n)."""
        h = linalg.solve_lower(self.lower, np.array(across.T, order="F"))
        u = np.cumsum(h[:, :, None] * self.v[:, None, :], axis=0)
        if self.fit_intercept:
            u += self.b[:, None, :] * (1.0 - np.cumsum(h * self.w[:, None], axis=0))[:, :, None]
        return np.asarray(u + self.origin)

    @property
    def _ahead(self) -> Array:
        """v_j - b_(j-1) w_j for the rows from the second on."""
        return np.asarray(self.v[1:] - self.b[:-1] * self.w[1:, None])

    @property
    def one_step(self) -> Array:
        """y_i - u_(i-1)(x_i) for the rows from the second on, (n - 1, q)."""
        return np.asarray(self.lower.diagonal()[1:, None] * self._ahead)

    @property
    def log_evidence(self) -> Array:
        """log p_m for m from 2 to n, (n - 1, q); infinite while all targets are equal."""
        degrees = np.arange(2, len(self.v) + 1, dtype=float) - self.fit_intercept
        volume = np.cumsum(np.log(self.lower.diagonal()))
        if self.fit_intercept:
            weights = np.cumsum(np.square(self.w))
            squares = np.cumsum(np.square(self._ahead) * (weights[:-1] / weights[1:])[:, None], 0)
            volume = volume + 0.5 * np.log(weights)
        else:
            squares = np.cumsum(np.square(self.v), axis=0)[1:]
        with np.errstate(divide="ignore"):
            log_scale = np.log(squares / degrees[:, None])
        return np.asarray(
            -0.5 * degrees[:, None] * (np.log(2.0 * np.pi) + log_scale + 1.0) - volume[1:, None]
        )
