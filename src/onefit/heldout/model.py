"""Newton's models of several problems side by side, and what minimises them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.problem import Problem
from onefit.solvers.newton import solve_active

Array = NDArray[Any]
Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]

__all__ = ["Model", "Solver", "afresh", "by_column", "product"]

#: rows of K gathered at a time, few enough to stay in the cache
_GATHERED = 64


@dataclass(frozen=True)
class Model:
    """The Newton models of several problems, seen from their bases, as columns.

    Attributes
    ----------
    d : (n, k) array
        Curvature, zero on rows that the problem does without.
    missing : (n, k) array
        e above, where there is curvature.
    fixed : (n, k) array
        The change of the coefficients of rows without curvature, zero elsewhere.
    total : (k,) array
        The sum of all coefficients after that change.
    """

    d: Array
    missing: Array
    fixed: Array
    total: Array


class Solver(Protocol):
    """What minimises the models of several problems, each with a Lambda of its own."""

    @property
    def ridge(self) -> Array:
        """Lambda of each problem."""

    @property
    def exact_ridge(self) -> Array:
        """Lambda of each problem, in double precision whatever the data are in."""

    def take(self, columns: Any) -> Solver:
        """That of some of the problems."""

    def solve(self, model: Model) -> tuple[Array, Array, Mask]:
        """Changes to the minimisers: da (n, k), db (k,), and which intercepts are determined.

        da is that of the rows with curvature, beside what is `fixed`. A model without any curvature
        says nothing of the intercept.
        """


def afresh(
    problem: Problem, ridge: float, model: Model, column: int, rows: Rows
) -> tuple[Array, float]:
    """One minimiser, da on the ``rows`` with curvature and db, by a factor of its own."""
    root = np.sqrt(problem.s[rows] * model.d[rows, column] / (2.0 * ridge))
    K = problem.K if rows.size == problem.n else linalg.submatrix(problem.K, rows, rows)
    total = float(model.total[column])
    return solve_active(K, model.missing[rows, column], root, total, problem.fit_intercept)


def product(K: Array, A: Array) -> Array:
    """K A, reading only the rows of K (symmetric) that some column of A needs, a few at a time."""
    rows = np.flatnonzero(A.any(axis=1))
    some = A[rows]
    out = np.zeros(A.shape, dtype=K.dtype, order="F")
    gathered = np.empty((_GATHERED, K.shape[0]), dtype=K.dtype)
    for first in range(0, rows.size, _GATHERED):
        piece = slice(first, first + _GATHERED)
        K_piece = gathered[: rows[piece].size]
        K.take(rows[piece], axis=0, out=K_piece, mode="clip")
        linalg.accumulate(out, K_piece.T, some[piece])
    return out


def by_column(mask: Mask) -> list[Rows]:
    """The rows where each column is true."""
    rows = np.nonzero(mask.T)[1]
    return [rows[first:last] for first, last in pairwise([0, *mask.sum(axis=0).cumsum()])]
