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
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.base import Criterion, check_loss
from onefit.criteria.solutions import positive
from onefit.criteria.spectrum import HatSpectrum
from onefit.kernels import Kernel
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

Array = NDArray[Any]

__all__ = ["BayesLoo", "bayes_loo"]


def bayes_loo(problem: Problem, lam: float, parameters: Any) -> float:
    """(n/2) log Q + (d/2) log Omega.

    Parameters
    ----------
    problem : Problem
        With the squared loss.
    lam : float
    parameters : float or array of shape (d,)
        The kernel's eta; gamma of an isotropic Gaussian kernel.
    """
    check_loss(problem, "bayes_loo", ("squared",))
    eta = np.atleast_1d(np.asarray(parameters, float))
    return _value(HatSpectrum(positive(problem)), lam, _prior(eta))


def _prior(eta: Array) -> float:
    """(d/2) log Omega."""
    if eta.ndim != 1 or not np.isfinite(eta).all() or not eta.any():
        raise ValueError(
            f"parameters must be finite numbers, not all zero, got {eta!r}; "
            "give gamma, or one number a feature"
        )
    return float(0.5 * eta.size * np.log(0.5 * float(eta @ eta)))


def _value(spectrum: HatSpectrum, lam: float, prior: float) -> float:
    kept = spectrum.problem
    squares = 0.5 * kept.s @ spectrum.left_out(lam) ** 2
    fit = 0.5 * kept.n * np.log(np.maximum(squares, np.finfo(np.float64).tiny)).sum()
    return float(fit + prior)


@dataclass(frozen=True)
class BayesLoo(Criterion):
    """Leave-one-out with a prior on gamma; for kernels that have one."""

    name = "bayes_loo"
    losses = ("squared",)

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        prior, spectrum = _prior(kernel_eta(evidence.kernel)), evidence.spectrum
        return lambda i: _value(spectrum, evidence.lams[i], prior)


def kernel_eta(kernel: Kernel) -> Array:
    """The parameters of a kernel that the prior is about."""
    gamma = getattr(kernel, "gamma", None)
    if gamma is None:
        raise ValueError(
            f"criterion 'bayes_loo' puts a prior on gamma, which {kernel!r} does not have; "
            "use kernel='rbf', or criterion='loo'"
        )
    return np.atleast_1d(np.asarray(gamma, dtype=float))
