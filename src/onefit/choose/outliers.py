"""Outliers: found in the winner's held-out residuals, and answered by Huber's loss.

If more than 1 % of these residuals are further from their median than 5 times their scale (the
MAD, JMLR 2008 eq. 18; for normal errors one in 1.7 million is), candidates are judged by the mean
absolute error instead, in which an outlier is not squared: by it the squared loss is searched
again, for the kernel and the scale of its residuals, and then, with that kernel and bandwidths up
to two steps of the grid from its own, the squared loss and Huber's with a threshold of 1, 2 and 3
times the scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from onefit.estimators import inside
from onefit.robust import mad
from onefit.search_cv import KernelSearchCV

Array = NDArray[Any]

__all__ = ["part_far_away", "robust_search", "told"]

#: residuals beyond this many scales are outliers, and this part of them calls for a robust loss
FAR, PART = 5.0, 0.01
#: threshold of the Huber loss in units of the scale (JMLR 2008, section 5.2)
MULTIPLES = (1.0, 2.0, 3.0)
#: bandwidths on either side of the squared loss's that are tried with Huber's
NEIGHBOURS = 2


def part_far_away(search: KernelSearchCV, y: Array) -> float:
    """The part of the winner's held-out residuals that are outliers; 0 if that is 1 % or less."""
    residuals = _residuals(search, y)
    far = np.abs(residuals - np.median(residuals)) > FAR * mad(residuals)
    part = float(far.mean())
    return part if part > PART else 0.0


def robust_search(search: KernelSearchCV, X: Any, y: Array, sample_weight: Any) -> KernelSearchCV:
    """A search over Huber's loss and the squared one, on the same splits."""
    given = {"sample_weight": sample_weight, "groups": search.groups_}
    params = {name: value for name, value in given.items() if value is not None}
    least: KernelSearchCV = clone(search)
    least.set_params(
        scoring="neg_mean_absolute_error", cv=search.heldout_.folds, journal=None,
        keep_heldout="best",
    )  # fmt: skip
    least.fit(X, y, **params)
    scale = mad(_residuals(least, y))
    if scale == 0.0:
        return least
    grid = _near(least)
    huber = {"loss": ["huber"], "threshold": [c * scale for c in MULTIPLES]}
    # a race repairs by the whole kernel
    method = "limit" if inside.is_approximate(least.estimator) else "race"
    robust: KernelSearchCV = clone(least)
    robust.set_params(param_grid=[grid | {"loss": ["squared"]}, grid | huber], method=method)
    robust.fit(X, y, **params)
    return robust


def _near(least: KernelSearchCV) -> dict[str, Any]:
    """The grid of the winning kernel, with the bandwidths next to the winner's."""
    best = least.best_params_
    (grid,) = [part for part in least.param_grid if part["kernel"] == [best["kernel"]]]
    if "gamma" not in best:
        return dict(grid)
    gammas = sorted(grid["gamma"])
    place = gammas.index(best["gamma"])
    near = gammas[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
    return dict(grid, gamma=near)


def told(part: float, search: KernelSearchCV) -> str:
    """What outliers changed, in a sentence."""
    r2 = search.headline_.r2
    return (
        f"{part:.1%} of the held-out residuals are outliers (further than {FAR:g} scales from "
        "their median): Huber's loss joined the squared one, and the choice between them was made "
        f"by the mean absolute error, {-search.best_score_:.4g} at the winner; R² there is {r2:.4g}"
    )


def _residuals(search: KernelSearchCV, y: Array) -> Array:
    """Held-out residuals of the winner, of the rows that a split tests."""
    residuals = np.ravel(y) - np.ravel(search.heldout_.predictions)
    return np.asarray(residuals[np.isfinite(residuals)])
