"""The leave-out formula of the squared loss: every fold exactly, from the full sample's inverse.

With C = K + c I (c = Lambda of the *training* part) and, with an intercept, the projected inverse

    P = C^-1 - C^-1 1 1'C^-1 / (1'C^-1 1)           (P = C^-1 without),          alpha = P y,

the machine trained without the rows S misses them by

    y_S - u_S = (P_SS)^-1 alpha_S                                                            (*)

exactly (An, Liu and Venkatesh 2007; with S = {i} Cawley's leave-one-out, y_i - u_i = alpha_i /
P_ii). Proof: rows S are left out of the bordered system by forcing a_S = 0 with free residuals
t on S, C a + b 1 + I_S t = y; hence a = P (y - I_S t), and a_S = 0 reads P_SS t = alpha_S,
while the row of S itself says that t = y_S - u_S. The values y_S and the diagonal of C on S
cancel: rows of weight zero are simply rows in every S. The machine itself is a = alpha - P_{.S} t,
and since a sums to zero over the rows T that are kept, its intercept is the weighted mean of
y - K a over T.

Sample weights s turn C into K + c diag(1/s) = R^-1 M R^-1, M = R K R + c I, R = diag(sqrt(s));
(*) then holds for R y and R 1 in place of y and 1, and gives R_S (y_S - u_S).

The form (*) is the stable one as lam -> 0. The textbook form (y_i - u_i) / (1 - H_ii) divides two
differences of nearly equal numbers there; alpha and P_SS are sums without cancellation, and what
is lost is what the condition number (e_max + c) / c of the problem itself loses.

**Two ways to P.** "block" has one Cholesky factor per lambda, and of the inverse only the diagonal
blocks (An et al. 2007): with M = L L' and W = L^-1, (M^-1)_SS = W_S'W_S, a symmetric rank update of
the columns S of W. Factor and inverse cost 2/3 n^3, the blocks of k equal folds up to n^3 / k more.
"eigen" has one decomposition for all lambdas (onefit.heldout.spectrum).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.certificate import EXACT
from onefit.folds import Folds
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.refit import (
    cheap_to_refit,
    fill_refits,
    improve_by_refits,
    refit_fold,
)
from onefit.heldout.spectrum import Shifts, Spectrum
from onefit.heldout.splits import Splits
from onefit.problem import Problem, Solution

__all__ = ["Block", "Eigen", "factored"]


class Block(HeldOutMethod):
    """Exact k-fold of the squared loss by a Cholesky factorisation per lambda."""

    name = "block"
    quadratic_only = True
    on_device = True

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOut:
        self.check(problem)
        return _Block(Scaled(replace(problem, may_overwrite=False), folds))


class Eigen(HeldOutMethod):
    """Exact k-fold of the squared loss for all lambdas by one eigendecomposition per kernel."""

    name = "eigen"
    quadratic_only = True
    on_device = True

    @linalg.overflowing
    def prepare(self, problem: Problem, folds: Folds) -> LeaveOut:
        self.check(problem)
        scaled = Scaled(problem, folds)
        if not scaled.arrays.on_host:
            return _DeviceEigen(scaled)
        parts = scaled.matrix(), scaled.root, scaled.targets
        return _Eigen(scaled, Spectrum(*parts, problem.fit_intercept))


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
        self.arrays = linalg.arrays_of(problem.K)
        self.root = np.sqrt(np.where(problem.s > 0, problem.s, 1.0)).astype(problem.Y.dtype)
        self.targets = np.asfortranarray(self.root[:, None] * problem.Y)
        free = problem.may_overwrite and not self.splits.by_refit.size
        if not self.arrays.on_host:
            free = False
            self._require_formula()
        self.in_place = bool(free and problem.K.flags.c_contiguous)

    def _require_formula(self) -> None:
        which = self.splits.by_refit
        if which.size:
            raise ValueError(
                f"split {which[0]} removes more rows than it keeps, or tests rows that it trains "
                f"on, and would be refitted, which is not done on {self.arrays!r}: use "
                "method='iterative', or leave the device out"
            )

    def matrix(self, ridge: float = 0.0) -> Array:
        """A column-major R K R + ridge I, in place of K if that may go."""
        if not self.arrays.on_host:
            return self._device_matrix(ridge)
        M = self.problem.K.T if self.in_place else linalg.fortran(self.problem.K)
        if (self.root != 1.0).any():
            M *= self.root[:, None]
            M *= self.root[None, :]
        M[np.diag_indices_from(M)] += ridge
        return M

    def _device_matrix(self, ridge: float) -> Array:
        xp = self.arrays
        M = xp.copy(self.problem.K.hold().held)
        if (self.root != 1.0).any():
            root = xp.asarray(self.root)
            M *= root[:, None]
            M *= root[None, :]
        return xp.add_diagonal(M, ridge)  # type: ignore[no-any-return]


class Found(NamedTuple):
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
    """

    residuals: list[Array]
    norm: Array
    changed: float
    reasons: list[str]


