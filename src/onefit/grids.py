"""Default grids, computed from the data.

**Quantiles** (Debruyne, Hubert and Suykens, JMLR 2008, section 6.2). Distances d of 500 random
pairs of rows, in ascending order d_(1) <= ... <= d_(500), give the bandwidths

    sigma in {d_(1)/2, d_(1), d_(50), d_(100), ..., d_(300), d_(400), d_(450), d_(500), 2 d_(500)}

of exp(-||x - x'||^2 / sigma^2) (d_(350) is missing in the paper; the paper counts from the
largest, but half the largest and twice the smallest would lie inside the list, not at its ends),
with

    lam in {50, 10, 5, 3, 1, 0.8, 0.5, 0.3, 0.1, 0.08, 0.05, 0.01, 0.005} x 10^-3,

**Powers of two** (Liu, Jiang and Liao, ICML 2014, section 5): exp(-||x - x'||^2 / (2 tau)), tau =
2^-6 ... 2^8, and lam = 2^-7 ... 2^2; for X scaled to [-1, 1] or standardised.

The lists are for K(x, x) = 1 and mean scaling. For kernels without that, lam is multiplied by the
mean of K(x, x); for total scaling, by n. Laplace and Matern kernels use the distance they are made
of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from onefit._validation import check_choice
from onefit.kernels import KERNELS, Geometry, Polynomial, resolve_kernel, takes_gamma
from onefit.kernels.distances import as_points
from onefit.problem import SCALINGS

Array = NDArray[Any]

__all__ = ["LAMS_ICML", "LAMS_JMLR", "bandwidths", "default_grid"]

#: JMLR 2008, section 6.2; mean scaling
LAMS_JMLR = tuple(1e-3 * c for c in (50, 10, 5, 3, 1, 0.8, 0.5, 0.3, 0.1, 0.08, 0.05, 0.01, 0.005))
#: ICML 2014, section 5; mean scaling
LAMS_ICML = tuple(2.0**i for i in range(-7, 3))
#: ICML 2014, section 5
TAUS_ICML = tuple(2.0**i for i in range(-6, 9))
STYLES = ("quantiles", "powers")
#: ranks of the distances among 500
_RANKS = (1, 50, 100, 150, 200, 250, 300, 400, 450, 500)
_PAIRS = 500
_SAMPLE = 1000
_DEGREES = (1, 2, 3)


def bandwidths(X: Any, metric: str = "euclidean", random_state: Any = 0) -> Array:
    """The paper's quantiles of the distances between 500 random pairs, ends halved and doubled.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
    metric : {"euclidean", "manhattan"}, default="euclidean"
    random_state : int, RandomState or None, default=0

    Returns
    -------
    array
        Ascending, without doubles; at most 12 numbers.
    """
    check_choice("metric", metric, ("euclidean", "manhattan"))
    points = as_points(X, "X")
    n = points.shape[0]
    if n < 2:
        raise ValueError(f"X has {n} rows; distances need at least two")
    random = check_random_state(random_state)
    rows = np.sort(random.permutation(n)[:_SAMPLE])
    geometry = Geometry(points[rows], keep=False)
    distances = geometry.take(metric).astype(np.float64)
    first = random.randint(rows.size, size=_PAIRS)
    second = (first + random.randint(1, rows.size, size=_PAIRS)) % rows.size
    found = np.sort(distances[first, second])
    found = found[found > 0.0]
    if found.size == 0:
        raise ValueError(
            "all rows of X in the sample are equal, so that no bandwidth can be computed"
        )
    ranks = np.ceil(np.array(_RANKS) / _PAIRS * found.size).astype(int)
    chosen = found[ranks - 1]
    return np.unique(np.concatenate([[0.5 * chosen[0]], chosen, [2.0 * chosen[-1]]]))


def default_grid(
    X: Any,
    y: Any = None,
    kernel: str | Sequence[str] = "rbf",
    style: str = "quantiles",
    scaling: str = "mean",
    random_state: Any = 0,
) -> list[dict[str, list[Any]]]:
    """A ``param_grid`` for :class:`onefit.KernelSearchCV`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d), or (n, n) when precomputed
    y : array of shape (n,), default=None
        Labels of classes (whole numbers are taken for labels) add ICML's larger lams to JMLR's.
    kernel : str or sequence of str, default="rbf"
        Names of kernels: a grid for each.
    style : {"quantiles", "powers"}, default="quantiles"
    scaling : {"mean", "total"}, default="mean"
        Scaling of the estimator.
    random_state : int, RandomState or None, default=0
        For the pairs of rows.

    Examples
    --------
    >>> import numpy as np
    >>> grid = default_grid(np.arange(20.0)[:, None], kernel=["rbf", "linear"])
    >>> [sorted(one) for one in grid]
    [['gamma', 'kernel', 'lam'], ['kernel', 'lam']]
    """
    check_choice("style", style, STYLES)
    check_choice("scaling", scaling, SCALINGS)
    names = [kernel] if isinstance(kernel, str) else list(kernel)
    for name in names:
        check_choice("kernel", name, KERNELS)
    points, lams = as_points(X, "X"), _lams(y, style)
    factor = points.shape[0] if scaling == "total" else 1
    return [
        part
        for name in names
        for part in _of_kernel(name, points, factor * lams, style, random_state)
    ]


def _lams(y: Any, style: str) -> Array:
    if style == "powers":
        return np.array(LAMS_ICML)
    if y is not None and type_of_target(y) in ("binary", "multiclass"):
        return np.unique(np.concatenate([LAMS_JMLR, LAMS_ICML]))
    return np.sort(LAMS_JMLR)


def _of_kernel(
    name: str, X: Any, lams: Array, style: str, random_state: Any
) -> list[dict[str, list[Any]]]:
    if KERNELS[name] is Polynomial:
        return [
            {
                "kernel": [name],
                "kernel__degree": [degree],
                "lam": _scaled(lams, Polynomial(degree=degree), X),
            }
            for degree in _DEGREES
        ]
    grid: dict[str, list[Any]] = {"kernel": [name]}
    if takes_gamma(name):
        grid["gamma"] = _gammas(KERNELS[name].metric, X, style, random_state)
    return [grid | {"lam": _scaled(lams, name, X)}]


def _scaled(lams: Array, kernel: Any, X: Any) -> list[float]:
    """The lams in units of the mean of K(x, x)."""
    size = float(np.mean(resolve_kernel(kernel, X).diag(X), dtype=np.float64))
    scaled: list[float] = (lams * (size if size > 0.0 else 1.0)).tolist()
    return scaled


def _gammas(metric: str, X: Any, style: str, random_state: Any) -> list[float]:
    """One over the bandwidth, or over its square for a kernel of squared distances."""
    if style == "powers":
        lengths = np.sqrt(2.0 * np.array(TAUS_ICML))
    else:
        lengths = bandwidths(X, "manhattan" if metric == "manhattan" else "euclidean", random_state)
    power = 2 if metric == "sqeuclidean" else 1
    gammas: list[float] = np.sort(1.0 / lengths**power).tolist()
    return gammas
