"""Columns whose objective is flat in the intercept: they are recognised, and recentred."""

from __future__ import annotations

import numpy as np

from onefit._types import Array, Mask
from onefit.problem import Columns, Solution
from onefit.proof.flat_interval import shift_to_middle

__all__ = ["flat_columns", "recentred"]


def flat_columns(columns: Columns, u: Array) -> Mask:
    """Whether a small shift of b, to one side at least, leaves no training row curved."""
    nudge = columns.epsilon**0.5 * (columns.scale + np.abs(u).max(axis=0))
    curved = [
        (columns.loss.curvature(columns.y, u + shift) > 0) & columns.train
        for shift in (-nudge, 0.0 * nudge, nudge)
    ]
    alone = np.logical_or.reduce([~one.any(axis=0) for one in curved])
    return np.asarray(alone & columns.problem.fit_intercept)


def recentred(column: Columns, at: Solution) -> tuple[Array, float]:
    """Coefficients and intercept of a column that is flat in b, at the middle of the interval.

    Where no training point has curvature there, stationarity gives the coefficients outright.
    """
    s, loss, y = column.weights, column.loss, column.y
    a, b = at.a, at.b[0] + shift_to_middle(loss, y, at.u, s)
    u = column.K.matmul(a) + b
    if not (loss.curvature(y, u) * column.train).any():
        a = -s * loss.gradient(y, u) / (2.0 * column.penalty)
    return a, b