class LeaveOut(Prepared):
    """Phase two of the methods that differ only in how they hold the inverse."""

    name: str
    scaled: Scaled

    @abstractmethod
    def formula(self, ridges: Array, removed: list[Indices]) -> Found:
        """(*) for some sets of rows at every c."""

    @abstractmethod
    def columns(self, ridge: float, rows: Indices) -> tuple[Array, Array]:
        """P_{.S} of a set of rows, and P R Y, at one c."""

    @property
    @abstractmethod
    def rounded(self) -> float:
        """The largest eigenvalue of R K R, or a bound on it, and on whatever else is rounded."""

    def amplified(self, rows: Indices) -> float:
        """By how much R^-1 enlarges the error of some rows: not at all if rows are scaled alike.

        Errors of a Cholesky factor are relative to each row, whatever its scale.
        """
        return 1.0

    @linalg.overflowing
    def predict(self, lams: Array) -> HeldOutPath:
        """Formula (*) for the splits that it serves, refits for the others."""
        splits, problem = self.scaled.splits, self.scaled.problem
        path = HeldOutPath.empty(problem, splits.folds, self.name, lams)
        for weight, members in splits.groups:
            found = self.formula(path.lams * weight, [splits.removed[i] for i in members])
            path.reasons = [a or b for a, b in zip(path.reasons, found.reasons, strict=True)]
            self._fill(path, members, found, self._rounding(path.lams * weight, found))
        for i in range(len(path)):
            if path.reasons[i]:
                path.fail(i, path.reasons[i])
            else:
                self._refit(path, i)
        return path.judged(problem)

    def _fill(self, path: HeldOutPath, members: Indices, found: Found, rounding: Array) -> None:
        """Values and bounds of the splits that share one c / lam."""
        problem, root, splits = self.scaled.problem, self.scaled.root, self.scaled.splits
        size = np.abs(problem.Y.astype(np.float64)).max(axis=0)
        for i, residuals in zip(members, found.residuals, strict=True):
            k = splits.by_formula[i]
            test = splits.folds.test[k]
            missed = residuals[:, np.searchsorted(splits.removed[i], test)]
            values = (self.scaled.targets[test] - missed) / root[test][:, None]
            path.values[:, splits.folds.place(k)] = values
            largest = size + np.abs(values).max(axis=1)
            path.bounds[:, k] = rounding[:, None] * self.amplified(test) * largest

    def _rounding(self, ridges: Array, found: Found) -> Array:
        """What rounding may change of a held-out value, relative to targets and values.

        A backward stable method solves a system that differs from M by a few roundings of its
        largest eigenvalue, and by what it changed on purpose; the inverse amplifies that.
        """
        Y = self.scaled.problem.Y
        epsilon = float(np.finfo(Y.dtype).eps)
        changed = 8.0 * epsilon * (self.rounded + ridges) + 4.0 * found.changed
        return np.asarray(changed * found.norm + epsilon * (64.0 + Y.shape[0]))

    def _refit(self, path: HeldOutPath, i: int) -> None:
        """Splits that (*) does not serve; and those whose bound says too little, if that is cheap
        and K still there.
        """
        splits, problem = self.scaled.splits, self.scaled.problem
        folds, which = splits.positive, splits.by_formula
        fill_refits(path, i, problem, folds, splits.by_refit)
        path.steps[i] = 0
        rough = which[~(path.bounds[i, which] <= EXACT * problem.scale).all(axis=1)]
        here = self.scaled.arrays.on_host and not self.scaled.in_place
        if not here or not cheap_to_refit(problem.n, rough.size):
            return
        improve_by_refits(path, i, problem, folds, rough)

    def machines(self, lam: float) -> list[Solution]:
        """The machines of all splits as columns, per target; weights must be positive."""
        splits, problem = self.scaled.splits, self.scaled.problem
        a = np.zeros((problem.Y.shape[1], problem.n, len(splits.folds)))
        for i, k in enumerate(splits.by_formula):
            rows = splits.removed[i]
            columns, alpha = self.columns(lam * float(splits.weight[i]), rows)
            t = linalg.solve_spd(np.asfortranarray(columns[rows]), np.asfortranarray(alpha[rows]))
            a[:, :, k] = (self.scaled.root[:, None] * (alpha - columns @ t)).T
            a[:, rows, k] = 0.0
        for k in splits.by_refit:
            train, test = splits.folds.train[k], splits.folds.test[k]
            a[:, :, k] = refit_fold(problem, lam, train, test).solution.a.T
        return [self._with_intercepts(one, y) for one, y in zip(a, problem.Y.T, strict=True)]

    def _with_intercepts(self, a: Array, y: Array) -> Solution:
        """The machines of one target, from their coefficients."""
        problem, folds = self.scaled.problem, self.scaled.splits.folds
        u, b = linalg.matmul(problem.K.astype(np.float64, copy=False), a), np.zeros(len(folds))
        if problem.fit_intercept:
            for k, train in enumerate(folds.train):
                b[k] = np.average((y - u[:, k])[train], weights=problem.s[train])
        return Solution(a, b, u + b, np.zeros_like(b))


