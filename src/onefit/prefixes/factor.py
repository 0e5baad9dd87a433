"""Kernel ridge regression and LS-SVM on all leading parts of an ordered sample, by one factor.

Put the rows in an order and factor M = K + c I = L L'. The leading block L_m of L factors the
matrix of the first m rows. With v = L^-1 y and w = L^-1 1, both computed once, the model of the
first m rows has

    b_m = sum_{j<=m} w_j v_j / sum_{j<=m} w_j^2        (0 without an intercept),
    a_m = L_m^-T (v - b_m w)_{1..m}:

the intercept is a second column. Its predictions need no coefficients. With h_x = L^-1 k_x for the
kernel values k_x of a row x against all n rows,

    u_m(x) = sum_{j<=m} h_xj (v_j - b_m w_j) + b_m,

so that the predictions of all n models are cumulative sums. A row x = x_i of the sample with i > m
has h_x = L_i., the factor's own row, and needs no solve at all; for the next row, i = m + 1,

    y_i - u_m(x_i) = L_ii (v_i - b_m w_i)                     (one-step-ahead residual).

**Evidence.** For a Gaussian process with covariance s^2 (K + c I) the density of the first m
targets factors into those of the one-step-ahead residuals. With the best s^2,

    log p_m = -(d/2) (log(2 pi e S_m / d)) - sum_{j<=m} log L_jj - (1/2) log sum_{j<=m} w_j^2,

S_m = sum_{j<=m} v_j^2 - b_m^2 sum_{j<=m} w_j^2 and d = m - 1 with an intercept, which has a flat
prior; without, d = m and the terms in w are absent.

All this needs a ridge c that does not depend on m (``scaling="total"``). Under ``scaling="mean"``
c = lam m, and no factor of one size serves another.
"""

from __future__ import annotations

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices

__all__ = ["Prefixes"]

#: what rounding leaves of a difference of sums of squares, relative to them
SQUARES_ROUNDING = 1e-14


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
    v, w : (n, q) and (n,) arrays
    b : (n, q) array
        The intercepts b_1 to b_n.
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
        right = np.asfortranarray(np.column_stack([Y, np.ones(n, dtype=Y.dtype)]))
        solved = linalg.solve_lower(self.lower, right)
        self.v, self.w = solved[:, :-1], solved[:, -1]
        self.b = np.zeros_like(self.v)
        if fit_intercept:
            sums = np.cumsum(self.w[:, None] * self.v, axis=0)
            self.b = sums / np.cumsum(np.square(self.w))[:, None]

    def coefficients(self, sizes: Indices) -> Array:
        """a_m for some m, zero beyond the first m rows, (n, S, q), by one back substitution."""
        right = np.zeros((len(self.w), len(sizes), self.v.shape[1]), dtype=self.v.dtype)
        for place, m in enumerate(sizes):
            right[:m, place] = self._right(m)
        columns = np.asfortranarray(right.reshape(len(right), -1))
        solved = linalg.solve_lower(self.lower, columns, transposed=True)
        return np.asarray(solved.reshape(right.shape))

    def _right(self, m: int) -> Array:
        """v - b_m w, (m, q)."""
        return np.asarray(self.v[:m] - self.w[:m, None] * self.b[m - 1])

    def halves(self, across: Array) -> Array:
        """h_x = L^-1 k_x as columns, (n, t), of rows with kernel values ``across`` (t, n)."""
        return linalg.solve_lower(self.lower, np.array(across.T, order="F"))

    def all_predictions(self, across: Array) -> Array:
        """u_m of new rows for all m, (n, t, q), from their kernel values (t, n)."""
        h = self.halves(across)
        u = np.cumsum(h[:, :, None] * self.v[:, None, :], axis=0)
        if self.fit_intercept:
            u += self.b[:, None, :] * (1.0 - np.cumsum(h * self.w[:, None], axis=0))[:, :, None]
        return u

    @property
    def one_step(self) -> Array:
        """y_i - u_(i-1)(x_i) for the rows from the second on, (n - 1, q)."""
        ahead = self.v[1:] - self.b[:-1] * self.w[1:, None]
        return np.asarray(self.lower.diagonal()[1:, None] * ahead)

    @property
    def log_evidence(self) -> Array:
        """log p_m for m from 2 to n, (n - 1, q); infinite while all targets are equal."""
        squares, weights = np.cumsum(np.square(self.v), axis=0), np.cumsum(np.square(self.w))
        degrees = np.arange(2, len(self.v) + 1, dtype=float) - self.fit_intercept
        volume = np.cumsum(np.log(self.lower.diagonal()))
        left = squares
        if self.fit_intercept:
            left = squares - np.square(self.b) * weights[:, None]
            volume = volume + 0.5 * np.log(weights)
        left = np.where(left > SQUARES_ROUNDING * squares, left, 0.0)
        with np.errstate(divide="ignore"):
            log_scale = np.log(left[1:] / degrees[:, None])
        return np.asarray(
            -0.5 * degrees[:, None] * (np.log(2.0 * np.pi) + log_scale + 1.0) - volume[1:, None]
        )
