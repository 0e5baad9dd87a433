"""One lam for each target, on one kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.losses.base import loss_of
from onefit.search.workers import Outcome

Array = NDArray[Any]

__all__ = ["choose_lams", "fit_targets"]


def choose_lams(outcomes: list[Outcome], totals: Array, lams: Array) -> tuple[int, Array, Array]:
    """The model whose targets do best on average, each at its own best lambda.

    Parameters
    ----------
    outcomes : list of Outcome
    totals, lams : (C,) arrays
        Score and lambda of every candidate.

    Returns
    -------
    index : int
        The winning model's best candidate with one lambda for all targets.
    lams, scores : (q,) arrays
        The lambda of each target, and its score.
    """
    scores = [np.asarray(outcome.per_target) for outcome in outcomes]
    best = [np.nanmax(one, axis=0) for one in scores]
    winner = int(np.nanargmax([one.mean() for one in best]))
    rows = np.array(outcomes[winner].indices)
    chosen = rows[np.nanargmax(scores[winner], axis=0)]
    return int(rows[np.nanargmax(totals[rows])]), lams[chosen], best[winner]


def fit_targets(model: Any, lams: Array, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit every column of y with its own lambda; columns of one lambda share a factorisation."""
    problem = model._prepare(X, y, sample_weight)
    coef, intercept = np.zeros_like(problem.Y), np.zeros(lams.size, dtype=problem.Y.dtype)
    lam, error = model.lam, 0.0
    for value in np.unique(lams):
        columns = np.flatnonzero(lams == value)
        model.lam = float(value)
        Y, loss = np.asfortranarray(problem.Y[:, columns]), loss_of(problem.loss, columns)
        model._solve(replace(problem, Y=Y, loss=loss))
        coef[:, columns], intercept[columns] = model.dual_coef_, model.intercept_
        error = max(error, model.error_)
    model.lam, model.dual_coef_, model.intercept_ = lam, coef, intercept
    model.error_ = error
    model.support_ = np.flatnonzero(coef.any(axis=1))
    model.n_support_ = np.array([model.support_.size], dtype=np.int32)
    model._to_device_of(X)