@dataclass
class _Block(LeaveOut):
    scaled: Scaled
    last: _Inverse | None = None
    name = "block"

    def inverse(self, ridge: float) -> _Inverse:
        """P at one c."""
        return _Triangular(self.scaled, ridge)

    @cached_property
    def rounded(self) -> float:
        """The largest absolute row sum of R K R."""
        return float(self.scaled.problem.norms.row_sum * self.scaled.problem.s.max())

    def formula(self, ridges: Array, removed: list[Indices]) -> Found:
        L, (_, q) = ridges.size, self.scaled.targets.shape
        residuals = [np.full((L, S.size, q), np.nan, self.scaled.root.dtype) for S in removed]
        found = Found(residuals, np.ones(L), 0.0, [""] * L)
        for place, ridge in enumerate(ridges):
            try:
                inverse = self.inverse(float(ridge))
                if self.scaled.splits.one_row_each and not self.scaled.arrays.on_host:
                    alone = inverse.leave_one_out(np.concatenate(removed))
                    for row, mine in zip(alone, residuals, strict=True):
                        mine[place] = row
                else:
                    for S, mine in zip(removed, residuals, strict=True):
                        mine[place] = inverse.residuals(S)
                found.norm[place] = inverse.norm
            except linalg.LinAlgError as error:
                found.reasons[place] = str(error)
        return found

    def columns(self, ridge: float, rows: Indices) -> tuple[Array, Array]:
        if self.last is None or self.last.ridge != ridge:
            self.last = self.inverse(ridge)
        return self.last.columns(rows), self.last.alpha


