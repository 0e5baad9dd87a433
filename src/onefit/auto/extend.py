"""Grids that grow: where the best candidate lies at the end of a list, further values are tried.

A winner at the smallest or the largest gamma or lam of its list says that the list ends too early
(``Facts.edge_sides`` of :mod:`onefit.report`). The part of the grid that holds it gets further
values on that side, evenly in the logarithm with the spacing that the list has there, and the
search is run again. Its journal has the finished kernels and lams, so that only the new values cost
anything. This ends when the winner lies inside, where the score tends to a limit, after
``MAX_ROUNDS`` rounds, or where arithmetic ends: with mean scaling K / n + lam I is factored,
whose largest eigenvalue is at most the mean of K(x, x), so that a lam below eps times that mean is
lost in rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from sklearn.base import clone

from onefit.kernels import resolve_kernel
from onefit.linalg.arrays import to_host
from onefit.report.facts import Facts
from onefit.search.grid import parts

__all__ = ["fit_growing"]

#: rounds of growth, and values that a round adds to a list
MAX_ROUNDS, NEW_VALUES = 4, {"gamma": 2, "lam": 3}
#: least and largest ratio of new neighbours
MIN_RATIO, MAX_RATIO = 1.5, 10.0
#: the smallest lam is this many units of rounding; the largest is this many times the diagonal
MIN_LAM_IN_ROUNDINGS, MAX_LAM_IN_DIAGONALS = 16.0, 10.0


def fit_growing(
    search: Any,
    X: Any,
    y: Any,
    params: Mapping[str, Any],
    may_grow: Callable[[], bool] = lambda: True,
) -> list[str]:
    """Fit a search, and again with a longer grid while its winner lies at an end.

    Parameters
    ----------
    search : KernelSearchCV
        It is fitted, and its ``param_grid`` grows. Without a journal it has a temporary one.
    X, y : data
    params : mapping
        ``sample_weight`` and ``groups``, where there are any.
    may_grow : callable, default=lambda: True
        Asked before each round: whether there is time for another one.

    Returns
    -------
    list of str
        What grew.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> X, y = make_friedman1(60, random_state=0)
    >>> search = KernelSearchCV(KernelRegressor(), {"gamma": [0.1], "lam": [0.1, 1.0]})
    >>> fit_growing(search, X, y, {})
    ['the grid of lam was extended, because the best candidate was at its end']
    >>> len(search.param_grid[0]["lam"])
    8
    """
    given, grown = search.journal, set[str]()
    with TemporaryDirectory() as folder:
        search.set_params(journal=folder if given is None else given)
        try:
            search.fit(X, y, **params)
            for _ in range(MAX_ROUNDS):
                longer = _longer_lists(search, X)
                if not longer or not may_grow():
                    break
                grown |= set(longer)
                grid = [dict(part) for part in parts(search.param_grid)]
                grid[_part_of_winner(search)] |= longer
                search.set_params(param_grid=grid).fit(X, y, **params)
        finally:
            search.set_params(journal=given)
    return [
        f"the grid of {' and '.join(sorted(grown))} was extended, because the best candidate was "
        "at its end"
    ] if grown else []  # fmt: skip


def _longer_lists(search: Any, X: Any) -> dict[str, list[float]]:
    """Lists with further values beyond the ends that the winner lies at."""
    part, found = parts(search.param_grid)[_part_of_winner(search)], {}
    for name, end in Facts(search).edge_sides.items():
        values = sorted(float(one) for one in part[name])
        low, high = _lam_limits(search, X) if name == "lam" else (0.0, np.inf)
        beyond = _beyond(values, -1 if end == "smallest" else 1, NEW_VALUES[name])
        new = [value for value in beyond if low <= value <= high]
        if new:
            found[name] = sorted([*values, *new])
    return found


def _lam_limits(search: Any, X: Any) -> tuple[float, float]:
    """The lams between rounding and a constant prediction, for the kernel of the winner."""
    winner = clone(search.estimator).set_params(**search.best_params_)
    kernel = resolve_kernel(winner.kernel, X, winner.gamma)
    size = float(np.mean(to_host(kernel.diag(X)), dtype=np.float64))
    size = (size if size > 0.0 else 1.0) * (X.shape[0] if winner.scaling == "total" else 1)
    rounding = float(np.finfo(np.float64).eps)
    return MIN_LAM_IN_ROUNDINGS * rounding * size, MAX_LAM_IN_DIAGONALS * size


def _part_of_winner(search: Any) -> int:
    """The number of the first part of the grid that holds the winner."""
    best = search.best_params_
    return next(
        place
        for place, part in enumerate(parts(search.param_grid))
        if set(part) == set(best)
        and all(any(one is value or one == value for one in part[k]) for k, value in best.items())
    )


def _beyond(values: Sequence[float], side: int, count: int) -> list[float]:
    """Further values at one end, with the spacing that is there."""
    low, high = (values[0], values[1]) if side < 0 else (values[-2], values[-1])
    ratio = float(np.clip(high / low, MIN_RATIO, MAX_RATIO)) ** side
    end = values[0] if side < 0 else values[-1]
    return [end * ratio ** (i + 1) for i in range(count)]
