"""kCV and BIF-kCV of the LS-SVM as the paper writes them, for the comparison of their times.

The package's own "refit" and "influence" also prove how exact their values are, or solve the full
problem to that standard. On a few hundred rows that takes longer than the algorithms themselves,
and their ratio would be one of bookkeeping. Here each has its Cholesky factors and nothing else.

With C = K + c I, c = lam n, and an intercept, the LS-SVM for targets r has

    x = C^-1 [r, 1],     b = 1'x_r / 1'x_1,     a = x_r - b x_1,     K a + b = r - c a.        (*)

**kCV** is (*) on the training rows, a factor for every lambda and fold.

**BIF-kCV** (section 4) has one factor for every lambda. Leaving out a fold S of m rows changes the
weights 1/n by v_i = 1/(n - m) - 1/n, and by -1/n in S; stationarity, differentiated in the change,
is again (*): the first term has r = -n v (u - y), each further one r = -n v times the one before,
and the prediction is u plus their sum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import linalg
from onefit.criteria import near_identity
from onefit.criteria.pointwise import Pointwise, pointwise
from onefit.folds import Folds
from onefit_papers.sweep import Family, Sweep

Array = NDArray[Any]

__all__ = ["refits", "series"]


def refits(family: Family, folds: Folds, loss: str | Pointwise) -> Sweep:
    """kCV on the grid, and the time it took."""
    return _sweep(family, folds, loss, lambda K: _refitted(K, family.y, folds, family.lams))


def series(family: Family, folds: Folds, loss: str | Pointwise, order: int) -> Sweep:
    """BIF-kCV on the grid, infinite for kernels near the identity, and the time it took."""

    def held_out(K: Array) -> list[list[Array]] | None:
        if near_identity(K):
            return None
        return _expanded(K, family.y, folds, family.lams, order)

    return _sweep(family, folds, loss, held_out)


def _sweep(
    family: Family,
    folds: Folds,
    loss: str | Pointwise,
    held_out: Callable[[Array], list[list[Array]] | None],
) -> Sweep:
    """The mean over the folds of the mean loss, from predictions by lambda and fold."""
    found = Sweep(np.full((len(family.kernels), len(family.lams)), np.inf), 0.0)
    for i in range(len(family.kernels)):
        problem = family.problem(i)
        judged, start = pointwise(loss, problem), process_time()
        predicted = held_out(problem.K.matrix)
        if predicted is not None:
            found.values[i] = [
                np.mean(
                    [judged(problem.Y[S], u).mean() for S, u in zip(folds.test, us, strict=True)]
                )
                for us in predicted
            ]
        found.seconds += process_time() - start
    return found


class Machine:
    """(*) for one matrix and one c."""

    def __init__(self, K: Array, c: float) -> None:
        C = linalg.fortran(K)
        C[np.diag_indices_from(C)] += c
        self.factor = linalg.cholesky(C, overwrite=True)
        self.one = linalg.solve_cholesky(self.factor, np.ones((len(K), 1)))

    def solve(self, R: Array) -> tuple[Array, Array]:
        """a and b for every column of R."""
        x = linalg.solve_cholesky(self.factor, R)
        b = x.sum(axis=0) / self.one.sum()
        return x - self.one * b, b


def _refitted(K: Array, y: Array, folds: Folds, lams: Sequence[float]) -> list[list[Array]]:
    found: list[list[Array]] = [[] for _ in lams]
    for train, test in folds:
        inner, outer = linalg.submatrix(K, train, train), linalg.submatrix(K, test, train)
        for own, lam in zip(found, lams, strict=True):
            a, b = Machine(inner, lam * len(train)).solve(y[train, None])
            own.append(outer @ a + b)
    return found


def _expanded(
    K: Array, y: Array, folds: Folds, lams: Sequence[float], order: int
) -> list[list[Array]]:
    n, found = len(y), []
    change = np.empty((n, len(folds)))  # n v, a column for every fold
    for k, S in enumerate(folds.test):
        change[:, k] = len(S) / (n - len(S))
        change[S, k] = -1.0
    for lam in lams:
        machine = Machine(K, lam * n)
        # r - c a, for one column and for one per fold
        u = y[:, None] - lam * n * machine.solve(y[:, None])[0]
        total, term = np.repeat(u, len(folds), axis=1), u - y[:, None]
        for _ in range(order):
            R = np.asfortranarray(-change * term)
            term = R - lam * n * machine.solve(R)[0]
            total += term
        found.append([total[S, k, None] for k, S in enumerate(folds.test)])
    return found
