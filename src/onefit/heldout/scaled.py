"""A problem of the squared loss with the roots of its weights taken into kernel matrix and targets.

Weights s turn C = K + c I into K + c diag(1/s) = R^-1 M R^-1, M = R K R + c I, R = diag(sqrt(s)).
Everything about M is as without weights, with R y and R 1 instead of y and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.folds import Folds
from onefit.gram import Gram
from onefit.heldout.splits import Splits
from onefit.problem import Problem

__all__ = ["Scaled", "scaled_matrix"]


def scaled_matrix(K: Gram, root: Array) -> Any:
    """A column-major R K R that may be overwritten, where K is."""
    xp, matrix = K.arrays, K.hold().matrix
    M = linalg.fortran(matrix) if xp.on_host else xp.copy(matrix)
    return _scale(xp, M, root)


def _scale(xp: linalg.Arrays, M: Any, root: Array) -> Any:
    """R M R in place."""
    if (root != 1.0).any():
        there = xp.asarray(root)
        M *= there[:, None]
        M *= there[None, :]
    return M


class Scaled:
    """A problem with the square roots of its weights taken into kernel matrix and targets.

    Attributes
    ----------
    splits : Splits
    root : (n,) array
        The diagonal of R (1 where the weight is zero: those rows are always removed).
    targets : (n, q) array
        R Y.
    in_place : bool
        Whether `matrix` is K's own memory.
    arrays : Arrays
        Where K is.
    """

    def __init__(self, problem: Problem, folds: Folds) -> None:
        self.problem, self.splits = problem, Splits.sort(problem, folds)
        self.arrays: linalg.Arrays = problem.K.arrays
        self.root = np.sqrt(np.where(problem.s > 0, problem.s, 1.0)).astype(problem.Y.dtype)
        self.targets = np.asfortranarray(self.root[:, None] * problem.Y)
        free = problem.may_overwrite and not self.splits.by_refit.size
        self.in_place = bool(self.arrays.on_host and free and problem.K.matrix.flags.c_contiguous)

    def matrix(self, ridge: float = 0.0) -> Any:
        """A column-major R K R + ridge I, which overwrites K if that is allowed."""
        if self.in_place:
            M = _scale(self.arrays, self.problem.K.matrix.T, self.root)
        else:
            M = scaled_matrix(self.problem.K, self.root)
        return self.arrays.add_diagonal(M, ridge)
