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
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._precise import summation
from onefit._types import Array
from onefit.linalg.tiles import BLOCK
from onefit.problem import Problem
from onefit.stream.expansion import ROOM, Expansion
from onefit.stream.gram import Centre, Sums

__all__ = ["Basis", "FeatureHat", "Hat"]


@dataclass(frozen=True)
class Hat:
    """Least squares at one lambda.

    Attributes
    ----------
    residual : (n, q) array
        y - u.
    slack : (n,) array
        1 - H_ii.
    """

    residual: Array = field(repr=False)
    slack: Array = field(repr=False)


@dataclass(frozen=True)
class Basis:
    """What the sums over all rows say of the hat matrices.

    Attributes
    ----------
    values, vectors : (m,) and (m, m) arrays
        e and V.
    z : (m, q) array
        V'r.
    mean_phi, mean_y : (m,) and (q,) arrays
        What the intercept takes back: nothing without one.
    intercept : bool
    weight : float
        sum s.
    rows : int
    rounding : float and (q,) array
        Bounds on dA and dr.
    spread : (q,) array
        sum s y^2.
    """

    values: Array = field(repr=False)
    vectors: Array = field(repr=False)
    z: Array = field(repr=False)
    mean_phi: Array = field(repr=False)
    mean_y: Array
    intercept: bool
    weight: float
    rows: int
    rounding: tuple[float, Array]
    spread: Array

    @classmethod
    def of(cls, sums: Sums, centre: Centre, intercept: bool) -> Basis:
        """Of the sums of all rows of positive weight, which are overwritten."""
        weight, trace, one = sums.weight, float(np.trace(sums.G)), float(intercept)
        phi, y = sums.means
        mean_phi, mean_y = one * (centre.phi + phi), one * (centre.y + y)
        A, r = sums.centred(intercept)
        size = summation(sums.rows, BLOCK)
        rounding = (
            size * trace + 4.0 * summation(r.shape[0], BLOCK) * trace,
            size * np.sqrt(trace * np.diag(sums.T)[:-1]),
        )
        spread = np.diag(sums.T)[:-1] + weight * np.square(mean_y)
        values, vectors = linalg.eigh(np.asfortranarray(A), overwrite=True)
        z = linalg.matmul(vectors.T, r)
        values = np.maximum(values, 0.0)
        return cls(
            values, vectors, z, mean_phi, mean_y, intercept, weight, sums.rows, rounding, spread
        )

    def machines(self, ridges: Array) -> tuple[Array, Array]:
        """Weights (m, L, q) and intercepts (L, q) of all rows."""
        m, q = self.z.shape
        damped = self.z[:, None] / (self.values[:, None] + ridges)[..., None]
        flat = np.asfortranarray(damped.reshape(m, -1))
        W = linalg.matmul(self.vectors, flat).reshape(m, ridges.size, q)
        return W, self.mean_y - np.tensordot(self.mean_phi, W, axes=1)

    def mean_slack(self, ridge: float) -> float:
        """The mean of 1 - H_ii over all rows."""
        left = float((ridge / (self.values + ridge)).sum())
        return (self.rows - self.values.size - int(self.intercept) + left) / self.rows


