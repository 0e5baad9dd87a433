"""P of the leave-out formula at one c: M^-1 less its border, by a factor or by eigenvectors.

Of M^-1 only the diagonal blocks are needed (onefit.heldout.squared). With M = L L' and W = L^-1
these are W_S'W_S, with M = Q diag(e + c) Q' they are Q_S diag(1/(e + c)) Q_S'. What has n rows and
n columns is where K is; what has a few columns is NumPy's.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.folds import Folds
from onefit.heldout.scaled import Scaled
from onefit.problem import Problem

__all__ = ["Diagonal", "Inverse", "Triangular", "factored", "solved_block"]


class Inverse:
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
        return self.arrays.host(solved_block(block, right, self.ridge))

    def leave_one_out(self, rows: Indices) -> Array:
        """The same for one row at a time, (m, q)."""
        left = (self.diagonal() - np.square(self.ones))[rows]
        return np.asarray(self.alpha[rows] / left[:, None])


class Triangular(Inverse):
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
    return np.asarray(scaled.root[:, None] * Triangular(scaled, ridge).alpha)


class Diagonal(Inverse):
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


def solved_block(block: Array, alpha: Array, ridge: float, overwrite: bool = False) -> Array:
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
