"""Squared loss: one symmetric positive definite system, bordered by the intercept.

Without weights and intercept, stationarity Lambda a = y - K a reads C a = y with
C = K + Lambda I. Sample weights make it C = K + Lambda diag(1/s); with R = diag(sqrt(s)) this is
R^-1 (R K R + Lambda I) R^-1, so only M = R K R + Lambda I is ever factored and a = R M^-1 R y. The
intercept borders the system,

    [ C   1 ] [a]   [y]          b = 1'C^-1 y / 1'C^-1 1,    a = C^-1 (y - b 1)
    [ 1'  0 ] [b] = [0]

Targets are columns and share the factorisation.

Two factorisations, chosen by the caller: a Cholesky factor (one Lambda) or an
eigendecomposition R K R = Q diag(e) Q' (any number of them, Tanaka and Imai 2019). Where
rounding makes M indefinite (K singular and Lambda below roundoff times its norm) the Cholesky
way turns to the eigenvalues, with those that rounding made negative set to zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.problem import Problem, Solution

Array = NDArray[Any]

__all__ = [
    "Spectrum",
    "add_ridge",
    "solve_bordered",
    "solve_direct",
    "spectrum",
    "without_rounding",
]


@dataclass(frozen=True)
class Spectrum:
    """R K R = Q diag(e) Q' with e >= 0."""

    values: Array
    vectors: Array

    def solve(self, ridge: float, b: Array) -> Array:
        """(Q diag(e) Q' + ridge I)^-1 b."""
        scaled = linalg.matmul(self.vectors.T, b) / (self.values + ridge)[:, None]
        return linalg.matmul(self.vectors, scaled)


def add_ridge(K: Array, ridge: float | Array, root: Array | None = None) -> Array:
    """A column-major copy of R K R + ridge I (R = diag(root), the identity when None)."""
    M = linalg.fortran(K)
    if root is not None:
        M *= root[:, None]
        M *= root[None, :]
    M[np.diag_indices_from(M)] += ridge
    return M


def spectrum(problem: Problem) -> Spectrum:
    """The eigendecomposition that serves every lambda."""
    root = np.sqrt(problem.s) if problem.weighted else None
    values, vectors = linalg.eigh(add_ridge(problem.K, 0.0, root), overwrite=True)
    return Spectrum(without_rounding(values), vectors)


def without_rounding(values: Array, size: float = 0.0) -> Array:
    """Eigenvalues of a kernel matrix (ascending), those that rounding made negative set to zero.

    ``size`` is the norm of the matrix, where that is more than its largest eigenvalue here.
    """
    if values[0] < -(np.finfo(values.dtype).eps ** 0.5) * max(abs(values[-1]), size):
        raise ValueError(
            f"the kernel matrix is indefinite: its smallest eigenvalue is {values[0]:.3g}, its "
            f"largest {values[-1]:.3g}; a kernel must be positive semi-definite, correct it"
        )
    return np.asarray(np.maximum(values, 0.0))


def solve_bordered(
    solve: Any, Y: Array, root: Array, fit_intercept: bool, apply: Any = None
) -> tuple[Array, Array]:
    """Coefficients a and b from a routine ``solve(B) = M^-1 B``.

    With an intercept, a is what is left of two larger vectors. Given ``apply(A) = C A``, a second
    round on the residual of the first wins back the digits lost in their difference.
    """
    R = root[:, None]
    if not fit_intercept:
        return R * solve(R * Y), np.zeros(Y.shape[1], dtype=Y.dtype)
    both = R * solve(R * np.column_stack([Y, np.ones_like(root)]))
    ones, total = both[:, -1:], both[:, -1].sum()
    b = both[:, :-1].sum(axis=0) / total
    a = both[:, :-1] - ones * b
    if apply is not None:
        a = a + R * solve(R * (Y - b - apply(a)))
        shift = a.sum(axis=0) / total
        a, b = a - ones * shift, b + shift
    return a, b


def solve_direct(problem: Problem, lam: float, spectrum: Spectrum | None = None) -> Solution:
    """Minimise the squared loss; reuse ``spectrum`` when there is one."""
    ridge = problem.ridge(lam)
    root = np.sqrt(problem.s)
    if spectrum is None:
        solve = _positive_solver(problem, ridge, root)
    else:
        solve = lambda B: spectrum.solve(ridge, B)  # noqa: E731
    scale = ridge / problem.s[:, None]
    coef, intercept = solve_bordered(
        solve,
        problem.Y,
        root,
        problem.fit_intercept,
        apply=lambda A: linalg.matmul(problem.K, A) + scale * A,
    )
    # u = y - Lambda a / s is stationarity itself, and loses no digits as lam -> 0
    return Solution(coef, intercept, problem.Y - scale * coef)


def _positive_solver(problem: Problem, ridge: float, root: Array) -> Any:
    try:
        factor = linalg.cholesky(add_ridge(problem.K, ridge, root), overwrite=True)
    except linalg.LinAlgError:
        whole = spectrum(problem)
        return lambda B: whole.solve(ridge, B)
    return lambda B: linalg.solve_cholesky(factor, B)
