"""One Cholesky factor per lambda, and of the inverse only the diagonal blocks (An et al. 2007).

With M = R K R + c I = L L' and W = L^-1, the block of a fold is (M^-1)_SS = W_S' W_S, a
symmetric rank update of the columns S of W; with the rows of the folds adjacent, these columns
are zero above the fold's first row. Factor and inverse cost 2/3 n^3, the blocks of k equal
folds n^3 / (2 k) more, and never is the whole inverse formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
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
        return _Block(Layout.arrange(replace(problem, disposable=False), folds))


@dataclass
class _Block(LeaveOut):
    layout: Layout
    name = "block"

    def inverse(self, ridge: float) -> Inverse:
        factor = linalg.cholesky_or_raise(self.layout.matrix(ridge), ridge)
        W = linalg.triangular_inverse(factor, overwrite=True)
        return _Triangular(W, self.layout, ridge)

    def largest(self) -> float:
        return self._row_sum

    @cached_property
    def _row_sum(self) -> float:
        """The largest absolute row sum of R K R."""
        return float(self.layout.problem.norms.row_sum * self.layout.problem.s.max())


class _Triangular(Inverse):
    """P = W'W, less the border's vv'/(1'v) with v = M^-1 R 1 if there is an intercept."""

    def __init__(self, W: Array, layout: Layout, ridge: float) -> None:
        self.W, self.removed, self.ridge = W, layout.removed, ridge
        half = linalg.matmul(W, np.column_stack([layout.targets, layout.root]))
        solved = linalg.matmul(W.T, half)
        self.all, self.ones = solved[:, :-1], np.zeros_like(solved[:, -1])
        if layout.problem.fit_intercept:
            sums = half[:, -1] @ half
            self.ones = solved[:, -1] / np.sqrt(sums[-1])
            self.all = self.all - np.outer(solved[:, -1], sums[:-1] / sums[-1])

    @cached_property
    def norm(self) -> float:
        """That of W'W."""
        return linalg.norm_of_gram(self.W)

    def block(self, i: int) -> Array:
        rows = self.removed[i]
        first = rows.start if isinstance(rows, slice) else 0
        return linalg.gram(self.W[first:, rows]) - np.outer(self.ones[rows], self.ones[rows])

    def alpha(self, i: int) -> Array:
        return np.asarray(self.all[self.removed[i]])

    def diagonal(self) -> tuple[Array, Array]:
        return np.einsum("ij,ij->j", self.W, self.W) - np.square(self.ones), self.all
