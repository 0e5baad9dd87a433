"""Leave-one-out of least squares in feature space, from one decomposition of m x m.

With R = diag(sqrt(s)), centred features phi_c = phi - gbar (phi itself without an intercept) and
A = V diag(e) V' the matrix of onefit.stream.ridge, P = R Phi_c V has columns of squared length e,
and

    H = P diag(1 / (e + c)) P' + v v',     v = R 1 / |R 1|  (with an intercept)

is the hat matrix at the ridge c: everything about it is sums over m products, row by row. Leaving
out row i gives y_i - u_i^(-i) = (y_i - u_i) / (1 - H_ii), with the ridge c_i of those that remain.

**A row that is a landmark** has to go from the functions, too (onefit.stream.features): w must be
orthogonal to a vector l, the null space of the landmarks that remain. With B = (A + c_i)^-1, w the
machine of all rows at that ridge, r = y_i - u_i its residual, h = H_ii,

    t = l'B phi_c,   a = l'w,   g = l'B l,

    u_i^(-i) = y_i - r/(1-h) - t/(1-h) (a - s t r/(1-h)) / (g + s t^2/(1-h)),

which is one row less and one multiplier more, both by the formula for a change of rank one.

**Certificate.** Rounding makes it the leave-one-out machine of A + dA and r + dr, and the matrix of
the remaining rows, in the functions that remain, has no eigenvalue below c_i. So the bound is that
of onefit.stream.ridge with the length of the machine without row i, and the rounding of P and its
sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit._precise import summation
from onefit._types import Array
from onefit.problem import Problem
from onefit.stream.expansion import Expansion
from onefit.stream.features import product
from onefit.stream.gram import Centre, Sums

__all__ = ["FeatureHat", "Hat"]


@dataclass(frozen=True)
class Hat:
    """Least squares at one lambda.

    Attributes
    ----------
    residual : (n, q) array
        y - u.
    slack : (n,) array
        1 - H_ii.
    trace : float
        Of I - H.
    """

    residual: Array = field(repr=False)
    slack: Array = field(repr=False)
    trace: float


class FeatureHat:
    """What the hat matrices of one problem share.

    Parameters
    ----------
    problem : Problem
        With the squared loss, an Expansion for K, and positive weights.
    sums : Sums
        Of all rows.
    centre : Centre
    """

    def __init__(self, problem: Problem, sums: Sums, centre: Centre) -> None:
        self.problem = problem
        self.rows: Expansion = problem.K
        self.s = problem.s.astype(np.float64)
        self.arrays = xp = sums.arrays
        weight, trace = sums.weight, float(xp.diagonal(sums.G).sum())
        phi, y = sums.means
        # what the intercept takes back: nothing without one
        one = float(problem.fit_intercept)
        self.share = one * self.s / weight
        self.mean_phi, self.mean_y = one * (centre.phi + phi), one * (centre.y + y)
        A, r = sums.centred(problem.fit_intercept)
        size = summation(problem.n, sums.terms)
        self.rounding = (
            size * trace + 4.0 * summation(r.shape[0], xp.terms) * trace,
            size * np.sqrt(trace * np.diag(sums.T)[:-1]),
        )
        self.spread = np.diag(sums.T)[:-1] + weight * np.square(self.mean_y)
        values, self.vectors = xp.eigh(xp.fortran(A))
        self.values = np.maximum(xp.host(values), 0.0)
        self.z = xp.host(xp.matmul(self.vectors.T, r))
        self._kept: Any = None

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Rows, and phi_c V of these where they are, a chunk at a time."""
        xp, n = self.arrays, self.problem.n
        if self._kept is None and n * self.values.size <= self.rows.room:
            self._kept = xp.empty((n, self.values.size), np.float64)
            for some in self._slices():
                self._kept[some, :] = self._turned(some)
        for some in self._slices():
            yield some, self._turned(some) if self._kept is None else self._kept[some, :]

    def _slices(self) -> list[slice]:
        n, size = self.problem.n, self.rows.size
        return [slice(first, min(n, first + size)) for first in range(0, n, size)]

    def _turned(self, some: slice) -> Any:
        """phi_c V of some rows."""
        (X, features), xp = self.rows.kept, self.arrays
        phi = features.read(xp.rows(X, some)) - xp.asarray(self.mean_phi)
        return xp.matmul(phi, self.vectors)

    def at(self, lam: float) -> Hat:
        """Residuals and leverages at ``lam``."""
        damped = 1.0 / (self.values + self.problem.ridge(lam))
        residual = np.empty((self.problem.n, self.z.shape[1]))
        leverage = np.empty(self.problem.n)
        for some, P in self.parts():
            u = product(P, damped[:, None] * self.z) + self.mean_y
            residual[some] = self.problem.Y[some] - u
            leverage[some] = self.arrays.square_sums(P, damped[:, None])[:, 0]
        slack = 1.0 - self.s * leverage - self.share
        return Hat(residual, slack, float(slack.sum()))

    def leave_one_out(self, lam: float) -> Array:
        """(y_i - u_i) / (1 - H_ii), at the ridge of all rows."""
        hat = self.at(lam)
        return np.asarray(hat.residual / hat.slack[:, None])

    def power_diagonal(self, lam: float, power: int) -> Array:
        """The diagonal of H^power, power >= 1."""
        c = self.problem.ridge(lam)
        # H^p = P diag(e^(p-1) / (e + c)^p) P' + v v'
        scale = self.values ** (power - 1) / (self.values + c) ** power
        squares = (self.arrays.square_sums(P, scale[:, None]) for _, P in self.parts())
        return np.asarray(self.s * np.concatenate(list(squares))[:, 0] + self.share)

    def power_residual(self, lam: float, power: int) -> Array:
        """H^power (y - u), power >= 1."""
        c = self.problem.ridge(lam)
        scale = (self.values / (self.values + c)) ** (power - 1) * c / (self.values + c) ** 2
        return np.concatenate([product(P, scale[:, None] * self.z) for _, P in self.parts()])

    def left_out(self, lam: float) -> Array:
        """y_i - u_i^(-i), exactly, without the landmark that a row may be."""
        return self.left_out_with_bounds(lam)[0]

    def left_out_with_bounds(self, lam: float) -> tuple[Array, Array]:
        """The same, (n, q), and bounds on their errors."""
        n, q = self.problem.n, self.z.shape[1]
        left, bounds = np.empty((n, q)), np.empty((n, q))
        ridge = self.problem.ridges_without_each(lam)
        for some, P in self.parts():
            left[some], bounds[some] = self._rows(some, P, ridge[some])
        return left, bounds

    def _rows(self, some: slice, P: Any, ridge: Array) -> tuple[Array, Array]:
        xp, s = self.arrays, self.s[some]
        pulled = P / (xp.asarray(self.values)[None, :] + xp.asarray(ridge)[:, None])
        leverage = xp.host(xp.lib.sum(P * pulled, axis=1))
        slack = (1.0 - s * leverage - self.share[some])[:, None]
        residual = self.problem.Y[some] - self.mean_y - product(pulled, self.z)
        left = residual / slack
        size = np.linalg.norm(self.z / (self.values + ridge.min())[:, None], axis=0)
        moved = s[:, None] * np.abs(left) * xp.row_norms(pulled)[:, None]
        length = np.minimum(size + moved, np.sqrt(self.spread / ridge[:, None]))
        for i, phi, lost in self._landmarks(some, P):
            damped = 1.0 / (self.values + ridge[i])
            left[i], length[i] = (
                self._without_landmark(
                    phi, damped, float(s[i]), residual[i], float(slack[i, 0]), lost
                ),
                np.sqrt(self.spread / ridge[i]),
            )
        far = xp.row_norms(P)[:, None]
        bound = far * (self.rounding[0] * length + self.rounding[1]) / ridge[:, None]
        fine = 8.0 * summation(self.values.size, xp.terms)
        bound += fine * (far * size + np.abs(left) + np.abs(self.problem.Y[some])) / slack
        return left, np.where(slack > 0.0, bound, np.inf)

    def _landmarks(self, some: slice, P: Any) -> Iterator[tuple[int, Array, Array]]:
        """Rows of a chunk that are landmarks, their phi_c V, and what they take from functions."""
        rows, xp = self.rows, self.arrays
        if rows.keep_landmarks or rows.landmarks is None:
            return
        inside = np.flatnonzero((rows.landmarks >= some.start) & (rows.landmarks < some.stop))
        own = rows.landmarks[inside] - some.start
        phi = xp.host(xp.rows(P, own)) if own.size else np.empty((0, 0))
        for place, i, one in zip(inside, own.tolist(), phi, strict=True):
            lost = rows.features.lost(np.array([place], dtype=np.intp))
            if lost.shape[1]:
                yield i, one, product(self.vectors.T, lost[:, :1])[:, 0]

    def _without_landmark(
        self, phi: Array, damped: Array, s: float, residual: Array, slack: float, lost: Array
    ) -> Array:
        """y_i - u_i^(-i) of a row that is a landmark."""
        t, g = float(lost @ (damped * phi)), float(lost @ (damped * lost))
        a = (lost * damped) @ self.z
        left = residual / slack
        return np.asarray(left + t / slack * (a - s * t * left) / (g + s * t * t / slack))
