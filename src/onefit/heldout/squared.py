"""The leave-out formula of the squared loss: every fold exactly, from the full sample's inverse.

With C = K + c I (c = Lambda of the *training* part) and, with an intercept, the projected inverse

    P = C^-1 - C^-1 1 1'C^-1 / (1'C^-1 1)           (P = C^-1 without),          alpha = P y,

the model trained without the rows S misses them by

    y_S - u_S = (P_SS)^-1 alpha_S                                                            (*)

exactly (An, Liu and Venkatesh 2007; with S = {i} Cawley's leave-one-out, y_i - u_i = alpha_i /
P_ii). Proof: rows S are left out of the bordered system by forcing a_S = 0 with free residuals
t on S, C a + b 1 + I_S t = y; hence a = P (y - I_S t), and a_S = 0 reads P_SS t = alpha_S,
while the row of S itself says that t = y_S - u_S. The values y_S and the diagonal of C on S
cancel: rows of weight zero are simply rows in every S. The model itself is a = alpha - P_{.S} t,
and since a sums to zero over the rows T that are kept, its intercept is the weighted mean of
y - K a over T.

Sample weights s turn C into K + c diag(1/s) = R^-1 M R^-1, M = R K R + c I, R = diag(sqrt(s));
(*) then holds for R y and R 1 instead of y and 1, and gives R_S (y_S - u_S).

The form (*) is the stable one as lam -> 0. The textbook form (y_i - u_i) / (1 - H_ii) divides two
differences of nearly equal numbers there; alpha and P_SS are sums without cancellation, and what
is lost is what the condition number (e_max + c) / c of the problem itself loses.

**Two ways to P.** "block" has one Cholesky factor per lambda, and of the inverse only the diagonal
blocks (An et al. 2007): with M = L L' and W = L^-1, (M^-1)_SS = W_S'W_S, a symmetric rank update of
the columns S of W. Factor and inverse cost 2/3 n^3, the blocks of k equal folds up to n^3 / k more.
"eigen" has one decomposition for all lambdas (onefit.inverse.spectrum).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.heldout import cost as costs
from onefit.heldout.base import HeldOutMethod, HeldOutPath
from onefit.heldout.leave_out_formula import LeaveOut, LeaveOutValues
from onefit.heldout.scaled import scale_in_place, scaled_matrix
from onefit.heldout.workload import Workload
from onefit.inverse import EigenInverse, RidgeInverse, TriangularInverse, solve_block
from onefit.inverse.spectrum import (
    MAX_CACHED_SUMS,
    ShiftedSums,
    Spectrum,
)
from onefit.linalg.partial_eigh import MAX_BLOCKS
from onefit.linalg.rates import Cost, Rates
from onefit.problem import Problem

__all__ = ["DEVICE_BLOCK_MATRICES", "Block", "Eigen", "factored"]

#: matrices of n rows that these methods hold on a device
DEVICE_BLOCK_MATRICES, DEVICE_EIGEN_MATRICES = 5.0, 6.0


def factored(problem: Problem, root: Array, ridge: float) -> TriangularInverse:
    """P at one c by a Cholesky factor, with advice where it fails; ``root`` is R's diagonal."""
    xp = problem.K.arrays
    M = xp.add_diagonal(scaled_matrix(problem.K, root), ridge)
    try:
        return TriangularInverse(M, root, problem.fit_intercept, xp)
    except linalg.LinAlgError as error:
        raise linalg.LinAlgError(
            f"the kernel matrix plus {ridge:.3g} on its diagonal is singular to working "
            f"precision ({error}); raise lam, centre and scale X, or use method='eigen', which "
            "needs no such factor"
        ) from error


class Block(HeldOutMethod):
    """Exact k-fold of the squared loss by a Cholesky factorisation per lambda."""

    name = "block"
    quadratic_only = True
    on_device = True

    def prepare(self, problem: Problem, folds: Folds) -> LeaveOut:
        self.check(problem)
        return _Block(problem, folds)

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """A factor and its inverse per value of c; a rank update and a small solve per fold."""
        n, columns = work.n, work.targets + 1
        factor = (
            rates.gathers(n * n)
            + rates.cholesky(n)
            + rates.triangular_inverse(n)
            + 2 * rates.product(n, n, columns)
            + rates.calls(costs.CALLS_PER_LAMBDA)
        )
        if work.one_row_each:
            folds = rates.passes(n * n, 2) + rates.calls(costs.CALLS_PER_ROW * n)
        else:
            # the column of a fold begins at its first row, where the folds do not overlap
            adjacent = work.tested <= n
            rows = n - work.tested / 2 if adjacent else n
            folds = costs.small_solves(work, rates)
            for m, count in work.by_formula.items():
                copied = Cost() if adjacent else rates.gathers(m * n)
                folds += count * (rates.rank_update(m, rows) + copied)
        bound = rates.gathers(n * n) + rates.passes(n * n, 3)
        each = work.ridges * factor + folds + costs.refits(work, work.by_refit, rates)
        return costs.kernel(work, rates) + bound + work.lams * each

    @classmethod
    def matrices(cls, work: Workload) -> float:
        """K, its permuted copy, and a copy of that."""
        return 3.0 + 2.0 * (work.largest / work.n) ** 2

    @classmethod
    def device_bytes(cls, work: Workload) -> float:
        return DEVICE_BLOCK_MATRICES * work.itemsize * float(work.n) ** 2


