r"""Full conformal sets of kernel ridge regression, and widths that follow the density of the rows.

**One inverse.** Kernel ridge regression with weights s and an intercept solves

    [ K + diag(c)   1 ] [ a ]   [ y ]                         c_i = Lambda / s_i.
    [     1'        0 ] [ b ] = [ 0 ],

Let N be the inverse of that matrix, P its block for the rows, k_x the kernel values of a new row x,
z = (k_x, 1), and h = N z. The prediction at x is u(x) = z'N (y, 0). Without an intercept there is
no border, and all formulas hold with N = P = (K + diag(c))^-1.

**Local widths.** Take f for a Gaussian process with covariance K and the noise variance Lambda for
a row of weight 1. The variance of a new target at x is, up to a common factor that cancels below,

    v(x)^2 = K(x, x) + Lambda - z'N z.                                                         (1)

It is small where rows are dense and large where they are few. It depends on X alone, so that v is
a valid scale of residuals for any distribution of y and any loss: the score of a held-out row i
is R_i = |y_i - u^(k)(x_i)| / v^(k)(x_i), and the interval of CV+ or jackknife+ uses
u^(k(i))(x) -/+ R_i v^(k(i))(x) instead of u^(k(i))(x) -/+ R_i (Gupta, Kuchibhotla and Ramdas 2022,
"Nested conformal prediction and quantile out-of-bag ensemble methods"). The variances without the
rows S come from the same inverse by its Schur complement,

    v^(S)(x)^2   = v(x)^2 + h_S' P_SS^-1 h_S,
    v^(S)(x_i)^2 = (P_SS^-1)_ii - c_i + Lambda,          i in S,

for jackknife+ with weights 1 simply v^(i)(x_i)^2 = 1 / P_ii. Lambda is that of the training part,
which under mean scaling depends on its weight: one inverse per value.

**Full conformal sets.** A candidate t for the target at x is in the set if, among the n + 1 rows of
the sample augmented by (x, t), more than alpha (n + 1) have a score of at least that of the new
row. If rows are exchangeable and scores do not depend on their order, the true target is in the set
with probability at least 1 - alpha, not 1 - 2 alpha (Vovk, Gammerman and Shafer 2005, "Algorithmic
learning in a random world"). The score of a row is its residual from the fit to all n + 1 rows but
itself (the deleted residual), divided by v there if widths are local. With N at the Lambda of n + 1
rows, delta = v(x)^2 and r = t - u(x), bordering N by one row gives for the augmented sample

    coefficients    a_i - h_i r / delta,       diagonal of P    P_ii + h_i^2 / delta,
    new row         r / delta,                                  1 / delta,

and a deleted residual is the quotient of the two. So the scores are |A_i + B_i r|, and that of the
new row is G |r|: affine in the candidate. Row i has at least the score of the new row where
(A_i + (B_i - G) r) (A_i + (B_i + G) r) >= 0, which is an interval that contains r = 0 if |B_i| < G,
and the outside of an interval otherwise. Sorting the 2n end points and adding up weights gives the
set exactly: a union of closed intervals, which always contains u(x). With local widths |B_i| < G
always holds, and the set is one interval. The cost is one inverse, and n^2 per new row.

A row of weight s_i counts s_i times, in the fit and in the ranks, and the new row counts once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.inverse import DenseInverse
from onefit.problem import Problem
from onefit.uncertainty.ranked import rounding

__all__ = ["LocalWidths", "conformal_sets", "hull", "local_widths"]


class LocalWidths(NamedTuple):
    """Values of v.

    Attributes
    ----------
    own : (N,) array
        Of the rows that the splits test, in the order of ``folds.rows``.
    new : (m, k) array
        Of the new rows, for each split.
    full : (m, 1) array
        Of the new rows, for all training rows.
    """

    own: Array
    new: Array
    full: Array


class _Bordered(DenseInverse):
    """P and the border of N, at one Lambda; here R = I, and M = K + diag(c).

    Attributes
    ----------
    c : (n,) array
    ridge : float
        Lambda.
    last : (n,) array
        The last column of N without its last element; zero without an intercept.
    """

    def __init__(self, problem: Problem, ridge: float) -> None:
        n = problem.n
        M = np.array(problem.K.block(np.arange(n)), dtype=np.float64, order="F")
        self.c, self.ridge = ridge / problem.s.astype(np.float64), ridge
        M[np.diag_indices(n)] += self.c
        try:
            super().__init__(M, np.ones(n), problem.fit_intercept)
        except linalg.LinAlgError as error:
            raise ValueError(
                f"the kernel matrix plus its ridge ({ridge:.1e}) is not positive definite to "
                "working precision, so that conformal sets and local widths cannot be computed; "
                "raise lam, or use width='constant' with method='cv+'"
            ) from error
        # with t = 1'M^-1 1, the column is M^-1 1 / t, and the corner of N is -1 / t
        root = self.border.sum() if problem.fit_intercept else np.inf
        self.last, self._corner = self.border / root, 1.0 / root**2

    def at(self, k_new: Array, diagonal: Array) -> tuple[Array, Array]:
        """h (n, m) and v(x)^2 (m,) of new rows with kernel values ``k_new`` (n, m)."""
        h = self.solve(k_new) + self.last[:, None]
        explained = linalg.dots(k_new, h) + self.last @ k_new - self._corner
        return h, np.maximum(diagonal + self.ridge - explained, self.ridge)

    def without(self, rows: Indices, h: Array) -> tuple[Array, Array]:
        """What leaving out some rows adds to v(x)^2 (m,), and v^2 of these rows themselves."""
        block = self.block(rows) - np.outer(self.border[rows], self.border[rows])
        inverse = linalg.inverse_spd(np.asfortranarray(block))
        added = linalg.dots(h[rows], inverse @ h[rows])
        own = np.diagonal(inverse) - self.c[rows] + self.ridge
        return added, np.maximum(own, self.ridge)


def local_widths(
    problem: Problem, folds: Folds, lam: float, K_new: Array, diagonal: Array
) -> LocalWidths:
    """Standard deviations up to a factor, of held-out rows and of new ones; see (1).

    Parameters
    ----------
    problem : Problem
        All weights positive.
    folds : Folds
    lam : float
    K_new : (m, n) array
        Kernel values of the new rows against the training rows.
    diagonal : (m,) array
        K(x, x) of the new rows.
    """
    k_new, diagonal = np.asfortranarray(K_new.T, dtype=np.float64), diagonal.astype(np.float64)
    own, new = np.empty(folds.rows.size), np.empty((diagonal.size, len(folds)))
    ridges = np.array([problem.ridge(lam, train) for train in folds.train])
    for ridge in np.unique(ridges):
        inverse = _Bordered(problem, float(ridge))
        h, variance = inverse.at(k_new, diagonal)
        for k in np.flatnonzero(ridges == ridge).tolist():
            rows = folds.removed[k]
            added, left = inverse.without(rows, h)
            new[:, k] = variance + added
            own[folds.place(k)] = left[np.searchsorted(rows, folds.test[k])]
    full = _Bordered(problem, problem.ridge(lam)).at(k_new, diagonal)[1]
    return LocalWidths(np.sqrt(own), np.sqrt(new), np.sqrt(full)[:, None])


def conformal_sets(
    problem: Problem, lam: float, K_new: Array, diagonal: Array, alpha: float, local: bool = False
) -> list[list[Array]]:
    """Full conformal sets for the squared loss, per target and new row.

    Parameters
    ----------
    problem : Problem
        Of the squared loss, all weights positive.
    lam, K_new, diagonal : as of :func:`local_widths`
    alpha : float
        At least 1 / (sum of the weights + 1).
    local : bool, default=False
        Whether residuals are divided by v.

    Returns
    -------
    list of lists of (k, 2) arrays
        The ends of the k intervals that make up a set, in ascending order.
    """
    ridge = problem.ridge(lam) + (lam if problem.scaling == "mean" else 0.0)
    inverse = _Bordered(problem, ridge)
    k_new = np.asfortranarray(K_new.T, dtype=np.float64)
    h, delta = inverse.at(k_new, diagonal.astype(np.float64))
    deleted = 1.0 / (inverse.projected_diagonal()[:, None] + h * h / delta)
    width = np.sqrt(np.maximum(deleted - inverse.c[:, None] + ridge, ridge)) if local else 1.0
    slope = -h / delta * deleted / width
    new = 1.0 / np.sqrt(delta) if local else np.ones_like(delta)
    weight = problem.s.astype(np.float64)
    needed = alpha * (weight.sum() + 1.0) * (1.0 + rounding(weight)) - 1.0
    found, Y = [], problem.Y.astype(np.float64)
    for y, a in zip(Y.T, inverse.solve(Y).T, strict=True):
        centre = a @ k_new + inverse.last @ y
        start = a[:, None] * deleted / width
        found.append(
            [
                u + _where_enough(start[:, i], slope[:, i], float(new[i]), weight, needed)
                for i, u in enumerate(centre)
            ]
        )
    return found


def _where_enough(a: Array, b: Array, g: float, weight: Array, needed: float) -> Array:
    """The r where rows with |a + b r| >= g |r| weigh more than ``needed``: (k, 2) ends."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.sort(np.stack([a / (g - b), -a / (g + b)]), axis=0)
    # 0 / 0: the score of the row is that of the new row, whatever r
    low, high = np.where(np.isnan(ends).any(axis=0), [[-np.inf], [np.inf]], ends)
    out = np.abs(b) > g
    far = np.full(np.count_nonzero(out), np.inf)
    begin = np.concatenate([low[~out], high[out], -far])
    end = np.concatenate([high[~out], far, low[out]])
    each = np.concatenate([weight[~out], weight[out], weight[out]])
    values = np.concatenate([begin, end])
    least = rounding(values) * weight.sum()
    # intervals are closed: at equal values one begins before another ends
    order = np.lexsort((np.repeat([0, 1], begin.size), values))
    inside = np.cumsum(np.concatenate([each, -each])[order]) > max(needed, least)
    change = np.diff(np.concatenate([[False], inside]).astype(int))
    values = values[order]
    return np.stack([values[change > 0], values[change < 0]], axis=1)


def hull(sets: list[list[Array]]) -> tuple[Array, Array]:
    """The smallest and the largest element of every set, (m, q) arrays."""
    lower = np.array([[one[0, 0] for one in target] for target in sets]).T
    upper = np.array([[one[-1, 1] for one in target] for target in sets]).T
    return lower, upper
