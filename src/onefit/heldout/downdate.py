r"""Leave-out Newton steps as small changes of the full solution's factor.

Newton's model of the leave-S-out problem at predictions u (see onefit.solvers.newton) is a
bordered least-squares system on the training points with curvature, A_k, with ridge c_i = 2
Lambda_k / (s_i d_i). Its matrix differs from that of the *full* solution's active set A only by
the rows R = A \ A_k that drop out (the fold's, and points that lost their curvature) and the
rows E = A_k \ A that come in. With rho_i = c_i^(-1/2) on A and the inverse taken once,

    M = I + diag(rho) K_AA diag(rho),          T = [diag(rho) K_AE, rho, I_R],

leaving R out means a_R = 0 with free residuals t, so that the unknowns beside a_A are y = (a_E,
b, t):

    a_A / rho = M^-1 (beta - T y),                          beta = rho (z - K_{A,fixed} a_fixed),

    (T'M^-1 T - Z) y = T'M^-1 beta - (beta_E, h, 0),

    Z = [[K_EE + diag(c_E), 1, 0], [1', 0, 0], [0, 0, 0]],

with z = u - g/d the working response, the coefficients of points without curvature fixed at a_i
= -s_i g_i / (2 Lambda_k), and h = -sum(a_fixed). All folds draw the blocks of T'M^-1 T from the
same arrays, so that a step costs a fold no more than a system of size |E| + 1 + |R|. Where a
factor of its own costs less (few points with curvature, or many changes), it is taken instead.

The first step, from the full solution with E empty, is the sum of the whole influence series
(its limit).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.heldout.full import Norms, Target
from onefit.solvers.newton import solve_active

Array = NDArray[Any]
Rows = NDArray[np.intp]

__all__ = ["Downdate", "Model", "product"]


@dataclass(frozen=True)
class Model:
    """The Newton models of several leave-out problems at their current predictions, as columns.

    Attributes
    ----------
    u, d : (n, k) arrays
        Predictions and curvature, the latter zero on rows that the problem does without.
    response : (n, k) array
        z - K a_fixed where there is curvature.
    fixed : (n, k) array
        Coefficients of the rows without curvature, zero elsewhere.
    """

    u: Array
    d: Array
    response: Array
    fixed: Array


def product(K: Array, A: Array) -> Array:
    """K A, reading only the rows of K (symmetric) that some column of A needs."""
    rows = np.flatnonzero(A.any(axis=1))
    if 4 * rows.size > K.shape[0]:
        return linalg.matmul(K, np.asfortranarray(A))
    return linalg.matmul(K[rows].T, np.asfortranarray(A[rows]))


class Downdate:
    """The inverse of one full solution's system, at the Lambda that some splits share."""

    def __init__(self, target: Target, ridge: float, norms: Norms) -> None:
        problem = target.problem
        self.norms = norms
        self.K, self.s, self.ridge, self.d = problem.K, problem.s, ridge, target.d
        self.fit_intercept = problem.fit_intercept
        self.active = target.active
        self.position = np.full(problem.n, -1, dtype=np.intp)
        self.position[self.active] = np.arange(self.active.size)
        self.rho = np.sqrt(self.s[self.active] * self.d[self.active] / (2.0 * ridge))
        self.entering = _Entering(np.empty(0, np.intp), *[np.empty((self.active.size, 0))] * 2)

    @property
    def condition(self) -> float:
        """A bound on the condition number of M."""
        return 1.0 + self.norms.row_sum * float(np.square(self.rho).max(initial=0.0))

    @cached_property
    def inverse(self) -> Array:
        """M^-1."""
        whole = self.active.size == self.K.shape[0]
        M = linalg.fortran(self.K if whole else self.K[np.ix_(self.active, self.active)])
        M *= self.rho[:, None]
        M *= self.rho[None, :]
        M[np.diag_indices_from(M)] += 1.0
        return linalg.inverse_spd(M)

    @cached_property
    def border(self) -> Array:
        """M^-1 rho."""
        return linalg.matmul(self.inverse, self.rho)

    def solve(self, model: Model) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Minimisers of the models: coefficients (n, k), intercepts (k,), and which are determined.

        A model without any curvature says nothing of the intercept.
        """
        a, b = model.fixed.copy(), np.zeros(model.u.shape[1])
        curved = model.d > 0.0
        some = curved.any(axis=0)
        changes = [_Change(int(c), *self._change(model.d[:, c])) for c in np.flatnonzero(some)]
        updated = self._worth_updating(changes)
        for change in changes:
            if change.column not in updated:
                rows = np.flatnonzero(curved[:, change.column])
                a[rows, change.column], b[change.column] = self._afresh(rows, model, change.column)
        changes = [change for change in changes if change.column in updated]
        if changes:
            self._update(changes, model, a, b)
        return a, b, np.asarray(some | (not self.fit_intercept))

    def _worth_updating(self, changes: list[_Change]) -> set[int]:
        """Columns for which a small change costs less than a factor of their own."""
        p = self.active.size
        size = {c.column: p - c.rows_out.size + c.rows_in.size for c in changes}
        fewer = [c for c in changes if c.size < 0.8 * size[c.column]]
        known = "inverse" in self.__dict__
        update = (0.0 if known else float(p) ** 3) + sum(c.size**3 / 3 for c in fewer)
        afresh = sum(size[c.column] ** 3 / 3 + 16 * size[c.column] ** 2 for c in fewer)
        return {c.column for c in fewer} if update < afresh else set()

    def _change(self, d: Array) -> tuple[Rows, Rows]:
        """Rows that enter the active set, and positions in it of those that leave.

        A point whose curvature changed from one positive value to another does both.
        """
        inside = self.position >= 0
        kept = inside & (d == self.d)
        return np.flatnonzero((d > 0) & ~kept), self.position[np.flatnonzero(inside & ~kept)]

    def _afresh(self, rows: Rows, model: Model, column: int) -> tuple[Array, float]:
        root = np.sqrt(self.s[rows] * model.d[rows, column] / (2.0 * self.ridge))
        whole = rows.size == self.K.shape[0]
        K = self.K if whole else self.K[np.ix_(rows, rows)]
        fixed_sum = float(model.fixed[:, column].sum())
        return solve_active(K, model.response[rows, column], root, fixed_sum, self.fit_intercept)

    def _update(self, changes: list[_Change], model: Model, a: Array, b: Array) -> None:
        """The small systems of some columns, and their coefficients."""
        self._enter(np.unique(np.concatenate([change.rows_in for change in changes])))
        columns = np.array([change.column for change in changes], dtype=np.intp)
        beta = np.asfortranarray(self.rho[:, None] * model.response[np.ix_(self.active, columns)])
        solved = linalg.matmul(self.inverse, beta)
        projected = linalg.matmul(self.entering.rows.T, solved)
        summed = self.rho @ solved + model.fixed[:, columns].sum(axis=0)
        in_values = np.zeros((self.entering.index.size, len(columns)))
        for j, change in enumerate(changes):
            e = self.entering.find(change.rows_in)
            ridge = (
                2.0 * self.ridge / (self.s[change.rows_in] * model.d[change.rows_in, change.column])
            )
            right = np.concatenate(
                [
                    projected[e, j] - model.response[change.rows_in, change.column],
                    summed[[j]] if self.fit_intercept else [],
                    solved[change.rows_out, j],
                ]
            )
            y = _solve_small(self._small_matrix(change, e, ridge), right, e.size)
            in_values[e, j] = y[: e.size]
            if self.fit_intercept:
                b[change.column] = y[e.size]
            beta[change.rows_out, j] -= y[right.size - change.rows_out.size :]
        beta -= self.rho[:, None] * b[columns]
        beta -= linalg.matmul(self.entering.rows, in_values)
        inside = self.rho[:, None] * linalg.matmul(self.inverse, beta)
        for j, change in enumerate(changes):
            inside[change.rows_out, j] = model.fixed[self.active[change.rows_out], change.column]
            a[self.active, change.column] = inside[:, j]
            a[change.rows_in, change.column] = in_values[self.entering.find(change.rows_in), j]

    def _enter(self, rows: Rows) -> None:
        """Add rows to those whose part of T'M^-1 T is known."""
        new = np.setdiff1d(rows, self.entering.index, assume_unique=True)
        if new.size:
            K = np.asfortranarray(self.rho[:, None] * self.K[np.ix_(self.active, new)])
            self.entering = self.entering.extended(new, K, linalg.matmul(self.inverse, K), self.K)

    def _small_matrix(self, change: _Change, e: Rows, ridge: Array) -> Array:
        """T'M^-1 T - Z of one column, lower triangle."""
        q, out, bordered = e.size, change.rows_out, int(self.fit_intercept)
        first = q + bordered
        matrix = np.empty((first + out.size, first + out.size), self.rho.dtype, order="F")
        matrix[first:, first:] = self.inverse[np.ix_(out, out)]
        if q:
            matrix[:q, :q] = self.entering.inner[np.ix_(e, e)]
            matrix[np.arange(q), np.arange(q)] -= ridge
            matrix[first:, :q] = self.entering.solved[np.ix_(out, e)]
        if bordered:
            matrix[q, :q] = self.border @ self.entering.rows[:, e] - 1.0
            matrix[q, q] = self.rho @ self.border
            matrix[first:, q] = self.border[out]
        return matrix