class Eigen(HeldOutMethod):
    """Exact k-fold of the squared loss for all lambdas by one eigendecomposition per kernel."""

    name = "eigen"
    quadratic_only = True
    on_device = True

    @linalg.overflowing
    def prepare(self, problem: Problem, folds: Folds) -> LeaveOut:
        self.check(problem)
        return (_Eigen if problem.K.arrays.on_host else _DeviceEigen)(problem, folds)

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """One eigendecomposition; per lambda a rank update and a small solve per fold."""
        n, columns = work.n, work.targets + 1
        shared = (
            rates.gathers(n * n)
            + rates.eigendecomposition(n)
            + rates.product(n, n, columns)
            + rates.passes(n * n)
        )
        if work.one_row_each:
            values = work.lams * work.ridges
            table = rates.passes(n * n) + rates.product(n, n, values * (columns + 1))
            each = rates.calls(costs.CALLS_PER_LAMBDA + costs.CALLS_PER_ROW * n)
            return costs.kernel(work, rates) + shared + table + work.lams * each
        folds = costs.small_solves(work, rates)
        for m, count in work.by_formula.items():
            scaled = rates.passes(m * n) + rates.product(m, n, columns)
            copied = Cost() if work.tested <= n else 2 * rates.gathers(m * n)
            folds += count * (rates.rank_update(m, n) + scaled + copied)
        each = (
            work.ridges * rates.calls(costs.CALLS_PER_LAMBDA)
            + folds
            + costs.refits(work, work.by_refit, rates)
        )
        return costs.kernel(work, rates) + shared + work.lams * each

    @classmethod
    def matrices(cls, work: Workload) -> float:
        """K, its permuted copy (the vectors replace it), a fold's rows twice, blocks, a table."""
        part, ridges = work.largest / work.n, work.lams * work.ridges
        # a single lambda has nothing to be made together with
        held = min(MAX_CACHED_SUMS, ridges) * part**2
        together = min(ridges * part**2, 1.0) + held if ridges > 1 else 0.0
        # with the columns of the tears, in Q's coordinates and multiplied by it, and as much for
        # what they are made from and become
        table = 4.0 * ridges * (work.targets + MAX_BLOCKS) / work.n
        return 2.0 + linalg.HOST.panel_rows / work.n + 2.0 * part + 2.0 * part**2 + together + table

    @classmethod
    def device_bytes(cls, work: Workload) -> float:
        return DEVICE_EIGEN_MATRICES * work.itemsize * float(work.n) ** 2


class _Block(LeaveOut):
    """An inverse for each c; the last one is kept for ``columns``."""

    name = Block.name
    last: tuple[float, RidgeInverse] | None = None

    def predict(self, lams: Array) -> HeldOutPath:
        """The formula, from eigenvectors at lambdas where rounding leaves no Cholesky factor.

        There, values without a bound are not taken: they may be off by any amount.
        """
        path = super().predict(lams)
        failed = np.flatnonzero(~path.done)
        if failed.size and self.name == Block.name:
            problem = replace(self.problem, may_overwrite=False)
            # a matrix that is indefinite by more than rounding has none either
            with suppress(linalg.LinAlgError):
                other = Eigen().prepare(problem, self.splits.folds).predict(lams[failed])
                bounded = np.isfinite(other.bounds).all(axis=(1, 2))
                path.put(failed[bounded], other, bounded)
        return path

    def inverse(self, ridge: float) -> RidgeInverse:
        """P at one c."""
        return factored(self.problem, self.root, ridge)

    @cached_property
    def rounded(self) -> float:
        """The largest absolute row sum of R K R."""
        return float(self.problem.norms.row_sum * self.problem.s.max())

    def formula(self, ridges: Array, removed: list[Indices]) -> LeaveOutValues:
        L, (_, q) = ridges.size, self.targets.shape
        residuals = [np.full((L, S.size, q), np.nan, self.root.dtype) for S in removed]
        found = LeaveOutValues(residuals, np.ones(L), 0.0, [""] * L, np.zeros(L))
        for place, ridge in enumerate(ridges):
            try:
                inverse = self.inverse(float(ridge))
                alpha = inverse.solve(self.targets)
                if self.splits.one_row_each and not self.problem.K.arrays.on_host:
                    rows = np.concatenate(removed)
                    alone = alpha[rows] / inverse.projected_diagonal()[rows][:, None]
                    for row, mine in zip(alone, residuals, strict=True):
                        mine[place] = row
                else:
                    for S, mine in zip(removed, residuals, strict=True):
                        mine[place] = inverse.solve_left_out(S, alpha, float(ridge))
                found.norm[place] = inverse.norm
            except linalg.LinAlgError as error:
                found.reasons[place] = str(error)
        return found

    def columns(self, ridge: float, rows: Indices) -> tuple[Array, Array]:
        if self.last is None or self.last[0] != ridge:
            self.last = ridge, self.inverse(ridge)
        inverse = self.last[1]
        return inverse.projected_columns(rows), inverse.solve(self.targets)


