"""The leave-out formula of the squared loss: every fold exactly, from the full sample's inverse.

With C = K + c I (c = Lambda of the *training* part) and, with an intercept, the projected inverse

    P = C^-1 - C^-1 1 1'C^-1 / (1'C^-1 1)           (P = C^-1 without),          alpha = P y,

the machine trained without the rows S misses them by

    y_S - u_S = (P_SS)^-1 alpha_S                                                            (*)

exactly (An, Liu and Venkatesh 2007; with S = {i} Cawley's leave-one-out, y_i - u_i = alpha_i /
P_ii). Proof: rows S are left out of the bordered system by forcing a_S = 0 with free residuals
t on S, C a + b 1 + I_S t = y; hence a = P (y - I_S t), and a_S = 0 reads P_SS t = alpha_S,
while the row of S itself says that t = y_S - u_S. The values y_S and the diagonal of C on S
cancel: rows of weight zero are simply rows in every S.

Sample weights s turn C into K + c diag(1/s) = R^-1 M R^-1, M = R K R + c I, R = diag(sqrt(s));
(*) then holds for R y and R 1 in place of y and 1, and gives R_S (y_S - u_S).

The form (*) is the stable one as lam -> 0. The textbook form (y_i - u_i) / (1 - H_ii) divides two
differences of nearly equal numbers there; alpha and P_SS are sums without cancellation, and what
is lost is what the condition number (e_max + c) / c of the problem itself loses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.certificate import EXACT
from onefit.folds import Folds, Indices
from onefit.heldout.base import HeldOut, Prepared
from onefit.heldout.refit import cheap_to_refit, refit_fold
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["Inverse", "Layout", "LeaveOut"]


@dataclass(frozen=True)
class Layout:
    """The rows that each split removes, arranged for the formula.

    Attributes
    ----------
    problem : Problem
    folds, positive : Folds
        The splits as drawn, and with the rows of weight zero taken out of training.
    near : list of int
        Splits served by the formula; the others, ``far``, remove more rows than they keep, or test
        rows that they train on, and are refitted.
    order : (n,) index array
        A permutation of the rows that makes the rows removed by the near splits adjacent, where
        the splits do not overlap; the arrays below refer to permuted rows.
    removed : list of index arrays or slices
        The rows that each near split removes, those of weight zero among them.
    where : list of index arrays
        Positions of its test rows among the removed ones.
    root : (n,) array
        Roots of the sample weights (1 where the weight is zero: those rows are always removed).
    targets : (n, q) array
        R Y.
    """

    problem: Problem
    folds: Folds
    positive: Folds
    near: list[int]
    far: list[int]
    order: Indices
    removed: list[Any]
    where: list[Indices]
    root: Array
    targets: Array

    @classmethod
    def arrange(cls, problem: Problem, folds: Folds) -> Layout:
        """Sort the splits and the rows, and scale the targets."""
        positive = folds.without(np.flatnonzero(problem.s == 0))
        n, dtype = problem.n, problem.Y.dtype
        fits = [
            2 * rows.size <= n and disjoint
            for rows, disjoint in zip(positive.removed, positive.disjoint, strict=True)
        ]
        near = [k for k, fit in enumerate(fits) if fit]
        far = [k for k, fit in enumerate(fits) if not fit]
        rows = [positive.removed[k] for k in near]
        where = [np.searchsorted(r, positive.test[k]) for k, r in zip(near, rows, strict=True)]
        order, removed = _adjacent(rows, n)
        s = np.where(problem.s > 0, problem.s, 1.0)[order]
        root = np.sqrt(s).astype(dtype)
        targets = root[:, None] * problem.Y[order]
        return cls(
            problem, folds, positive, near, far, order, removed, where, root,
            np.asfortranarray(targets),
        )  # fmt: skip

    def matrix(self, ridge: float = 0.0) -> Array:
        """A column-major R K R + ridge I, its rows in `order`, in place of K if that may go."""
        K = self.problem.K
        if not self._in_order:
            M = linalg.submatrix(K, self.order, self.order).T
        else:
            M = K.T if self.in_place else linalg.fortran(K)
        if (self.root != 1.0).any():
            M *= self.root[:, None]
            M *= self.root[None, :]
        M[np.diag_indices_from(M)] += ridge
        return M

    @cached_property
    def _in_order(self) -> bool:
        return bool(np.array_equal(self.order, np.arange(self.order.size)))

    @cached_property
    def in_place(self) -> bool:
        """Whether `matrix` is K's own memory."""
        problem = self.problem
        free = problem.disposable and not self.far and problem.K.flags.c_contiguous
        return bool(free and self._in_order)

    @cached_property
    def size(self) -> Array:
        """The largest absolute value of each target."""
        return np.asarray(np.abs(self.problem.Y.astype(np.float64)).max(axis=0))

    @cached_property
    def together(self) -> dict[float, list[int]]:
        """The near splits by c / lam: those with one value share an inverse."""
        groups: dict[float, list[int]] = {}
        for i, k in enumerate(self.near):
            weight = self.problem.ridge(1.0, self.positive.train[k])
            groups.setdefault(weight, []).append(i)
        return groups

    @cached_property
    def tests(self) -> dict[float, Tests]:
        """The test rows of the splits that share an inverse, by c / lam."""
        return {weight: self._tests_of(members) for weight, members in self.together.items()}

    def _tests_of(self, members: list[int]) -> Tests:
        everyone, places = np.arange(self.root.size), np.arange(self.folds.rows.size)
        splits = np.array([self.near[i] for i in members])
        removed = [everyone[self.removed[i]] for i in members]
        starts = np.cumsum([0, *(rows.size for rows in removed[:-1])])
        where = np.concatenate([self.where[i] for i in members])
        inside = where + np.repeat(starts, [self.where[i].size for i in members])
        rows = np.concatenate(removed)[inside]
        return Tests(
            splits,
            inside,
            rows,
            np.concatenate([places[self.folds.place(k)] for k in splits]),
            self.targets[rows],
            self.root[rows][:, None],
        )

    def ridges(self, lams: Array) -> list[float]:
        """Every c that occurs, in ascending order."""
        return sorted({float(lam) * weight for lam in lams for weight in self.together})

    @cached_property
    def one_row_each(self) -> bool:
        """Whether every near split removes a single row."""
        return len(self.near) > 1 and all(
            isinstance(rows, slice) and rows.stop - rows.start == 1 for rows in self.removed
        )


