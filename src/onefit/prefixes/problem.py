"""The problem of a model and its rows, where a kernel matrix in memory is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from onefit import linalg, plan
from onefit.estimators.accepted import accepted_model, check_exact_kernel
from onefit.problem import Problem

__all__ = ["dense_problem"]


def dense_problem(
    estimator: Any, X: Any, y: Any, caller: str, matrices: float, squared: str = ""
) -> tuple[Any, Problem]:
    """A fresh model with the parameters of an estimator or of a search's winner, and its problem.

    Refuses what is not supported, and matrices that do not fit into memory, before anything is
    computed.

    Parameters
    ----------
    matrices : float
        Number of n x n matrices that the caller holds with the squared loss; with others it refits.
    squared : str, default=""
        Advice for other losses, where the caller needs the squared one; empty if it does not.
    """
    best = accepted_model(estimator, caller)
    check_exact_kernel(best, caller, "pass an estimator with approximation=None")
    model = clone(best)
    if linalg.is_elsewhere(X):
        raise ValueError(f"{caller} needs X in host memory, got a {type(X).__name__} on a device")
    if hasattr(estimator, "best_estimator_") and np.any(getattr(best, "_s_fit", 1.0) != 1.0):
        raise ValueError(
            f"{caller} counts all rows alike, but the search was fitted with sample_weight or "
            "class_weight; pass its best_estimator_, with class_weight=None, to go without weights"
        )
    X, Y, s = model._check_data(X, y, None)
    spec = model.spec()
    if getattr(spec.coding, "class_weight", None) is not None:
        raise ValueError(
            f"{caller} counts all rows alike, got class_weight={spec.coding.class_weight!r}; set "
            "class_weight=None"
        )
    if squared and getattr(spec.coding, "in_pairs", False):
        raise ValueError(f"{caller} has a column per class, got multi_class='ovo'; use 'ovr'")
    if squared and not spec.quadratic:
        raise ValueError(f"{caller} is for loss='squared', got loss={model.loss!r}; {squared}")
    work = model._workload(Y, s)
    plain = spec.quadratic and spec.coding.columns_are_targets
    nbytes = matrices * work.itemsize * work.n**2 if plain else plan.peak_bytes(work, "refit")
    plan.check_bytes(work, nbytes, caller)
    return model, model._make_problem(X, Y, s)
