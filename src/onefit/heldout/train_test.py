"""Predict a given test set from training rows, at many lambdas.

Where preprocessing is fitted in every training part, each split has its own kernel matrix, and no
full-sample fit serves several splits. What the lambdas of a split still share is

- for the squared loss, one tridiagonal form of the training block R K R (onefit.inverse.shifted):
  at every c = Lambda the coefficients are a = R P R y, and since K a + c a / s + b = y on every
  training row, b is the weighted mean of y - K a;
- for any other loss, one path of solutions from the largest lambda down (onefit.heldout.path).

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
from onefit.heldout.path import FullPath
from onefit.heldout.refit import cheap_to_refit, refit_fold
from onefit.heldout.scaled import scaled_matrix
from onefit.heldout.splits import Splits
from onefit.inverse.shifted import solve_shifted
from onefit.problem import Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = ["TestValues", "predict_test"]

#: lambdas from which one tridiagonal form costs less than a factor for each
MIN_LAMS = 5


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
    def empty(cls, L: int, m: int, q: int) -> TestValues:
        """No values yet."""
        steps = np.zeros(L, dtype=np.intp)
        none = np.full(L, np.nan)
        return cls(np.full((L, m, q), np.nan), none, np.zeros(L, dtype=bool), steps, [""] * L)

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
    train, test = problem.positive, np.flatnonzero(problem.s == 0)
    lams = np.asarray(lams, dtype=np.float64)
    found = TestValues.empty(lams.size, test.size, problem.Y.shape[1])
    if problem.quadratic and lams.size >= MIN_LAMS:
        _by_shifts(found, problem, lams, train, test)
    else:
        _by_path(found, problem, lams, train, test)
    return found


def _by_shifts(
    found: TestValues, problem: Problem, lams: Array, train: Indices, test: Indices
) -> None:
    """All lambdas of the squared loss from one tridiagonal form, with bounds on the rounding."""
    inner = problem.take(train)
    root = np.sqrt(inner.s).astype(inner.Y.dtype)
    targets = np.asfortranarray(root[:, None] * inner.Y)
    ridges = np.array([inner.ridge(lam) for lam in lams])
    matrix = scaled_matrix(inner.K, root)
    solved = solve_shifted(matrix, root, targets, inner.fit_intercept, ridges)
    L, n, q = solved.x.shape
    a = np.asfortranarray((root[:, None] * solved.x).transpose(1, 0, 2).reshape(n, L * q))
    across = problem.K.hold().matrix[np.ix_(test, train)]
    u = linalg.matmul(np.ascontiguousarray(across), a)
    if inner.fit_intercept:
        missed = np.tile(inner.Y, (1, L)) - inner.K.matmul(a)
        u = u + np.average(missed, axis=0, weights=inner.s)
    found.values[:] = u.reshape(test.size, L, q).transpose(1, 0, 2)
    epsilon = float(np.finfo(inner.Y.dtype).eps)
    changed = 8.0 * epsilon * (solved.rounded + ridges) + 4.0 * solved.changed
    relative = changed * solved.norm + epsilon * (64.0 + n)
    size = np.abs(inner.Y).max(axis=0) + np.abs(found.values).max(axis=1)
    bounds = (relative * float(root.max() / root.min()))[:, None] * size
    for i, lam in enumerate(lams.tolist()):
        _note(found, i, bounds[i], problem)
        if not found.exact[i] and cheap_to_refit(problem.n, 1):
            with _attempt(found, i):
                _refit(found, i, problem, lam, train, test, None)


def _by_path(
    found: TestValues, problem: Problem, lams: Array, train: Indices, test: Indices
) -> None:
    """A path of solutions on the training rows, each certified on the test rows."""
    inner = problem.take(train)
    every = np.arange(train.size)
    splits = Splits.refitted(inner, Folds(train.size, [every], [every]))
    solutions = FullPath(splits, follow=True).solutions(lams)
    whole = problem.double
    tested = np.zeros((problem.n, problem.Y.shape[1]), dtype=bool)
    tested[test] = True
    for i, (lam, one) in enumerate(zip(lams.tolist(), solutions, strict=True)):
        with _attempt(found, i):
            start = None if isinstance(one, str) else _embedded(one, whole, train)
            columns = whole.targets(train, problem.ridge(lam, train))
            if start is None or not hasattr(columns.loss, "max_curvature"):
                _refit(found, i, problem, lam, train, test, start)
                continue
            batch = certified(columns, start, tested)
            found.values[i] = batch.at.u[test]
            found.steps[i] = start.steps
            _note(found, i, batch.error, problem)
            if not found.exact[i]:
                _refit(found, i, problem, lam, train, test, batch.at)


def _embedded(one: Solution, whole: Problem, train: Indices) -> Solution:
    """A solution on the training rows as one on all rows, in double precision."""
    a = np.zeros((whole.n, one.a.shape[1]), order="F")
    a[train] = one.a
    b = one.b.astype(np.float64)
    u = whole.K.matmul(a) + b
    size = np.abs(a).T @ whole.norms.roots
    drift = np.finfo(np.float64).eps * np.sqrt(train.size) * size
    return replace(one, a=a, b=b, u=u, drift=drift)


def _refit(
    found: TestValues,
    i: int,
    problem: Problem,
    lam: float,
    train: Indices,
    test: Indices,
    start: Solution | None,
) -> None:
    """Solve again, and keep what has the smaller bound."""
    again = refit_fold(problem, lam, train, test, start)
    if float(again.error.max()) < found.error[i] or not found.error[i] >= 0.0:
        found.values[i] = again.values
        found.steps[i] += again.solution.steps
        _note(found, i, again.error, problem)


def _note(found: TestValues, i: int, bounds: Array, problem: Problem) -> None:
    found.error[i] = float(bounds.max())
    found.exact[i] = bool((bounds <= EXACT_TOLERANCE * problem.scale).all())
    if not np.isfinite(found.values[i]).all():
        found.values[i], found.error[i], found.exact[i] = np.nan, np.nan, False
        found.reasons[i] = "the values are not finite: raise lam, or scale the data"


class _attempt:  # noqa: N801
    """A lambda at which the numerics fail has no values, and a reason."""

    def __init__(self, found: TestValues, i: int) -> None:
        self.found, self.i = found, i

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if not isinstance(error, (linalg.LinAlgError, FloatingPointError)):
            return False
        if not np.isfinite(self.found.values[self.i]).all():
            self.found.reasons[self.i] = str(error)
        return True
