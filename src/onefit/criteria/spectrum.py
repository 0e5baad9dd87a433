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
        self.entry = float(np.abs(np.einsum("ii->i", M)).max())
        if problem.fit_intercept:
            values, vectors, self.largest = _without(M, self.root / np.linalg.norm(self.root))
        else:
            values, vectors = linalg.eigh(M, overwrite=True)
            self.largest = float(values[-1])
        self.negative = max(0.0, -float(values[0]))
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

    def left_out(self, lam: float) -> Array:
        """y_i - u_i^(-i), exactly: as `leave_one_out`, with the penalty of the rows that remain.

        Under mean scaling c_i = lam (sum(s) - s_i), one c where the weights are equal.
        """
        s = self.problem.s
        total = self.problem.scaling == "total"
        ridges, group = np.unique(
            np.full(s.size, lam) if total else lam * (s.sum() - s), return_inverse=True
        )
        residuals = np.empty_like(self.problem.Y)
        for i, c in enumerate(ridges):
            rows = np.flatnonzero(group == i) if ridges.size > 1 else slice(None)
            damped = 1.0 / (self.values + c)
            scaled = np.asfortranarray(damped[:, None] * self.projected)
            pivots = self.root[rows] * linalg.matmul(self.squares[rows], damped)
            residuals[rows] = linalg.matmul(self.vectors[rows], scaled) / pivots[:, None]
        return residuals

    def rounding(self, lam: float) -> float:
        """What rounding may change of `left_out`, relative to targets and predictions."""
        c = self.problem.ridge(lam) * (1.0 - float(self.problem.s.max() / self.problem.s.sum()))
        if c <= self.negative:
            return np.inf
        epsilon = float(np.finfo(self.problem.Y.dtype).eps)
        size = self.largest + 4.0 * np.sqrt(self.problem.n) * self.entry + c
        changed = 8.0 * epsilon * size + 4.0 * self.negative
        uneven = float(self.root.max() / self.root.min())
        return float(uneven * (changed / (c - self.negative) + epsilon * (64.0 + self.problem.n)))

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


def _without(M: Array, v: Array) -> tuple[Array, Array, float]:
    """Eigenvalues and eigenvectors of M projected on the complement of the unit vector v.

    v is moved out of the way, to an eigenvalue above all others, and dropped. Rounding is relative
    to that eigenvalue, which is returned, so it is little larger than it must be: half as much
    again as the trace, or the largest row sum, of what is left of M.
    """
    Mv = linalg.matmul(M, v)
    M -= np.outer(v, Mv - float(v @ Mv) * v)
    M -= np.outer(Mv, v)
    bound = min(float(np.trace(M)), float(np.abs(M).sum(axis=1).max()))
    above = 1.5 * max(bound, float(np.finfo(M.dtype).tiny))
    M += above * np.outer(v, v)
    values, vectors = linalg.eigh(M, overwrite=True)
    return values[:-1], vectors[:, :-1], above
