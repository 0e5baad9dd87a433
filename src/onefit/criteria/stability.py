"""Kernel stability and the criterion k-KS: Liu and Liao, ECML PKDD 2014.

K^i is the kernel matrix with row and column i set to zero. K - K^i has rank two, and its
characteristic polynomial t^(n-2) (t^2 - K_ii t - sum_{j != i} K_ij^2) gives (Theorem 4)

    ||K - K^i||_2 = (K_ii + sqrt(K_ii^2 + 4 sum_{j != i} K_ij^2)) / 2,

so that all n norms cost n^2. Their maximum bounds the variance of cross-validation (Theorems 1 to
3), and the criterion restrains it (section 5):

    k-KS = CV + (eta / n) max_i ||K - K^i||_2,      eta = 1 in the paper, 1/4 to 32 being good.

The second term does not depend on lambda: k-KS compares *kernels*, and at one kernel picks the
lambda that CV picks. It is not invariant under a rescaling of K or y, so candidates should be
comparable there, as Gaussian kernels of several bandwidths are. Sample weights enter CV alone; rows
of weight zero are not part of K. Cost: CV + n^2. When to use: small samples and many kernels, where
CV over-fits.

**Derivatives.** The norm t_i is a root of t^2 - K_ii t - sum_{j != i} K_ij^2, so that
(2 t_i - K_ii) dt_i = t_i dK_ii + 2 sum_{j != i} K_ij dK_ij: of rank one in dK. Their maximum has a
kink wherever two rows attain it, and a descent would zigzag there. It is therefore followed with
(sum_i t_i^r)^(1/r) in its place, which is smooth and at most n^(1/r) times as large.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.criteria.crossval import CrossValidation
from onefit.criteria.evidence import Evidence
from onefit.gram import Gram, as_gram

__all__ = ["KernelStability", "kernel_stability", "smoothed_stability"]

#: r of the smoothed maximum, which is at most n^(1/64) times the maximum: 1.2 for n = 10^5
SMOOTH_MAX_POWER = 64
#: share of the sum of powers below which a row is left out of the derivative
MIN_ROW_SHARE = 1e-12


def kernel_stability(K: Any) -> float:
    """max_i ||K - K^i||_2 in O(n^2), by the closed form.

    Parameters
    ----------
    K : (n, n) array, or a kernel matrix on a device

    Examples
    --------
    >>> import numpy as np
    >>> from onefit.criteria import kernel_stability
    >>> kernel_stability(np.eye(4))
    1.0
    """
    K = as_gram(K)
    if len(K.shape) != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K must be a square kernel matrix, got an array of shape {K.shape}")
    return float(_norms(K).max())


def _norms(K: Gram) -> Array:
    """||K - K^i||_2 for every i."""
    diagonal = K.diagonal
    rest = np.maximum(K.row_sums(squared=True) - diagonal**2, 0.0)
    return np.asarray(0.5 * (diagonal + np.sqrt(diagonal**2 + 4.0 * rest)))


def smoothed_stability(K: Any) -> tuple[float, Array, Array]:
    """(sum_i ||K - K^i||_2^r)^(1/r) with its derivative sum_k left_k' dK right_k.

    Parameters
    ----------
    K : (n, n) array, or a kernel matrix on a device

    Returns
    -------
    value : float
    left, right : (n, m) arrays
        One column for every row of the derivative.
    """
    K = as_gram(K)
    norms, n = _norms(K), K.shape[0]
    largest = float(norms.max())
    if largest == 0.0:
        return 0.0, np.zeros((n, 1)), np.zeros((n, 1))
    parts = (norms / largest) ** SMOOTH_MAX_POWER
    value = largest * float(parts.sum()) ** (1.0 / SMOOTH_MAX_POWER)
    rows = np.flatnonzero(parts > MIN_ROW_SHARE)
    # d value / d norm_i = (norm_i / value)^(r - 1)
    slopes = 2.0 * norms[rows] - K.diagonal[rows]
    shares = (norms[rows] / value) ** (SMOOTH_MAX_POWER - 1) / slopes
    columns = K.arrays.host(K.columns(rows))
    left, right = np.zeros((n, rows.size)), 2.0 * columns
    left[rows, np.arange(rows.size)] = shares
    right[rows, np.arange(rows.size)] = norms[rows]
    return value, left, right


@dataclass(frozen=True)
class KernelStability(CrossValidation):
    """k-KS: cross-validation plus (eta / n) times the kernel stability.

    Parameters
    ----------
    eta : float, default=1.0
        Not negative; 0 is cross-validation.
    loss : str, callable or None, default=None
        "squared", "absolute", "zero_one", "negative_margin" or "hinge".
        The loss of a row in cross-validation; None is the model's own loss.
    """

    eta: float = 1.0
    name = "kernel_stability"
    features = ""

    def __post_init__(self) -> None:
        eta: Any = self.eta
        ok = isinstance(eta, numbers.Real) and not isinstance(eta, bool)
        if not ok or not np.isfinite(eta) or eta < 0:
            raise ValueError(
                f"eta must be a finite number that is not negative, got {eta!r}; "
                "1/4 to 32 is the paper's range, 1 its choice, 0 plain cross-validation"
            )

    def prepare(self, evidence: Evidence) -> Callable[[int], float]:
        K, error_at = evidence.positive.K, super().prepare(evidence)
        second = float(self.eta / K.shape[0] * kernel_stability(K))
        return lambda i: error_at(i) + second
