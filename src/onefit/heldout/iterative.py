"""Exact k-fold beyond n^3: all folds and lambdas share one iteration that needs only products K V.

A fold at a lambda is one system, K + c diag(1/s) on the rows T that it keeps. All of them are
columns of preconditioned conjugate gradients (onefit.systems.iterative): a step costs one product
with K for all, K is held where it fits and formed tile by tile where not, and the steps are few.

**Certificate.** Whatever the iteration ends with, a model (a, b) with 1'a = 0 has the residual

    r = R (y - b - K a) - R^-1 a          on T,            R^2 = diag(s) / Lambda,

which is computed from a at the end, in double precision, never carried along. With q = R 1
projected out, M = P R K R P and w = s / sum(s) on T, b is the w-weighted mean of y - K a, so that

    u(x) - u*(x) = (k_x - K w)' R (x - x*),   x - x* = -(I + M)^-1 P r,

and because the root of an eigenvalue over one plus it is at most a half,

    |u(x) - u*(x)| <= ||k_x - k_w|| ||r|| / 2,       ||k_x - k_w||^2 = K_xx - 2 (K w)_x + w'K w. (1)

Without an intercept ||k_x - k_w|| is the root of K_xx. A kernel matrix with eigenvalues down to
-nu, by rounding or otherwise, has 1 / (1 - nu max(R^2)) times that, and 2 nu more under the root.
What rounding does to K a enters r and u(x) with its bound (onefit.proof.precise.summation).

A column whose bound is too large continues from its present value, as a correction: so data in
single precision are iterated in single precision, and certified in double. Where a cycle no longer
halves the bound, the column is left with that bound.

**Other losses** take the Newton steps of onefit.columns.newton with the same iteration inside, all
folds of a lambda side by side from the fit to all rows, and the general certificate
(onefit.proof.certificate).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices, Mask
from onefit._validation import check_positive
from onefit.columns.newton import LINEAR_TOLERANCE_IN_SCALES
from onefit.columns.solve import from_coefficients
from onefit.folds import Folds
from onefit.gram import Gram
from onefit.heldout import cost as costs
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.driver import LeaveOutDriver, Policy
from onefit.heldout.refit import finished
from onefit.heldout.scaled import weight_roots
from onefit.heldout.splits import Splits
from onefit.heldout.squared import Block, Eigen, factored
from onefit.heldout.workload import Workload
from onefit.inverse.krylov import (
    MAX_CG_STEPS,
    Ridged,
    Watch,
    conjugate_gradients,
)
from onefit.inverse.low_rank import LowRank, iteration_cost, most_landmarks
from onefit.linalg.rates import Cost, Rates
from onefit.linalg.slices import SLICE_BITS
from onefit.problem import Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.proof.precise import EPSILON, summation

__all__ = ["Iterative", "fit_on_device"]

#: splits of one row each above which the method is refused: the other methods are far cheaper
MAX_SINGLE_ROW_SPLITS = 200
#: numbers in one array of the iteration, and small matrices held at a time
MAX_COLUMN_ELEMENTS, MAX_SMALL_MATRICES = 2**25, 64
#: the same on a device with enough memory, and how many of these arrays there are at a time
MAX_DEVICE_COLUMN_ELEMENTS, DEVICE_COLUMN_ARRAYS = 2**28, 30
#: share of the wanted bound, minus rounding, that the residual of the iteration may take: of 0.7,
#: the true residual exceeds more, and fewer splits are certified (benchmarks/constants.py)
ITERATION_SHARE_OF_BOUND = 0.1
#: bytes of the tiles of K on a device
DEVICE_TILE_BYTES = 2**31
#: steps assumed of an iteration, and columns of its low-rank factor (benchmarks/plan_choice.py)
CG_STEPS, ASSUMED_LANDMARKS = 25, 400
#: calls of a step, and of the small matrix of a fold in it (onefit.heldout.cost)
CALLS_PER_CG_STEP, CALLS_PER_PRECONDITIONER = 16.0, 5.0


class Iterative(HeldOutMethod):
    """Exact k-fold by products with K alone.

    Parameters
    ----------
    tol : float, default=1e-6
        The bound on the error of a held-out value to be reached, in units of the targets' scale.
        Values within 1e-6 are called exact; a looser one is faster, and its bounds say so.
    max_steps : int, default=1000
        Steps of conjugate gradients per cycle; a column that needs more is left with its bound.
    factor : bool, default=False
        Whether lambdas that are expected to take more operations by iteration than by a Cholesky
        factor go to method "block" or "eigen", which needs room for three matrices. "auto" asks
        for it where there is room.
    """

    name = "iterative"
    products_only = True
    on_device = True

    def __init__(
        self, tol: float = EXACT_TOLERANCE, max_steps: int = MAX_CG_STEPS, factor: bool = False
    ) -> None:
        self.tol = check_positive("tol", tol, "1e-6 makes held-out values exact")
        self.max_steps, self.factor = max_steps, factor
        self._watch: Watch | None = None

    def watched(self, watch: Watch) -> Iterative:
        """A copy that passes the residuals, relative to their targets, to ``watch`` every step."""
        other = copy(self)
        other._watch = watch
        return other

    def prepare(self, problem: Problem, folds: Folds) -> Prepared:
        self.check(problem)
        sizes = np.array([rows.size for rows in folds.removed])
        if (sizes == 1).all() and sizes.size > MAX_SINGLE_ROW_SPLITS:
            other = "'eigen' or 'block', closed forms," if problem.quadratic else "'exact'"
            raise ValueError(
                f"method 'iterative' solves a system for each of the {sizes.size} splits, one row "
                f"each: use method={other} or a splitter with fewer folds"
            )
        splits, low_rank = Splits.columns(problem, folds), LowRank(problem.K, problem.s)
        if problem.quadratic:
            return _Squared(self, splits, low_rank)
        policy = Policy(self.name, low_rank=low_rank, wanted=max(self.tol, EXACT_TOLERANCE))
        return LeaveOutDriver(splits, policy)

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """Landmarks, a small decomposition per split, and products with all columns at once."""
        n, m = work.n, min(ASSUMED_LANDMARKS, most_landmarks(work.n))
        if not work.quadratic:
            # lambdas one after the other, and a set-up for every Newton step
            one = replace(work, lams=1, quadratic=True)
            return work.lams * costs.NEWTON_STEPS * cls.cost(one, rates)
        folds = max(1, work.folds)
        cg = iteration_cost(n, m, work.columns, folds, CG_STEPS, rates, tiled=work.tiled)
        formed = Cost() if work.given else rates.entries(n * n)
        calls = CG_STEPS * (CALLS_PER_CG_STEP + CALLS_PER_PRECONDITIONER * folds)
        return formed + cg + rates.calls(costs.CALLS_PER_KERNEL + calls)

    @classmethod
    def matrices(cls, work: Workload) -> float:
        """K where it is held, the landmarks' columns twice, and a dozen arrays of the iteration."""
        n, m = work.n, most_landmarks(work.n)
        columns = min(work.columns, max(MAX_COLUMN_ELEMENTS // n, work.lams * work.targets))
        rest = (2.0 * m + 14.0 * columns) / n + max(1, work.folds) * m**2 / n**2
        return rest + (float(work.given) if work.tiled else 1.0)

    @classmethod
    def device_bytes(cls, work: Workload) -> float:
        n, m = float(work.n), float(most_landmarks(work.n))
        k = float(work.columns) if work.quadratic else work.columns / work.lams
        columns = min(n * k, max(MAX_DEVICE_COLUMN_ELEMENTS, n * work.lams * work.targets))
        numbers = DEVICE_COLUMN_ARRAYS * columns + 2.0 * n * m + work.folds * m * m
        held = DEVICE_TILE_BYTES if work.tiled else work.itemsize * n * n
        return held + work.itemsize * numbers


class _Squared(Prepared):
    """All splits and lambdas of the squared loss, as columns of one iteration."""

    def __init__(self, method: Iterative, splits: Splits, low_rank: LowRank) -> None:
        self.method, self.splits, self.low_rank = method, splits, low_rank
        self.problem, self.folds = splits.problem, splits.folds
        self.train = splits.train(splits.by_formula)

    @linalg.overflowing
    def predict(self, lams: Array) -> HeldOutPath:
        path = HeldOutPath.empty(self.problem, self.folds, "iterative", lams)
        slow = self._slow(path.lams)
        if slow.any():
            slow[slow] = self._factored(path, np.flatnonzero(slow))
        quick = np.flatnonzero(~slow)
        for splits in self._batches(quick.size) if quick.size else ():
            self._fill(path, self._solved(path.lams[quick], splits), quick)
        return finished(path, self.splits, again=self.method.tol <= EXACT_TOLERANCE)

    def _slow(self, lams: Array) -> Mask:
        """Lambdas that a factor is expected to serve with fewer operations than an iteration."""
        if not self.method.factor or not (self.problem.K.held and self.problem.K.arrays.on_host):
            return np.zeros(lams.size, dtype=bool)
        n, k, weight = self.problem.n, len(self.folds), self.splits.weight
        rates = self.low_rank.rates
        ridge, group = np.outer(weight, lams), np.repeat(np.arange(k), lams.size)
        steps = self.low_rank.steps(ridge.ravel(), group).reshape(ridge.shape).max(axis=0)
        factors = np.unique(weight).size * (rates.cholesky(n) + rates.triangular_inverse(n))
        return np.asarray(steps * rates.product(n, n, k).seconds > factors.seconds)

    def _factored(self, path: HeldOutPath, some: Indices) -> Mask:
        """Solve some lambdas with a factor each, or many with one decomposition.

        Returns which of them have bounds; the others are iterated.
        """
        factors = some.size * np.unique(self.splits.weight).size
        most = self.low_rank.rates.factors_per_eigendecomposition(self.problem.n)
        method = Block() if factors <= most else Eigen()
        other = method.prepare(self.problem, self.folds).predict(path.lams[some])
        bounded = other.done & np.isfinite(other.bounds).all(axis=(1, 2))
        path.put(some[bounded], other, bounded)
        return bounded

    def _batches(self, lams: int) -> Iterator[Indices]:
        """Batches of splits whose columns and small matrices fit into memory."""
        q, k = self.problem.Y.shape[1], len(self.folds)
        most = int(
            np.clip(_room(self.problem.K) // (self.problem.n * lams * q), 1, MAX_SMALL_MATRICES)
        )
        return iter(np.array_split(np.arange(k), -(-k // most)))

    def _solved(self, lams: Array, splits: Indices) -> _SquaredModels:
        """The models of some splits at all lambdas and for all targets."""
        problem, q = self.problem, self.problem.Y.shape[1]
        grid = np.meshgrid(splits, np.arange(lams.size), np.arange(q), indexing="ij")
        columns = np.stack([x.ravel() for x in grid])
        ridge = lams[columns[1]] * self.splits.weight[columns[0]]
        root = np.sqrt(problem.s[:, None] * self.train[:, splits]).astype(problem.K.dtype)
        group = np.searchsorted(splits, columns[0])
        size = (1.0 / np.sqrt(ridge)).astype(root.dtype)
        F = self.low_rank.factor(ridge, group)
        systems = Ridged.prepare(problem.K, F, root, group, size, problem.fit_intercept)
        wanted = self.method.tol * problem.scale[columns[2]]
        models = _SquaredModels(problem, self.train, columns, ridge, self._reach(splits)[group])
        models.iterate(systems, wanted, self.method)
        return models

    def _reach(self, splits: Indices) -> Array:
        """The largest ||k_x - k_w|| of the test rows of some splits, nu and rounding included."""
        problem = self.problem
        norms, nu = problem.norms, problem.norms.negative
        square = np.repeat(norms.roots[:, None] ** 2, splits.size, axis=1)
        if problem.fit_intercept:
            w = problem.s[:, None] * self.train[:, splits].astype(np.float64)
            w /= w.sum(axis=0)
            arrays = problem.K.arrays
            mean = arrays.host(problem.K.matmul(arrays.asarray(w)))
            square += (w * mean).sum(axis=0) - 2.0 * mean
        square = np.maximum(square, 0.0) + 4.0 * summation(problem.n) * norms.diagonal + 2.0 * nu
        tested = [square[self.folds.test[k], i].max() for i, k in enumerate(splits)]
        return np.asarray(np.sqrt(tested))

    def _fill(self, path: HeldOutPath, found: _SquaredModels, lams: Indices) -> None:
        splits = found.columns[0]
        for k in np.unique(splits):
            own, test = np.flatnonzero(splits == k), self.folds.test[k]
            values = found.values(test, own)
            for column, c in enumerate(own):
                place, j = found.columns[1:, c]
                path.fill(lams[place], k, j, values[:, column], found.error[c])
                path.steps[lams[place], k] = max(path.steps[lams[place], k], found.steps[c])


class _SquaredModels:
    """Models of the squared loss as columns, in double precision, and their certificate.

    Parameters
    ----------
    problem : Problem
    train : (n, splits) array
        The rows that each split is trained on.
    columns : (3, k) int array
        Split, lambda and target of each.
    ridge : (k,) array
        Lambda.
    reach : (k,) array
        ||k_x - k_w||, the largest of the rows tested.

    Attributes
    ----------
    arrays : Arrays
        Where K is, and with it all arrays of n rows.
    s, y : (n, 1) and (n, q) arrays
        Weights and targets in double precision.
    a, b, u : (n, k), (k,) and (n, k) arrays
        Coefficients and intercepts, at first zero, and K a.
    residual : (n, k) array
        r.
    norm, far : (k,) arrays
        Of r, and what it is multiplied by in (1).
    rounding : (k,) array
        What rounding adds to (1), by way of r and in the values themselves.
    error : (k,) array
        The bound, both together.
    steps : (k,) int array
    """

    def __init__(
        self, problem: Problem, train: Array, columns: Indices, ridge: Array, reach: Array
    ) -> None:
        k, n, xp = ridge.size, problem.n, problem.K.arrays
        self.problem, self.columns, self.ridge, self.reach = problem, columns, ridge, reach
        self.arrays: Any = xp
        self.train = train if xp.on_host else xp.asarray(train, np.float64)
        self.s = xp.asarray(problem.s[:, None], np.float64)
        self.y = xp.asarray(problem.Y, np.float64)
        self.a, self.u = (xp.zeros((n, k), np.float64) for _ in range(2))
        self.residual = xp.empty((n, k), np.float64)
        self.b, self.norm, self.far, self.rounding, self.error = np.zeros((5, k))
        self.steps = np.zeros(k, dtype=np.intp)
        self.certify(np.arange(k))

    def values(self, rows: Indices, some: Indices) -> Array:
        """Predictions of some rows by some of the models, as NumPy's array."""
        xp = self.arrays
        return np.asarray(xp.host(xp.columns(xp.rows(self.u, rows), some)) + self.b[some])

    def iterate(self, systems: Ridged, wanted: Array, method: Iterative) -> None:
        """Cycles of iteration and residual for the columns whose bounds are too large."""
        left = np.flatnonzero(~(self.error <= wanted))
        while left.size:
            before = self.far[left] * self.norm[left]
            room = np.maximum(wanted[left] - self.rounding[left], 0.25 * self.rounding[left])
            target = ITERATION_SHARE_OF_BOUND * room / self.far[left]
            self._correct(systems.take(left), left, target, method)
            # a cycle that does not halve what the residual leaves is the last
            hopeful = self.far[left] * self.norm[left] <= 0.5 * before
            hopeful &= np.isfinite(self.error[left])
            left = left[(self.error[left] > wanted[left]) & hopeful]

    def _correct(self, systems: Ridged, left: Indices, target: Array, method: Iterative) -> None:
        xp, dtype = self.arrays, systems.size.dtype
        R = systems.roots()
        unit = np.where(self.norm[left] > 0.0, self.norm[left], 1.0)
        z = xp.columns(self.residual, left) / xp.asarray(unit)
        found = conjugate_gradients(
            systems,
            xp.astype(z, dtype),
            (target / unit).astype(dtype),
            method.max_steps,
            method._watch,
        )
        a = xp.columns(self.a, left) + xp.astype(R * found.x, np.float64) * xp.asarray(unit)
        a = self._balanced(a, left) if systems.centred else a
        xp.put(self.a, left, a)
        self.steps[left] += found.steps
        xp.put(self.u, left, self.problem.K.matmul(a, precise=True))
        self.certify(left)

    def _weights(self, some: Indices) -> Array:
        """s on the rows that some columns are trained on, zero elsewhere."""
        return self.s * self.arrays.columns(self.train, self.columns[0, some])  # type: ignore[no-any-return]

    def _balanced(self, a: Array, some: Indices) -> Array:
        """The coefficients with a sum of zero, up to rounding in double precision."""
        lib, s = self.arrays.lib, self._weights(some)
        return a - s * (lib.sum(a, axis=0) / lib.sum(s, axis=0))  # type: ignore[no-any-return]

    def certify(self, some: Indices) -> None:
        """Intercepts, residuals and bounds of some columns, from their a and u = K a."""
        problem, norms, xp, lib = self.problem, self.problem.norms, self.arrays, self.arrays.lib
        a, u, ridge = xp.columns(self.a, some), xp.columns(self.u, some), self.ridge[some]
        y, s = xp.columns(self.y, self.columns[2, some]), self._weights(some)
        weight, off = xp.host(lib.sum(s, axis=0)), np.zeros(some.size)
        if problem.fit_intercept:
            self.b[some] = xp.dots(s, y - u) / weight
            off = np.abs(xp.column_sums(a))
        R = lib.sqrt(s / xp.asarray(ridge))
        x = a / lib.where(s > 0.0, R, 1.0)
        r = R * (y - xp.asarray(self.b[some]) - u) - x
        xp.put(self.residual, some, r)
        self.norm[some] = xp.norms(r)
        top, nu = xp.largest(R), norms.negative
        theta = nu * top**2
        # a row that is tested and trained on has a part of nu in its own column
        reach = 0.5 * self.reach[some] + nu * top
        known = theta < 1.0
        self.far[some] = reach / np.where(known, 1.0 - theta, 1.0)
        # of a prediction, in units of the root of its K_xx; a part of it for 1'a, which is not zero
        roots = xp.asarray(norms.roots[:, None])
        sums = xp.host(lib.abs(a).T @ roots)[:, 0]
        drift = self._drift(a, sums) + norms.root * off
        size = xp.largest(y) + xp.largest(u) + np.abs(self.b[some])
        each = roots * xp.asarray(drift) + xp.asarray(4.0 * EPSILON * size)
        rounding = xp.norms(R * each) + 4.0 * EPSILON * xp.norms(x) + off * np.sqrt(ridge / weight)
        own = norms.root * drift + 4.0 * EPSILON * size
        if problem.fit_intercept:
            own = 2.0 * own + 2.0 * summation(problem.n) * size
        self.rounding[some] = self.far[some] * rounding + own
        error = self.far[some] * self.norm[some] + self.rounding[some]
        self.error[some] = np.where(known, error, np.inf)

    def _drift(self, a: Array, sums: Array) -> Array:
        """What rounding makes of K a, in units of the root of K_ii; sums are those of root |a|.

        Of slices (onefit.gram.device) with |K - K1| <= 2^-16 in units of the roots, up to a
        factor of two, and |a - a1| <= 2^-17 max |a|, only the products of these rests are rounded.
        """
        n, K = self.problem.n, self.problem.K
        if not K.sliced:
            return summation(n, K.terms) * sums
        most = n * 2.0 ** (1 - SLICE_BITS) * self.problem.norms.root * self.arrays.largest(a)
        rests = 8.0 * np.minimum(sums, most) + 2.0 ** (3 - SLICE_BITS) * sums
        return np.asarray(summation(n) * rests + n * EPSILON**2 * sums)


def fit_on_device(problem: Problem, lam: float) -> Solution:
    """The models of the squared loss on all rows.

    Where K is held and all weights are positive the leave-out formula's own inverse has them; by
    iteration down to what rounding leaves otherwise.
    """
    xp, q = problem.K.arrays, problem.Y.shape[1]
    if problem.K.held and (problem.s > 0).all():
        root = weight_roots(problem)
        inverse = factored(problem, root, problem.ridge(lam))
        a = root[:, None] * inverse.solve(np.asfortranarray(root[:, None] * problem.Y))
        u = xp.host(problem.K.matmul(xp.asarray(a, np.float64), precise=True))
        b = np.zeros(q)
        if problem.fit_intercept:
            b = np.average(problem.Y - u, axis=0, weights=problem.s)
        return from_coefficients(problem, lam, a, b, 1)
    columns = np.stack([np.zeros(q, dtype=np.intp)] * 2 + [np.arange(q)])
    train = (problem.s > 0)[:, None]
    ridge = np.full(q, problem.ridge(lam))
    root = np.sqrt(problem.s[:, None]).astype(problem.K.dtype)
    size = (1.0 / np.sqrt(ridge)).astype(root.dtype)
    F = LowRank(problem.K, problem.s).factor(ridge, columns[0])
    systems = Ridged.prepare(problem.K, F, root, columns[0], size, problem.fit_intercept)
    reach = np.full(q, 2.0 * problem.norms.root)
    models = _SquaredModels(problem, train, columns, ridge, reach)
    models.iterate(systems, LINEAR_TOLERANCE_IN_SCALES * problem.scale, Iterative())
    a = xp.host(xp.astype(models.a, problem.K.dtype))
    return from_coefficients(problem, lam, a, models.b, int(models.steps.max()))


def _room(K: Gram) -> int:
    """Numbers that one array of the iteration may have."""
    arrays: Any = K.arrays
    if arrays.on_host:
        return MAX_COLUMN_ELEMENTS
    return int(min(MAX_DEVICE_COLUMN_ELEMENTS, arrays.room() / (8.0 * DEVICE_COLUMN_ARRAYS)))
