"""The squared loss with the roots of its weights taken into kernel matrix and targets.

Weights s turn C = K + c I into K + c diag(1/s) = R^-1 M R^-1, M = R K R + c I, R = diag(sqrt(s)).
Everything about M is as without weights, with R y and R 1 instead of y and 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.gram import Gram
from onefit.problem import Problem

__all__ = ["scale_in_place", "scaled_matrix", "weight_roots"]


def weight_roots(problem: Problem) -> Array:
    """The diagonal of R.

    Rows of weight zero are always removed. They have the mean weight of the others, so that M does
    not depend on the unit of the weights.
    """
    positive = problem.s > 0
    mean = problem.s[positive].mean() if positive.any() else 1.0
    return np.sqrt(np.where(positive, problem.s, mean)).astype(problem.Y.dtype)


def scaled_matrix(K: Gram, root: Array) -> Any:
    """A column-major R K R that may be overwritten, where K is."""
    xp, matrix = K.arrays, K.hold().matrix
    return scale_in_place(xp, linalg.fortran(matrix) if xp.on_host else xp.copy(matrix), root)


def scale_in_place(xp: linalg.Arrays, M: Any, root: Array) -> Any:
    """R M R in place."""
    if (root != 1.0).any():
        there = xp.asarray(root)
        M *= there[:, None]
        M *= there[None, :]
    return M
