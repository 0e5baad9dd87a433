"""The influence series: cross-validation as a Taylor expansion at the full sample.

Leaving the fold S out changes the weights of the losses from w to w + dw: under mean scaling
from s_i / sum(s) to s_i / sum(s off S) off S and to zero on it. Put the weights w + eps dw and
differentiate stationarity in eps; eps = 1 removes the fold (the papers write eps = -M/(n - M)
times a unit direction, which is the same series term by term). With D = diag(d) at the full
solution and T_j the j-th term, coefficients a_j and intercept b_j, T_j = K a_j + b_j,

    2 lam a_1     = -(W D T_1 + dw g),                  1'(W D T_1 + dw g) = 0,
    2 lam a_{j+1} = -(W D T_{j+1} + dW D T_j),          1'(W D T_{j+1} + dW D T_j) = 0,

where the factorials have cancelled against those of the Taylor series, u^(-S) = u + T_1 + T_2 +
... The same operator stands on the left at every order and for every fold, and only points with
curvature enter it: with v = W D T on A and h the known part,

    (K_AA + diag(2 lam / (w d))) v - 2 lam b = -K_A h,      1'v = -1'h,      a = -(v + h) / (2 lam).

For |S| = 1 this is the series of Debruyne, Hubert and Suykens (JMLR 2008, equations 8 to 11,
Theorem 7), for folds the BIF-kCV of Liu, Jiang and Liao (ICML 2014, section 4, with the
intercept) and, for the smoothed hinge, that of Liu and Liao (2016, equation 3). A loss with a
third derivative adds (1/2) W V''' T_1^2 to h at order two (JMLR Theorem 6, whose middle term
lacks its Phi(X) in print); beyond that the number of terms grows, and the limit of the series
(onefit.heldout.limit) is the way to go.

**Tail.** For leave-one-out the terms behind the last fall off as the powers of H_ii, H the full
sample's smoother: dividing the last term by 1 - H_ii sums them (JMLR equations 12 and 14).

The series converges for every loss with quadratic pieces, but as slowly as H_SS comes near one:
a fixed order fails for small lambda. Nothing here says how large the error is; "limit" does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Folds
from onefit.heldout.base import HeldOut, HeldOutMethod, Prepared
from onefit.heldout.full import Target
from onefit.heldout.path import FullPath
from onefit.heldout.refit import refit_fold
from onefit.losses.base import require
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["Influence", "Operator", "check_order"]


def check_order(order: Any, loss: Any) -> int:
    """A positive whole order that the loss has the derivatives for."""
    if not isinstance(order, (int, np.integer)) or isinstance(order, bool) or order < 1:
        raise ValueError(
            f"order must be a whole number of at least 1, got {order!r}; order 3 is usual, and "
            "method='limit' sums the whole series"
        )
    if not loss.piecewise_quadratic:
        if order > 2:
            raise ValueError(
                f"order={order} of the influence series needs derivatives of the loss beyond the "
                f"third, and their number of terms grows with the order; {loss!r} has orders 1 and "
                "2. Use method='limit', which sums the series in closed form"
            )
        if order == 2:
            require(loss, "influence of order 2", "third")
    return int(order)


class Influence(HeldOutMethod):
    """The influence series cut at an order, optionally with JMLR's tail for leave-one-out.

    Parameters
    ----------
    order : int, default=3
        Number of terms; 1 or 2 for the losses "log" and "logistic".
    tail : bool, default=False
        Divide the last term by 1 - H_ii; for splits that each leave one row out.
    """

    name = "influence"
    requires = ("gradient", "curvature", "max_curvature")

    def __init__(self, order: int = 3, tail: bool = False) -> None:
        self.order, self.tail = order, tail

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        order = check_order(self.order, problem.loss)
        path = FullPath(problem, folds, lams)
        if self.tail and any(rows.size != 1 for rows in folds.removed):
            raise ValueError(
                "tail=True sums the remainder of a leave-one-out series, but a split leaves out "
                f"{max(rows.size for rows in folds.removed)} rows; use cv=LeaveOneOut(), or "
                "method='limit', which sums the series of any fold"
            )
        return _Influence(path, order, self.tail)


@dataclass
class _Influence(Prepared):
    path: FullPath
    order: int
    tail: bool

    @linalg.overflowing
    def predict(self, lam: float) -> HeldOut:
        path, folds = self.path, self.path.folds
        q = path.problem.Y.shape[1]
        values = np.empty((folds.rows.size, q), dtype=path.problem.Y.dtype)
        error = np.full((len(folds), q), np.nan)
        for j in range(q):
            operator = Operator(path.target(lam, j))
            for first in range(0, len(path.near), 256):
                members = np.arange(first, min(first + 256, len(path.near)))
                u = self._series(operator, members)
                for column, k in enumerate(path.near[i] for i in members):
                    values[folds.place(k), j] = u[folds.test[k], column]
        for k in path.far:
            train, test = path.positive.train[k], path.positive.test[k]
            found = refit_fold(path.problem, lam, train, test)
            values[folds.place(k)], error[k] = found.values, found.error
        return HeldOut.judged(path.problem, values, folds, "influence", error, order=self.order)

    def _series(self, operator: Operator, members: Array) -> Array:
        """u + T_1 + ... + T_order for some of the near splits, as columns."""
        target, path = operator.target, self.path
        train = ~path.removed[:, members]
        full = path.problem.ridge(1.0)
        # weights are s / Lambda in units of 1 / lam, for the full sample and for the fold
        change = target.problem.s[:, None] * (train / path.weight[members] - 1.0 / full)
        terms = operator.terms(change, self.order)
        if self.tail:
            row = path.removed[:, members].argmax(axis=0)
            terms[-1] /= 1.0 - operator.leverage()[row]
        return np.asarray(target.u[:, None] + sum(terms))


class Operator:
    """The operator that every order of every fold inverts, factored once.

    Weights are taken in units in which lam is the penalty: w = s lam / Lambda.
    """

    def __init__(self, target: Target) -> None:
        self.target, problem = target, target.problem
        self.ridge = problem.ridge(target.lam)
        self.lam = target.lam
        self.w = problem.s / problem.ridge(1.0)
        A = target.active
        self.rho = np.sqrt(self.w[A] * target.d[A] / (2.0 * self.lam))
        M = linalg.unit_ridge(linalg.submatrix(problem.K, A, A), self.rho)
        try:
            self.factor = linalg.cholesky(M, overwrite=True)
        except linalg.LinAlgError as error:
            raise linalg.LinAlgError(
                f"at lam={self.lam:g} the operator of the influence series is singular to working "
                "precision; raise lam, or use method='exact'"
            ) from error
        self.ones = self._solve(np.ones((A.size, 1)))[:, 0]

    def _solve(self, B: Array) -> Array:
        """(K_AA + diag(2 lam / (w d)))^-1 B."""
        if self.rho.size == 0:
            return B
        scaled = np.asfortranarray(self.rho[:, None] * B)
        return self.rho[:, None] * linalg.solve_cholesky(self.factor, scaled)

    def apply(self, h: Array) -> Array:
        """T with 2 lam a = -(W D T + h), T = K a + b, for every column h."""
        a, b = self.coefficients(h)
        return np.asarray(linalg.matmul(self.target.problem.K, np.asfortranarray(a)) + b)

    def coefficients(self, h: Array) -> tuple[Array, Array]:
        """a and b of that T."""
        problem, A = self.target.problem, self.target.active
        v = self._solve(-linalg.matmul(problem.K, np.asfortranarray(h))[A])
        b = np.zeros(h.shape[1])
        if problem.fit_intercept:
            if A.size == 0:
                raise linalg.LinAlgError(
                    f"at lam={self.lam:g} no point has curvature, so that the influence on the "
                    "intercept is not defined; use method='exact', or fit_intercept=False"
                )
            # the first-order condition 1'(v + h) = 0 gives 2 lam b
            shift = -(v.sum(axis=0) + h.sum(axis=0)) / self.ones.sum()
            v = v + np.outer(self.ones, shift)
            b = shift / (2.0 * self.lam)
        a = -h / (2.0 * self.lam)
        a[A] -= v / (2.0 * self.lam)
        return a, b

    def terms(self, change: Array, order: int) -> list[Array]:
        """T_1, ..., T_order for weights that change by the columns of ``change``."""
        terms: list[Array] = []
        for _ in range(order):
            terms.append(self.apply(self.source(change, terms)))
        return terms

    def source(self, change: Array, terms: list[Array]) -> Array:
        """h of the next term, given those before it."""
        target = self.target
        if not terms:
            return change * target.g[:, None]
        h = change * target.d[:, None] * terms[-1]
        if not target.problem.loss.piecewise_quadratic:
            third = target.problem.loss.third(target.y, target.u)  # type: ignore[attr-defined]
            h += 0.5 * (self.w * third)[:, None] * terms[-1] ** 2
        return np.asarray(h)

    def leverage(self) -> Array:
        """H_ii, the diagonal of the smoother u = H z; zero where there is no curvature."""
        A = self.target.active
        H = np.zeros(self.target.y.size)
        if A.size:
            inverse = linalg.triangular_inverse(self.factor)
            P = np.square(self.rho) * np.einsum("ij,ij->j", inverse, inverse)
            if self.target.problem.fit_intercept:
                P -= self.ones**2 / self.ones.sum()
            H[A] = 1.0 - P / np.square(self.rho)
        return H
