"""A search for lam in an interval.

The cross-validation curve over log lam is smooth where its score is, but it need not be unimodal: a
kernel can fit a trend at a large lam and a detail at a small one. So a coarse grid comes first, and
every local minimum on it is refined between its neighbours by Brent's bounded minimisation. All lam
that are evaluated become candidates, so that the winner is never worse than that of the grid.

That happens in the job of the kernel (onefit.search.job), which is prepared once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._validation import check_positive
from onefit.kernels import Bank
from onefit.search.grid import parts
from onefit.search.race import racing

Array = NDArray[Any]

__all__ = ["Interval", "brackets", "expand", "listed"]

#: values of gamma from which a descent may start
MAX_START_GAMMAS = 5


@dataclass(frozen=True)
class Interval:
    """Values from ``low`` to ``high``, for ``param_grid={"lam": Interval(1e-8, 1e2)}``.

    Also for gamma in a :class:`onefit.KernelGradientSearchCV`.

    Parameters
    ----------
    low, high : float
        Ends, positive.
    points : int, default=24
        Number of points of the coarse grid, even in log lam. Two minima closer than its spacing
        count as one. The coarse grid of gamma has at most five.
    per_feature : bool, default=False
        For gamma: whether every column of X has its own.

    Examples
    --------
    >>> [round(lam, 6) for lam in Interval(1e-4, 1.0, points=3).coarse()]
    [0.0001, 0.01, 1.0]
    """

    low: float = 1e-8
    high: float = 1e2
    points: int = 24
    per_feature: bool = False

    def __post_init__(self) -> None:
        low = check_positive("low", self.low, "lam and gamma must be positive")
        high = check_positive("high", self.high, "lam and gamma must be positive")
        if not low < high:
            raise ValueError(f"low={low:g} is not below high={high:g}; exchange them")
        if not isinstance(self.points, (int, np.integer)) or self.points < 3:
            raise ValueError(f"points must be a whole number of at least 3, got {self.points!r}")

    def coarse(self) -> list[float]:
        """The coarse grid, both ends included."""
        lams: list[float] = np.geomspace(self.low, self.high, self.points).tolist()
        return lams


def listed(param_grid: Any) -> Any:
    """The grid with an interval for lam as a list of one value, :func:`expand` makes it numbers."""
    found = [
        {name: _as_list(name, values) for name, values in part.items()}
        for part in parts(param_grid)
    ]
    whole = isinstance(param_grid, Mapping) or len(found) == len(param_grid)
    return found if whole else param_grid


def _as_list(name: str, values: Any) -> Any:
    if name == "lam" and isinstance(values, str) and values == "continuous":
        return [Interval()]
    if isinstance(values, Bank):
        return [values]
    if not isinstance(values, Interval):
        return values
    if name not in ("lam", "gamma"):
        raise ValueError(
            f"param_grid has an Interval for {name!r}; only lam and, in a "
            f"KernelGradientSearchCV, gamma are searched continuously; give {name!r} a list of "
            "values or, with n_iter, a distribution"
        )
    if values.per_feature and name == "lam":
        raise ValueError("there is one lam for all features; per_feature=True is for gamma")
    return [values]


def expand(
    settings: Sequence[dict[str, Any]],
) -> tuple[list[dict[str, Any]], dict[int, dict[str, Any]]]:
    """Candidates with values alone, and the intervals and banks whose coarse grids they are of."""
    found: list[dict[str, Any]] = []
    intervals: dict[int, dict[str, Any]] = {}
    for setting in settings:
        own = {name: one for name, one in setting.items() if isinstance(one, (Interval, Bank))}
        grids = [
            [(name, value) for value in _coarse(name, interval)] for name, interval in own.items()
        ]
        for values in product(*grids):
            if own:
                intervals[len(found)] = own
            found.append(setting | dict(values))
    return found, intervals


def _coarse(name: str, interval: Any) -> list[Any]:
    if name == "gamma":
        interval = replace(interval, points=min(interval.points, MAX_START_GAMMAS))
    found: list[Any] = interval.coarse()
    return found


def check(search: Any, metric: str | None) -> None:
    """Refuse, before any work, what cannot go with an interval."""
    if racing(search.method):
        raise ValueError(
            "method='race' leaves out some of a list of candidates, and an interval for lam has "
            "none; use method='exact' or 'limit', or give lam as a list"
        )
    if metric is None and search.criterion == "cv":
        raise ValueError(
            "an Interval needs one score to refine; name the metric in refit, or give lists of "
            "values"
        )


def brackets(lams: Array, values: Array) -> list[tuple[float, float]]:
    """The neighbours of every local minimum; a flat stretch is one minimum.

    At an end of the grid, the end takes the place of the neighbour that is missing. Values that are
    not finite count as infinite.

    Examples
    --------
    >>> brackets(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([2.0, 1.0, 3.0, 3.0, 0.0]))
    [(1.0, 3.0), (4.0, 5.0)]
    """
    lams, first = np.unique(lams, return_index=True)
    values = np.where(np.isfinite(values), values, np.inf)[first]
    starts = np.flatnonzero(np.append(True, values[1:] != values[:-1]))  # of flat stretches
    levels = [math.inf, *values[starts], math.inf]
    found = []
    for i, (start, stop) in enumerate(pairwise([*starts, lams.size]), start=1):
        if levels[i] < levels[i - 1] and levels[i] < levels[i + 1]:
            low, high = lams[max(start - 1, 0)], lams[min(stop, lams.size - 1)]
            found.append((float(low), float(high)))
    return found
