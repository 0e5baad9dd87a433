"""The hat matrix of least squares at every lambda, from one eigendecomposition.

With R = diag(sqrt(s)), v = R 1 / |R 1| and Z a basis of what is orthogonal to v, the intercept only
forces the scaled coefficients x = R^-1 a to be orthogonal to v. Hence the projected inverse of the
package (see onefit.heldout.squared) is

    P = R Z (Z'R K R Z + c I)^-1 Z'R = R Q diag(1 / (e + c)) Q'R,

Q diag(e) Q' the eigendecomposition of R K R after projection on v's complement, without v itself;
no intercept, no projection. One decomposition serves every c, intercept or not, and

    a = P y,      y - u = (c / s) a,      1 - H_ii = (c / s_i) P_ii,      H = I - c diag(1/s) P,

so that powers of H, and their diagonals, are powers of h = e / (e + c): n^2 each. Q is where K is,
on a device too; what has a number per row is NumPy's.
"""

from __future__ import annotations

import numpy as np

from onefit._types import Array
from onefit.features.leave_one import HatResiduals
from onefit.features.maps import product
from onefit.heldout.scaled import scaled_matrix
from onefit.inverse.spectrum import Spectrum
from onefit.problem import Problem

__all__ = ["HatSpectrum"]


class HatSpectrum:
    """Quantities shared by the hat matrices of one problem.

    Parameters
    ----------
    problem : Problem
        With the squared loss, and positive weights.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.root = np.sqrt(problem.s)
        M = scaled_matrix(problem.K, self.root)
        targets = np.asfortranarray(self.root[:, None] * problem.Y)
        self.spectrum = Spectrum(M, self.root, targets, problem.fit_intercept, whole=True)

    def at(self, lam: float) -> HatResiduals:
        """Residuals and leverages at ``lam``."""
        c, s = self.problem.ridge(lam), self.problem.s
        shifts = self.spectrum.at(np.array([c]))
        alpha, _ = shifts.solved(np.arange(self.problem.n))
        residual = c * self.root[:, None] * alpha[0] / s[:, None]
        return HatResiduals(residual, c * self.spectrum.square_sums(shifts.damped.T)[:, 0])

    def leave_one_out(self, lam: float) -> Array:
        """(y_i - u_i) / (1 - H_ii) = a_i / P_ii, without the cancellation of the first form."""
        shifts = self.spectrum.at(np.array([self.problem.ridge(lam)]))
        return np.asarray(shifts.leave_one_out(np.arange(self.problem.n))[0] / self.root[:, None])

    def generalized(self, lam: float) -> Array:
        """(y_i - u_i) over the mean of 1 - H_ii."""
        hat = self.at(lam)
        return np.asarray(hat.residual / hat.slack.mean())

    def left_out(self, lam: float) -> Array:
        """y_i - u_i^(-i), exactly: as `leave_one_out`, with the penalty of the rows that remain.

        Under mean scaling c_i = lam (sum(s) - s_i), one c where the weights are equal.
        """
        ridges, group = np.unique(self.problem.ridges_without_each(lam), return_inverse=True)
        residuals = np.empty_like(self.problem.Y)
        for i, c in enumerate(ridges):
            rows = np.flatnonzero(group == i)
            found = self.spectrum.at(np.array([c])).leave_one_out(rows)[0]
            residuals[rows] = found / self.root[rows][:, None]
        return residuals

    def power_diagonal(self, lam: float, power: int) -> Array:
        """The diagonal of H^power, power >= 1."""
        values = self.spectrum.values
        h = values / (values + self.problem.ridge(lam))
        diagonal = self.spectrum.square_sums((h**power)[:, None])[:, 0]
        if self.problem.fit_intercept:
            diagonal = diagonal + self.problem.s / self.problem.s.sum()
        return np.asarray(diagonal)

    def power_residual(self, lam: float, power: int) -> Array:
        """H^power (y - u), power >= 1."""
        c, values = self.problem.ridge(lam), self.spectrum.values
        scale = (values / (values + c)) ** power * (c / (values + c))
        scaled = np.asfortranarray(scale[:, None] * self.spectrum.projected)
        return np.asarray(product(self.spectrum.vectors, scaled) / self.root[:, None])
