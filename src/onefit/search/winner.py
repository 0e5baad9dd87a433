"""The winner of a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit._types import Array
from onefit.search.inputs import winner_of
from onefit.search.results import Results, warn_of_undefined

__all__ = ["find_winner", "values_of"]


def values_of(results: Results, metric: Any) -> Array:
    """The scores that rank the candidates, the larger the better."""
    table = results.table
    return np.asarray(-table["criterion"] if "criterion" in table else results.totals[metric])


def find_winner(search: Any, results: Results, metric: Any) -> int:
    """The index of the winner, by refit, criterion or metric of a search.

    Parameters
    ----------
    search : KernelSearchCV
    results : Results
    metric : str or None
    """
    if callable(search.refit):
        return winner_of(search.refit, results.table)
    values = values_of(results, metric)
    if "criterion" in results.table and not np.isfinite(values).any():
        reason = next(filter(None, results.table["reason"]), "no finite value")
        raise ValueError(f"criterion={search.criterion!r} refused every candidate: {reason}")
    if not np.isfinite(values).any():
        warn_of_undefined(results, metric, search.aggregate)
        return 0
    return int(np.nanargmax(values))
