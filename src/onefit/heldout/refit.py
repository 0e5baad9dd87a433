"""Refits: fit without the fold, predict the fold.

A refit is a column of Newton's method that begins at
zero, with a factor of its own, in double precision whatever the data are in; like any other
solution it is believed as far as its certificate goes (onefit.columns.certify).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.columns.certify import WANTED_SHARE_OF_TOLERANCE
from onefit.columns.fit import certified
from onefit.columns.newton import Batch
from onefit.columns.solve import solve_columns
from onefit.folds import Folds
from onefit.heldout.base import HeldOutPath
from onefit.heldout.splits import Splits
from onefit.problem import Columns, Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = [
    "Refitted",
    "cheap_to_refit",
    "fill_refits",
    "finished",
    "refit_again",
    "refit_columns",
    "refit_fold",
]

#: operations up to which folds are refitted for their certificate alone (benchmarks/ablation.py)
MAX_REFIT_OPERATIONS = 1e8


def cheap_to_refit(n: int, folds: int) -> bool:
    """Whether some folds of n rows are cheap enough to refit for a certificate."""
    return 0.0 < folds * float(n) ** 3 <= MAX_REFIT_OPERATIONS


def fill_refits(
    path: HeldOutPath,
    i: int,
    problem: Problem,
    folds: Folds,
    splits: Any,
) -> None:
    """Refit some splits at the i-th lambda of a path, and put in what they predict."""
    for k in splits:
        train, test = folds.train[k], folds.test[k]
        found = refit_fold(problem, float(path.lams[i]), train, test)
        path.fill(i, k, slice(None), found.values, found.error)
        path.steps[i, k] = found.solution.steps


def finished(path: HeldOutPath, splits: Splits, again: bool) -> HeldOutPath:
    """The path with the splits that no formula serves, judged.

    ``again``: splits by formula without a certificate are refitted, where that is cheap, and keep
    what has the smaller bound.
    """
    problem, some = splits.problem, splits.by_formula
    for i in np.flatnonzero(path.done).tolist():
        with path.attempt([i]):
            fill_refits(path, i, problem, splits.positive, splits.by_refit)
            rough = some[~(path.bounds[i, some] <= EXACT_TOLERANCE * problem.scale).all(axis=1)]
            if again and problem.K.held and cheap_to_refit(problem.n, rough.size):
                for k in rough.tolist():
                    refit_again(path, i, k, problem, splits.positive)
    return path.judged(problem)


def refit_again(
    path: HeldOutPath, i: int, k: int, problem: Problem, folds: Folds, start: Solution | None = None
) -> None:
    """Refit one split that has values, and keep what has the smaller bound."""
    try:
        found = refit_fold(problem, float(path.lams[i]), folds.train[k], folds.test[k], start)
    except (linalg.LinAlgError, FloatingPointError):
        return
    better = np.flatnonzero(found.error < path.bounds[i, k])
    path.fill(i, k, better, found.values[:, better], found.error[better])
    path.steps[i, k] += found.solution.steps if start is not None else 0


class Refitted(NamedTuple):
    """A model of some rows.

    Attributes
    ----------
    values : (m, q) array
        Decision values of the test rows, in double precision.
    error : (q,) array
        Bound on the largest error of each column.
    solution : Solution
        On all rows; the coefficients of those that are not trained on are zero.
    """

    values: Array
    error: Array
    solution: Solution


def refit_fold(
    problem: Problem, lam: float, train: Indices, test: Indices, start: Solution | None = None
) -> Refitted:
    """The model of the training rows, from zero or from ``start``, a near solution."""
    columns = problem.double.targets(train, problem.ridge(lam, train))
    tested = np.zeros(columns.weights.shape, dtype=bool)
    tested[test] = True
    batch = refit_columns(columns, tested, start)
    solution = replace(batch.at, steps=int(batch.steps.max()))
    return Refitted(batch.at.u[test], batch.error, solution)


@linalg.overflowing
def refit_columns(columns: Columns, tested: Array, start: Solution | None = None) -> Batch:
    """Minimisers of some columns with a certificate for the tested rows.

    Where a start other than zero ends without a certificate, the columns begin at zero again.
    """
    if start is not None:
        start = start.astype(columns.K.dtype) if np.isfinite(start.a).all() else None
    batch = certified(
        columns, solve_columns(columns, start), tested, WANTED_SHARE_OF_TOLERANCE * EXACT_TOLERANCE
    )
    rough = np.flatnonzero(~(batch.error <= EXACT_TOLERANCE * columns.scale))
    if start is not None and rough.size:
        some = columns.take(rough)
        other = certified(
            some, solve_columns(some), tested[:, rough], WANTED_SHARE_OF_TOLERANCE * EXACT_TOLERANCE
        )
        better = np.flatnonzero(other.error < batch.error[rough])
        batch.put(rough[better], other, better)
    return batch
