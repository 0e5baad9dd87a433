r"""Rows leave and enter one factor that many columns share: leave-out steps as small changes.

The system of a leave-S-out problem is that of its training points with curvature, A_k. It differs
from that of a base, the *full* solution's A say, only by the rows R = A \ A_k that leave (the
fold's, and points that lost their curvature) and the rows E = A_k \ A that enter. With rho_i =
c_i^(-1/2) on A and the inverse taken once,

    M = I + diag(rho) K_AA diag(rho),          T = [diag(rho) K_AE, rho, I_R],

leaving R out means da_R = 0 with free residuals t, so that the unknowns beside the change da_A of
the coefficients are y = (da_E, db, t):

    da_A / rho = M^-1 (beta - T y),                         beta = rho e_A,

    (T'M^-1 T - Z) y = T'M^-1 beta - (e_E, h, 0),              h = -total,

    Z = [[K_EE + diag(c_E), 1, 0], [1', 0, 0], [0, 0, 0]].

All folds read the blocks of T'M^-1 T from the same arrays: a step of a fold costs a system of size
|E| + 1 + |R|. If a factor of its own costs less (few points with curvature, or many changes), that
is used instead. A smooth loss must keep the curvature of the base, or every row would both leave
and enter.

The first step, from the full solution with E empty, is the sum of the whole influence series
(its limit).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.inverse import DenseInverse, FactorInverse, RidgeInverse
from onefit.problem import Problem
from onefit.systems.base import NewtonModel, System, by_column
from onefit.systems.cholesky import Cholesky

__all__ = ["ColumnUpdate", "SharedFactor", "Update"]

#: share of the rows with curvature that may have changed before a new factor costs less than
#: another change of the old one; at 0.1, an exact search of german.numer takes 15 % more time
#: (benchmarks/ablation.py), others the same within a factor of four (benchmarks/constants.py)
MAX_CHANGED_SHARE = 0.08

#: the place of the border
_BORDER = np.zeros(1, dtype=np.intp)


class SharedFactor:
    """T'M^-1 T for every row that may leave or enter, at the Lambda that some columns share.

    ``inverse`` is its part for the rows of A, which columns drop. ``tail`` holds the rows of the
    border and of the ``entrants``, the points that have entered some column so far, as far as the
    diagonal, less what all columns share of Z (K_EE and the ones of the border). The lower triangle
    of a column's small system is a submatrix of the two.

    Parameters
    ----------
    problem : Problem
    d : (n,) array
        Curvature of the base, zero off A.
    ridge : float
        Lambda.
    alone : bool, default=False
        Whether there is one column: a factor costs less than an inverse then.
    """

    def __init__(self, problem: Problem, d: Array, ridge: float, alone: bool = False) -> None:
        self.problem, self.K, self.s = problem, problem.K, problem.s
        self.ridge, self.d, self.alone = ridge, d, alone
        self.fit_intercept = problem.fit_intercept
        self.active = np.flatnonzero(self.d > 0.0)
        self.p = self.active.size
        self.inside = np.zeros(problem.n, dtype=bool)
        self.inside[self.active] = True
        self.rho = np.sqrt(self.s[self.active] * self.d[self.active] / (2.0 * ridge))
        self.entered = np.empty((self.p, 0), dtype=self.rho.dtype, order="F")
        self.entrants = np.empty(0, dtype=np.intp)
        self.entry = np.full(problem.n, -1, dtype=np.intp)

    @cached_property
    def inverse(self) -> RidgeInverse:
        """M^-1."""
        K = self.K.block(self.active)
        form = FactorInverse if self.alone else DenseInverse
        return form(linalg.unit_ridge(K, self.rho), self.rho)

    @cached_property
    def tail(self) -> Array:
        """T'M^-1 T - Z: columns for A, the border and the entrants, rows for the latter two."""
        solved = self.inverse.apply(self.rho)
        return np.concatenate([solved, [self.rho @ solved]])[None, :]

    def solve(self, model: NewtonModel) -> tuple[Array, Array]:
        """Changes da and db of columns with this Lambda, all with rows that have curvature."""
        a, b = np.zeros_like(model.fixed), np.zeros(model.total.size)
        curved = model.d > 0.0
        # a point whose curvature changed from one positive value to another both leaves and enters
        kept = self.inside[:, None] & (model.d == self.d[:, None])
        pairs = zip(by_column(curved & ~kept), by_column(~kept[self.active]), strict=True)
        changes = [_Change(c, *pair) for c, pair in enumerate(pairs)]
        updated = self._worth_updating(changes)
        small = [change for change in changes if change.column in updated]
        try:
            if small:
                self._update(small, model, a, b)
        except linalg.LinAlgError:
            updated = set()  # M is indefinite by rounding, or a small system singular
        others = [change.column for change in changes if change.column not in updated]
        if others:
            afresh = Cholesky(self.problem, np.full(len(others), self.ridge))
            a[:, others], b[others] = afresh.solve(model.take(others))
        return a, b

    def _worth_updating(self, changes: list[_Change]) -> set[int]:
        """Columns for which a small change costs less than a factor of their own."""
        p = self.p
        size = {c.column: p - c.leaving.size + c.entering.size for c in changes}
        fewer = [c for c in changes if c.size < 0.8 * size[c.column]]
        have = "inverse" in vars(self)
        update = 0.0 if have else float(p) ** 3 / (3.0 if self.alone else 1.0)
        block = 2.0 * p**2 * self.alone  # what a block of the inverse costs, per row
        update += sum(block * c.size + c.size**3 / 3 for c in fewer)
        afresh = sum(size[c.column] ** 3 / 3 + 16 * size[c.column] ** 2 for c in fewer)
        return {c.column for c in fewer} if update < afresh else set()

    def _update(self, changes: list[_Change], model: NewtonModel, a: Array, b: Array) -> None:
        """The small systems of some columns, and their coefficients."""
        self._enter(np.unique(np.concatenate([change.entering for change in changes])))
        columns: Any = [change.column for change in changes]
        if len(columns) == b.size:
            columns = slice(None)
        missing, d, total = model.missing[:, columns], model.d[:, columns], model.total[columns]
        beta = np.asfortranarray(self.rho[:, None] * missing[self.active])
        solved = self.inverse.apply(beta)
        inner = linalg.matmul(self.entered.T, solved) - missing[self.entrants]
        right = np.asfortranarray(np.vstack([self.rho @ solved + total, inner]))
        y = np.zeros_like(right)
        with np.errstate(divide="ignore"):
            c = 2.0 * self.ridge / (self.s[self.entrants, None] * d[self.entrants])
        for j, change in enumerate(changes):
            entering, m = np.sort(self.entry[change.entering]), change.leaving.size
            places = np.concatenate([_BORDER, entering]) if self.fit_intercept else entering
            part = self._small_solution(change.leaving, places, solved[:, j], right[:, j], c[:, j])
            beta[change.leaving, j] -= part[:m]
            y[places, j] = part[m:]
        beta -= self.rho[:, None] * y[0] + linalg.matmul(self.entered, y[1:])
        inside = self.rho[:, None] * self.inverse.apply(beta)
        for j, change in enumerate(changes):
            inside[change.leaving, j] = 0.0
        # rows whose curvature changed both leave and enter
        whole = np.zeros((a.shape[0], y.shape[1]), dtype=a.dtype, order="F")
        whole[self.active] = inside
        whole[self.entrants] += y[1:]
        a[:, columns], b[columns] = whole, y[0]

    def _small_solution(
        self, out: Indices, places: Indices, solved: Array, right: Array, c: Array
    ) -> Array:
        """t, db and da_E of one column, which needs some ``places`` of the tail."""
        m, size = out.size, out.size + places.size
        if size == 0:
            return np.empty(0)
        matrix = np.empty((size, size), self.rho.dtype, order="F")
        if m:
            matrix[:m, :m] = self.inverse.block(out)
        matrix[m:] = linalg.submatrix(self.tail, places, np.concatenate([out, self.p + places]))
        border = int(self.fit_intercept)
        # the diagonal, from the first that enters
        matrix.ravel(order="K")[(m + border) * (size + 1) :: size + 1] -= c[places[border:] - 1]
        entering = places.size > border
        solver = linalg.solve_symmetric if entering else linalg.solve_spd
        return solver(matrix, np.concatenate([solved[out], right[places]])[:, None])[:, 0]

    def _enter(self, rows: Indices) -> None:
        """Give the points that enter for the first time their `entered` and rows of `tail`."""
        new = rows[self.entry[rows] < 0]
        if new.size == 0:
            return
        before, p = self.entrants.size, self.p
        self.entrants = np.concatenate([self.entrants, new])
        self.entry[new] = 1 + before + np.arange(new.size)
        K_new = self.K.block(new, np.concatenate([self.active, self.entrants])).T
        inside = np.asfortranarray(self.rho[:, None] * K_new[:p])
        self.entered = np.hstack([self.entered, inside])
        solved = self.inverse.apply(inside)
        inner = linalg.matmul(self.entered.T, solved) - K_new[p:]
        tail = np.zeros((1 + self.entrants.size, p + 1 + self.entrants.size), self.rho.dtype)
        tail[: 1 + before, : p + 1 + before] = self.tail
        tail[1 + before :] = np.vstack([solved, self.rho @ solved - 1.0, inner]).T
        self.tail = tail


