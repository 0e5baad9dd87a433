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
    """The machine whose targets do best on average, each at its own best lambda.

    Parameters
    ----------
    outcomes : list of Outcome
    totals, lams : (C,) arrays
        Score and lambda of every candidate.

    Returns
    -------
    index : int
        The winning machine's best candidate with one lambda for all targets.
    lams, scores : (q,) arrays
        The lambda of each target, and its score.
    """
    scores = [np.asarray(outcome.per_target) for outcome in outcomes]
    best = [np.nanmax(one, axis=0) for one in scores]
    winner = int(np.nanargmax([one.mean() for one in best]))
    rows = np.array(outcomes[winner].indices)
    chosen = rows[np.nanargmax(scores[winner], axis=0)]
    return int(rows[np.nanargmax(totals[rows])]), lams[chosen], best[winner]


def fit_targets(machine: Any, lams: Array, X: Any, y: Any, sample_weight: Any) -> None:
    """Fit every column of y with its own lambda; columns of one lambda share a factorisation."""
    problem = machine._prepare(X, y, sample_weight)
    coef, intercept = np.zeros_like(problem.Y), np.zeros(lams.size, dtype=problem.Y.dtype)
    lam, error = machine.lam, 0.0
    for value in np.unique(lams):
        columns = np.flatnonzero(lams == value)
        machine.lam = float(value)
        Y, loss = np.asfortranarray(problem.Y[:, columns]), loss_of(problem.loss, columns)
        machine._solve(replace(problem, Y=Y, loss=loss))
        coef[:, columns], intercept[columns] = machine.dual_coef_, machine.intercept_
        error = max(error, machine.error_)
    machine.lam, machine.dual_coef_, machine.intercept_ = lam, coef, intercept
    machine.error_ = error
    machine.support_ = np.flatnonzero(coef.any(axis=1))
    machine.n_support_ = np.array([machine.support_.size], dtype=np.int32)
    machine._to_device_of(X)