class FeatureHat:
    """The hat matrices of a sample at some of its rows, or at all of them.

    Parameters
    ----------
    problem : Problem
        These rows: with the squared loss, an Expansion for K, and positive weights. Its weight is
        that of the sample.
    basis : Basis
        Of the sample.
    """

    def __init__(self, problem: Problem, basis: Basis) -> None:
        self.problem, self.basis = problem, basis
        self.rows: Expansion = problem.K
        self.s = problem.s.astype(np.float64)
        self.share = float(basis.intercept) * self.s / basis.weight
        self._kept: Array | None = None

    def parts(self) -> Iterator[tuple[slice, Array]]:
        """Rows, and phi_c V of these, a chunk at a time."""
        X, n = self.rows.kept[0], self.problem.n
        if self._kept is None and n * self.basis.values.size <= ROOM:
            self._kept = self._turned(X)
        for first in range(0, n, self.rows.size):
            some = slice(first, first + self.rows.size)
            yield some, self._turned(X[some]) if self._kept is None else self._kept[some]

    def features(self, X: Any) -> Any:
        """phi of some rows."""
        return self.rows.kept[1].read(X)

    def _turned(self, X: Any) -> Array:
        """phi_c V of some rows."""
        phi = self.features(X)
        xp = linalg.arrays_of(phi)
        centred = phi - xp.asarray(self.basis.mean_phi)
        return xp.host(xp.matmul(centred, xp.asarray(self.basis.vectors)))

    def squares(self, some: slice, P: Array) -> Array:
        """The squares of phi_c V of a part."""
        return np.square(P)

    def at(self, lam: float) -> Hat:
        """Residuals and leverages at ``lam``."""
        damped = 1.0 / (self.basis.values + self.problem.ridge(lam))
        leverage = np.concatenate([self.squares(*part) @ damped for part in self.parts()])
        return Hat(self.residual(lam), 1.0 - self.s * leverage - self.share)

    def residual(self, lam: float) -> Array:
        """y - u."""
        damped = 1.0 / (self.basis.values + self.problem.ridge(lam))
        scaled = damped[:, None] * self.basis.z
        u = np.concatenate([linalg.matmul(P, scaled) for _, P in self.parts()])
        return np.asarray(self.problem.Y - (u + self.basis.mean_y))

    def leave_one_out(self, lam: float) -> Array:
        """(y_i - u_i) / (1 - H_ii), at the ridge of all rows."""
        hat = self.at(lam)
        return np.asarray(hat.residual / hat.slack[:, None])

    def generalized(self, lam: float) -> Array:
        """(y_i - u_i) over the mean of 1 - H_ii."""
        return np.asarray(self.residual(lam) / self.basis.mean_slack(self.problem.ridge(lam)))

    def power_diagonal(self, lam: float, power: int) -> Array:
        """The diagonal of H^power, power >= 1."""
        c, values = self.problem.ridge(lam), self.basis.values
        # H^p = P diag(e^(p-1) / (e + c)^p) P' + v v'
        scale = values ** (power - 1) / (values + c) ** power
        sums = np.concatenate([self.squares(*part) @ scale for part in self.parts()])
        return np.asarray(self.s * sums + self.share)

    def power_residual(self, lam: float, power: int) -> Array:
        """H^power (y - u), power >= 1."""
        c, values = self.problem.ridge(lam), self.basis.values
        scale = (values / (values + c)) ** (power - 1) * c / (values + c) ** 2
        scaled = scale[:, None] * self.basis.z
        return np.concatenate([linalg.matmul(P, scaled) for _, P in self.parts()])

    def left_out(self, lam: float) -> Array:
        """y_i - u_i^(-i), exactly, without the landmark that a row may be."""
        ridge = self.problem.ridges_without_each(lam)
        return np.concatenate([self._left(some, P, ridge[some])[0] for some, P in self.parts()])

    def left_out_with_bounds(self, lam: float) -> tuple[Array, Array]:
        """The same, (n, q), and bounds on their errors."""
        left, bounds = np.empty((2, *self.problem.Y.shape))
        ridge = self.problem.ridges_without_each(lam)
        for some, P in self.parts():
            left[some], slack, pull = self._left(some, P, ridge[some])
            bounds[some] = self._bounds(some, P, ridge[some], left[some], slack, pull)
        return left, bounds

    def _left(self, some: slice, P: Array, ridge: Array) -> tuple[Array, Array, Array]:
        """y_i - u_i^(-i), 1 - H_ii, and |B phi_c| of some rows."""
        s, Y = self.s[some], self.problem.Y[some]
        leverage, u, pull = self._pulled(some, P, ridge)
        slack = (1.0 - s * leverage - self.share[some])[:, None]
        residual = Y - self.basis.mean_y - u
        left = residual / slack
        for i, lost in self._landmarks_in(some):
            own = float(ridge[i]), float(s[i]), residual[i], float(slack[i, 0])
            left[i] = self._without_landmark(P[i], *own, lost)
        return left, slack, pull

    def _bounds(
        self, some: slice, P: Array, ridge: Array, left: Array, slack: Array, pull: Array
    ) -> Array:
        basis, s, Y = self.basis, self.s[some], self.problem.Y[some]
        size = np.linalg.norm(basis.z / (basis.values + ridge.min())[:, None], axis=0)
        moved = s[:, None] * np.abs(left) * pull[:, None]
        longest = np.sqrt(basis.spread / ridge[:, None])
        length = np.minimum(size + moved, longest)
        for i, _ in self._landmarks_in(some):
            length[i] = longest[i]
        far = np.linalg.norm(P, axis=1)[:, None]
        bound = far * (basis.rounding[0] * length + basis.rounding[1]) / ridge[:, None]
        fine = 8.0 * summation(basis.values.size, BLOCK)
        bound += fine * (far * size + np.abs(left) + np.abs(Y)) / slack
        return np.where(slack > 0.0, bound, np.inf)

    def _pulled(self, some: slice, P: Array, ridge: Array) -> tuple[Array, Array, Array]:
        """phi_c'B phi_c, phi_c'w less its mean, and |B phi_c|, each row at its own ridge."""
        values, z = self.basis.values, self.basis.z
        if (ridge == ridge[0]).all():  # as without weights: a few sums over the columns
            damped = 1.0 / (values + ridge[0])
            both = np.column_stack([damped, np.square(damped)])
            sums = linalg.matmul(self.squares(some, P), both)
            return sums[:, 0], linalg.matmul(P, damped[:, None] * z), np.sqrt(sums[:, 1])
        pulled = P / (values + ridge[:, None])
        leverage, norms = np.einsum("ij,ij->i", P, pulled), np.linalg.norm(pulled, axis=1)
        return leverage, linalg.matmul(pulled, z), norms

    def _landmarks_in(self, some: slice) -> Iterator[tuple[int, Array]]:
        """Those of a part, counted from its first row."""
        for place, lost in self._landmarks:
            if some.start <= place < some.stop:
                yield place - some.start, lost

    @cached_property
    def _landmarks(self) -> list[tuple[int, Array]]:
        """Rows that are landmarks, and what they take from the functions."""
        rows, found = self.rows, []
        if rows.keep_landmarks or rows.landmarks is None:
            return []
        for place in np.flatnonzero(rows.landmarks >= 0):
            lost = rows.features.lost(np.array([place], dtype=np.intp))
            if lost.shape[1]:
                found.append((int(rows.landmarks[place]), self.basis.vectors.T @ lost[:, 0]))
        return found

    def _without_landmark(
        self, phi: Array, ridge: float, s: float, residual: Array, slack: float, lost: Array
    ) -> Array:
        """y_i - u_i^(-i) of a row that is a landmark."""
        damped = 1.0 / (self.basis.values + ridge)
        t, g = float(lost @ (damped * phi)), float(lost @ (damped * lost))
        a = (lost * damped) @ self.basis.z
        left = residual / slack
        return np.asarray(left + t / slack * (a - s * t * left) / (g + s * t * t / slack))
