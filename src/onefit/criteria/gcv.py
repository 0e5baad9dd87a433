"""Generalized cross-validation (Wahba 1990; JMLR 2008, section 5.3).

Equation 22 with every H_ii replaced by their mean,

    GCV = (1/n) sum_i ell((y_i - u_i) / (1 - trace(H) / n)),

for the squared ell the familiar (1/n) |y - u|^2 / (1 - trace(H)/n)^2. Invariant under rotations of
the sample, and less sensitive to single points of high leverage than leave-one-out; it can favour
too little smoothing in small samples, where trace(H)/n may come near 1 at once for all rows.
Assumes the squared loss. Cost: one eigendecomposition, then n^2 a lambda. When to use: a smooth
curve over lambda is wanted and the leverages do not differ much.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onefit.criteria.base import Criterion, check_loss, positive, weighted_mean
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.criteria.spectrum import HatSpectrum
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.search.criterion import Evidence

__all__ = ["Gcv", "gcv"]


def gcv(
    problem: Problem,
    lam: float,
    loss: str | Pointwise = "squared",
    spectrum: HatSpectrum | None = None,
) -> float:
    """Mean loss of the residuals over 1 - trace(H) / n.

    Parameters
    ----------
    problem : Problem
        With the squared loss.
    lam : float
    loss : {"squared", "absolute", "zero_one", "hinge"} or callable, default="squared"
    spectrum : HatSpectrum, default=None
        Of the rows of positive weight, to share it between lambdas.
    """
    check_loss(problem, "gcv", ("squared",))
    shared = spectrum or HatSpectrum(positive(problem))
    kept, hat = shared.problem, shared.at(lam)
    values = pointwise(loss, kept)(kept.Y, kept.Y - hat.residual * (kept.n / hat.trace))
    return weighted_mean(values, kept.s)


@dataclass(frozen=True)
class Gcv(Criterion):
    """Residuals over 1 - trace(H) / n.

    Parameters
    ----------
    loss : {"squared", "absolute", "zero_one", "hinge"} or callable, default="squared"
    """

    loss: str | Pointwise = "squared"
    name = "gcv"
    losses = ("squared",)

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        spectrum = HatSpectrum(positive(evidence.problem))
        return lambda i: gcv(evidence.problem, evidence.lams[i], self.loss, spectrum)
