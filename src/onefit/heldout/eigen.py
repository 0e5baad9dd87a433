"""One eigendecomposition for every lambda (Tanaka and Imai, IEICE 2019).

R K R = Q diag(e) Q' gives M^-1 = Q diag(1/(e + c)) Q' for any c, so the block of a fold is a symmetric
rank update, (M^-1)_SS = A A' with A = Q_S diag((e + c)^-1/2), and the diagonal alone (leave-one-out) costs
n^2 a lambda. Two things make it cheaper than that.

*The cut.* Write M^-1 = (I - H)/c with H = Q diag(e/(e + c)) Q'. Eigenvalues below roundoff times c
add less than roundoff to H: they are dropped, and the rank of the update falls from n to the number of
eigenvalues that c can see. Where I - H_SS is nearly singular that form cancels (its Cholesky pivots tell),
and the sum over all eigenvalues is taken instead.

*Low rank.* A smooth kernel has few eigenvalues above roundoff. Pivoted Cholesky finds K = L L' + E, L
of r columns, E positive semi-definite, in n r^2; the eigenvectors of the small L'L = V diag(e) V' then
give H = F diag(1/(e + c)) F' with F = L V. Dropping E changes no held-out residual by more than
(trace(E)/c) ||residuals|| / lambda_min(I - H_SS), since 0 <= (M - E)^-1 - M^-1 <= (trace(E)/c) (M - E)^-1; it is
dropped only if trace(E) <= 1e-12 c for the smallest c asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, Prepared
from onefit.heldout.leaveout import Inverse, Layout, LeaveOut
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["Eigen"]

#: a Cholesky pivot of I - H_SS below this has cancelled too many digits
PIVOT = 1e-5
#: the part of a kernel matrix that low rank may drop, relative to the smallest c
DROPPED = 1e-12


class Eigen(HeldOutMethod):
    """Exact k-fold of the squared loss for all lambdas by one eigendecomposition a kernel."""

    name = "eigen"
    losses = ("squared",)

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        layout = Layout.arrange(problem, folds)
        M = layout.matrix()
        factor = _low_rank(M, min(layout.ridges(lams), default=0.0))
        if factor is not None:
            values, vectors = linalg.eigh(linalg.gram(factor), overwrite=True)
            return _Eigen(layout, values, linalg.matmul(factor, vectors), complete=False, lams=lams)
        values, vectors = linalg.eigh(M, overwrite=True)
        return _Eigen(layout, np.maximum(values, 0.0), vectors, complete=True, lams=lams)


def _low_rank(M: Array, ridge: float) -> Array | None:
    """L with M - L L' below what ``ridge`` can see, or None if its rank is no less than n/2."""
    n = M.shape[0]
    tolerance = DROPPED * ridge / n
    epsilon = float(np.finfo(M.dtype).eps)
    if tolerance < epsilon * float(np.diagonal(M).max()):
        return None
    factor, pivots = linalg.pivoted_cholesky(M, tolerance)
    if 2 * factor.shape[1] > n:
        return None
    L = np.empty_like(factor, order="F")
    L[pivots] = factor
    return L


