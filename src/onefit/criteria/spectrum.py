"""The hat matrix of least squares at every lambda, from one eigendecomposition.

With R = diag(sqrt(s)), v = R 1 / |R 1| and Z a basis of what is orthogonal to v, the intercept only
forces the scaled coefficients x = R^-1 a to be orthogonal to v. Hence the projected inverse of the
package (see onefit.heldout.leaveout) is

    P = R Z (Z'R K R Z + c I)^-1 Z'R = R Q diag(1 / (e + c)) Q'R,

Q diag(e) Q' the eigendecomposition of R K R after projection on v's complement, without v itself;
no intercept, no projection. One decomposition serves every c, intercept or not, and

    a = P y,      y - u = (c / s) a,      1 - H_ii = (c / s_i) P_ii,      H = I - c diag(1/s) P,

so that powers of H, and their diagonals, are powers of h = e / (e + c): n^2 each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.problem import Problem
from onefit.solvers.direct import add_ridge, without_rounding

Array = NDArray[Any]

__all__ = ["Hat", "HatSpectrum"]


@dataclass(frozen=True)
class Hat:
    """Least squares at one lambda.

    Attributes
    ----------
    coef : (n, q) array
        a.
    residual : (n, q) array
        y - u.
    slack : (n,) array
        1 - H_ii.
    trace : float
        Of I - H.
    """

    coef: Array = field(repr=False)
    residual: Array = field(repr=False)
    slack: Array = field(repr=False)
    trace: float


class HatSpectrum:
    """What the hat matrices of one problem share.

    Parameters
    ----------
    problem : Problem
        With the squared loss, and positive weights.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.root = np.sqrt(problem.s)
        M = add_ridge(problem.K, 0.0, self.root)
        if problem.fit_intercept:
            values, vectors = _without(M, self.root / np.linalg.norm(self.root))
        else:
            values, vectors = linalg.eigh(M, overwrite=True)
        self.values, self.vectors = without_rounding(values), np.asfortranarray(vectors)
        self.squares = self.vectors**2
        targets = np.asfortranarray(self.root[:, None] * problem.Y)
        self.projected = linalg.matmul(self.vectors.T, targets)

    def at(self, lam: float) -> Hat:
        """Coefficients, residuals and leverages at ``lam``."""
        c, s = self.problem.ridge(lam), self.problem.s
        damped = 1.0 / (self.values + c)
        scaled = np.asfortranarray(damped[:, None] * self.projected)
        coef = self.root[:, None] * linalg.matmul(self.vectors, scaled)
        slack = c * linalg.matmul(self.squares, damped)
        return Hat(coef, c * coef / s[:, None], slack, float(c * damped.sum()))

    def leave_one_out(self, lam: float) -> Array:
        """(y_i - u_i) / (1 - H_ii) = a_i / P_ii, without the cancellation of the first form."""
        damped = 1.0 / (self.values + self.problem.ridge(lam))
        hat = self.at(lam)
        pivots = self.problem.s * linalg.matmul(self.squares, damped)
        return np.asarray(hat.coef / pivots[:, None])

    def power_diagonal(self, lam: float, power: int) -> Array:
        """The diagonal of H^power, power >= 1."""
        h = self.values / (self.values + self.problem.ridge(lam))
        diagonal = linalg.matmul(self.squares, h**power)
        if self.problem.fit_intercept:
            diagonal = diagonal + self.problem.s / self.problem.s.sum()
        return np.asarray(diagonal)

    def power_residual(self, lam: float, power: int) -> Array:
        """H^power (y - u), power >= 1."""
        c = self.problem.ridge(lam)
        h = self.values / (self.values + c)
        scale = h**power * (c / (self.values + c))
        scaled = np.asfortranarray(scale[:, None] * self.projected)
        return np.asarray(linalg.matmul(self.vectors, scaled) / self.root[:, None])


def _without(M: Array, v: Array) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of M projected on the complement of the unit vector v.

    v is moved out of the way, to an eigenvalue above all others, and dropped.
    """
    Mv = linalg.matmul(M, v)
    above = 2.0 * float(np.trace(M)) + float(np.finfo(M.dtype).tiny)
    M -= np.outer(v, Mv)
    M -= np.outer(Mv, v)
    M += (float(v @ Mv) + above) * np.outer(v, v)
    values, vectors = linalg.eigh(M, overwrite=True)
    return values[:-1], vectors[:, :-1]
