"""Predict a given test set from training rows, at many lambdas.

Where preprocessing is fitted in every training part, each split has its own kernel matrix, and no
full-sample fit serves several splits. What the lambdas of a split still share is

- for the squared loss, one tridiagonal form of the training block R K R (onefit.inverse.shifted):
  at every c = Lambda the coefficients are a = R P R y, and since K a + c a / s + b = y on every
  training row, b is the weighted mean of y - K a;
- for any other loss, one path of solutions from the largest lambda down (onefit.heldout.path).

Where a factor is too expensive, or K is on a device, a search takes the iteration with products of
K instead (onefit.heldout.iterative).

Test rows are rows of weight zero: they are not trained on, but they belong to the kernel matrix, so
that the certificate of a refit (onefit.columns.certify) covers their values too. A value without a
certificate is computed again by a refit from the point that was found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.columns.fit import certified
from onefit.folds import Folds
from onefit.heldout import cost as costs
from onefit.heldout.base import HeldOutMethod, HeldOutPath, Prepared
from onefit.heldout.path import FullPath
from onefit.heldout.refit import fill_refits, finished, refit_again
from onefit.heldout.scaled import scaled_matrix, weight_roots
from onefit.heldout.splits import Splits
from onefit.heldout.workload import Workload
from onefit.inverse.shifted import solve_shifted
from onefit.linalg.rates import Cost, Rates
from onefit.problem import Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = ["TrainTest"]

#: lambdas from which one tridiagonal form costs less than a factor for each: it takes as long as
#: 4.8 Cholesky factors of 480 to 1,500 rows (benchmarks/rates.py)
MIN_TRIDIAGONAL_LAMS = 5


class TrainTest(HeldOutMethod):
    """The test rows of a single split, by models of its training rows.

    Test rows are rows of weight zero. Their targets are not used, but must be valid.
    """

    name = "train_test"

    def prepare(self, problem: Problem, folds: Folds) -> Prepared:
        return _TestRows(problem, folds.without(np.flatnonzero(problem.s == 0)))

    @classmethod
    def cost(cls, work: Workload, rates: Rates) -> Cost:
        """Predictions of one test set at all lambdas: a tridiagonal form, or a fit per lambda."""
        m = max(work.removed, default=0)
        rest = work.n - m
        shared = rates.gathers(rest * rest) + rates.passes(rest * rest, 2)
        predicted = rates.product(m, rest, work.lams * work.targets) + rates.calls(
            costs.CALLS_PER_LAMBDA
        )
        if not work.quadratic:
            fits = work.lams * costs.fit(rest, work, rates)
        else:
            fits = rates.tridiagonal(rest)
            fits += rates.product(rest, rest, work.lams * work.targets)
        return costs.kernel(work, rates) + shared + fits + predicted

    @classmethod
    def matrices(cls, work: Workload) -> float:
        """K of all rows, the training block twice, and a Newton step where it takes one.

        Every worker keeps the distances of its split.
        """
        part = (work.n - min(work.removed, default=0)) / work.n
        kept = 1.0 if work.kernels > 1 and work.busy > 1 else 0.0
        steps = 0.0 if work.quadratic else costs.fit_matrices(work) * part**2
        return kept + 1.0 + 2.0 * part**2 + part * (1.0 - part) + steps


@dataclass(frozen=True)
class _TestRows(Prepared):
    problem: Problem
    folds: Folds

    @linalg.overflowing
    def predict(self, lams: Array) -> HeldOutPath:
        problem = self.problem
        path = HeldOutPath.empty(problem, self.folds, TrainTest.name, lams)
        shifts = problem.quadratic and len(lams) >= MIN_TRIDIAGONAL_LAMS
        (_by_shifts if shifts else _by_path)(path, problem)
        return finished(path, Splits.columns(problem, self.folds), again=shifts)


def _by_shifts(path: HeldOutPath, problem: Problem) -> None:
    """All lambdas of the squared loss from one tridiagonal form, with bounds on the rounding."""
    train, test = path.folds.train[0], path.folds.test[0]
    inner = problem.take(train)
    root = weight_roots(inner)
    targets = np.asfortranarray(root[:, None] * inner.Y)
    ridges = np.array([inner.ridge(lam) for lam in path.lams])
    matrix = scaled_matrix(inner.K, root)
    x, rounded, shift, norm = solve_shifted(matrix, root, targets, inner.fit_intercept, ridges)
    L, n, q = x.shape
    a = np.asfortranarray((root[:, None] * x).transpose(1, 0, 2).reshape(n, L * q))
    across = problem.K.hold().matrix[np.ix_(test, train)]
    u = linalg.matmul(np.ascontiguousarray(across), a)
    if inner.fit_intercept:
        missed = np.tile(inner.Y, (1, L)) - inner.K.matmul(a)
        u = u + np.average(missed, axis=0, weights=inner.s)
    path.values[:] = u.reshape(test.size, L, q).transpose(1, 0, 2)
    epsilon = float(np.finfo(inner.Y.dtype).eps)
    changed = 8.0 * epsilon * (rounded + ridges) + 4.0 * shift
    relative = changed * norm + epsilon * (64.0 + n)
    size = np.abs(inner.Y).max(axis=0) + np.abs(path.values).max(axis=1)
    path.bounds[:, 0] = (relative * float(root.max() / root.min()))[:, None] * size


def _by_path(path: HeldOutPath, problem: Problem) -> None:
    """A path of solutions on the training rows, each certified on the test rows."""
    train, test = path.folds.train[0], path.folds.test[0]
    every = np.arange(train.size)
    splits = Splits.refitted(problem.take(train), Folds(train.size, [every], [every]))
    solutions = FullPath(splits, follow=True).solutions(path.lams)
    whole = problem.double
    tested = np.zeros((problem.n, problem.Y.shape[1]), dtype=bool)
    tested[test] = True
    for i, (lam, one) in enumerate(zip(path.lams.tolist(), solutions, strict=True)):
        with path.attempt([i]):
            columns = whole.targets(train, problem.ridge(lam, train))
            if isinstance(one, str) or not hasattr(columns.loss, "max_curvature"):
                fill_refits(path, i, problem, path.folds, [0])
                continue
            batch = certified(columns, _embedded(one, whole, train), tested)
            path.fill(i, 0, slice(None), batch.at.u[test], batch.error)
            path.steps[i, 0] = one.steps
            if not (path.bounds[i, 0] <= EXACT_TOLERANCE * problem.scale).all():
                refit_again(path, i, 0, problem, path.folds, batch.at)


def _embedded(one: Solution, whole: Problem, train: Indices) -> Solution:
    """A solution on the training rows as one on all rows, in double precision."""
    a = np.zeros((whole.n, one.a.shape[1]), order="F")
    a[train] = one.a
    b = one.b.astype(np.float64)
    u = whole.K.matmul(a) + b
    size = np.abs(a).T @ whole.norms.roots
    drift = np.finfo(np.float64).eps * np.sqrt(train.size) * size
    return replace(one, a=a, b=b, u=u, drift=drift)
