"""Leave-one-out with a prior on the kernel's parameters: Cawley and Talbot, JMLR 8, 2007.

The leave-one-out sum of squares is treated as a likelihood, and the kernel's parameters eta get a
Gaussian prior, so that a criterion with many of them does not over-fit. With

    Q = (1/2) sum_i (y_i - u_i^(-i))^2,        Omega = (1/2) sum_j eta_j^2,        d parameters,

integrating out both scales (improper priors) leaves, up to a constant,

    L = (n/2) log Q + (d/2) log Omega.

eta are the coefficients of the squared differences in a Gaussian kernel exp(-sum_j eta_j (x_j -
x'_j)^2): gamma alone for the isotropic one (d = 1). lam is not regularised, as in the paper.
Assumes the squared loss; several targets add up, each with a noise level of its own. The criterion
depends on the scale of X, as a prior must. Cost: that of leave-one-out. When to use: LS-SVM with
many bandwidths; a baseline of ECML 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from onefit._types import Array
from onefit.criteria.base import Criterion
from onefit.criteria.evidence import Evidence
from onefit.kernels import Kernel

__all__ = ["BayesLoo"]


@dataclass(frozen=True)
class BayesLoo(Criterion):
    """Leave-one-out with a prior on gamma, (n/2) log Q + (d/2) log Omega."""

    name = "bayes_loo"
    losses = ("squared",)

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        prior, spectrum = _prior(evidence.kernel), evidence.spectrum
        s, n = spectrum.problem.s, spectrum.problem.n

        def value_at(i: int) -> float:
            squares = 0.5 * s @ spectrum.left_out(evidence.lams[i]) ** 2
            fit = 0.5 * n * np.log(np.maximum(squares, np.finfo(np.float64).tiny)).sum()
            return float(fit + prior)

        return value_at


def _prior(kernel: Kernel | None) -> float:
    """(d/2) log Omega."""
    gamma = getattr(kernel, "gamma", None)
    if gamma is None:
        raise ValueError(
            f"criterion 'bayes_loo' puts a prior on gamma, which {kernel!r} does not have; "
            "use kernel='rbf', or criterion='loo'"
        )
    eta: Array = np.atleast_1d(np.asarray(gamma, dtype=float))
    return float(0.5 * eta.size * np.log(0.5 * float(eta @ eta)))
