"""C_IF^k, leave-one-out from influence functions: JMLR 2008, definition 8.

The leave-one-out prediction of point i is the sum of the influence series T_1 + T_2 + ... at i
(see onefit.heldout.series), cut at k, with the last term divided by 1 - H_ii instead of all
that follow:

    C_IF^k = (1/n) sum_i ell(y_i - u_i - T_1 - ... - T_{k-1} - T_k / (1 - H_ii)).

The paper takes k = 5, and the absolute value for ell: a loss with bounded derivative makes the
fit robust at given parameters, but only a robust ell keeps outliers from choosing the parameters.

**Only diagonals are needed.** The paper's recursion (equations 10 to 14) multiplies n x n matrices
at every order. Leaving out i changes all weights by the one factor 1 + rho_i = Lambda /
Lambda^(-i), and that of i by one entry more; with E the operator that maps sources to their
effects (symmetric, H = -E W D), M = W D, q = E W g, and e_i the i-th unit vector,

    T_1 = rho q - (1 + rho) w_i g_i E e_i,       T_{j+1} = rho E M T_j - (1 + rho) m_i T_j[i] E e_i,

so that, writing x_1 = -(1 + rho) w_i g_i and x_{j+1} = -(1 + rho) m_i T_j[i],

    T_j[i] = rho^j [(E M)^(j-1) q]_i + sum_{l < j} rho^l x_{j-l} [(E M)^l E]_ii.

Of E, E M E, E M E M E, ... only the diagonals enter: k = 5 takes two products of matrices. For the
squared loss E M = -H, all of them are powers of the eigenvalues of H, and a lambda costs n^2.

The intercept is part of E (the paper has none). Losses with a third derivative have orders 1 and 2.
When to use: outliers, with loss="huber" for the fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.criteria.base import ByRow
from onefit.criteria.evidence import Evidence
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.criteria.spectrum import HatSpectrum
from onefit.features.maps import product
from onefit.folds import leave_one_out
from onefit.heldout.series import Influence, Operator, check_order
from onefit.problem import Problem

__all__ = ["InfluenceLoo"]


@dataclass(frozen=True, kw_only=True)
class InfluenceLoo(ByRow):
    """Mean loss of the leave-one-out predictions by the influence series with its tail, C_IF^k.

    Parameters
    ----------
    order : int, default=5
        k; at most 2 for the losses "log" and "logistic".
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
        None is the absolute value, or the model's own loss if that is one of margins or of a level,
        which may be far from the middle.
    """

    order: int = 5
    name = "influence_loo"

    def check(self, problem: Problem) -> None:
        try:
            check_order(self.order, problem.loss)
        except ValueError as error:
            lower = "" if getattr(problem.loss, "relative", False) else "InfluenceLoo(order=2) or "
            raise ValueError(
                f"criterion 'influence_loo' with order={self.order!r}: {error} For the "
                f"criterion, {lower}'loo' would fit"
            ) from error

    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        return np.asarray(spectrum.problem.Y - _least_squares(spectrum, lam, self.order))

    def measure(self, problem: Problem) -> Pointwise:
        own = problem.loss.task == "classification" or hasattr(problem.loss, "level")
        return pointwise("absolute" if self.loss is None and not own else self.loss, problem)

    def left_out(self, evidence: Evidence) -> Callable[[int], Array]:
        if evidence.problem.quadratic:
            return super().left_out(evidence)
        lams, rows = evidence.lams, evidence.positive
        if not rows.loss.piecewise_quadratic:
            series = Influence(self.order, tail=True).prepare(rows, leave_one_out(rows.n))
            return lambda i: series.predict(np.array([lams[i]]))[0].values

        def values_at(i: int) -> Array:
            u = evidence.solution(i).u
            operators = (Operator(rows, lams[i], j, column) for j, column in enumerate(u.T))
            return np.column_stack([_any_loss(operator, self.order) for operator in operators])

        return values_at


def _growth(problem: Problem) -> Array:
    """rho_i, by which the weights of the others grow when row i is left out."""
    if problem.scaling == "total":
        return np.zeros(problem.n)
    return np.asarray(problem.s / (problem.weight - problem.s))


def _least_squares(spectrum: HatSpectrum, lam: float, order: int) -> Array:
    """Leave-one-out residuals of the squared loss."""
    problem, hat = spectrum.problem, spectrum.at(lam)
    rho = _growth(problem)[:, None]
    m = (2.0 * problem.s / problem.ridge(1.0))[:, None]
    diagonals = [
        (-1.0) ** power * spectrum.power_diagonal(lam, power)[:, None] / m
        for power in range(1, order + 1)
    ]
    chain = [
        (-1.0) ** (power - 1) * spectrum.power_residual(lam, power) for power in range(1, order + 1)
    ]
    terms = _terms(rho, m, -m * hat.residual, diagonals, chain)
    terms[-1] = terms[-1] / hat.slack[:, None]
    return np.asarray(hat.residual - sum(terms))


def _any_loss(operator: Operator, order: int) -> Array:
    """Leave-one-out predictions of one target, for losses with quadratic pieces."""
    problem = operator.problem
    if operator.active.size == 0 and problem.fit_intercept:
        raise linalg.LinAlgError(
            f"at lam={operator.lam:g} no point has curvature, so that its influence on the "
            "intercept is not defined; lower lam, or raise the loss's threshold"
        )
    xp = problem.K.arrays
    E = xp.asarray(operator.apply(np.eye(problem.n, order="F")))
    m, pull = operator.w * operator.d, operator.w * operator.g
    chain = [_product(E, pull)]
    for _ in range(order - 1):
        chain.append(_product(E, m * chain[-1]))
    diagonals = _diagonals(E, m, order)
    terms = _terms(_growth(problem), m, pull, diagonals, chain)
    terms[-1] = terms[-1] / (1.0 + m * diagonals[0])
    return np.asarray(operator.u + sum(terms))


def _diagonals(E: Any, m: Array, count: int) -> list[Array]:
    """The diagonals of E, E M E, E M E M E, ...; a product of two halves gives each."""
    xp = linalg.arrays_of(E)
    products, there = [E], xp.asarray(m)
    diagonals = [xp.diagonal(E)]
    for power in range(1, count):
        left, right = power // 2, (power - 1) // 2
        while len(products) <= left:
            products.append(xp.matmul(products[-1] * there, E))
        diagonals.append(_product(products[left] * products[right], m))
    return diagonals


def _product(a: Any, b: Array) -> Array:
    """a b for a vector, as NumPy's array."""
    return product(a, b[:, None])[:, 0]


def _terms(
    rho: Array, m: Array, pull: Array, diagonals: list[Array], chain: list[Array]
) -> list[Array]:
    """T_1[i], T_2[i], ... of every leave-one-out series at its own point."""
    sources, terms = [-(1.0 + rho) * pull], []
    for j in range(len(chain)):
        term = rho ** (j + 1) * chain[j]
        for steps, diagonal in enumerate(diagonals[: j + 1]):
            term = term + rho**steps * sources[j - steps] * diagonal
        terms.append(term)
        sources.append(-(1.0 + rho) * m * term)
    return terms