class _DeviceEigen(_Block):
    """All lambdas from one eigendecomposition on a device."""

    name = "eigen"

    def __init__(self, problem: Problem, folds: Folds) -> None:
        super().__init__(problem, folds)
        xp = problem.K.arrays
        values, self.Q = xp.eigh(scaled_matrix(problem.K, self.root))
        values = xp.host(values).astype(np.float64)
        self.negative = max(0.0, -float(values[0]))
        self.values = linalg.without_rounding(values)

    @property
    def rounded(self) -> float:
        """The largest eigenvalue, and what rounding in an eigendecomposition grows with."""
        entry = float(self.problem.norms.diagonal * self.problem.s.max())
        return float(self.values[-1] + 4.0 * np.sqrt(self.values.size) * entry)

    def amplified(self, rows: Indices) -> float:
        """Errors of an eigendecomposition are relative to the largest row of R Y."""
        return float(self.root.max() / self.root[rows].min())

    def inverse(self, ridge: float) -> RidgeInverse:
        return EigenInverse(
            self.values, self.Q, ridge, self.root, self.problem.fit_intercept, self.negative
        )

    def formula(self, ridges: Array, removed: list[Indices]) -> LeaveOutValues:
        return super().formula(ridges, removed)._replace(changed=self.negative)


class _Eigen(LeaveOut):
    """One spectrum for all c, in K's own memory if that may be overwritten and no split refits."""

    name = "eigen"

    def __init__(self, problem: Problem, folds: Folds) -> None:
        super().__init__(problem, folds)
        K = problem.K
        free = problem.may_overwrite and not self.splits.by_refit.size
        self.in_place = bool(free and K.matrix.flags.c_contiguous)
        if self.in_place:
            matrix = scale_in_place(K.arrays, K.matrix.T, self.root)
        else:
            matrix = scaled_matrix(K, self.root)
        self.spectrum = Spectrum(matrix, self.root, self.targets, problem.fit_intercept)

    @property
    def rounded(self) -> float:
        return self.spectrum.rounded

    def amplified(self, rows: Indices) -> float:
        """Errors of an eigendecomposition are relative to the largest row of R Y."""
        return float(self.root.max() / self.root[rows].min())

    def formula(self, ridges: Array, removed: list[Indices]) -> LeaveOutValues:
        shifts, reasons = self.spectrum.at(ridges), [""] * ridges.size
        interpolated = np.zeros(ridges.size)
        if self.splits.one_row_each:
            rows = np.concatenate(removed)
            order = np.argsort(rows)  # all rows in order are Q itself, not a copy
            alone = shifts.leave_one_out(rows[order])[:, np.argsort(order)]
            residuals = list(alone.swapaxes(0, 1)[:, :, None])
        else:
            pieces = list(shifts.pieces(max(S.size for S in removed)))
            residuals = [self._residuals(S, pieces, reasons) for S in removed]
            interpolated = np.concatenate([part.interpolated for _, part in pieces])
        return LeaveOutValues(residuals, shifts.norm, shifts.changed, reasons, interpolated)

    def _residuals(
        self, rows: Indices, pieces: list[tuple[slice, ShiftedSums]], reasons: list[str]
    ) -> Array:
        """R_S (y_S - u_S) at every c."""
        Q, found = self.spectrum.rows(rows), []
        for some, part in pieces:
            blocks, alpha = part.blocks(Q, rows)
            found.append(np.full(alpha.shape, np.nan, alpha.dtype))
            for place, (block, right) in enumerate(zip(blocks, alpha, strict=True)):
                try:
                    found[-1][place] = solve_block(block, right, part.ridges[place], True)
                except linalg.LinAlgError as error:
                    reasons[some.start + place] = str(error)
        return np.concatenate(found)

    def columns(self, ridge: float, rows: Indices) -> tuple[Array, Array]:
        shifts = self.spectrum.at(np.array([ridge]))
        return shifts.columns(rows), shifts.solved(np.arange(self.root.size))[0][0]
