"""The machines of all splits, ready to predict anywhere, from one fit.

Squared loss. Rows S are left out by forcing a_S = 0 with free residuals t = y_S - u_S = (P_SS)^-1
alpha_S (see onefit.heldout.leaveout), so the machine without S is that of the targets y - I_S t:

    a^(-S) = P (y - I_S t) = alpha - P_{.S} t,          b^(-S) = b - 1'(C^-1)_{.S} t / (1'C^-1 1),

with C = K + c diag(1/s) and c of the training part: nothing but products with the inverse. Uneven
weights under mean scaling give every split a c of its own. Where there are many, P comes from one
eigendecomposition (onefit.criteria.spectrum), n^2 |S| a split, and the intercept from the rows T
that are kept: a sums to zero there, so that C a + b 1 = y, weighted, gives

    b^(-S) = sum_T s_i (y_i - (K a)_i) / sum_T s_i.

Other losses. The leave-out problems are solved by Newton steps from the full solution
(onefit.heldout.limit), whose coefficients are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.criteria.spectrum import HatSpectrum
from onefit.folds import Folds
from onefit.heldout.front import Front
from onefit.heldout.path import FullPath
from onefit.heldout.refit import refit_fold
from onefit.heldout.repair import repair
from onefit.problem import Problem
from onefit.solvers.direct import add_ridge

Array = NDArray[Any]

__all__ = ["LeftOut", "leave_out"]

#: inverses that cost as much as an eigendecomposition, about
INVERSES = 8


@dataclass(frozen=True)
class LeftOut:
    """The machines of k splits.

    Attributes
    ----------
    coef : (q, n, k) array
        Coefficients, zero on the rows left out.
    intercept : (q, k) array
    """

    coef: Array = field(repr=False)
    intercept: Array

    def predict(self, K: Array) -> Array:
        """Predictions of all machines, (q, m, k), from the (m, n) kernel values of m points."""
        values = [linalg.matmul(K, np.asfortranarray(a)) for a in self.coef]
        return np.asarray(np.stack(values) + self.intercept[:, None, :])


def leave_out(problem: Problem, folds: Folds, lam: float) -> LeftOut:
    """The machines trained without the rows that each split removes; weights must be positive."""
    shape = problem.Y.shape[1], problem.n, len(folds)
    left = LeftOut(np.zeros(shape), np.zeros((shape[0], shape[2])))
    if problem.loss.name == "squared":
        _least_squares(problem, folds, lam, left)
    else:
        _any_loss(problem, folds, lam, left)
    return left


def _least_squares(problem: Problem, folds: Folds, lam: float, left: LeftOut) -> None:
    groups: dict[float, list[int]] = {}
    for k, train in enumerate(folds.train):
        groups.setdefault(problem.ridge(lam, train), []).append(k)
    if len(groups) > INVERSES:
        _spectral(problem, folds, lam, left)
        return
    for ridge, members in groups.items():
        inverse = _inverse(problem, ridge)
        shift = np.zeros(problem.n)
        b = np.zeros(problem.Y.shape[1])
        if problem.fit_intercept:
            ones = inverse.sum(axis=1)
            shift = ones / ones.sum()
            b = shift @ problem.Y
            inverse -= np.outer(ones, shift)
        alpha = linalg.matmul(inverse, np.asfortranarray(problem.Y))
        for k in members:
            rows = folds.removed[k]
            residual = linalg.solve_spd(
                np.asfortranarray(inverse[np.ix_(rows, rows)]), np.asfortranarray(alpha[rows])
            )
            left.coef[:, :, k] = (alpha - inverse[:, rows] @ residual).T
            left.coef[:, rows, k] = 0.0
            left.intercept[:, k] = b - shift[rows] @ residual


def _spectral(problem: Problem, folds: Folds, lam: float, left: LeftOut) -> None:
    """The same from one eigendecomposition, whatever the penalties of the splits."""
    spectrum = HatSpectrum(problem)
    vectors, root = spectrum.vectors, spectrum.root[:, None]
    for k, rows in enumerate(folds.removed):
        damped = 1.0 / (spectrum.values + problem.ridge(lam, folds.train[k]))[:, None]
        alpha = root * linalg.matmul(vectors, np.asfortranarray(damped * spectrum.projected))
        right = np.asfortranarray(damped * vectors[rows].T * root[rows].T)
        columns = root * linalg.matmul(vectors, right)
        residual = linalg.solve_spd(
            np.asfortranarray(columns[rows]), np.asfortranarray(alpha[rows])
        )
        left.coef[:, :, k] = (alpha - columns @ residual).T
        left.coef[:, rows, k] = 0.0
    if problem.fit_intercept:
        kept = np.repeat(problem.s[:, None], len(folds), axis=1)
        for k, rows in enumerate(folds.removed):
            kept[rows, k] = 0.0
        for j, a in enumerate(left.coef):
            gap = problem.Y[:, [j]] - linalg.matmul(problem.K, np.asfortranarray(a))
            left.intercept[j] = (kept * gap).sum(axis=0) / kept.sum(axis=0)


def _inverse(problem: Problem, ridge: float) -> Array:
    """C^-1."""
    try:
        return linalg.inverse_spd(add_ridge(problem.K, ridge / problem.s))
    except linalg.LinAlgError as error:
        raise linalg.LinAlgError(
            f"the kernel matrix plus {ridge:.3g} on its diagonal is singular to working precision "
            f"({error}); raise lam"
        ) from error


def _any_loss(problem: Problem, folds: Folds, lam: float, left: LeftOut) -> None:
    path = FullPath(problem, folds, np.array([lam]))
    for j in range(problem.Y.shape[1]):
        target = path.target(lam, j)
        for factors, members in path.fronts(target, j):
            train = ~path.removed[:, members]
            front = Front.start(target, factors, train, None)
            repair(front)
            splits = [path.near[i] for i in members]
            left.coef[j][:, splits] = front.a * train
            left.intercept[j, splits] = front.b
    for k in path.far:
        train = folds.train[k]
        solution = refit_fold(problem, lam, train, folds.test[k]).solution
        left.coef[:, train, k] = solution.coef.T
        left.intercept[:, k] = solution.intercept
