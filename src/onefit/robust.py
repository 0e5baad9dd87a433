"""Robust choice of lambda, kernel and threshold: Debruyne, Hubert and Suykens, JMLR 2008, 5.2.

A Huber loss bounds what an outlier can do to the fit at given parameters; parameters chosen by a
squared criterion let it in again. The paper's procedure keeps it out of both:

1. take sets of lambdas and of kernels; 2. with the squared loss (threshold t = infinity), minimise
C_IF^5 with the absolute value over both; 3. take the scale of that fit's residuals, sigma = MAD =
1.4826 median |r_i - median(r)| (equation 18); 4. put t in {sigma, 2 sigma, 3 sigma, infinity}; 5.
minimise C_IF^5(lambda, K, t) over all three together. (The paper writes b for t.)

Clean data keep t = infinity or a large t; outliers push it down. Each kernel matrix serves all t
and lambdas; for t = infinity all lambdas share one eigendecomposition
(onefit.criteria.influence).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from onefit._validation import check_positive
from onefit.criteria.influence import InfluenceLoo
from onefit.estimators import KernelRegressor
from onefit.estimators.accepted import check_exact_kernel
from onefit.grids import default_grid
from onefit.report.criteria import criterion_values
from onefit.search.grid import candidates

Array = NDArray[Any]

__all__ = ["RobustSelection", "mad", "robust_select"]

#: relative difference of two criteria that is rounding
TIE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class RobustSelection:
    """Result of :func:`robust_select`.

    Attributes
    ----------
    estimator : KernelRegressor
        Fitted to all rows with the best lambda, kernel and threshold.
    params : dict
        Its parameters among those searched, ``loss`` and ``threshold`` included.
    sigma_err : float
        Scale of the residuals of the best least-squares fit.
    results : dict
        One entry per candidate: ``params`` (list of dict), ``threshold`` (infinite for the squared
        loss), ``criterion`` (arrays) and ``reason`` (why the criterion is infinite).
    best_index, least_squares_index : int
        The winner, and the best with the squared loss.
    """

    estimator: KernelRegressor
    params: dict[str, Any]
    sigma_err: float
    results: dict[str, Any] = field(repr=False)
    best_index: int
    least_squares_index: int


def mad(residuals: Any, sample_weight: Any = None) -> float:
    """Median absolute deviation, scaled to be the standard deviation of a normal (JMLR eq. 18).

    Parameters
    ----------
    residuals : array of shape (n,)
    sample_weight : array of shape (n,), default=None
        How often each residual counts in both medians.

    Examples
    --------
    >>> round(mad([-1.0, 0.0, 1.0, 100.0]), 4)
    1.4826
    """
    r = np.asarray(residuals, dtype=np.float64)
    s = np.ones_like(r) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    deviation = np.abs(r - _median(r, s))
    return _median(deviation, s) / NormalDist().inv_cdf(0.75)


def _median(values: Array, s: Array) -> float:
    """The weighted median, the middle of two where the weights below and above are equal."""
    order = np.argsort(values)
    order = order[s[order] > 0.0]
    below, half = np.cumsum(s[order]), 0.5 * s.sum()
    near = 1e-12 * half
    low = np.searchsorted(below, half - near)
    high = min(np.searchsorted(below, half + near, side="right"), order.size - 1)
    return float(0.5 * (values[order[low]] + values[order[high]]))


def robust_select(
    X: Any,
    y: Any,
    estimator: KernelRegressor | None = None,
    param_grid: Any = None,
    multiples: Sequence[float] = (1.0, 2.0, 3.0),
    order: int = 5,
    random_state: Any = 0,
    sample_weight: Any = None,
) -> RobustSelection:
    """Choose lambda, kernel and threshold by C_IF^5 with the absolute value, and fit the winner.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d), or (n, n) when precomputed
    y : array of shape (n,)
    estimator : KernelRegressor, default=None
        For parameters that are not searched (intercept, scaling); its loss and threshold are not
        used. The paper has no intercept.
    param_grid : dict or list of dict, default=None
        Of lam and of the kernel's parameters; the paper's own
        (:func:`onefit.grids.default_grid`) by default.
    multiples : sequence of float, default=(1, 2, 3)
        The threshold in units of the scale; infinity is always tried.
    order : int, default=5
        k of C_IF^k.
    random_state : int, RandomState or None, default=0
        For the default grid.
    sample_weight : array of shape (n,), default=None
        In the fits, in the mean of the criterion and in the medians of the scale: a row of weight 2
        counts as two equal rows, which leave-one-out leaves out together.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(2, 11, size=(50, 1))
    >>> y = np.sin(X[:, 0]) + 0.2 * random.normal(size=50)
    >>> y[:4] += 8.0
    >>> found = robust_select(X, y)
    >>> found.params["loss"], bool(np.abs(found.estimator.predict([[8.0]]) - np.sin(8)) < 0.3)
    ('huber', True)
    """
    base = clone(estimator) if estimator is not None else KernelRegressor()
    base.set_params(loss="squared")
    check_exact_kernel(base, "robust_select", "use KernelSearchCV with loss='huber'")
    hint = "the threshold is this many times the scale"
    units = [check_positive("multiples", c, hint) for c in multiples]
    y = np.asarray(y)
    if y.ndim > 1 and y.shape[1] != 1:
        raise ValueError(
            f"y has {y.shape[1]} columns; robust_select takes one target, call it for each"
        )
    if param_grid is None:
        param_grid = default_grid(X, scaling=base.scaling, random_state=random_state)
    _check_grid(param_grid)
    criteria = {"criterion": InfluenceLoo(order=order, loss="absolute")}

    def evaluate(params: list[dict[str, Any]]) -> tuple[Array, list[str]]:
        return criterion_values(base, params, X, y, criteria, sample_weight)["criterion"]

    grid = candidates(base, param_grid)
    params = [one | {"loss": "squared"} for one in grid]
    values, reasons = evaluate(params)
    least = _best(values, reasons)
    plain = clone(base).set_params(**params[least]).fit(X, y, sample_weight)
    sigma = mad(np.ravel(y) - plain.predict(X), sample_weight)
    if sigma == 0.0:
        warnings.warn(
            "more than half of the residuals of least squares are equal, so that their scale is "
            "zero: only the squared loss was tried",
            stacklevel=2,
        )
        units = []
    huber = [one | {"loss": "huber", "loss__threshold": c * sigma} for c in units for one in grid]
    if huber:
        further, remarks = evaluate(huber)
        values, reasons, params = np.append(values, further), reasons + remarks, params + huber
    best = _best(values, reasons)
    results = {
        "params": params,
        "threshold": np.array([one.get("loss__threshold", np.inf) for one in params]),
        "criterion": values,
        "reason": reasons,
    }
    winner = clone(base).set_params(**params[best]).fit(X, y, sample_weight)
    return RobustSelection(winner, params[best], sigma, results, best, least)


def _check_grid(grid: Any) -> None:
    for part in [grid] if isinstance(grid, dict) else grid:
        for name in part:
            if name.partition("__")[0] == "loss":
                raise ValueError(
                    f"param_grid names {name!r}, which robust_select chooses itself; leave it out "
                    "(multiples are the thresholds to try, in units of the scale)"
                )


def _best(values: Array, reasons: list[str]) -> int:
    """The candidate with the smallest criterion, the first of those that differ by rounding."""
    best = int(np.argmax(values <= values.min() * (1.0 + TIE_TOLERANCE)))
    if not np.isfinite(values[best]):
        raise FloatingPointError(f"no candidate could be evaluated: {reasons[best]}")
    return best
