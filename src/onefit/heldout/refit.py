"""The honest way: refit without the fold, predict the fold. Slow, for any loss and any split.

Every other method is tested against this one.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from onefit import _linalg as linalg
from onefit.folds import Folds, Indices
from onefit.heldout.base import HeldOut, HeldOutMethod, Prepared
from onefit.problem import Problem, Solution
from onefit.solvers import solve

Array = NDArray[Any]

__all__ = ["Refit", "refit_fold"]


class Refit(HeldOutMethod):
    """Fit again on every training set.

    Parameters
    ----------
    warm : bool, default=False
        Start each fold's Newton iteration from the full-sample solution instead of from zero.
    """

    name = "refit"

    def __init__(self, warm: bool = False) -> None:
        self.warm = warm

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        positive = folds.without(np.flatnonzero(problem.s == 0))
        return _Refit(problem, positive, folds, self.warm)


@dataclass
class _Refit(Prepared):
    problem: Problem
    positive: Folds
    folds: Folds
    warm: bool
    last: Solution | None = None

    def predict(self, lam: float) -> HeldOut:
        start = self._full(lam) if self.warm else None
        values, solutions = [], []
        for train, test in self.positive:
            value, solution = refit_fold(self.problem, lam, train, test, start)
            values.append(value)
            solutions.append(solution)
        exact = np.array([solution.converged for solution in solutions])
        steps = np.array([solution.steps for solution in solutions], dtype=np.intp)
        error = np.where(exact, 0.0, np.nan)
        return HeldOut(
            np.concatenate(values), self.folds, "refit", exact, error, np.zeros_like(steps), steps
        )

    def _full(self, lam: float) -> Solution:
        kept = np.flatnonzero(self.problem.s)
        if kept.size < self.problem.n:
            raise ValueError("a warm-started refit needs positive weights on every row")
        self.last = solve(self.problem, lam, start=self.last)
        return self.last


def refit_fold(
    problem: Problem, lam: float, train: Indices, test: Indices, start: Solution | None = None
) -> tuple[Array, Solution]:
    """Decision values of the test rows by the machine of the training rows.

    From ``start``, a solution of the whole sample, the rows left out only lose their weight: their
    coefficients are where Newton's first step begins, and it takes them to zero.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # `solution.converged` tells
        if start is None or problem.loss.name == "squared":
            solution = solve(problem.take(train), lam)
            values = linalg.matmul(linalg.submatrix(problem.K, test, train), solution.coef)
            values = values + solution.intercept
        else:
            weights = np.zeros_like(problem.s)
            weights[train] = problem.s[train]
            solution = solve(replace(problem, s=weights), lam, start=start)
            values = solution.decision[test]
    if not np.isfinite(values).all():
        raise FloatingPointError(
            f"a refit at lam={lam:g} gave values that are not finite; raise lam, or scale the data"
        )
    return values, solution
