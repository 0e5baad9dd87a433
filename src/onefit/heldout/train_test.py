"""Predict a given test set from training rows, at many lambdas.

Where preprocessing is fitted in every training part, each split has its own kernel matrix, and no
full-sample fit serves several splits. What the lambdas of a split still share is

- for the squared loss, one tridiagonal form of the training block R K R (onefit.inverse.shifted):
  at every c = Lambda the coefficients are a = R P R y, and since K a + c a / s + b = y on every
  training row, b is the weighted mean of y - K a;
- for any other loss, one path of solutions from the largest lambda down (onefit.heldout.path).

Where a factor is too expensive, or K is on a device, the lambdas share one iteration with products
of K instead (onefit.heldout.iterative).

Test rows are rows of weight zero: they are not trained on, but they belong to the kernel matrix, so
that the certificate of a refit (onefit.columns.certify) covers their values too. A value without a
certificate is computed again by a refit from the point that was found.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices, Mask
from onefit.columns.fit import certified
from onefit.folds import Folds
from onefit.heldout import cost as costs
from onefit.heldout.base import HeldOutPath
from onefit.heldout.iterative import Iterative
from onefit.heldout.path import FullPath
from onefit.heldout.refit import fill_refits, finished, refit_again
from onefit.heldout.scaled import scaled_matrix, weight_roots
from onefit.heldout.splits import Splits
from onefit.heldout.workload import Workload
from onefit.inverse.shifted import solve_shifted
from onefit.linalg.rates import Cost, Rates
from onefit.problem import Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = ["TestValues", "iterate_test", "predict_test", "split_cost", "split_matrices"]

#: lambdas from which one tridiagonal form costs less than a factor for each: it takes as long as
#: 4.8 Cholesky factors of 480 to 1,500 rows (benchmarks/rates.py)
MIN_TRIDIAGONAL_LAMS = 5


@dataclass(frozen=True)
class TestValues:
    """Decision values of one test set at several lambdas.

    Attributes
    ----------
    values : (L, m, q) array
        NaN at a lambda without a solution.
    error : (L,) array
        Bound on the largest error of the values.
    exact : (L,) bool array
        Whether the bound is as small as that of values called exact.
    steps : (L,) int array
        Newton steps.
    reasons : list of str
        Why there are no values, empty where there are.
    """

    __test__ = False  # not a test class

    values: Array = field(repr=False)
    error: Array
    exact: Mask
    steps: Indices
    reasons: list[str]

    @classmethod
    def empty(cls, L: int, m: int, q: int, reason: str = "") -> TestValues:
        """No values."""
        steps = np.zeros(L, dtype=np.intp)
        none = np.full(L, np.nan)
        return cls(np.full((L, m, q), np.nan), none, np.zeros(L, dtype=bool), steps, [reason] * L)

    @classmethod
    def of(cls, path: HeldOutPath) -> TestValues:
        """The values of the only split of a path."""
        values = path.values.astype(np.float64)
        return cls(values, path.error[:, 0], path.exact[:, 0], path.steps[:, 0], path.reasons)

    def take(self, places: list[int]) -> TestValues:
        """The values at some of the lambdas."""
        reasons = [self.reasons[i] for i in places]
        arrays = {name: getattr(self, name)[places] for name in _ARRAYS}
        return TestValues(reasons=reasons, **arrays)

    @classmethod
    def stack(cls, parts: list[TestValues]) -> TestValues:
        """The lambdas of several, one after the other."""
        arrays = {name: np.concatenate([getattr(x, name) for x in parts]) for name in _ARRAYS}
        return cls(reasons=[reason for one in parts for reason in one.reasons], **arrays)


_ARRAYS = ("values", "error", "exact", "steps")


@linalg.overflowing
def predict_test(problem: Problem, lams: Array) -> TestValues:
    """Decision values of the rows of weight zero, by the models of the other rows.

    Parameters
    ----------
    problem : Problem
        Training rows, and test rows of weight zero, in any order. The targets of test rows are not
        used, but must be valid.
    lams : (L,) array

    Returns
    -------
    TestValues
        Test rows in the order of the problem.
    """
    path = HeldOutPath.empty(problem, _split(problem), "train_test", lams)
    shifts = problem.quadratic and len(lams) >= MIN_TRIDIAGONAL_LAMS
    (_by_shifts if shifts else _by_path)(path, problem)
    return TestValues.of(finished(path, Splits.columns(problem, path.folds), again=shifts))


def iterate_test(problem: Problem, lams: Array) -> TestValues:
    """The same by one iteration for all lambdas, which needs products with K alone."""
    method = Iterative(factor=problem.K.arrays.on_host)
    return TestValues.of(method.prepare(problem, _split(problem)).predict(lams))


def split_cost(work: Workload, rates: Rates) -> Cost:
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


def split_matrices(work: Workload) -> float:
    """K of training and test rows, the training block twice, and a Newton step where it takes one.

    Every worker keeps the distances of its split.
    """
    part = (work.n - min(work.removed, default=0)) / work.n
    kept = 1.0 if work.kernels > 1 and work.busy > 1 else 0.0
    steps = 0.0 if work.quadratic else costs.fit_matrices(work) * part**2
    return kept + 1.0 + 2.0 * part**2 + part * (1.0 - part) + steps


def _split(problem: Problem) -> Folds:
    """The rows of weight zero tested by the others."""
    return Folds(problem.n, [problem.positive], [np.flatnonzero(problem.s == 0)])


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
