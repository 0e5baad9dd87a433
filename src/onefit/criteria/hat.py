"""Leave-one-out from the hat matrix: JMLR 2008, equation 22.

With u = H y (JMLR equation 7), replacing y_i by its own leave-one-out prediction does not change
that prediction *if the penalty stays what it was*, and then (JMLR equations 19 to 21)

    y_i - u_i^(-i) = (y_i - u_i) / (1 - H_ii),     CV = (1/n) sum_i ell((y_i - u_i) / (1 - H_ii)).

That is leave-one-out exactly under total scaling. Under mean scaling the penalty of n - 1 rows is
smaller than that of n, and the formula is an approximation, off by terms of order 1/n.
Assumes the squared loss. Cost: one eigendecomposition, then n^2 per lambda. When to use: to
follow the paper; "loo" costs the same here and is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit._types import Array
from onefit.criteria.base import ByRow
from onefit.criteria.pointwise import Pointwise
from onefit.criteria.spectrum import HatSpectrum

__all__ = ["CvHat"]


@dataclass(frozen=True, kw_only=True)
class CvHat(ByRow):
    """Mean loss of the residuals over 1 - H_ii.

    Parameters
    ----------
    loss : str or callable, default="squared"
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    """

    loss: str | Pointwise | None = "squared"
    name = "cv_hat"
    losses = ("squared",)

    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        return np.asarray(spectrum.problem.Y - spectrum.leave_one_out(lam))
