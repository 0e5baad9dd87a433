"""The span rule: Chapelle, Vapnik, Bousquet and Mukherjee, Machine Learning 46, 2002 (section 4.2).

If leaving p out makes no other point a support vector, or stops one from being one, or moves one
on or off its bound, then with C held fixed (total scaling) exactly

    y_p (u_p - u_p^(-p)) = |a_p| S_p^2,
    S_p^2 = min over x with sum x_i = 1 of |Phi(x_p) - sum_i x_i Phi(x_i)|^2

over the *free* support vectors i != p: the span of the support vector p. The leave-one-out error
is then

    (1/n) #{p : y_p u_p - |a_p| S_p^2 < 0}

(a value of exactly zero is the first class, as in predict, see onefit.criteria.pointwise).

Free are the points where the loss is curved: for the smoothed hinge those on its corner, |1 - y u|
<= delta, for the squared hinge all with y u < 1. Curvature d adds sum_i c_i x_i^2, c_i = 2 Lambda
/ (s_i d_i), to the minimum (the authors' K + I/C of the L2 model; for the smoothed hinge c -> 0
with delta, and S_p is theirs). With B the bordered matrix of K_AA + diag(c), P the upper left part
of its inverse, and v = (K_Ap, 1),

    S_p^2 = 1 / P_pp - c_p      (p free),            S_p^2 = K_pp - v'B^-1 v      (p bound).

Without an intercept the border, and the constraint on the sum, are absent. Where no support vector
is free, or p is the only one, the span is not defined: the value is +inf, or p counts as an error.
Cost: a fit, and the inverse of the free part. When to use: SVM on small samples; "loo" is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.criteria.base import OfSolution, weighted_mean
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.features.maps import product
from onefit.heldout.path import curvature
from onefit.problem import Problem, Solution

__all__ = ["Span", "squared_spans"]

HINGES = ("smoothed_hinge", "squared_hinge")


@dataclass(frozen=True, kw_only=True)
class Span(OfSolution):
    """Mean loss of u_p - a_p S_p^2, the leave-one-out predictions of the span rule.

    Parameters
    ----------
    loss : str or callable, default="zero_one"
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    """

    loss: str | Pointwise = "zero_one"
    name = "span"
    losses = HINGES

    def of_solution(self, problem: Problem, lam: float, solution: Solution) -> float:
        columns = []
        for j in range(problem.Y.shape[1]):
            a, u = solution.a[:, j], solution.u[:, j].copy()
            support = a != 0.0
            u[support] -= a[support] * squared_spans(problem, lam, j, solution)[support]
            columns.append(u)
        values = pointwise(self.loss, problem)(problem.Y, np.column_stack(columns))
        return weighted_mean(values, problem.s)


def squared_spans(problem: Problem, lam: float, j: int, solution: Solution) -> Array:
    """S_p^2 of every point, as free where the loss is curved and as bound elsewhere."""
    d = curvature(problem, j, solution.u[:, j])
    free = np.flatnonzero(d > 0.0)
    if free.size == 0:
        if problem.fit_intercept:
            raise linalg.LinAlgError(
                f"at lam={lam:g} no support vector is free, and the span is not defined; "
                "lower lam, or raise delta"
            )
        return np.asarray(problem.K.diagonal)
    rho = np.sqrt(problem.s[free] * d[free] / (2.0 * problem.ridge(lam)))
    xp = problem.K.arrays
    K_free = xp.fortran(problem.K.block(free, np.arange(problem.n)))
    inverse = xp.inverse_spd(xp.unit_ridge(problem.K.block(free), rho))
    root = xp.asarray(rho)
    inverse *= root[:, None]
    inverse *= root[None, :]
    spans = problem.K.diagonal - xp.dots(K_free, xp.matmul(inverse, K_free))
    pivots = xp.diagonal(inverse)
    if problem.fit_intercept:
        ones = xp.host(xp.lib.sum(inverse, axis=1))
        spans += (product(K_free.T, ones[:, None])[:, 0] - 1.0) ** 2 / ones.sum()
        pivots -= ones**2 / ones.sum()
    with np.errstate(divide="ignore"):
        spans[free] = np.where(pivots > 0.0, 1.0 / pivots, np.inf) - 1.0 / rho**2
    return np.asarray(spans)