class ColumnUpdate(System):
    """One column in the course of a fit, whose base is renewed when many points have changed.

    The first steps of a fit change the curvature of many points, which needs a new factor; the last
    steps change few.

    Parameters
    ----------
    base : SharedFactor
    """

    def __init__(self, base: SharedFactor) -> None:
        self.base = base

    def take(self, columns: Any) -> ColumnUpdate:
        """Itself: there is one column."""
        return self

    def _solve(self, model: NewtonModel) -> tuple[Array, Array]:
        """Changes by the factor of the base, or of a new base if the old one is too far."""
        base, d = self.base, model.d[:, 0]
        if np.count_nonzero(d != base.d) > MAX_CHANGED_SHARE * base.p:
            self.base = SharedFactor(base.problem, d, base.ridge, alone=True)
        return self.base.solve(model)


class Update(System):
    """Columns with a few bases, each of which changes one of these.

    Parameters
    ----------
    bases : list of SharedFactor
        One per Lambda.
    which : (k,) index array
        The base of each column.
    """

    def __init__(self, bases: list[SharedFactor], which: Indices) -> None:
        self.bases, self.which = bases, which

    @classmethod
    def joined(cls, systems: list[Update]) -> Update:
        """The columns of several systems, for losses that do not keep the curvature of a base."""
        before = np.cumsum([0, *(len(system.bases) for system in systems)])
        which = [system.which + k for system, k in zip(systems, before, strict=False)]
        return cls([base for system in systems for base in system.bases], np.concatenate(which))

    @property
    def curvature(self) -> Array | None:  # type: ignore[override]
        """Curvature of the base."""
        return self.bases[0].d[:, None]

    def take(self, columns: Any) -> Update:
        return Update(self.bases, self.which[columns])

    def _solve(self, model: NewtonModel) -> tuple[Array, Array]:
        """Changes by the factor of each column's own base."""
        used = np.unique(self.which)
        if used.size == 1:
            return self.bases[int(used[0])].solve(model)
        a, b = np.empty_like(model.fixed), np.empty(self.which.size, dtype=model.fixed.dtype)
        for place in used:
            some = np.flatnonzero(self.which == place)
            a[:, some], b[some] = self.bases[place].solve(model.take(some))
        return a, b


class _Change(NamedTuple):
    """Differences of the active set of a column from that of its base: rows, and places in A."""

    column: int
    entering: Indices
    leaving: Indices

    @property
    def size(self) -> int:
        return self.entering.size + self.leaving.size + 1