class _Inverse:
    """P = M^-1, less the border's vv'/(1'v) with v = M^-1 R 1 if there is an intercept.

    Attributes
    ----------
    alpha : (n, q) array
        P R Y.
    ones : (n,) array
        v over the root of 1'v, zero without an intercept.
    norm : float
        A bound on the largest eigenvalue of M^-1.
    """

    ridge: float
    norm: float

    def __init__(self, scaled: Scaled, solved: Array, sums: Array) -> None:
        """From M^-1 [R Y, R 1], and 1'R M^-1 [R Y, R 1]."""
        self.arrays = scaled.arrays
        self.alpha, self.ones = solved[:, :-1], np.zeros_like(solved[:, -1])
        if scaled.problem.fit_intercept:
            self.ones = solved[:, -1] / np.sqrt(sums[-1])
            self.alpha = self.alpha - np.outer(solved[:, -1], sums[:-1] / sums[-1])

    def block(self, rows: Indices) -> Array:
        """(M^-1)_SS, its lower triangle, where K is."""
        raise NotImplementedError

    def diagonal(self) -> Array:
        """That of M^-1, as NumPy's array."""
        raise NotImplementedError

    def columns(self, rows: Indices) -> Array:
        """P_{.S}, as NumPy's array."""
        raise NotImplementedError

    def residuals(self, rows: Indices) -> Array:
        """R_S (y_S - u_S)."""
        block, ones = self.block(rows), self.arrays.asarray(self.ones[rows])
        block -= ones[:, None] * ones[None, :]
        right = self.arrays.asarray(self.alpha[rows])
        return self.arrays.host(_solved(block, right, self.ridge))

    def leave_one_out(self, rows: Indices) -> Array:
        """The same for one row at a time, (m, q)."""
        left = (self.diagonal() - np.square(self.ones))[rows]
        return np.asarray(self.alpha[rows] / left[:, None])


class _Triangular(_Inverse):
    """M^-1 = W'W with the inverse W of a Cholesky factor."""

    def __init__(self, scaled: Scaled, ridge: float) -> None:
        xp, self.ridge = scaled.arrays, ridge
        try:
            factor = xp.cholesky(scaled.matrix(ridge))
        except linalg.LinAlgError as error:
            raise linalg.LinAlgError(
                f"the kernel matrix plus {ridge:.3g} on its diagonal is singular to working "
                f"precision ({error}); raise lam, centre and scale X, or use method='eigen', which "
                "needs no such factor"
            ) from error
        self.W = xp.triangular_inverse(factor)
        half = xp.matmul(self.W, xp.asarray(np.column_stack([scaled.targets, scaled.root])))
        solved, half = xp.host(xp.matmul(self.W.T, half)), xp.host(half)
        super().__init__(scaled, solved, half[:, -1] @ half)

    @cached_property
    def norm(self) -> float:  # type: ignore[override]
        """Of W'W."""
        return self.arrays.norm_of_gram(self.W)

    def block(self, rows: Indices) -> Array:
        # the columns of W are zero above the first of the rows
        return self.arrays.gram(self.arrays.columns(self.W[rows[0] :, :], rows))  # type: ignore[no-any-return]

    def diagonal(self) -> Array:
        return self.arrays.dots(self.W, self.W)

    def columns(self, rows: Indices) -> Array:
        """P_{.S}."""
        xp = self.arrays
        found = xp.host(xp.matmul(self.W.T, xp.fortran(xp.columns(self.W, rows))))
        return np.asarray(found - np.outer(self.ones, self.ones[rows]))


def factored(problem: Problem, ridge: float) -> Array:
    """The coefficients of the machines on all rows, whose weights are positive, by a factor."""
    everything = Folds.from_removed(problem.n, [np.arange(1)], [np.arange(1)], [True])
    scaled = Scaled(replace(problem, may_overwrite=False), everything)
    return np.asarray(scaled.root[:, None] * _Triangular(scaled, ridge).alpha)


class _Diagonal(_Inverse):
    """M^-1 = Q diag(1/(e + c)) Q' with the whole eigendecomposition, which a device has quickly."""

    def __init__(self, scaled: Scaled, Q: Any, e: Array, projected: Array, ridge: float) -> None:
        self.ridge, self.Q, xp = ridge, Q, scaled.arrays
        self.damped = (1.0 / (e + ridge)).astype(projected.dtype)
        inside = self.damped[:, None] * projected
        solved = xp.host(Q @ xp.asarray(inside))
        super().__init__(scaled, solved, projected[:, -1] @ inside)

    def block(self, rows: Indices) -> Array:
        own = self.arrays.rows(self.Q, rows)
        return (own * self.arrays.asarray(self.damped)) @ own.T  # type: ignore[no-any-return]

    def diagonal(self) -> Array:
        squares = (self.Q * self.Q) @ self.arrays.asarray(self.damped[:, None])
        return self.arrays.host(squares)[:, 0]

    def columns(self, rows: Indices) -> Array:
        """P_{.S}."""
        own = self.arrays.rows(self.Q, rows)
        found = self.arrays.host((self.Q * self.arrays.asarray(self.damped)) @ own.T)
        return np.asarray(found - np.outer(self.ones, self.ones[rows]))


