"""Generalized cross-validation (Wahba 1990; JMLR 2008, section 5.3).

Equation 22 with every H_ii replaced by their mean,

    GCV = (1/n) sum_i ell((y_i - u_i) / (1 - trace(H) / n)),

for the squared ell the familiar (1/n) |y - u|^2 / (1 - trace(H)/n)^2. Invariant under rotations of
the sample, and less sensitive to single points of high leverage than leave-one-out; it can favour
too little smoothing in small samples, where trace(H)/n may come near 1 at once for all rows.
Assumes the squared loss. Cost: one eigendecomposition, then n^2 per lambda. When to use: a smooth
curve over lambda is wanted and the leverages do not differ much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit._types import Array
from onefit.criteria.base import ByRow
from onefit.criteria.pointwise import Pointwise
from onefit.criteria.spectrum import HatSpectrum

__all__ = ["Gcv"]


@dataclass(frozen=True, kw_only=True)
class Gcv(ByRow):
    """Mean loss of the residuals over 1 - trace(H) / n.

    Parameters
    ----------
    loss : str or callable, default="squared"
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
    """

    loss: str | Pointwise | None = "squared"
    name = "gcv"
    losses = ("squared",)

    def predictions(self, spectrum: HatSpectrum, lam: float) -> Array:
        return np.asarray(spectrum.problem.Y - spectrum.generalized(lam))
