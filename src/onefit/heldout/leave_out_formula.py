"""From the leave-out formula to a path of held-out values with bounds: what its two ways share.

The formula (onefit.heldout.squared) gives R_S (y_S - u_S) of a split at every lambda. Here these
become values, with a bound on what rounding has done to them; splits that the formula does not
serve are refitted, as are, where that is cheap, those whose bound says too little.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.heldout.base import HeldOutPath, Prepared
from onefit.heldout.refit import finished, refit_fold
from onefit.heldout.scaled import weight_roots
from onefit.heldout.splits import Splits
from onefit.problem import Problem, Solution

__all__ = ["LeaveOut", "LeaveOutValues"]


class LeaveOutValues(NamedTuple):
    """What (*) gives for splits that share a c, at several c.

    Attributes
    ----------
    residuals : list of (L, m, q) arrays
        R_S (y_S - u_S) per split.
    norm : (L,) array
        Bound on the largest eigenvalue of M^-1, 1/c if K is positive semidefinite.
    changed : float
        The norm of what was changed of the matrix on purpose: negative eigenvalues set to zero.
    reasons : list of str
        Why a c failed, empty where it did not.
    interpolated : (L,) array
        The largest relative error of a weight 1/(e + c) in the blocks P_SS.
    """

    residuals: list[Array]
    norm: Array
    changed: float
    reasons: list[str]
    interpolated: Array


class LeaveOut(Prepared):
    """Phase two of the methods that differ only in how they hold the inverse.

    Attributes
    ----------
    problem : Problem
    splits : Splits
    root : (n,) array
        The diagonal of R.
    targets : (n, q) array
        R Y.
    in_place : bool
        Whether the memory of K is used for the inverse.
    """

    name: str
    in_place = False

    def __init__(self, problem: Problem, folds: Folds) -> None:
        self.problem, self.splits = problem, Splits.sort(problem, folds)
        self.root = weight_roots(problem)
        self.targets = np.asfortranarray(self.root[:, None] * problem.Y)

    @abstractmethod
    def formula(self, ridges: Array, removed: list[Indices]) -> LeaveOutValues:
        """(*) for some sets of rows at every c."""

    @abstractmethod
    def columns(self, ridge: float, rows: Indices) -> tuple[Array, Array]:
        """P_{.S} of a set of rows, and P R Y, at one c."""

    @property
    @abstractmethod
    def rounded(self) -> float:
        """The largest eigenvalue of R K R, or a bound on it, and on whatever else is rounded."""

    def amplified(self, rows: Indices) -> float:
        """Factor by which R^-1 enlarges the error of some rows; 1 unless a form overrides it.

        Errors of a Cholesky factor are relative to each row, whatever its scale.
        """
        return 1.0

    @linalg.overflowing
    def predict(self, lams: Array) -> HeldOutPath:
        """Formula (*) for the splits that it serves, refits for the others."""
        splits, problem = self.splits, self.problem
        path = HeldOutPath.empty(problem, splits.folds, self.name, lams)
        for weight, members in splits.groups:
            found = self.formula(path.lams * weight, [splits.removed[i] for i in members])
            path.reasons = [a or b for a, b in zip(path.reasons, found.reasons, strict=True)]
            self._fill(path, members, found, path.lams * weight)
        for i in range(len(path)):
            if path.reasons[i]:
                path.fail(i, path.reasons[i])
        finished(path, splits, again=not self.in_place)  # in place, K is gone
        path.steps[:] = 0  # none of Newton's: one linear system, by formula or by refit
        return path

    def _fill(
        self, path: HeldOutPath, members: Indices, found: LeaveOutValues, ridges: Array
    ) -> None:
        """Values and bounds of the splits that share one c / lam."""
        problem, root, splits = self.problem, self.root, self.splits
        size = np.abs(problem.Y.astype(np.float64)).max(axis=0)
        rounding = self._rounding(ridges, found)
        for i, residuals in zip(members, found.residuals, strict=True):
            k = splits.by_formula[i]
            test = splits.folds.test[k]
            missed = residuals[:, np.searchsorted(splits.removed[i], test)]
            values = (self.targets[test] - missed) / root[test][:, None]
            path.values[:, splits.folds.place(k)] = values
            largest = size + np.abs(values).max(axis=1)
            path.bounds[:, k] = rounding[:, None] * self.amplified(test) * largest
            if found.interpolated.any():
                missed = self._interpolation(ridges, found, residuals, splits.removed[i])
                path.bounds[:, k] += missed / root[test].min()

    def _interpolation(
        self, ridges: Array, found: LeaveOutValues, residuals: Array, rows: Indices
    ) -> Array:
        """What interpolated weights may change of the residuals t = R_S (y_S - u_S), (L, q).

        Weights that are off by d relative to themselves change P_SS by no more than d P_SS, in
        either direction, and so t by no more than d sqrt(k) |t|, with k the condition number of
        P_SS. It is at most that of M, times |r|^2 / |r_T|^2 with an intercept, where T are the rows
        trained on: P is at least the projection off r over e_max + c.
        """
        squares = np.square(self.root.astype(np.float64))
        condition = (self.rounded + ridges) * found.norm
        if self.problem.fit_intercept:
            condition = condition * squares.sum() / np.delete(squares, rows).sum()
        size = np.linalg.norm(residuals.astype(np.float64), axis=1)
        return np.asarray((found.interpolated * np.sqrt(condition))[:, None] * size)

    def _rounding(self, ridges: Array, found: LeaveOutValues) -> Array:
        """What rounding may change of a held-out value, relative to targets and values.

        A backward stable method solves a system that differs from M by a few roundings of its
        largest eigenvalue, and by what it changed on purpose; the inverse amplifies that.
        """
        Y = self.problem.Y
        epsilon = float(np.finfo(Y.dtype).eps)
        changed = 8.0 * epsilon * (self.rounded + ridges) + 4.0 * found.changed
        return np.asarray(changed * found.norm + epsilon * (64.0 + Y.shape[0]))

    def models(self, lam: float) -> list[Solution]:
        """The models of all splits as columns, per target."""
        splits, problem = self.splits, self.problem
        a = np.zeros((problem.Y.shape[1], problem.n, len(splits.folds)))
        for i, k in enumerate(splits.by_formula):
            rows = splits.removed[i]
            columns, alpha = self.columns(lam * float(splits.weight[i]), rows)
            t = linalg.solve_spd(np.asfortranarray(columns[rows]), np.asfortranarray(alpha[rows]))
            a[:, :, k] = (self.root[:, None] * (alpha - columns @ t)).T
            a[:, rows, k] = 0.0
        for k in splits.by_refit:
            train, test = splits.folds.train[k], splits.folds.test[k]
            a[:, :, k] = refit_fold(problem, lam, train, test).solution.a.T
        return [self._with_intercepts(one, y) for one, y in zip(a, problem.Y.T, strict=True)]

    def _with_intercepts(self, a: Array, y: Array) -> Solution:
        """The models of one target, from their coefficients."""
        problem, folds = self.problem, self.splits.folds
        u, b = problem.double.K.matmul(np.asfortranarray(a)), np.zeros(len(folds))
        if problem.fit_intercept:
            for k, train in enumerate(folds.train):
                b[k] = np.average((y - u[:, k])[train], weights=problem.s[train])
        return Solution(a, b, u + b, np.zeros_like(b))
