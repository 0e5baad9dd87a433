"""Kernel stability and the criterion k-KS: Liu and Liao, ECML PKDD 2014.

K^i is the kernel matrix with row and column i set to zero. K - K^i has rank two, and its
characteristic polynomial t^(n-2) (t^2 - K_ii t - sum_{j != i} K_ij^2) gives (Theorem 4)

    ||K - K^i||_2 = (K_ii + sqrt(K_ii^2 + 4 sum_{j != i} K_ij^2)) / 2,

so that all n norms cost n^2. Their maximum bounds the variance of cross-validation (Theorems 1 to
3, onefit.criteria.variance), and the criterion restrains it (section 5):

    k-KS = CV + (eta / n) max_i ||K - K^i||_2,      eta = 1 in the paper, 1/4 to 32 being good.

The second term does not depend on lambda: k-KS compares *kernels*, and at one kernel picks the
lambda that CV picks. It is not invariant under a rescaling of K or y, so candidates should be
comparable there, as Gaussian kernels of several bandwidths are. Sample weights enter CV alone.
Cost: CV + n^2. When to use: small samples and many kernels, where CV over-fits.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from onefit.criteria.base import Criterion
from onefit.criteria.crossval import cross_validation, held_out_loss, of_heldouts
from onefit.criteria.pointwise import Pointwise
from onefit.folds import Folds
from onefit.heldout import HeldOutMethod
from onefit.problem import Problem

if TYPE_CHECKING:
    from onefit.criteria.evidence import Evidence

Array = NDArray[Any]

__all__ = ["KernelStability", "k_ks", "kernel_stability"]


def kernel_stability(K: Any) -> float:
    """max_i ||K - K^i||_2 in O(n^2), by the closed form.

    Parameters
    ----------
    K : (n, n) array
        A kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit.criteria import kernel_stability
    >>> kernel_stability(np.eye(4))
    1.0
    """
    K = np.asarray(K)
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square kernel matrix, got an array of shape {K.shape}")
    diagonal = np.einsum("ii->i", K)
    rest = np.maximum(np.einsum("ij,ij->i", K, K) - diagonal**2, 0.0)
    return float((0.5 * (diagonal + np.sqrt(diagonal**2 + 4.0 * rest))).max())


def k_ks(
    problem: Problem,
    lam: float,
    folds: Folds,
    eta: float = 1.0,
    loss: str | Pointwise | None = None,
    method: HeldOutMethod | None = None,
) -> float:
    """CV + (eta / n) kernel_stability(K).

    Parameters
    ----------
    problem : Problem
    lam : float
    folds : Folds
    eta : float, default=1.0
        Not negative; 0 is cross-validation.
    loss, method
        Of the cross-validation, see :func:`onefit.criteria.cross_validation`.
    """
    check_eta(eta)
    return cross_validation(problem, lam, folds, loss, method) + restraint(problem.K, eta)


def restraint(K: Array, eta: float) -> float:
    """(eta / n) kernel_stability(K)."""
    return float(eta / K.shape[0] * kernel_stability(K))


def check_eta(eta: Any) -> None:
    """Refuse what is no weight of the second term."""
    ok = isinstance(eta, numbers.Real) and not isinstance(eta, bool)
    if not ok or not np.isfinite(eta) or eta < 0:
        raise ValueError(
            f"eta must be a finite number that is not negative, got {eta!r}; "
            "1/4 to 32 is the paper's range, 1 its choice, 0 plain cross-validation"
        )


@dataclass(frozen=True)
class KernelStability(Criterion):
    """k-KS, on the splits and by the held-out method of the search.

    Parameters
    ----------
    eta : float, default=1.0
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
        What cross-validation judges by; None is the machine's own loss.
    """

    eta: float = 1.0
    loss: str | Pointwise | None = None
    name = "kernel_stability"

    def __post_init__(self) -> None:
        check_eta(self.eta)

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        problem, second = evidence.problem, restraint(evidence.problem.K, self.eta)
        return of_heldouts(evidence, lambda held: held_out_loss(held, problem, self.loss) + second)