@dataclass(frozen=True)
class _Change:
    """How the active set of one column differs from that of the full solution."""

    column: int
    rows_in: Rows
    rows_out: Rows

    @property
    def size(self) -> int:
        return self.rows_in.size + self.rows_out.size + 1


@dataclass(frozen=True)
class _Entering:
    """Rows that entered some fold's active set.

    `rows` is diag(rho) K_AE, `solved` M^-1 of it, `inner` their product less K_EE.
    """

    index: Rows
    rows: Array
    solved: Array
    inner: Array = field(default_factory=lambda: np.empty((0, 0)))

    def extended(self, new: Rows, rows: Array, solved: Array, K: Array) -> _Entering:
        index = np.concatenate([self.index, new])
        both = np.asfortranarray(np.column_stack([self.rows, rows]))
        inner = np.empty((index.size, index.size))
        old = self.index.size
        inner[:old, :old] = self.inner
        inner[:, old:] = linalg.matmul(both.T, solved) - K[np.ix_(index, new)]
        inner[old:, :old] = inner[:old, old:].T
        return _Entering(
            index, both, np.asfortranarray(np.column_stack([self.solved, solved])), inner
        )

    def find(self, rows: Rows) -> Rows:
        """Where rows stand in `index`."""
        order = np.argsort(self.index)
        return np.asarray(order[np.searchsorted(self.index, rows, sorter=order)])


def _solve_small(matrix: Array, right: Array, entering: int) -> Array:
    if right.size == 0:
        return right
    solver = linalg.solve_symmetric if entering else linalg.solve_spd
    return solver(matrix, right[:, None])[:, 0]
