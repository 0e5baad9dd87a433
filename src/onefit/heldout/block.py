"""One Cholesky factor per lambda, and of the inverse only the diagonal blocks (An et al. 2007).

With M = R K R + c I = L L' and W = L^-1, the block of a fold is (M^-1)_SS = W_S' W_S, a symmetric
rank update of the columns S of W; with the rows of the folds adjacent, these columns are zero above
the fold's first row. Factor and inverse cost 2/3 n^3, the blocks of k equal folds n^3 / (2 k) more, and
never is the whole inverse formed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, Prepared
from onefit.heldout.leaveout import Inverse, Layout, LeaveOut
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["Block"]


class Block(HeldOutMethod):
    """Exact k-fold of the squared loss by a Cholesky factorisation per lambda."""

    name = "block"
    losses = ("squared",)

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        return _Block(Layout.arrange(problem, folds))


@dataclass
class _Block(LeaveOut):
    layout: Layout
    name = "block"
    _largest: float = field(default=0.0)

    def inverse(self, ridge: float) -> Inverse:
        factor = linalg.cholesky_or_raise(self.layout.matrix(ridge), ridge)
        return _Triangular(linalg.triangular_inverse(factor, overwrite=True), self.layout)

    def largest(self) -> float:
        if not self._largest:
            M = self.layout.matrix()
            self._largest = float(np.abs(M).sum(axis=0).max())
        return self._largest


class _Triangular(Inverse):
    def __init__(self, W: Array, layout: Layout) -> None:
        self.W, self.removed = W, layout.removed
        half = linalg.matmul(W, layout.targets)
        self.all = linalg.matmul(W.T, half)
        self.sums = half[:, -1] @ half

    def block(self, i: int) -> Array:
        rows = self.removed[i]
        if isinstance(rows, slice):
            return linalg.gram(self.W[rows.start :, rows])
        return linalg.gram(self.W[:, rows])

    def solved(self, i: int) -> Array:
        return np.asarray(self.all[self.removed[i]])

    def diagonal(self) -> tuple[Array, Array]:
        return np.einsum("ij,ij->j", self.W, self.W), self.all
