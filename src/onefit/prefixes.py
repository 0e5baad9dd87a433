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

**A factor in single precision** takes less than half of the time. Its solution of the system above
is a first guess, and its solutions for the residuals, computed in double precision, correct it:
each correction multiplies the error by about the condition number of M times 1e-7. Corrections end
when the next one would change predictions by less than ``CHANGE_PER_TARGET``. Where they do not
shrink quickly, because M is ill-conditioned, a factor in double precision is used instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from onefit import linalg, plan
from onefit._types import Array, Indices
from onefit.estimators.accepted import check_accepted, check_exact_kernel, unwrap
from onefit.problem import Problem

__all__ = ["PrefixFits", "Prefixes", "dense_problem"]

#: change of a prediction, in units of the largest target, at which corrections end
CHANGE_PER_TARGET = 1e-10
#: share of a correction that the next one may be; with more, they would not end soon
MAX_CORRECTION_RATIO = 1e-2


def dense_problem(
    estimator: Any, X: Any, y: Any, caller: str, matrices: float, squared: bool = True
) -> tuple[Any, Problem]:
    """A fresh model with the parameters of an estimator or of a search's winner, and its problem.

    Refuses estimators without a dense kernel matrix in host memory, and matrices that do not fit
    there, before anything is computed.

    Parameters
    ----------
    matrices : float
        Number of n x n matrices that the caller holds with the squared loss; with others it refits.
    squared : bool, default=True
        Whether the caller needs the squared loss.
    """
    if hasattr(estimator, "param_grid") and not hasattr(estimator, "best_estimator_"):
        raise ValueError(f"{caller} needs a fitted search: fit it first, with refit=True")
    model = clone(unwrap(getattr(estimator, "best_estimator_", estimator)))
    check_accepted(model, caller)
    check_exact_kernel(model, caller, "pass an estimator with approximation=None")
    if issparse(X) or linalg.is_elsewhere(X) or model.spec().precomputed:
        raise ValueError(f"{caller} needs a dense X in host memory and no precomputed kernel")
    X, Y, s = model._check_data(X, y, None)
    spec = model.spec()
    plain = spec.quadratic and spec.coding.columns_are_targets
    if squared and not plain:
        raise ValueError(
            f"{caller} is for the squared loss with one column per target or class, not for "
            f"loss={model.loss!r}; pass loss='squared', or use heldout_predict, which takes any "
            "loss and splits"
        )
    if (s != 1.0).any():
        raise ValueError(f"{caller} does not support class weights; set class_weight=None")
    work = model._workload(Y, s)
    nbytes = matrices * work.itemsize * work.n**2 if plain else plan.peak_bytes(work, "refit")
    plan.check_bytes(work, nbytes, caller)
    return model, model._make_problem(X, Y, s)


