"""Several quantiles of one target: pinball loss, crossing curves, and coverage.

Models for several levels are fitted one by one, so that quantiles may cross where data are few.
Sorting the predictions of every row corrects that, and never increases the distance from the true
quantiles (Chernozhukov, Fernandez-Val and Galichon, Econometrica 2010, proposition 4).

**Coverage.** A flexible curve for a level far from 0.5 depends on the few rows beyond it, and bends
towards them: more new rows than the level says lie beyond it, however narrow the rounded corner is
(``benchmarks/quantiles.py`` has the numbers, of other models too). Held-out rows show by how much.
:func:`heldout_shift` moves every curve by a constant, so that the share of held-out targets below
it is its level: the quantile of that level of the held-out residuals, which is also the constant
with the least pinball loss on these rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit.losses import named_loss

Array = NDArray[Any]

__all__ = [
    "Crossings",
    "crossings",
    "heldout_shift",
    "levels_of",
    "neg_pinball_loss",
    "pinball_loss",
    "pinball_losses",
    "rearrange",
]


class Crossings(NamedTuple):
    """Rows in which a quantile is above one of a higher level.

    Attributes
    ----------
    rows : index array
    share : float
        Of all rows.
    largest : float
        The largest difference by which one is above the next, in units of y; 0 if none is.
    """

    rows: NDArray[np.intp]
    share: float
    largest: float


def levels_of(estimator: Any) -> tuple[float, ...]:
    """The levels of the loss of a model; empty for losses without."""
    found = getattr(named_loss(getattr(estimator, "loss", None)), "level", ())
    return tuple(np.atleast_1d(np.asarray(found, dtype=float)).tolist())


def crossings(predictions: Any, level: Sequence[float]) -> Crossings:
    """Rows in which predictions of neighbouring levels are out of order.

    Examples
    --------
    >>> crossings([[1.0, 2.0, 3.0], [1.0, 3.0, 2.5]], level=[0.1, 0.5, 0.9])
    Crossings(rows=array([1]), share=0.5, largest=0.5)
    """
    values, order = _columns(predictions, level)
    falls = -np.diff(values[:, order], axis=1)
    rows = np.flatnonzero((falls > 0.0).any(axis=1))
    return Crossings(rows, rows.size / len(values), float(falls.max(initial=0.0)))


def rearrange(predictions: Any, level: Sequence[float]) -> Array:
    """Sort the predictions of every row, so that quantiles do not cross.

    Examples
    --------
    >>> rearrange([[1.0, 3.0, 2.5]], level=[0.1, 0.5, 0.9])
    array([[1. , 2.5, 3. ]])
    """
    values, order = _columns(predictions, level)
    found = np.empty_like(values)
    found[:, order] = np.sort(values, axis=1)
    return found


def _columns(predictions: Any, level: Sequence[float]) -> tuple[Array, Array]:
    """The predictions as an array, and the order of its columns by level."""
    values = np.asarray(predictions)
    if values.ndim != 2 or values.shape[1] != len(level):
        raise ValueError(
            f"predictions must have a column for each of the {len(level)} levels, got shape "
            f"{values.shape}"
        )
    return values, np.argsort(np.asarray(level), kind="stable")


def pinball_loss(y: Any, predictions: Any, level: Any, sample_weight: Any = None) -> float:
    """The mean over rows and levels of level r for r = y - u > 0, and of (level - 1) r below.

    Examples
    --------
    >>> pinball_loss([1.0, 2.0], [[0.0, 2.0], [2.0, 4.0]], level=[0.5, 0.75])
    0.3125
    """
    return float(np.average(pinball_losses(y, predictions, level), weights=sample_weight))


def pinball_losses(y: Any, predictions: Any, level: Any) -> Array:
    """The mean over levels for each row."""
    target = np.asarray(y, dtype=float).reshape(-1, 1)
    values = np.asarray(predictions, dtype=float).reshape(len(target), -1)
    levels = np.atleast_1d(np.asarray(level, dtype=float))
    if values.shape[1] != levels.size:
        raise ValueError(
            f"predictions have {values.shape[1]} columns for {levels.size} levels; there must be "
            "one for each"
        )
    r = target - values
    return np.asarray(np.maximum(levels * r, (levels - 1.0) * r).mean(axis=1))


def heldout_shift(held: Any, level: Any) -> Array:
    """Constants that shift the predictions of each level to the coverage of that level.

    Parameters
    ----------
    held : HeldOut
        Of a model with these levels, such as ``heldout_`` of a search.
    level : float or sequence of float

    Returns
    -------
    (levels,) array

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor, heldout_predict
    >>> from onefit.losses import Quantile
    >>> X = np.random.default_rng(0).uniform(size=(100, 3))
    >>> y = np.random.default_rng(1).normal(size=100)  # independent of X, and overfitted
    >>> model = KernelRegressor(Quantile([0.1, 0.9]), gamma=3.0, lam=1e-4)
    >>> held = heldout_predict(model, X, y)
    >>> moved = held.predictions + heldout_shift(held, [0.1, 0.9])
    >>> [round(float((y <= column + 1e-9).mean()), 2) for column in moved.T]
    [0.1, 0.9]
    """
    levels = np.atleast_1d(np.asarray(level, dtype=float))
    if held.targets is None:
        raise ValueError("held has no targets; use heldout_predict, or heldout_ of a search")
    values, rows = held.values.astype(np.float64), held.folds.rows
    if values.shape[1] != levels.size:
        raise ValueError(
            f"held has {values.shape[1]} columns for {levels.size} levels; there must be one for "
            "each"
        )
    weight = None if held.sample_weight is None else np.asarray(held.sample_weight)[rows]
    residuals = np.asarray(held.targets, dtype=float).reshape(-1, 1)[rows] - values
    return np.array(
        [
            np.quantile(one, share, method="inverted_cdf", weights=weight)
            for one, share in zip(residuals.T, levels, strict=True)
        ]
    )


def neg_pinball_loss(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """A scorer: minus the pinball loss at the levels of the model.

    Use it as ``KernelSearchCV(..., scoring=neg_pinball_loss)`` with the loss "quantile".
    """
    levels = levels_of(estimator)
    if not levels:
        raise ValueError(
            f"neg_pinball_loss needs a model with levels, such as loss='quantile', not "
            f"loss={getattr(estimator, 'loss', None)!r}"
        )
    return -pinball_loss(y, estimator.predict(X), levels, sample_weight)