@dataclass
class _Eigen(LeaveOut):
    """Eigenvalues (ascending), and eigenvectors: a complete basis Q, or the factor F of low rank."""

    layout: Layout
    values: Array
    vectors: Array
    complete: bool
    lams: Array
    name = "eigen"

    def __post_init__(self) -> None:
        layout = self.layout
        self.projected = linalg.matmul(self.vectors.T, layout.targets)
        self.diagonals: dict[float, tuple[Array, Array]] = {}
        if layout.one_row_each:
            self._tabulate_diagonals()
        elif all(isinstance(rows, slice) for rows in layout.removed):
            self.rows = [np.asfortranarray(self.vectors[rows]) for rows in layout.removed]
            self.vectors = np.empty((0, 0))
        else:
            self.rows = []
        largest = max((np.arange(layout.root.size)[r].size for r in layout.removed), default=0)
        self.scratch = np.empty(largest * self.values.size, dtype=self.values.dtype)

    def rows_of(self, i: int) -> Array:
        """The rows of the basis that the i-th near split removes."""
        return self.rows[i] if self.rows else np.asfortranarray(self.vectors[self.layout.removed[i]])

    def inverse(self, ridge: float) -> Inverse:
        return _Spectral(self, ridge)

    def largest(self) -> float:
        return float(self.values[-1])

    def _tabulate_diagonals(self) -> None:
        """The diagonal of M^-1, and M^-1 [R Y, R 1], for every c of a leave-one-out at once."""
        ridges = self.layout.ridges(self.lams)
        damped = 1.0 / (self.values[:, None] + np.array(ridges, dtype=self.values.dtype))
        width = self.projected.shape[1]
        right = (damped[:, :, None] * self.projected[:, None, :]).reshape(self.values.size, -1)
        solved = linalg.matmul(self.vectors, np.asfortranarray(right))
        np.square(self.vectors, out=self.vectors)
        sums = linalg.matmul(self.vectors, np.asfortranarray(damped))
        self.vectors = np.empty((0, 0))
        for j, ridge in enumerate(ridges):
            columns = solved[:, j * width : (j + 1) * width]
            if self.complete:
                self.diagonals[ridge] = sums[:, j], columns
            else:
                smooth = (self.layout.targets - columns) / ridge
                self.diagonals[ridge] = (1.0 - sums[:, j]) / ridge, smooth


class _Spectral(Inverse):
    def __init__(self, state: _Eigen, ridge: float) -> None:
        self.state, self.ridge = state, ridge
        self.damped = 1.0 / (state.values + ridge)
        self.coefficients = self.damped[:, None] * state.projected
        inner = state.projected[:, -1] @ self.coefficients
        targets = state.layout.targets
        self.sums = inner if state.complete else (targets[:, -1] @ targets - inner) / ridge
        epsilon = float(np.finfo(state.values.dtype).eps)
        cut = max(epsilon * ridge, 2.0 * epsilon * state.values[-1])
        self.seen = int(np.searchsorted(state.values, cut))

    def solved(self, i: int) -> Array:
        smooth = linalg.matmul(self.state.rows_of(i), self.coefficients)
        if self.state.complete:
            return smooth
        return np.asarray((self.state.layout.targets[self.state.layout.removed[i]] - smooth) / self.ridge)

    def diagonal(self) -> tuple[Array, Array]:
        return self.state.diagonals[self.ridge]

    def block(self, i: int) -> Array:
        if not self.state.complete:
            return self._complement(i, self.damped, slice(None))
        if 10 * self.seen < self.damped.size:
            return self._update(i, self.damped, slice(None))
        seen = slice(self.seen, None)
        block = self._complement(i, self.state.values[seen] * self.damped[seen], seen)
        if _cancelled(block, self.ridge):
            return self._update(i, self.damped, slice(None))
        return block

    def _update(self, i: int, weight: Array, columns: slice) -> Array:
        """Q_S diag(weight) Q_S' over some of the eigenvectors."""
        rows = self.state.rows_of(i)[:, columns]
        scaled = self.state.scratch[: rows.size].reshape(rows.shape, order="F")
        np.multiply(rows, np.sqrt(weight), out=scaled)
        return linalg.gram(scaled, rows=True)

    def _complement(self, i: int, weight: Array, columns: slice) -> Array:
        """(I - H_SS) / c."""
        block = self._update(i, weight, columns)
        block *= -1.0 / self.ridge
        block[np.diag_indices_from(block)] += 1.0 / self.ridge
        return block


def _cancelled(block: Array, ridge: float) -> bool:
    """Whether I - H_SS has lost too many digits, told by its Cholesky pivots."""
    try:
        factor = linalg.cholesky(block)
    except linalg.LinAlgError:
        return True
    return bool(ridge * np.diagonal(factor).min() ** 2 < PIVOT)