@dataclass(frozen=True)
class PrefixFits:
    """Predictions of the models of some leading parts, for any order of the rows.

    Parameters
    ----------
    K : (n, n) array
    Y : (n, q) array
    fit_intercept : bool
    """

    K: Array = field(repr=False)
    Y: Array = field(repr=False)
    fit_intercept: bool

    @cached_property
    def _single(self) -> Array:
        return self.K.astype(np.float32)

    def predict(
        self, order: Indices, sizes: Indices, ridge: float, new: Indices
    ) -> tuple[Array, Array]:
        """u_m of the rows ``order`` and ``new``, (m, S, q), for its first m rows, m in ``sizes``.

        Of the rows ``order`` beyond the first m they are meaningless.
        """
        found = self._corrected(order, sizes, ridge) if self.K.dtype == np.float64 else None
        if found is None:
            M = linalg.submatrix(self.K, order, order)
            prefixes = Prefixes(M, self.Y[order], ridge, self.fit_intercept, overwrite=True)
            found = prefixes.coefficients(sizes), prefixes.b[sizes - 1]
        a, b = found
        across = linalg.submatrix(self.K, new, order)
        tested = linalg.matmul(across, a.reshape(order.size, -1)).reshape(-1, *a.shape[1:])
        return self.Y[order][:, None] - ridge * a, tested + b

    @linalg.overflowing
    def _corrected(
        self, order: Indices, sizes: Indices, ridge: float
    ) -> tuple[Array, Array] | None:
        """a_m and b_m by a factor in single precision; None where corrections do not shrink."""
        M = linalg.submatrix(self._single, order, order).T
        M[np.diag_indices(order.size)] += np.float32(ridge)
        try:
            lower = linalg.cholesky(M, overwrite=True)
        except linalg.LinAlgError:
            return None
        inside = np.arange(order.size)[:, None, None] < sizes[:, None]
        residual: Array = inside * self.Y[order][:, None]
        a, b = np.zeros(residual.shape), np.zeros(residual.shape[1:])
        scale, last = np.abs(self.Y[order]).max(axis=0), np.inf
        scale[scale == 0.0] = 1.0
        one = linalg.solve_lower(lower, np.ones(order.size, dtype=np.float32))
        while True:
            da, db = self._correction(lower, one, inside, sizes, residual, a.sum(axis=0))
            a, b = a + da, b + db
            change = float((np.abs(residual - ridge * da) / scale).max())
            if not (np.isfinite(change) and change <= MAX_CORRECTION_RATIO * last):
                return None
            if last < np.inf and change * change / last <= CHANGE_PER_TARGET:
                return a, b
            residual = residual - inside * (self._product(order, da) + ridge * da + db)
            last = change

    def _correction(
        self, lower: Array, one: Array, inside: Array, sizes: Indices, residual: Array, total: Array
    ) -> tuple[Array, Array]:
        """Corrections of a and b from residuals (n, S, q) and sums of coefficients (S, q)."""
        scale = np.abs(residual).max(axis=0)
        scale[scale == 0.0] = 1.0
        columns = np.asfortranarray((residual / scale).reshape(len(one), -1), np.float32)
        t = inside * linalg.solve_lower(lower, columns).reshape(residual.shape)
        db = np.zeros(scale.shape)
        if self.fit_intercept:
            weights = np.cumsum(np.square(one), dtype=np.float64)[sizes - 1, None]
            db = (np.tensordot(one, t, axes=1) + total / scale) / weights
            t = inside * (t - db * one[:, None, None])
        columns = np.asfortranarray(t.reshape(len(one), -1), np.float32)
        da = linalg.solve_lower(lower, columns, transposed=True).reshape(residual.shape)
        return da * scale, db * scale

    def _product(self, order: Indices, a: Array) -> Array:
        """K a on the rows ``order`` for their coefficients, (m, S, q)."""
        whole = np.zeros((len(self.K), a[0].size), dtype=self.K.dtype, order="F")
        whole[order] = a.reshape(order.size, -1)
        return linalg.matmul(self.K, whole)[order].reshape(a.shape)


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

    def later(self, m: int, rows: slice) -> Array:
        """u_m of rows of the sample that come after the first m."""
        return np.asarray(self.lower[rows, :m] @ self._right(m) + self.b[m - 1])

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
        """log p_m for m from 2 to n, (n - 1, q)."""
        squares, weights = np.cumsum(np.square(self.v), axis=0), np.cumsum(np.square(self.w))
        degrees = np.arange(2, len(self.v) + 1, dtype=float) - self.fit_intercept
        volume = np.cumsum(np.log(self.lower.diagonal()))
        if self.fit_intercept:
            squares = squares - np.square(self.b) * weights[:, None]
            volume = volume + 0.5 * np.log(weights)
        scale = squares[1:] / degrees[:, None]
        return np.asarray(
            -0.5 * degrees[:, None] * (np.log(2.0 * np.pi * scale) + 1.0) - volume[1:, None]
        )
