r"""How far a model is from the minimiser of its problem: the bound behind every ``error``.

Let f = sum_j a_j K(x_j, .) and b be any candidate for the minimiser (f*, b*) of

    sum_i s_i V(y_i, u_i) + Lambda ||f||^2,                u_i = f(x_i) + b,

where the gradient g of the loss has a slope of at most D. Its stationarity is 2 Lambda a + s g = 0.

**Predictions that would be right.** Choose any v near u, and let rho = v - u be the difference
and r = a + s g(v) / (2 Lambda) what is missing from stationarity there. With alpha = a - a*,
2 Lambda (alpha - r) = -s (g(v) - g(u*)), and because g rises with a slope of at most D,

    (g(v) - g(u*)) (v - u*) >= (g(v) - g(u*))^2 / D.

Take the inner product of alpha with K alpha = u - u* - (b - b*) and maximise over g(v) - g(u*):

    ||f - f*||^2 <= A + B ||f - f*|| + T |b - b*|,                                             (1)

    A = sum_i s_i D rho_i^2 / (8 Lambda),   B = sqrt(r'K r),   T = |sum_i s_i g(v_i)| / (2 Lambda).

With v = u this is strong convexity alone, ||f - f*|| <= sqrt(r'K r). A step v = u - gap / (s d) on
rows with curvature d, which moves what is missing from r to rho, is the sharper the smaller Lambda
is: kappa sqrt(A) grows as Lambda^(-1/2), B as 1/Lambda. And rounding errors of the predictions
are simply part of rho.

**Intercept.** sum_i s_i g(f_i + rho_i + t) rises with t. Where it is negative at b - beta and
positive at b + beta, every zero lies between; and since f* differs from f + rho by no more than
|rho_i| + kappa ||f - f*|| on the rows of training,

    |b - b*| <= beta + max_i |rho_i| + kappa ||f - f*||.                                       (2)

A loss may be flat in b: no row of training has curvature, and the sum is zero on an interval
(exactly so: it is added up without rounding). Then b* is by convention the middle of that
interval, whose ends move by no more than f + rho does, and (2) holds with beta the distance from
the middle.

**Held-out values** are off by at most kappa_x ||f - f*|| + |b - b*| and their own rounding.

**Indefinite K.** Rounding, or a user, may give a kernel matrix with eigenvalues down to -nu. With
K + 2 nu I instead of K, (1) holds with A / (1 - theta) + 10 nu ||r||^2 instead of A, theta =
4 nu D max(s) / Lambda < 1/2, and kappa^2 = K_ii + 2 nu, kappa raised by 2 sqrt(nu). Where theta
is larger nothing is known, and the bound is infinite.

**A sharper bound.** Co-coercivity also reads

    -(alpha - r)_i (v_i - u*_i) >= c_i (alpha - r)_i^2,            c_i = 2 Lambda / (s_i D),

c being the least ridge that a Newton step can have. Summed up, with M = K + diag(c) and q = K r +
rho, it bounds alpha - r in the norms that M and its inverse define,

    ||alpha - r||_M <= ||q||_{1/M},      |k_x'(alpha - r)| <= ||k_x||_{1/M} ||q||_{1/M},       (3)

with an intercept up to T |b - b*| as before, and q less its best multiple of the ones. Only M need
be positive definite here, not K, and no direction is taken for worse than it is: this is the bound
of choice where Lambda is tiny. It costs a Cholesky factor and its inverse. One factor serves all
models that leave rows out of one sample: for vectors that are zero on the rows left out, the
inverse of the larger matrix is the larger one, and so is that at the smallest Lambda.

Everything is in double precision, whatever the data are in, with more digits where they are needed
(onefit.proof.precise). Rounding of sums is bounded by a probabilistic argument [1]_, not by the
worst case.

References
----------
.. [1] N. J. Higham and T. Mary, "A new approach to probabilistic rounding error analysis", SIAM
   Journal on Scientific Computing 41, 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.losses.base import Loss, loss_of
from onefit.proof.flat_interval import from_middle
from onefit.proof.norms import MAX_SHARP_BOUND_ROWS, Norms
from onefit.proof.precise import EPSILON, predictions, summation, two_product, two_sum
from onefit.proof.ridge_norm import RidgeNorm

__all__ = ["EXACT_TOLERANCE", "ApproximateModels", "Bound", "root_of"]

#: values are called exact if they are within this of a refit, in units of the targets' scale
EXACT_TOLERANCE = 1e-6
#: trials for the bracket of an intercept, each BRACKET_RATIO times as wide as the last
MAX_BRACKET_TRIALS, BRACKET_RATIO = 4, 32.0


@dataclass(frozen=True)
class Bound:
    """How far candidates are from their minimisers.

    Attributes
    ----------
    function : (k,) array
        On ||f - f*||.
    intercept : (k,) array
        On |b - b*|.
    drift : (k,) array
        On the rounding of a prediction, in units of the root of its K_xx.
    reach : float
        What 2 nu adds to the root of K_xx.
    """

    function: Array
    intercept: Array
    drift: Array
    reach: float

    def at(self, kappa: Any, size: Any) -> Array:
        """Bound for predictions of at most this size, where sqrt(K_xx) is at most kappa."""
        far = (kappa + self.reach) * self.function + self.intercept
        return np.asarray(far + kappa * self.drift + 4.0 * EPSILON * size)


@dataclass(frozen=True)
class ApproximateModels:
    """Models side by side, as columns; rows are those of the sample, or of training only.

    Attributes
    ----------
    norms : Norms
        Of the whole kernel matrix.
    rows : index array
        Which rows of it these are.
    loss : Loss
    fit_intercept : bool
    y : (m, k) or (m, 1) array
    weights : (m, k) or (m, 1) array
        s, zero on rows that a model is not trained on.
    ridge : (k,) array
        Lambda.
    a, u : (m, k) arrays
        Coefficients, and predictions K a + b ...
    drift : (k,) array
        ... up to so much rounding, in units of the root of K_ii.
    low : (m, k) array, default=0.0
        What a has no room for: the coefficients are a + low.
    """

    norms: Norms
    rows: Array
    loss: Loss
    fit_intercept: bool
    y: Array
    weights: Array
    ridge: Array
    a: Array
    u: Array
    drift: Array
    low: Any = 0.0

    def bound(self) -> Bound:
        """Distances from the minimisers."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            found = self._bound()
        bad = ~(np.isfinite(found.function) & np.isfinite(found.intercept))
        found.function[bad] = found.intercept[bad] = np.inf
        return found

    def _bound(self) -> Bound:
        nu, roots = self.norms.negative, self.norms.roots[self.rows][:, None]
        reach, steep = 2.0 * nu**0.5 + (2.0 * nu) ** 0.5, float(self.loss.max_curvature)
        s, two = self.weights, 2.0 * self.ridge
        v, missing, width, noise = self._right_predictions(roots, steep)
        r = missing / two
        rho = np.abs(v - self.u) + width + self._rounding(roots)
        rho *= s > 0.0
        theta = 8.0 * nu * steep * s.max(axis=0) / two
        A = steep * (s * rho * rho).sum(axis=0) / (4.0 * two * (1.0 - theta))
        A = np.where(theta < 0.5, A, np.inf) + 10.0 * nu * np.square(r).sum(axis=0)
        B = self._energy(r, roots, nu) + (roots * noise).sum(axis=0) / two
        none = np.zeros_like(self.ridge)
        if not self.fit_intercept:
            return Bound(root_of(A, B), none, self.drift, reach)
        kappa, far = float(roots.max()) + reach, rho.max(axis=0)
        beta, width = self._bracket(v, far)
        # sum s g where nothing is missing on rows with curvature: -2 Lambda a there
        sums, size = r.sum(axis=0) - self.a.sum(axis=0), (np.abs(self.a) + np.abs(r)).sum(axis=0)
        T = np.abs(sums) + summation(r.shape[0]) * size + noise.sum(axis=0) / two
        function = root_of(A + T * (beta + far), B + kappa * T)
        around = far + kappa * function
        # a flat interval that is narrower than the ends may move can vanish
        intercept = beta + around + np.where(width < 2.0 * around, width, 0.0)
        return Bound(function, intercept, self.drift, reach)

    def _rounding(self, roots: Array) -> Array:
        """Rounding errors of the predictions, and of the loss's argument computed from them."""
        size = np.abs(self.y) + np.abs(self.u)
        return np.asarray(roots * self.drift + 4.0 * EPSILON * size)

    def sharp(self, tested: list[Array], values: Array) -> Array:
        """(3) for every column: a bound on the error of ``values`` (k,), the largest of its rows.

        Parameters
        ----------
        tested : list of index arrays
            Rows of the whole kernel matrix, per column.
        values : (k,) array
            The largest absolute prediction there, rounded once.

        Returns
        -------
        (k,) array
            Infinite beyond MAX_SHARP_BOUND_ROWS rows.
        """
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            found = self._sharp(tested) + 0.51 * EPSILON * values
        return np.where(np.isfinite(found), found, np.inf)

    def _sharp(self, tested: list[Array]) -> Array:
        s = self.weights.max(axis=1)
        some = np.flatnonzero(s)
        if some.size > MAX_SHARP_BOUND_ROWS:
            return np.full(self.ridge.size, np.inf)
        # coefficients of rows that a model is not trained on have no place in (3)
        strange = ((self.weights == 0.0) & (self.a != 0.0)).any(axis=0)
        steep, rows = float(self.loss.max_curvature), self.rows[some]
        c = 2.0 * self.ridge.min() / (s[some] * steep)
        metric = RidgeNorm.of(self.norms, rows, c, self.fit_intercept) or RidgeNorm.of(
            self.norms, rows, c
        )
        if metric is None:
            return np.full(self.ridge.size, np.inf)
        errors = _Sharp(self, metric, some, steep).errors(tested)
        return np.where(strange, np.inf, errors)

    def _right_predictions(
        self, roots: Array, steep: float, precise: bool = False
    ) -> tuple[Array, ...]:
        """v, moved from u where that makes (1) smaller, and three bounds on what is left there.

        Returns
        -------
        v : (m, k) array
        missing : (m, k) array
            From stationarity at v, zero on rows with curvature ...
        width : (m, k) array
            ... which have nothing missing somewhere within this distance of v.
        noise : (m, k) array
            The rounding of ``missing``.
        """
        y, s, loss, v = self.y, self.weights, self.loss, self.u
        d = loss.curvature(y, v)
        missing, noise = self._gap(v, d, precise)
        # with care, the first step from beside a kink is one onto its curved side
        for guess in (np.where(d > 0.0, d, steep), None) if precise else (None,):
            slope = d if guess is None else guess
            curved = 4.0 * s * np.square(slope * roots) > steep * 2.0 * self.ridge
            moved = np.where(curved, v - missing / np.where(curved, s * slope, 1.0), v)
            gap, rounding = self._gap(moved, d, precise)
            closer = np.abs(gap) < np.abs(missing)
            v, missing = np.where(closer, moved, v), np.where(closer, gap, missing)
            noise, d = np.where(closer, rounding, noise), loss.curvature(y, v)
        # curvature at both ends of an interval on one piece is there all along; the ends are taken
        # further out than rounding reaches, for a row may be on a kink
        curved = 4.0 * s * np.square(d * roots) > steep * 2.0 * self.ridge
        width = 2.0 * (np.abs(missing) + noise) / np.where(curved, s * d, 1.0)
        beyond = width + 16.0 * EPSILON * (np.abs(v) + np.abs(y))
        low, high = v - beyond, v + beyond
        firm = curved & (loss.piece(y, low) == loss.piece(y, high))
        firm &= 2.0 * np.minimum(loss.curvature(y, low), loss.curvature(y, high)) >= d
        return v, missing * ~firm, width * firm, noise * ~firm

    def _steady(self, v: Array, rho: Array) -> tuple[Array, Array]:
        """Rows that are on a piece without curvature, far from its ends, and how far at least.

        The gradient there is what it is, whatever rounding does to the prediction.
        """
        loss, y = self.loss, self.y
        room = 16.0 * rho + 1e-3 * (np.abs(v) + np.abs(y))
        low, high = v - room, v + room
        steady = np.asarray(loss.piece(y, low) == loss.piece(y, high))
        for at in (low, v, high):
            steady &= loss.curvature(y, at) == 0.0
        steady &= loss.piecewise_quadratic & (v == self.u)
        return steady, np.where(steady, room, np.inf).min(axis=0)

    def gap(self) -> Array:
        """2 Lambda a + s g, what is missing from stationarity."""
        return self._gap(self.u, self.loss.curvature(self.y, self.u), precise=True)[0]

    def _gap(self, v: Array, d: Array, precise: bool) -> tuple[Array, Array]:
        """2 Lambda a + s g(v), what is missing from stationarity, and its rounding.

        A gradient is known to a few roundings. On a piece of a piecewise quadratic loss without
        curvature it is a constant of the loss, and as such free of them.
        """
        g = self.loss.gradient(self.y, v)
        if not precise:
            pull, push = 2.0 * self.ridge * self.a, self.weights * g
            return pull + push, 4.0 * EPSILON * (np.abs(pull) + np.abs(push))
        pull, pull_rest = two_product(2.0 * self.ridge, self.a)
        push, push_rest = two_product(np.asarray(self.weights, dtype=np.float64), g)
        gap, rest = two_sum(pull, push)
        gap = gap + (rest + (pull_rest + push_rest + 2.0 * self.ridge * self.low))
        fixed = np.maximum(d, self.loss.curvature(self.y, v)) == 0.0
        fixed &= self.loss.piecewise_quadratic
        size = np.abs(pull) + np.abs(push)
        return gap, EPSILON * (np.where(fixed, 8.0 * EPSILON, 4.0) * size + np.abs(gap))

    def _energy(self, r: Array, roots: Array, nu: float) -> Array:
        """sqrt(r'K r), by a product with K only where cheaper bounds are too large."""
        sums = (roots * np.abs(r)).sum(axis=0)
        cheap = np.minimum(sums, np.sqrt(self.norms.row_sum + 2.0 * nu) * np.linalg.norm(r, axis=0))
        small = 1e-2 * EXACT_TOLERANCE * np.abs(self.u).max(axis=0, initial=0.0)
        rough = np.flatnonzero(~(float(roots.max()) * cheap <= small))
        if rough.size:
            part = r[:, rough]
            some = np.flatnonzero(part.any(axis=1))
            inside = predictions(self.norms, self.rows[some], self.rows[some], part[some])
            sharp = np.maximum((part[some] * inside).sum(axis=0), 0.0)
            sharp += summation(r.shape[0]) * sums[rough] ** 2
            sharp += 2.0 * nu * np.square(part).sum(axis=0)
            cheap[rough] = np.minimum(cheap[rough], np.sqrt(sharp))
        return np.asarray(cheap)

    def _bracket(self, v: Array, far: Array) -> tuple[Array, Array]:
        """beta, and the width of the flat interval."""
        s, y = self.weights, self.y

        def slope(shift: Array, some: Any) -> tuple[Array, Array]:
            loss = loss_of(self.loss, some)
            terms = _some(s, some) * loss.gradient(_some(y, some), v[:, some] + shift)
            return terms.sum(axis=0), summation(s.shape[0]) * np.abs(terms).sum(axis=0)

        every, unit = np.arange(v.shape[1]), (np.abs(y) + np.abs(v)).max(axis=0)
        here, rounding = slope(np.zeros(every.size), every)
        size = np.abs(here) + rounding
        beta = 4.0 * size / (s * self.loss.curvature(y, v)).sum(axis=0)
        left = every
        for _ in range(MAX_BRACKET_TRIALS):
            beta[left] = (
                np.where(np.isfinite(beta[left]), beta[left], 0.0) + 4.0 * EPSILON * far[left]
            )
            below, above = slope(-beta[left], left), slope(beta[left], left)
            outside = ~((below[0] + below[1] < 0.0) & (above[0] - above[1] > 0.0))
            left = left[outside]
            if left.size == 0:
                break
            beta[left] = BRACKET_RATIO * np.maximum(beta[left], EPSILON * unit[left])
        width = np.zeros_like(beta)
        for k in left:
            s, y = _some(self.weights, [k])[:, 0], _some(self.y, [k])[:, 0]
            beta[k], width[k] = from_middle(loss_of(self.loss, [k]), y, v[:, k], s)
        return beta, width


