"""A simpler winner than the best one: the rule of one standard error."""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit._types import Array
from onefit.scoring.aggregate import AGGREGATES

__all__ = ["is_one_standard_error", "one_standard_error"]


def one_standard_error(results: dict[str, Any], metric: str = "score") -> int:
    """The most regularised candidate within one standard error of the best; for ``refit``.

    The most regularised candidate has the largest lam; among equals, the smallest gamma (the mean
    of several gammas); among equals, it is the first. Candidates without a number for lam or gamma
    come last.

    Parameters
    ----------
    results : dict
        ``cv_results_`` of a :class:`onefit.KernelSearchCV`.
    metric : str, default="score"
        With several metrics the one to choose by:
        ``refit=functools.partial(one_standard_error, metric="r2")``.

    Returns
    -------
    int
        Index of the winner.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from onefit import KernelRegressor, KernelSearchCV
    >>> from onefit.scoring import one_standard_error
    >>> X, y = load_diabetes(return_X_y=True)
    >>> grid = {"gamma": [3.0], "lam": [0.001, 0.003, 0.01, 0.03]}
    >>> best = KernelSearchCV(KernelRegressor(), grid).fit(X, y)
    >>> careful = KernelSearchCV(KernelRegressor(), grid, refit=one_standard_error).fit(X, y)
    >>> best.best_params_["lam"], careful.best_params_["lam"]
    (0.001, 0.003)
    """
    columns = [f"{how}_test_{metric}" for how in reversed(AGGREGATES)]
    scores = next((results[name] for name in columns if name in results), None)
    if scores is None:
        raise ValueError(
            f"cv_results_ has no scores of metric={metric!r}; for several metrics use "
            "refit=functools.partial(one_standard_error, metric=...)"
        )
    scores, errors = np.asarray(scores), np.asarray(results[f"se_test_{metric}"])
    best = int(np.argmax(np.where(np.isnan(scores), -np.inf, scores)))
    if not np.isfinite([scores[best], errors[best]]).all():
        raise ValueError(
            "refit=one_standard_error needs a finite score on every split, and at least two "
            "splits; use refit=True, or another splitter"
        )
    near = np.flatnonzero(scores >= scores[best] - errors[best])
    params = [results["params"][i] for i in near]
    named = (key for one in results["params"] for key in one if key.rpartition("__")[2] == "lam")
    step = next(named, "lam").removesuffix("lam")  # of a pipeline, which may have other gammas
    lams = _numbers(params, step, "lam", -np.inf)
    gammas = _numbers(params, step, "gamma", np.inf)
    return int(near[np.lexsort((near, gammas, -lams))[0]])


def is_one_standard_error(refit: Any) -> bool:
    """Whether ``refit`` is :func:`one_standard_error`, or a partial of it that names a metric."""
    return getattr(refit, "func", refit) is one_standard_error


def _numbers(params: list[dict[str, Any]], step: str, name: str, missing: float) -> Array:
    """A parameter of each candidate, of the step whose parameters begin with ``step``."""
    found = np.full(len(params), missing)
    for i, one in enumerate(params):
        for key, value in one.items():
            own = key.startswith(step) and key.rpartition("__")[2] == name
            if own and np.asarray(value).dtype.kind in "fiu":
                found[i] = np.mean(value)
    return found
