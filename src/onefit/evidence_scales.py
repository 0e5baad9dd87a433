r"""A scale for every column, from the evidence of a Gaussian process: a supervised transformer.

**The evidence.** Take the target for a Gaussian process with the covariance s^2 (k + v I), where k
is a Matern kernel of the distance of scaled columns,

    k = exp(-r),            r^2 = sum_j t_j (x_j - x'_j)^2       ("matern12"),
    k = (1 + r) exp(-r),    r^2 = 3 sum_j t_j (x_j - x'_j)^2     ("matern32").

With C = k + v I of n rows and the best s^2 = y'C^-1 y / n, minus the logarithm of its density is

    E(t, v) = n/2 log(y'C^-1 y) + 1/2 log det C + constant.

Unlike a cross-validated score, it charges for flexibility: the determinant grows with the scales.
With d scales and few rows it still overfits, so a normal prior shrinks the scales to a
common one,

    E(t, v) + PRIOR / 2 sum_j (log t_j - mean log t)^2.

The descent begins at the common scale (and the noise v) with the largest evidence. Where no common
scale explains the target, because most columns say nothing about it, that start is pure noise, and
the evidence is flat around it; a second descent begins at a scale at which the rows are neighbours,
with little noise. The one that ends with the larger evidence counts. Both
use few rows; a descent with more rows continues from there.

**Many rows.** The evidence of n rows costs n^3 operations, and that of a sample of them does not
show how the target changes between rows that are close together, of which a sample has few. If the
rows are cut into blocks, and the blocks are taken for independent,

    E(t, v) = n/2 log(sum_b y_b'C_b^-1 y_b) + 1/2 sum_b log det C_b,

a composite likelihood that costs n m^2 with blocks of m rows. The blocks are boxes of neighbours
(halves along the column that is widest after scaling) and one block of rows drawn at random, the
only one with large distances. So the scales are first those of the random block, then all blocks
are used, cut by the scales found so far, and once more with the scales that follow.

**The gradient.** With a = C^-1 y, N rows in all, q = sum_b y_b'C_b^-1 y_b, W = N a a' / q - C^-1 of
a block, and S = -2 dk/d(r^2), which is exp(-r) / r or exp(-r),

    dE/dlog v = -v/2 tr W,    dE/dlog t_j = c/4 t_j sum_ii' W_ii' S_ii' (x_ij - x_i'j)^2,

summed over the blocks, with c = 1 or 3; and with V = W * S (element by element) the sums of all
columns are two products,

    sum_ii' V_ii' (x_ij - x_i'j)^2 = 2 (sum_i (V 1)_i x_ij^2 - x_j'V x_j).

E of several columns of targets is the sum of theirs. Nothing but the rows and targets of the fit
enters, so that held-out values of a pipeline are honest: a search fits the transformer in every
training part. The scales are those of at most ``max_rows`` of its rows, drawn at random, divided
by the root mean squared distance of scaled rows, so that one gamma has the same meaning everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from onefit import linalg
from onefit._indexing import draw_rows
from onefit._types import Array
from onefit._validation import check_choice, check_positive
from onefit.gradient_metric import standard_columns

__all__ = ["EvidenceScales", "negative_evidence", "neighbours"]

#: factor of the squared distances of a kernel
KERNEL_FACTORS = {"matern12": 1.0, "matern32": 3.0}
#: inverse variance of the logarithm of a scale
PRIOR = 0.5
#: start of the descent of the common scale: in units of the inverse mean squared distance
#: of the rows, and noise in units of the variance of the process
COMMON_SCALES, NOISES = (0.05, 0.3, 2.0), (0.003, 0.1)
#: the second start, in the same units
SECOND_START = (0.3, 0.003)
#: how far the logarithm of a scale may be from the common one; bounds of log v
MAX_LOG_RATIO, LOG_NOISE = 12.0, (-14.0, 3.0)
#: rows of the descents from a common scale (not set by a script)
START_ROWS = 250
#: rows of the random block, and largest number in a block of neighbours
#: (benchmarks/evidence_rows.py)
RANDOM_ROWS, NEIGHBOUR_ROWS = 500, 250
#: steps of a descent from a common scale, and from the scales of the last blocks; how often the
#: blocks are cut
MAX_EVIDENCE_STEPS, MAX_REFINING_STEPS, CUTS = 60, 20, 2
#: the value where the matrix is not positive definite
REJECTED = 1e10

Blocks = list[tuple[Array, Array]]


class EvidenceScales(TransformerMixin, BaseEstimator):
    """Scale the columns by the evidence of a Gaussian process with a Matern kernel.

    Transformed rows have a root mean squared distance of 1.

    Parameters
    ----------
    kernel : {"matern12", "matern32"}, default="matern32"
    max_rows : int, default=8000
        Rows that the scales are learned from; of more rows, a random sample.
    random_state : int, default=0
        For the samples.

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

    def __init__(
        self, kernel: str = "matern32", max_rows: int = 8000, random_state: int = 0
    ) -> None:
        self.kernel = kernel
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
        check_choice("kernel", self.kernel, tuple(KERNEL_FACTORS))
        check_positive("max_rows", self.max_rows, "the rows that the scales are learned from")
        Y = standard_columns(y)
        rows = draw_rows(None, len(X), int(self.max_rows), self.random_state)
        X, Y = X[rows] - X[rows].mean(axis=0), Y[rows]  # the gradient subtracts squares of columns
        first = draw_rows(None, len(X), RANDOM_ROWS, self.random_state)
        few = first[draw_rows(None, len(first), START_ROWS, self.random_state)]
        Y = Y[:, np.ptp(Y[few], axis=0) > 0.0]
        if not np.ptp(X[few], axis=0).any() or not Y.size:
            self.scales_ = np.ones(X.shape[1])
            return self
        p, limits = self._from_common_scale([(X[few], Y[few])])
        far = [(X[first], Y[first])]
        if len(first) > len(few):
            p = self._descend(p, far, limits, MAX_EVIDENCE_STEPS).x
        for _ in range(CUTS if len(X) > len(first) else 0):
            near = neighbours(X * np.exp(0.5 * p[:-1]), NEIGHBOUR_ROWS)
            blocks = far + [(X[box], Y[box]) for box in near]
            p = self._descend(p, blocks, limits, MAX_REFINING_STEPS).x
        scales = np.exp(0.5 * (p[:-1] - p[:-1].max()))
        self.scales_ = scales / np.sqrt(2.0 * (X * scales).var(axis=0).sum())
        return self

    def transform(self, X: Any) -> Array:
        """The rows times ``scales_``."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X * self.scales_)

    def _from_common_scale(self, blocks: Blocks) -> tuple[Array, list[tuple[float, float]]]:
        """Logarithms of scales and noise by the evidence of one block, and their limits."""
        ((X, _),) = blocks
        d, squares = X.shape[1], 2.0 * X.var(axis=0).sum()

        def common(p: Array) -> tuple[float, Array]:
            value, slope = negative_evidence(np.r_[np.full(d, p[0]), p[1]], blocks, self.kernel)
            return value, np.array([slope[:-1].sum(), slope[-1]])

        starts = [np.log([t / squares, v]) for t in COMMON_SCALES for v in NOISES]
        start = min(starts, key=lambda p: common(p)[0])
        best = minimize(
            common, start, jac=True, method="L-BFGS-B", bounds=[(None, None), LOG_NOISE]
        ).x
        second = np.log([SECOND_START[0] / squares, SECOND_START[1]])
        found = []
        for scale, noise in (best, second):
            limits = [(scale - MAX_LOG_RATIO, scale + MAX_LOG_RATIO)] * d + [LOG_NOISE]
            p = np.r_[np.full(d, scale), noise]
            found.append((self._descend(p, blocks, limits, MAX_EVIDENCE_STEPS), limits))
        descent, limits = min(found, key=lambda one: one[0].fun)
        return descent.x, limits

    def _descend(self, start: Array, blocks: Blocks, limits: Any, steps: int) -> Any:
        return minimize(
            negative_evidence, start, args=(blocks, self.kernel), jac=True, method="L-BFGS-B",
            bounds=limits, options={"maxiter": steps},
        )  # fmt: skip


def neighbours(Z: Array, size: int) -> list[Array]:
    """Cut rows into boxes of at most ``size``, by halves along the widest column."""
    found, waiting = [], [np.arange(len(Z))]
    while waiting:
        rows = waiting.pop()
        if len(rows) <= size:
            found.append(rows)
            continue
        order = np.argsort(Z[rows, np.argmax(Z[rows].std(axis=0))], kind="stable")
        waiting += np.array_split(rows[order], 2)
    return found


def negative_evidence(p: Array, blocks: Blocks, kernel: str) -> tuple[float, Array]:
    """E of some blocks of rows with its prior, and the gradient, at p = (log t, log v)."""
    t, v, factor = np.exp(p[:-1]), np.exp(p[-1]), KERNEL_FACTORS[kernel]
    total, logs, parts = sum(len(X) for X, _ in blocks), 0.0, []
    for X, Y in blocks:
        r = squareform(pdist(X * np.sqrt(factor * t)))
        decay = np.exp(-r)
        k = decay.copy() if kernel == "matern12" else (1.0 + r) * decay
        k.flat[:: len(X) + 1] += v
        try:
            root = linalg.cholesky(k, overwrite=True)
        except linalg.LinAlgError:
            return REJECTED, np.zeros_like(p)
        logs += float(np.log(np.diagonal(root)).sum())
        inverse = linalg.inverse_from_factor(root)
        if kernel == "matern12":
            decay = np.divide(decay, r, out=np.zeros_like(r), where=r > 0.0)
        parts.append((X, decay, inverse, inverse @ Y))
    q = sum(np.einsum("ij,ij->j", Y, a) for (_, Y), (*_, a) in zip(blocks, parts, strict=True))
    value, columns = 0.5 * total * float(np.log(q).sum()) + q.size * logs, q.size
    sums, trace = np.zeros_like(t), 0.0
    for X, decay, inverse, a in parts:
        W = (total * a / q) @ a.T - columns * inverse
        V = W * decay
        sums += V.sum(axis=1) @ X**2 - np.einsum("ij,ij->j", X, V @ X)
        trace += float(np.trace(W))
    apart = p[:-1] - p[:-1].mean()
    slope = np.r_[0.5 * factor * t * sums + PRIOR * apart, -0.5 * v * trace]
    return value + 0.5 * PRIOR * float(apart @ apart), slope
