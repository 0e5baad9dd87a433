"""The problem of a model and its rows, where a kernel matrix in memory is needed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from onefit import linalg, plan
from onefit.estimators.accepted import Given, check_accepted
from onefit.problem import Problem
from onefit.spec.needs import require_of_model

__all__ = ["dense_problem"]


def dense_problem(
    estimator: Any,
    X: Any,
    y: Any,
    caller: str,
    matrices: float,
    *,
    groups: Any = None,
    squared: bool = False,
    advice: str = "",
) -> tuple[Given, Problem]:
    """What a search knows of the rows, with a fresh model that knows their classes; its problem.

    Refuses what is not supported, and matrices that do not fit into memory, before anything is
    computed.

    Parameters
    ----------
    matrices : float
        Number of n x n matrices that the caller holds with the squared loss; with others it refits.
    groups : array, default=None
        None takes those of a search.
    squared : bool, default=False
        Whether the caller needs the squared loss.
    advice : str, default=""
        What to use for other models.
    """
    given = Given.of(estimator, caller, X, y, groups=groups)
    check_accepted(given.model, caller)
    if linalg.is_elsewhere(X):
        raise ValueError(f"{caller} needs X in host memory, got a {type(X).__name__} on a device")
    if given.sample_weight is not None and np.any(np.asarray(given.sample_weight) != 1.0):
        raise ValueError(
            f"{caller} needs all rows to count alike, but the search was fitted with "
            "sample_weight; pass its best_estimator_ to go without weights"
        )
    model = clone(given.model)
    X, Y, s = model._check_data(X, y, None)
    needs = ("column per class", "squared loss") if squared else ()
    require_of_model(model, caller, "kernel matrix", "equal weights", *needs, advice=advice)
    work, spec = model._workload(Y, s), model.spec()
    plain = spec.quadratic and spec.coding.columns_are_targets
    nbytes = matrices * work.itemsize * work.n**2 if plain else plan.peak_bytes(work, "refit")
    plan.check_bytes(work, nbytes, caller)
    return replace(given, model=model), model._make_problem(X, Y, s)
