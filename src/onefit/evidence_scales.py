r"""A scale for every column, from the evidence of a Gaussian process: a supervised transformer.

**The evidence.** Take the target for a Gaussian process with the covariance s^2 (k + v I), where
k_ii' = (1 + r) exp(-r) is a Matern kernel of r^2 = 3 sum_j t_j (x_ij - x_i'j)^2, the distance of
scaled columns. With C = k + v I of n rows and the best s^2 = y'C^-1 y / n, minus the logarithm of
its density is

    E(t, v) = n/2 log(y'C^-1 y) + 1/2 log det C + constant.

Unlike a cross-validated score, it charges for flexibility: the determinant grows with the scales.
With d scales and few rows it still overfits, so a normal prior shrinks the scales to a
common one,

    E(t, v) + PRIOR / 2 sum_j (log t_j - mean log t)^2.

The descent begins at the common scale (and the noise v) with the largest evidence. Where no common
scale explains the target, because most columns say nothing about it, that start is pure noise, and
the evidence is flat around it; a second descent begins at a scale at which the rows are neighbours,
with little noise. The one that ends with the larger evidence counts.

**Its gradient.** With a = C^-1 y, W = n a a' / y'a - C^-1 and dk/d(r^2) = -exp(-r) / 2,

    dE/dlog v = -v/2 tr W,    dE/dlog t_j = 3/4 t_j sum_ii' W_ii' exp(-r_ii') (x_ij - x_i'j)^2,

and with V = W * exp(-r) (element by element) the sums of all columns are two products,

    sum_ii' V_ii' (x_ij - x_i'j)^2 = 2 (sum_i (V 1)_i x_ij^2 - x_j'V x_j).

E of several columns of targets is the sum of theirs. Nothing but the rows and targets of the fit
enters, so that held-out values of a pipeline are honest: a search fits the transformer in every
training part. The scales are those of at most ``max_rows`` of its rows, drawn at random.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from onefit._indexing import draw_rows
from onefit._types import Array
from onefit._validation import check_positive
from onefit.gradient_metric import standard_columns

__all__ = ["EvidenceScales"]

#: inverse variance of the logarithm of a scale
PRIOR = 0.5
#: start of the descent of the common scale: in units of the inverse mean squared distance
#: of the rows, and noise in units of the variance of the process
COMMON_SCALES, NOISES = (0.05, 0.3, 2.0), (0.003, 0.1)
#: the second start, in the same units
SECOND_START = (0.3, 0.003)
#: how far the logarithm of a scale may go below and above the common one; bounds of log v
LOG_RANGE, LOG_NOISE = (-12.0, 6.0), (-14.0, 3.0)
MAX_EVIDENCE_STEPS = 60
#: the value where the matrix is not positive definite
REJECTED = 1e10


class EvidenceScales(TransformerMixin, BaseEstimator):
    """Scale the columns by the evidence of a Gaussian process with a Matern kernel.

    Transformed rows are for a kernel "matern32" with a gamma near 1.

    Parameters
    ----------
    max_rows : int, default=500
        Rows that the scales are learned from; of more rows, a random sample.
    random_state : int, default=0
        For the sample.

    Attributes
    ----------
    scales_ : array of shape (d,)
        Columns are multiplied by these.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> from onefit.evidence_scales import EvidenceScales
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> found = EvidenceScales().fit(X, np.sin(2 * X[:, 0]) + 0.1 * X[:, 1])
    >>> bool(found.scales_[0] > 3 * found.scales_[1] > 3 * found.scales_[2])
    True
    """

    def __init__(self, max_rows: int = 500, random_state: int = 0) -> None:
        self.max_rows = max_rows
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any) -> EvidenceScales:
        """Learn the scales.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,) or (n, q)
            Numbers of a regression, or labels.

        Returns
        -------
        self
        """
        X, y = validate_data(
            self, X, y, dtype=np.float64, ensure_min_samples=2, multi_output=True, y_numeric=False
        )
        check_positive("max_rows", self.max_rows, "the rows that the scales are learned from")
        Y = standard_columns(y)
        rows = draw_rows(None, len(X), int(self.max_rows), self.random_state)
        X, Y = X[rows], Y[rows][:, np.ptp(Y[rows], axis=0) > 0.0]
        X = X - X.mean(axis=0)  # the gradient subtracts squares of columns
        d, squares = X.shape[1], 2.0 * X.var(axis=0).sum()
        if not squares > 0.0 or not Y.size:
            self.scales_ = np.ones(d)
            return self

        def common(p: Array) -> tuple[float, Array]:
            value, slope = negative_evidence(np.r_[np.full(d, p[0]), p[1]], X, Y)
            return value, np.array([slope[:-1].sum(), slope[-1]])

        starts = [np.log([t / squares, v]) for t in COMMON_SCALES for v in NOISES]
        start = min(starts, key=lambda p: common(p)[0])
        best = minimize(
            common, start, jac=True, method="L-BFGS-B", bounds=[(None, None), LOG_NOISE]
        ).x
        second = np.log([SECOND_START[0] / squares, SECOND_START[1]])
        found = min((_descend(one, X, Y) for one in (best, second)), key=lambda one: one.fun)
        self.scales_ = np.exp(0.5 * found.x[:-1])
        return self

    def transform(self, X: Any) -> Array:
        """The rows times ``scales_``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X * self.scales_)


def _descend(start: Array, X: Array, Y: Array) -> Any:
    """The largest evidence, by steps from a common scale and a noise, in logarithms."""
    low, high = start[0] + np.array(LOG_RANGE)
    return minimize(
        negative_evidence, np.r_[np.full(X.shape[1], start[0]), start[1]], args=(X, Y), jac=True,
        method="L-BFGS-B", bounds=[(low, high)] * X.shape[1] + [LOG_NOISE],
        options={"maxiter": MAX_EVIDENCE_STEPS},
    )  # fmt: skip


def negative_evidence(p: Array, X: Array, Y: Array) -> tuple[float, Array]:
    """E with its prior and the gradient, at p = (log t, log v)."""
    t, v = np.exp(p[:-1]), np.exp(p[-1])
    r, (n, q) = squareform(pdist(X * np.sqrt(3.0 * t))), Y.shape
    decay = np.exp(-r)
    try:
        factor = cho_factor((1.0 + r) * decay + v * np.eye(n), lower=True, check_finite=False)
    except LinAlgError:
        return REJECTED, np.zeros_like(p)
    inverse = cho_solve(factor, np.eye(n), check_finite=False)
    value, W = q * float(np.log(np.diagonal(factor[0])).sum()), -q * inverse
    for y in Y.T:
        a = inverse @ y
        value += 0.5 * n * float(np.log(y @ a))
        W += n * np.outer(a, a) / (y @ a)
    V, apart = W * decay, p[:-1] - p[:-1].mean()
    sums = V.sum(axis=1) @ X**2 - np.einsum("ij,ij->j", X, V @ X)
    slope = np.r_[1.5 * t * sums + PRIOR * apart, -0.5 * v * np.trace(W)]
    return value + 0.5 * PRIOR * float(apart @ apart), slope
