"""Leave-one-out of least squares in feature space, from one decomposition of m x m.

With R = diag(sqrt(s)), centred features phi_c = phi - gbar (phi itself without an intercept) and
A = V diag(e) V' the matrix of onefit.features.ridge, P = R Phi_c V has columns of squared length e,
and

    H = P diag(1 / (e + c)) P' + v v',     v = R 1 / |R 1|  (with an intercept)

is the hat matrix at the ridge c: everything about it is sums over m products, row by row. Leaving
out row i gives y_i - u_i^(-i) = (y_i - u_i) / (1 - H_ii), with the ridge c_i of those that remain.

**A row that is a landmark** has to go from the functions, too (onefit.features.maps): w must be
orthogonal to a vector l, the null space of the landmarks that remain. With B = (A + c_i)^-1, w the
model of all rows at that ridge, r = y_i - u_i its residual, h = H_ii,

    t = l'B phi_c,   a = l'w,   g = l'B l,

    u_i^(-i) = y_i - r/(1-h) - t/(1-h) (a - s t r/(1-h)) / (g + s t^2/(1-h)),

which is one row less and one multiplier more, both by the formula for a change of rank one.

**Certificate.** Rounding makes it the leave-one-out model of A + dA and r + dr, and the matrix of
the remaining rows, in the functions that remain, has no eigenvalue below c_i. So the bound is that
of onefit.features.ridge with the length of the model without row i, and the rounding of P and its
sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.features.feature_gram import FeatureGram
from onefit.features.in_memory import moments
from onefit.features.maps import product
from onefit.features.moments import Centre, Sums
from onefit.features.parts import RowParts
from onefit.problem import Problem
from onefit.proof.precise import summation

__all__ = ["FeatureHat", "HatBasis", "HatResiduals", "make_hat"]


@dataclass(frozen=True)
class HatResiduals:
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
class HatBasis:
    """Quantities of the hat matrices that follow from sums over all rows.

    Attributes
    ----------
    values, vectors : (m,) and (m, m) arrays
        e and V; the vectors where the sums are.
    z : (m, q) array
        V'r.
    mean_phi, mean_y : (m,) and (q,) arrays
        Subtracted from features and targets; zero without an intercept.
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
    vectors: Any = field(repr=False)
    z: Array = field(repr=False)
    mean_phi: Array = field(repr=False)
    mean_y: Array
    intercept: bool
    weight: float
    rows: int
    rounding: tuple[float, Array]
    spread: Array

    @classmethod
    def of(cls, sums: Sums, centre: Centre, intercept: bool) -> HatBasis:
        """The basis of the sums of all rows of positive weight, which are overwritten."""
        xp, weight, one = sums.arrays, sums.weight, float(intercept)
        trace = float(xp.diagonal(sums.G).sum())
        phi, y = sums.means
        mean_phi, mean_y = one * (centre.phi + phi), one * (centre.y + y)
        A, r = sums.centred(intercept)
        size = summation(sums.rows, sums.terms)
        rounding = (
            size * trace + 4.0 * summation(r.shape[0], xp.terms) * trace,
            size * np.sqrt(trace * np.diag(sums.T)[:-1]),
        )
        spread = np.diag(sums.T)[:-1] + weight * np.square(mean_y)
        values, vectors = xp.eigh(xp.fortran(A))
        z = xp.host(xp.matmul(vectors.T, r))
        values = np.maximum(xp.host(values), 0.0)
        return cls(
            values, vectors, z, mean_phi, mean_y, intercept, weight, sums.rows, rounding, spread
        )

    def models(self, ridges: Array) -> tuple[Array, Array]:
        """Weights (m, L, q) and intercepts (L, q) of all rows."""
        m, q = self.z.shape
        damped = self.z[:, None] / (self.values[:, None] + ridges)[..., None]
        flat = np.asfortranarray(damped.reshape(m, -1))
        W = product(self.vectors, flat).reshape(m, ridges.size, q)
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
        The rows: with the squared loss, a FeatureGram for K, and positive weights. Its weight is
        that of the sample.
    basis : HatBasis
        Of the sample.
    """

    def __init__(self, problem: Problem, basis: HatBasis) -> None:
        self.problem, self.basis = problem, basis
        self.rows: FeatureGram = problem.K
        self.s = problem.s.astype(np.float64)
        self.share = float(basis.intercept) * self.s / basis.weight
        self.arrays = linalg.arrays_of(basis.vectors)
        self._kept: Any = None

    def parts(self) -> Iterator[tuple[slice, Any]]:
        """Chunks of rows, and phi_c V of each, where V is."""
        xp, n, m = self.arrays, self.problem.n, self.basis.values.size
        if self._kept is None and n * m <= self.rows.room:
            self._kept = xp.empty((n, m), np.float64)
            for some in self._slices():
                self._kept[some, :] = self._turned(some)
        for some in self._slices():
            yield some, self._turned(some) if self._kept is None else self._kept[some, :]

    def _slices(self) -> list[slice]:
        n, size = self.problem.n, self.rows.size
        return [slice(first, min(n, first + size)) for first in range(0, n, size)]

    def features(self, some: slice) -> Any:
        """phi of some rows, where these are."""
        X, features = self.rows.kept
        return features.read(linalg.arrays_of(X).rows(X, some))

    def _turned(self, some: slice) -> Any:
        """phi_c V of some rows."""
        phi = self.features(some)
        xp = linalg.arrays_of(phi)
        centred = phi - xp.asarray(self.basis.mean_phi)
        turned = xp.matmul(centred, xp.asarray(self.basis.vectors))
        return xp.host(turned) if self.arrays.on_host else turned

    def at(self, lam: float) -> HatResiduals:
        """Residuals and leverages at ``lam``."""
        damped = 1.0 / (self.basis.values + self.problem.ridge(lam))
        leverage = self._summed(damped)
        return HatResiduals(self.residual(lam), 1.0 - self.s * leverage - self.share)

    def _summed(self, weights: Array) -> Array:
        """Sums over the squares of phi_c V of all rows."""
        parts = [self.arrays.square_sums(P, weights[:, None])[:, 0] for _, P in self.parts()]
        return np.concatenate(parts)

    def residual(self, lam: float) -> Array:
        """y - u."""
        damped = 1.0 / (self.basis.values + self.problem.ridge(lam))
        scaled = damped[:, None] * self.basis.z
        u = np.concatenate([product(P, scaled) for _, P in self.parts()])
        return np.asarray(self.problem.Y - (u + self.basis.mean_y))

    def leave_one_out(self, lam: float) -> Array:
        """(y_i - u_i) / (1 - H_ii), at the ridge of all rows."""
        hat = self.at(lam)
        return np.asarray(hat.residual / hat.slack[:, None])

    def generalized(self, lam: float) -> Array:
        """(y_i - u_i) over the mean of 1 - H_ii; not finite where rounding leaves none of it."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.residual(lam) / self.basis.mean_slack(self.problem.ridge(lam)))

    def power_diagonal(self, lam: float, power: int) -> Array:
        """The diagonal of H^power, power >= 1."""
        c, values = self.problem.ridge(lam), self.basis.values
        # H^p = P diag(e^(p-1) / (e + c)^p) P' + v v'
        scale = values ** (power - 1) / (values + c) ** power
        return np.asarray(self.s * self._summed(scale) + self.share)

    def power_residual(self, lam: float, power: int) -> Array:
        """H^power (y - u), power >= 1."""
        c, values = self.problem.ridge(lam), self.basis.values
        scale = (values / (values + c)) ** (power - 1) * c / (values + c) ** 2
        scaled = scale[:, None] * self.basis.z
        return np.concatenate([product(P, scaled) for _, P in self.parts()])

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

    def _left(self, some: slice, P: Any, ridge: Array) -> tuple[Array, Array, Array]:
        """y_i - u_i^(-i), 1 - H_ii, and |B phi_c| of some rows."""
        s, Y = self.s[some], self.problem.Y[some]
        leverage, u, pull = self._pulled(P, ridge)
        slack = (1.0 - s * leverage - self.share[some])[:, None]
        residual = Y - self.basis.mean_y - u
        left = residual / slack
        landmarks = list(self._landmarks_in(some))
        own = self.arrays.rows(P, np.array([i for i, _ in landmarks], dtype=np.intp))
        for (i, lost), phi in zip(landmarks, self.arrays.host(own), strict=True):
            here = float(ridge[i]), float(s[i]), residual[i], float(slack[i, 0])
            left[i] = self._without_landmark(phi, *here, lost)
        return left, slack, pull

    def _bounds(
        self, some: slice, P: Any, ridge: Array, left: Array, slack: Array, pull: Array
    ) -> Array:
        basis, s, Y = self.basis, self.s[some], self.problem.Y[some]
        size = np.linalg.norm(basis.z / (basis.values + ridge.min())[:, None], axis=0)
        moved = s[:, None] * np.abs(left) * pull[:, None]
        longest = np.sqrt(basis.spread / ridge[:, None])
        length = np.minimum(size + moved, longest)
        for i, _ in self._landmarks_in(some):
            length[i] = longest[i]
        far = self.arrays.row_norms(P)[:, None]
        bound = far * (basis.rounding[0] * length + basis.rounding[1]) / ridge[:, None]
        fine = 8.0 * summation(basis.values.size, self.arrays.terms)
        bound += fine * (far * size + np.abs(left) + np.abs(Y)) / slack
        return np.where(slack > 0.0, bound, np.inf)

    def _pulled(self, P: Any, ridge: Array) -> tuple[Array, Array, Array]:
        """phi_c'B phi_c, phi_c'w less its mean, and |B phi_c|, each row at its own ridge."""
        values, z = self.basis.values, self.basis.z
        if (ridge == ridge[0]).all():  # as without weights: a few sums over the columns
            damped = 1.0 / (values + ridge[0])
            both = np.column_stack([damped, np.square(damped)])
            sums = self.arrays.square_sums(P, both)
            return sums[:, 0], product(P, damped[:, None] * z), np.sqrt(sums[:, 1])
        xp = self.arrays
        pulled = P / (xp.asarray(values)[None, :] + xp.asarray(ridge)[:, None])
        leverage = xp.host(xp.lib.sum(P * pulled, axis=1))
        return leverage, product(pulled, z), xp.row_norms(pulled)

    def _landmarks_in(self, some: slice) -> Iterator[tuple[int, Array]]:
        """The landmarks in a chunk of rows, counted from its first row."""
        for place, lost in self._landmarks:
            if some.start <= place < some.stop:
                yield place - some.start, lost

    @cached_property
    def _landmarks(self) -> list[tuple[int, Array]]:
        """Rows that are landmarks, and the function that each takes away, times V'."""
        rows, found = self.rows, []
        if rows.keep_landmarks or rows.landmarks is None:
            return []
        for place in np.flatnonzero(rows.landmarks >= 0):
            lost = rows.features.lost(np.array([place], dtype=np.intp))
            if lost.shape[1]:
                turned = product(self.basis.vectors.T, lost[:, :1])[:, 0]
                found.append((int(rows.landmarks[place]), turned))
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


def make_hat(problem: Problem) -> FeatureHat:
    """The hat matrices of the rows of positive weight."""
    rows = problem.positive
    kept = problem if rows.size == problem.n else problem.take(rows)
    sums = moments(kept, RowParts.whole(kept.n))
    basis = HatBasis.of(sums.without(()), sums.centre, kept.fit_intercept)
    return FeatureHat(kept, basis)
