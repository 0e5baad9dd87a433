"""Candidates of a grid, or drawn at random.

Values to try are lists, or anything that draws: an object with a method ``rvs(random_state=...)``,
such as the distributions of :mod:`scipy.stats` (``loguniform(1e-6, 1)``). ``n_iter`` settings are
drawn as :class:`sklearn.model_selection.RandomizedSearchCV` draws them: with replacement where
there is a distribution, else without.

Drawn settings seldom share a kernel, so each costs a kernel matrix and a preparation of its own.
Where many lams are wanted for each kernel, draw the parameters of the kernel alone and let lam be
an :class:`~onefit.search.continuous.Interval`: ``n_iter`` kernels are then drawn, and lam is
searched in each.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from sklearn.model_selection import ParameterGrid, ParameterSampler

__all__ = ["parts", "settings"]


def settings(param_grid: Any, n_iter: int | None, random_state: Any) -> list[dict[str, Any]]:
    """All settings of a grid, or ``n_iter`` of them at random.

    Parameters
    ----------
    param_grid : dict or list of dict
        Lists of values; distributions too, if ``n_iter`` is given.
    n_iter : int or None
        None takes all.
    random_state : int, RandomState or None

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> found = settings({"gamma": uniform(1, 2), "lam": [0.1, 1.0]}, 3, random_state=0)
    >>> [sorted(one) for one in found]
    [['gamma', 'lam'], ['gamma', 'lam'], ['gamma', 'lam']]
    """
    drawn = [name for part in parts(param_grid) for name in part if hasattr(part[name], "rvs")]
    if n_iter is None:
        if drawn:
            raise ValueError(
                f"param_grid has a distribution for {drawn[0]!r}, which a grid cannot exhaust; "
                "say with n_iter how many candidates to draw, or give a list of values"
            )
        return list(ParameterGrid(param_grid))
    if not isinstance(n_iter, numbers.Integral) or isinstance(n_iter, bool) or n_iter < 1:
        raise ValueError(
            f"n_iter must be a whole number of at least 1, got {n_iter!r}; None tries a whole grid"
        )
    lists = [{k: v for k, v in part.items() if not hasattr(v, "rvs")} for part in parts(param_grid)]
    grid = ParameterGrid(lists)  # refuses what is no list of values
    size = int(n_iter) if drawn else min(int(n_iter), len(grid))
    return list(ParameterSampler(param_grid, size, random_state=random_state))


def parts(param_grid: Any) -> list[Mapping[str, Any]]:
    """The dictionaries of a grid; anything else is left to scikit-learn to refuse."""
    if isinstance(param_grid, Mapping):
        return [param_grid]
    found = param_grid if isinstance(param_grid, Iterable) else []
    return [part for part in found if isinstance(part, Mapping)]