class Tests(NamedTuple):
    """Test rows of several splits, one after the other.

    Attributes
    ----------
    splits : index array
    removed : index array
        Where they stand among all rows that these splits remove.
    rows : index array
        Which rows of the sample they are.
    places : index array
        Where their held-out values go.
    targets, root : (N, q) and (N, 1) arrays
        R Y and the diagonal of R on them.
    """

    splits: Indices
    removed: Indices
    rows: Indices
    places: Indices
    targets: Array
    root: Array


def _adjacent(rows: list[Indices], n: int) -> tuple[Indices, list[Any]]:
    """A permutation that turns disjoint sets of rows into slices; overlapping ones stay as sets."""
    taken = np.concatenate(rows) if rows else np.empty(0, dtype=np.intp)
    times = np.bincount(taken, minlength=n)
    if times.max(initial=0) > 1:
        return np.arange(n), list(rows)
    rest = np.flatnonzero(times == 0)
    ends = np.cumsum([r.size for r in rows])
    return np.concatenate([taken, rest]), [
        slice(int(end - r.size), int(end)) for r, end in zip(rows, ends, strict=True)
    ]


class Inverse(ABC):
    """P at one c, as far as the formula needs it.

    Attributes
    ----------
    ridge : float
        c.
    changed : float
        The norm of what was changed of the matrix on purpose: negative eigenvalues set to zero.
    """

    ridge: float
    changed: float = 0.0

    @property
    @abstractmethod
    def norm(self) -> float:
        """A bound on the largest eigenvalue of M^-1, 1/c if K is positive semidefinite."""

    @abstractmethod
    def block(self, i: int) -> Array:
        """P_SS of the i-th near split (lower triangle)."""

    @abstractmethod
    def alpha(self, i: int) -> Array:
        """Rows S of P R Y."""

    @abstractmethod
    def diagonal(self) -> tuple[Array, Array]:
        """The diagonal of P, and P R Y itself."""

    def residuals(self, members: list[int]) -> Array:
        """R_S (y_S - u_S) of some near splits, one after the other, by (*)."""
        try:
            return np.concatenate([linalg.solve_spd(self.block(i), self.alpha(i)) for i in members])
        except linalg.LinAlgError as error:
            raise linalg.LinAlgError(
                f"a block of the inverse is singular to working precision ({error}): beside the "
                f"largest kernel values, {self.ridge:.3g} on the diagonal is lost; raise lam, or "
                "centre and scale X"
            ) from error


