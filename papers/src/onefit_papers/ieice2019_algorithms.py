"""The algorithms of IEICE 2019 and the matrix operations that they are made of.

"Fast" (An et al., equation 14) and "Prop" (equations 16 to 19) are written as the paper writes
them. Linear equations and inverses come by Cholesky, which the matrices allow, and by LU, which is
what an inverse in MATLAB does, on which the paper measured.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from onefit import linalg
from onefit.folds import Folds
from onefit.heldout import HeldOutMethod
from onefit.kernels.stationary import Gaussian
from onefit.losses import Squared
from onefit.problem import Problem

Array = NDArray[Any]

__all__ = ["INVERSES", "SOLVERS", "engine", "fast", "noise", "prop", "shifted"]


def noise(n: int, rng: np.random.Generator) -> Problem:
    """The paper's problem: targets are noise, for the time does not depend on them."""
    x = rng.uniform(-10.0, 10.0, (n, 1))
    y = rng.standard_normal((n, 1))
    return Problem(Gaussian(1.0)(x), y, np.ones(n), Squared(), False, "total")


def shifted(problem: Problem, lam: float) -> Array:
    """K + lam I."""
    M = linalg.fortran(problem.K.matrix)
    M[np.diag_indices_from(M)] += lam
    return M


def _solve_lu(M: Array, b: Array) -> Array:
    _, _, x, info = lapack.dgesv(M, b)
    return _checked(x, info)


def _inverse_lu(M: Array) -> Array:
    lu, pivots, info = lapack.dgetrf(M, overwrite_a=True)
    size, _ = lapack.dgetri_lwork(len(M))
    inverse, _ = lapack.dgetri(_checked(lu, info), pivots, lwork=int(size), overwrite_lu=True)
    return np.asarray(inverse)


def _checked(found: Array, info: int) -> Array:
    if info:
        raise linalg.LinAlgError(f"LAPACK's LU factorisation stopped with info = {info}")
    return np.asarray(found)


#: by the name of the factorisation
SOLVERS: dict[str, Callable[[Array, Array], Array]] = {
    "Cholesky": linalg.solve_spd,
    "LU": _solve_lu,
}
INVERSES: dict[str, Callable[[Array], Array]] = {"Cholesky": linalg.inverse_spd, "LU": _inverse_lu}


def fast(
    problem: Problem, folds: Folds, lams: Array, inverse_of: Callable[[Array], Array]
) -> Array:
    """An et al., equation 14: the whole inverse for every lambda."""
    for lam in lams:
        inverse = inverse_of(shifted(problem, lam))
        alpha = linalg.matmul(inverse, problem.Y)
        residuals = _residuals(folds, alpha, np.diagonal(inverse), partial(_submatrix, inverse))
    return residuals


def prop(problem: Problem, folds: Folds, lams: Array) -> Array:
    """The paper's algorithm, equations 16 to 19: one eigendecomposition for all lambdas."""
    values, vectors = linalg.eigh(linalg.fortran(problem.K.matrix), overwrite=True)
    q, loo = linalg.matmul(vectors.T, problem.Y), len(folds) == problem.n
    for lam in lams:
        damped = 1.0 / (values + lam)
        alpha = linalg.matmul(vectors, np.asfortranarray(damped[:, None] * q))
        diagonal = np.einsum("ij,j,ij->i", vectors, damped, vectors) if loo else damped
        residuals = _residuals(folds, alpha, diagonal, partial(_update, vectors, damped))
    return residuals


def _submatrix(P: Array, rows: Array) -> Array:
    return np.asarray(P[np.ix_(rows, rows)])


def _update(vectors: Array, damped: Array, rows: Array) -> Array:
    """M_k of equation 18."""
    part = np.asfortranarray(vectors[rows])
    return linalg.matmul(np.asfortranarray(part * damped), part.T)


def _residuals(
    folds: Folds, alpha: Array, diagonal: Array, block: Callable[[Array], Array]
) -> Array:
    """(P_SS)^-1 alpha_S, fold by fold; a division where every fold is one row."""
    if len(folds) == folds.n:
        return np.asarray((alpha / diagonal[:, None])[folds.rows])
    return np.concatenate([linalg.solve_spd(block(rows), alpha[rows]) for rows in folds.test])


def engine(problem: Problem, folds: Folds, lams: Array, method: HeldOutMethod) -> Array:
    """One of this package's own methods."""
    held = method.prepare(problem, folds).predict(lams)
    return np.asarray(problem.Y[folds.rows] - held[-1].values)
