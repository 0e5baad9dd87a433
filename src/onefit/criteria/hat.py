"""Leave-one-out from the hat matrix: JMLR 2008, equation 22.

With u = H y (JMLR equation 7), replacing y_i by its own leave-one-out prediction does not change
that prediction *if the penalty stays what it was*, and then (JMLR equations 19 to 21)

    y_i - u_i^(-i) = (y_i - u_i) / (1 - H_ii),     CV = (1/n) sum_i ell((y_i - u_i) / (1 - H_ii)).

That is leave-one-out exactly under total scaling. Under mean scaling the penalty of n - 1 rows is
smaller than that of n, and the formula is an approximation, off by terms of order 1/n.
Assumes the squared loss. Cost: one eigendecomposition, then n^2 a lambda. When to use: to
follow the paper, or for its speed instead of "loo", which costs the same here and is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.base import check_loss, weighted_mean
from onefit.criteria.by_row import ByRow
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.criteria.solutions import positive
from onefit.criteria.spectrum import HatSpectrum, hat_spectrum
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

Array = NDArray[Any]

__all__ = ["CvHat", "cv_hat"]


def cv_hat(
    problem: Problem,
    lam: float,
    loss: str | Pointwise = "squared",
    spectrum: HatSpectrum | None = None,
) -> float:
    """Mean loss of the residuals over 1 - H_ii.

    Parameters
    ----------
    problem : Problem
        With the squared loss.
    lam : float
    loss : str or callable, default="squared"
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    spectrum : HatSpectrum, default=None
        Of the rows of positive weight, to share it between lambdas.
    """
    return CvHat(loss=loss).at(problem, lam, spectrum)


@dataclass(frozen=True)
class CvHat(ByRow):
    """Residuals over 1 - H_ii.

    Parameters
    ----------
    loss : str or callable, default="squared"
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    """

    loss: str | Pointwise = "squared"
    name = "cv_hat"
    losses = ("squared",)

    def residuals(self, spectrum: HatSpectrum, lam: float) -> Array:
        """y_i - u_i^(-i), as the criterion has it."""
        return spectrum.leave_one_out(lam)

    def at(self, problem: Problem, lam: float, spectrum: HatSpectrum | None = None) -> float:
        """The criterion at one lambda."""
        check_loss(problem, self.name, self.losses)
        shared = spectrum or hat_spectrum(positive(problem))
        kept = shared.problem
        u = self.predictions(shared, lam)
        return weighted_mean(self.measure(kept)(kept.Y, u), kept.s)

    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        return np.asarray(spectrum.problem.Y - self.residuals(spectrum, lam))

    def measure(self, problem: Problem) -> Pointwise:
        return pointwise(self.loss, problem)

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        spectrum = evidence.spectrum
        return lambda i: self.at(evidence.problem, evidence.lams[i], spectrum)