class _Sharp:
    """The parts of (3).

    With an intercept and K = K_c + m 1' + 1 m', K_c centred, everything holds for K_c and for
    b + m'a instead of b, and q gains m sum(a): K a = K_c a + m sum(a) + 1 m'a.
    """

    def __init__(
        self, columns: ApproximateModels, metric: RidgeNorm, some: Array, steep: float
    ) -> None:
        self.columns, self.metric = columns, metric
        two, roots = 2.0 * columns.ridge, columns.norms.roots[columns.rows][:, None]
        v, missing, width, noise = columns._right_predictions(roots, steep, precise=True)
        train = np.broadcast_to(columns.weights > 0.0, v.shape)[some]
        self.train, self.r = train, (missing / two)[some] * train
        self.noise = (noise / two)[some] * train
        rho = (v - columns.u)[some] * train
        rounding = (columns._rounding(roots) + width)[some] * train
        steady, self.room = columns._steady(v, np.abs(v - columns.u) + columns._rounding(roots))
        rounding *= ~steady[some]
        self.sum = self._sums(columns, some) if columns.fit_intercept else np.zeros_like(two)
        pull = linalg.matmul(metric.K, np.asfortranarray(self.r)) * train
        if metric.mean is not None:
            pull += metric.mean[:, None] * self.sum * train
        size = np.abs(self.r) * summation(some.size) + self.noise
        rounding += metric.roots * (metric.roots * size).sum(axis=0) * train
        self.norm = metric.dual(rho + pull, train if columns.fit_intercept else None)
        self.norm += (metric.unit[:, None] * rounding).sum(axis=0)
        self.far = (np.abs(rho) + rounding + np.abs(pull)).max(axis=0)
        self.top = (metric.pull[:, None] * train).max(axis=0)
        self._settle(v)

    @staticmethod
    def _sums(columns: ApproximateModels, some: Array) -> Array:
        """The sum of the coefficients, free of rounding."""
        a, low = columns.a[some], np.broadcast_to(columns.low, columns.a.shape)[some]
        return np.array([fsum([*x, *y]) for x, y in zip(a.T, low.T, strict=True)])

    def _settle(self, v: Array) -> None:
        """||alpha - r||_M, and |b - b*|."""
        if not self.columns.fit_intercept:
            self.inside, self.intercept = self.norm, np.zeros_like(self.norm)
            return
        beta, width = self.columns._bracket(v, self.far)
        beta = beta + np.minimum(width, 2.0 * self.far)
        T = np.abs(self.r.sum(axis=0) - self.sum) + self.noise.sum(axis=0)
        ones = T * self.metric.ones(self.train)
        A = self.norm * ones + T * (beta + self.far + self.top * ones)
        self.inside = root_of(A, self.norm + T * self.top) + ones
        self.intercept = beta + self.far + self.top * self.inside

    def _within(self) -> Array:
        """1 where an intercept so far off leaves steady rows steady, infinity elsewhere."""
        if not self.columns.fit_intercept:
            return np.ones_like(self.norm)
        off = self.intercept + self.top * self.inside + self.far
        return np.where(off <= self.room, 1.0, np.inf)

    def errors(self, tested: list[Array]) -> Array:
        """Errors of the values of some rows, without their own rounding."""
        error, norms = self.intercept.copy(), self.columns.norms
        size = (self.metric.roots * (np.abs(self.r) * summation(len(self.r)) + self.noise)).sum(
            axis=0
        )
        for k, x in enumerate(tested):
            K, mean = self.metric.at(x)
            K = K * self.train[:, k]
            reach = float(self.metric.dual(K.T).max(initial=0.0))
            direct = float(np.abs(K @ self.r[:, k] + mean * self.sum[k]).max(initial=0.0))
            kappa = float(norms.roots[x].max(initial=0.0))
            error[k] += reach * self.inside[k] + direct
            error[k] += kappa * (size[k] + self.columns.drift[k])
        return error * self._within()


def _some(x: Array, columns: Any) -> Array:
    """Some columns of an array that has one for each model, or one for all."""
    return x if x.shape[1] == 1 else x[:, columns]


def root_of(A: Array, B: Array) -> Array:
    """The largest x with x^2 <= A + B x."""
    return np.asarray(0.5 * (B + np.sqrt(B * B + 4.0 * A)))