class _DeviceEigen(_Block):
    """All lambdas from one eigendecomposition on a device."""

    name = "eigen"

    def __init__(self, scaled: Scaled) -> None:
        super().__init__(scaled)
        xp = scaled.arrays
        values, self.Q = xp.eigh(scaled.matrix())
        values = xp.host(values).astype(np.float64)
        self.negative = max(0.0, -float(values[0]))
        self.values = linalg.without_rounding(values)
        right = np.column_stack([scaled.targets, scaled.root])
        self.projected = xp.host(self.Q.T @ xp.asarray(right))

    @property
    def rounded(self) -> float:
        """The largest eigenvalue, and what rounding in an eigendecomposition grows with."""
        entry = float(self.scaled.problem.norms.diagonal * self.scaled.problem.s.max())
        return float(self.values[-1] + 4.0 * np.sqrt(self.values.size) * entry)

    def amplified(self, rows: Indices) -> float:
        """Errors of an eigendecomposition are relative to the largest row of R Y."""
        return float(self.scaled.root.max() / self.scaled.root[rows].min())

    def inverse(self, ridge: float) -> _Inverse:
        found = _Diagonal(self.scaled, self.Q, self.values, self.projected, ridge)
        left = ridge - self.negative
        found.norm = 1.0 / left if left > 0.0 else np.inf
        return found

    def formula(self, ridges: Array, removed: list[Indices]) -> Found:
        return super().formula(ridges, removed)._replace(changed=self.negative)


def _solved(block: Array, alpha: Array, ridge: float, overwrite: bool = False) -> Array:
    """(P_SS)^-1 alpha_S."""
    try:
        if not isinstance(block, np.ndarray):
            return linalg.arrays_of(block).solve_spd(block, alpha)
        return linalg.solve_spd(block, alpha, overwrite)
    except linalg.LinAlgError as error:
        raise linalg.LinAlgError(
            f"a block of the inverse is singular to working precision ({error}): beside the "
            f"largest kernel values, {ridge:.3g} on the diagonal is lost; raise lam, or "
            "centre and scale X"
        ) from error


@dataclass
class _Eigen(LeaveOut):
    scaled: Scaled
    spectrum: Spectrum
    name = "eigen"

    @property
    def rounded(self) -> float:
        return self.spectrum.rounded

    def amplified(self, rows: Indices) -> float:
        """Errors of an eigendecomposition are relative to the largest row of R Y."""
        return float(self.scaled.root.max() / self.scaled.root[rows].min())

    def formula(self, ridges: Array, removed: list[Indices]) -> Found:
        shifts, reasons = self.spectrum.at(ridges), [""] * ridges.size
        if self.scaled.splits.one_row_each:
            rows = np.concatenate(removed)
            order = np.argsort(rows)  # all rows in order are Q itself, not a copy
            alone = shifts.leave_one_out(rows[order])[:, np.argsort(order)]
            residuals = list(alone.swapaxes(0, 1)[:, :, None])
        else:
            pieces = list(shifts.pieces(max(S.size for S in removed)))
            residuals = [self._residuals(S, pieces, reasons) for S in removed]
        return Found(residuals, shifts.norm, shifts.changed, reasons)

    def _residuals(
        self, rows: Indices, pieces: list[tuple[slice, Shifts]], reasons: list[str]
    ) -> Array:
        """R_S (y_S - u_S) at every c."""
        Q, found = self.spectrum.rows(rows), []
        for some, part in pieces:
            blocks, alpha = part.blocks(Q, rows)
            found.append(np.full(alpha.shape, np.nan, alpha.dtype))
            for place, (block, right) in enumerate(zip(blocks, alpha, strict=True)):
                try:
                    found[-1][place] = _solved(block, right, part.ridges[place], overwrite=True)
                except linalg.LinAlgError as error:
                    reasons[some.start + place] = str(error)
        return np.concatenate(found)

    def columns(self, ridge: float, rows: Indices) -> tuple[Array, Array]:
        shifts = self.spectrum.at(np.array([ridge]))
        return shifts.columns(rows), shifts.solved(np.arange(self.scaled.root.size))[0][0]
