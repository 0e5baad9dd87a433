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
(onefit.heldout.leave_out) is the way to go.

**Tail.** For leave-one-out the terms behind the last fall off as the powers of H_ii, H the full
sample's smoother: dividing the last term by 1 - H_ii sums them (JMLR equations 12 and 14).

The series converges for every loss with quadratic pieces, but as slowly as H_SS comes near one:
a fixed order fails for small lambda. Nothing here says how large the error is; "limit" does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.heldout import cost as costs
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.driver import LeaveOutDriver, Policy
from onefit.heldout.path import MAX_BATCH_COLUMNS, FullPath, curvature
from onefit.heldout.splits import Splits
from onefit.heldout.workload import Workload
from onefit.linalg.rates import Cost, Rates
from onefit.losses.base import loss_of, require
from onefit.problem import Problem, Solution
from onefit.systems.cholesky import CurvedFactor

__all__ = ["Influence", "Operator", "check_order"]


def check_order(order: Any, loss: Any) -> int:
    """A positive whole order that the loss, with its width known, has the derivatives for."""
    if not isinstance(order, (int, np.integer)) or isinstance(order, bool) or order < 1:
        raise ValueError(
            f"order must be a whole number of at least 1, got {order!r}; order 3 is usual, and "
            "method='limit' sums the whole series"
        )
    if getattr(loss, "relative", False):
        raise ValueError(
            f"the influence series expands around one loss, but {loss!r} takes its width from the "
            "targets trained on, which differ from split to split: give the width a number. Or use "
            "method='limit', or 'exact'."
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
    on_device = True

    def __init__(self, order: int = 3, tail: bool = False) -> None:
        self.order, self.tail = order, tail

    def prepare(self, problem: Problem, folds: Folds) -> Prepared:
        self.check(problem)
        order = check_order(self.order, problem.loss)
        if self.tail and any(rows.size != 1 for rows in folds.removed):
            raise ValueError(
                "tail=True sums the remainder of a leave-one-out series, but a split leaves out "
                f"{max(rows.size for rows in folds.removed)} rows; use cv=LeaveOneOut(), or "
                "method='limit', which sums the series of any fold"
            )
        policy = Policy(self.name, order=order)
        return _Influence(Splits.sort(problem, folds), policy, tail=self.tail)

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """A fit, its factor, and products with all folds' columns."""
        return costs.one_fit(work, rates, 1)

    @classmethod
    def matrices(cls, work: Workload) -> float:
        return costs.one_fit_matrices(work, 18.0)


@dataclass
class _Influence(LeaveOutDriver):
    """The driver, with terms of the series instead of Newton steps."""

    tail: bool = False
    follow: ClassVar[bool] = False

    def leave_out(self, path: HeldOutPath, full: FullPath, solutions: list[Solution | str]) -> None:
        for i, solution in enumerate(solutions):
            if isinstance(solution, Solution):
                with path.attempt([i]):
                    for j, u in enumerate(solution.u.T):
                        self._fill_series(path, i, j, Operator(full.problem, path.lams[i], j, u))

    def _fill_series(self, path: HeldOutPath, i: int, j: int, operator: Operator) -> None:
        """The series of one target at one lambda."""
        which = self.splits.by_formula
        for first in range(0, which.size, MAX_BATCH_COLUMNS):
            members = np.arange(first, min(first + MAX_BATCH_COLUMNS, which.size))
            u = self._series(operator, members)
            for column, k in enumerate(which[members]):
                path.fill(i, k, j, u[path.folds.test[k], column], np.nan)

    def _series(self, operator: Operator, members: Indices) -> Array:
        """u + T_1 + ... + T_order for some of the splits, as columns."""
        splits, problem = self.splits, self.splits.problem
        train = splits.train(members)
        # weights are s / Lambda in units of 1 / lam, for the full sample and for the fold
        part = train / splits.weight[members] - 1.0 / problem.ridge(1.0)
        assert self.policy.order is not None
        terms = operator.terms(problem.s[:, None] * part, self.policy.order)
        if self.tail:
            rows = [splits.folds.removed[k][0] for k in splits.by_formula[members]]
            terms[-1] /= 1.0 - operator.leverage()[rows]
        return np.asarray(operator.u[:, None] + sum(terms))


class Operator:
    """The operator that every order of every fold inverts, factored once.

    Weights are taken in units in which lam is the penalty: w = s lam / Lambda.

    Parameters
    ----------
    problem : Problem
    lam : float
    j : int
        The target.
    u : (n,) array
        Predictions of the full solution.

    Attributes
    ----------
    g, d : (n,) arrays
        Gradient and curvature of the loss at u, zero where the weight is.
    active : index array
        A, the points with curvature.
    """

    def __init__(self, problem: Problem, lam: float, j: int, u: Array) -> None:
        self.problem, self.lam, self.y, self.u = problem, float(lam), problem.Y[:, j], u
        self.loss = loss_of(problem.loss, [j])
        self.g = np.where(problem.s > 0, self.loss.gradient(self.y, u), 0.0)
        self.d = curvature(problem, j, u)
        self.active = A = np.flatnonzero(self.d > 0.0)
        self.w = problem.s / problem.ridge(1.0)
        self.rho = np.sqrt(self.w[A] * self.d[A] / (2.0 * self.lam)).astype(problem.K.dtype)
        self.inverse = CurvedFactor(problem.K, A, self.rho).inverse
        self.ones = self._solve(np.ones((A.size, 1)))[:, 0]

    def _solve(self, B: Array) -> Array:
        """(K_AA + diag(2 lam / (w d)))^-1 B."""
        if self.rho.size == 0:
            return B
        scaled = np.asfortranarray(self.rho[:, None] * B, dtype=self.rho.dtype)
        return self.rho[:, None] * self.inverse.apply(scaled)

    def apply(self, h: Array) -> Array:
        """T with 2 lam a = -(W D T + h), T = K a + b, for every column h."""
        a, b = self.coefficients(h)
        return np.asarray(self.problem.K.matmul(np.asfortranarray(a)) + b)

    def coefficients(self, h: Array) -> tuple[Array, Array]:
        """a and b of that T."""
        problem, A = self.problem, self.active
        v = self._solve(-problem.K.matmul(np.asfortranarray(h))[A])
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
        if not terms:
            return change * self.g[:, None]
        h = change * self.d[:, None] * terms[-1]
        if not self.loss.piecewise_quadratic:
            third = self.loss.third(self.y, self.u)  # type: ignore[attr-defined]
            h += 0.5 * (self.w * third)[:, None] * terms[-1] ** 2
        return np.asarray(h)

    def leverage(self) -> Array:
        """H_ii, the diagonal of the smoother u = H z; zero where there is no curvature."""
        H = np.zeros(self.y.size)
        if self.active.size:
            squares = np.square(self.rho)
            P = squares * self.inverse.diagonal()
            if self.problem.fit_intercept:
                P = P - self.ones**2 / self.ones.sum()
            H[self.active] = 1.0 - P / squares
        return H