class LeaveOut(Prepared):
    """Phase two of the methods that differ only in how they hold the inverse."""

    name: str
    layout: Layout

    @abstractmethod
    def inverse(self, ridge: float) -> Inverse:
        """The inverse at c = ridge."""

    @abstractmethod
    def largest(self) -> float:
        """The largest eigenvalue of R K R, or a bound on it, and on whatever else is rounded."""

    @property
    def amplified(self) -> Array:
        """By how much R^-1 enlarges the error of each split: not at all if rows are scaled alike.

        Errors of a Cholesky factor are relative to each row, whatever its scale.
        """
        return np.ones(len(self.layout.folds))

    @linalg.overflowing
    def predict(self, lam: float) -> HeldOut:
        """Formula (*) for the near splits, a refit for the far ones."""
        layout, folds = self.layout, self.layout.folds
        values = np.empty((folds.rows.size, layout.targets.shape[1]), layout.targets.dtype)
        error = np.zeros((len(folds), values.shape[1]))
        for weight, tests in layout.tests.items():
            inverse = self.inverse(lam * weight)
            self._fill(values, inverse, weight)
            error[tests.splits] = (self._rounding(inverse) * self.amplified[tests.splits])[:, None]
        error *= layout.size + folds.largest(values)
        error[layout.far] = np.inf
        for k in [*layout.far, *self._uncertain(error)]:
            train, test = layout.positive.train[k], layout.positive.test[k]
            found = refit_fold(layout.problem, lam, train, test)
            better = (found.error < error[k]) | (k in layout.far)
            values[folds.place(k), better] = found.values[:, better]
            error[k, better] = found.error[better]
        return HeldOut.judged(layout.problem, values, folds, self.name, error)

    def _uncertain(self, error: Array) -> list[int]:
        """Near splits whose bound says too little, where refits cost little and K is there."""
        layout, near = self.layout, np.array(self.layout.near, dtype=np.intp)
        rough = near[(error[near] > EXACT * layout.problem.scale).any(axis=1)]
        cheap = cheap_to_refit(layout.problem.n, rough.size) and not layout.in_place
        return rough.tolist() if cheap else []

    def _fill(self, values: Array, inverse: Inverse, weight: float) -> None:
        """Held-out values of the near splits that share one c."""
        tests = self.layout.tests[weight]
        if self.layout.one_row_each:
            diagonal, alpha = inverse.diagonal()
            residuals = (alpha / diagonal[:, None])[tests.rows]
        else:
            residuals = inverse.residuals(self.layout.together[weight])[tests.removed]
        values[tests.places] = (tests.targets - residuals) / tests.root

    def _rounding(self, inverse: Inverse) -> float:
        """What rounding may change of a held-out value, relative to targets and values.

        A backward stable method solves a system that differs from M by a few roundings of its
        largest eigenvalue, and by what it changed on purpose; the inverse amplifies that.
        """
        Y = self.layout.problem.Y
        epsilon = float(np.finfo(Y.dtype).eps)
        changed = 8.0 * epsilon * (self.largest() + inverse.ridge) + 4.0 * inverse.changed
        return float(changed * inverse.norm + epsilon * (64.0 + Y.shape[0]))
