"""Several leave-out problems solved side by side, and how far each is from its solution.

**Certificate.** For a piecewise quadratic loss a column is at its minimiser if the last full Newton
step moved no training point to another piece: the model was the objective itself. What is left is
rounding. Any column, at its minimiser or not, has a bound on its error (onefit.certificate); where
rounding is too much for it, predictions are computed with more digits and one more step is taken.

**Base.** Newton's model is minimised as a change from a base (a, b, u = K a + b), which need not be
where the loss is replaced by its model. A base at which points without curvature have their
coefficients a_i = -s_i g_i / (2 Lambda) already spares most of a product with K: the end of the
last full step is one, wherever the line search stopped; so is, for a piecewise quadratic loss, the
leave-out solution of another lambda, multiplied by the ratio of the two. So predictions are carried
from step to step and from lambda to lambda. What rounding does to them on the way, their drift, is
counted; before it matters to the error bound, predictions are computed from the coefficients anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit._precise import EPSILON, precise_summation, predictions, summation
from onefit.certificate import EXACT, Candidates
from onefit.heldout.full import Target
from onefit.heldout.model import Model, Solver, product
from onefit.heldout.point import Former, Point
from onefit.heldout.refit import refit_fold
from onefit.problem import Solution
from onefit.solvers.linesearch import line_search

Array = NDArray[Any]
Mask = NDArray[np.bool_]

__all__ = ["TOLERANCE", "Front"]

#: a smooth loss is solved to this part of the targets' scale; EXACT is what is promised
TOLERANCE = 1e-3 * EXACT
#: steps of a smooth loss beyond which a refit is the shorter way
PATIENCE = 12
#: the part of the predicted decrease that a full step must bring to spare the line search
DECREASE = 0.3
#: the part of its slope that a line search may leave; fewer steps do not follow from less
LEFT = 0.1
#: the most by which solutions are multiplied on their way along the lambdas: their rounding errors
#: grow with it
NEAR = 32.0
#: steps towards a shift of the intercept
CENTRED = 4
#: the part of EXACT that the drift of the predictions may make up before they are computed anew
DRIFTED = 0.01


@dataclass
class Front:
    """Leave-out problems of one target side by side, as columns.

    Attributes
    ----------
    train, weights : (n, k) arrays
        The rows each problem is trained on, all of positive weight, and their weights.
    a, b, u : (n, k), (k,), (n, k) arrays
        Where each problem stands.
    pieces : (n, k) array
        The pieces of the loss that u is on.
    steps : (k,) int array
    settled : (k,) bool array
        Whether the last full step moved no point to another piece.
    error : (k,) array
        Bound on the error of a held-out value.
    base : Point
        What the next step is measured from.
    ridge : (k,) array
        Lambda of each problem.
    drift : (k,) array
        How far rounding may have taken u from K a + b, in units of the root of K_ii.
    """

    target: Target
    factor: Solver
    train: Mask
    weights: Array
    a: Array
    b: Array
    u: Array
    pieces: Array
    steps: NDArray[np.intp]
    settled: Mask
    error: Array
    base: Point
    ridge: Array
    drift: Array

    @classmethod
    def start(cls, target: Target, factor: Solver, train: Mask, former: Former | None) -> Front:
        """At the full solution, or at it shifted as the folds were before, whichever is lower."""
        k, loss = train.shape[1], target.problem.loss
        a, u = (np.repeat(x[None, :], k, axis=0).T for x in (target.a, target.u))
        point = Point(a, np.full(k, target.b), u, np.full(k, target.drift))
        none, far = np.zeros(k, dtype=np.intp), np.full(k, np.inf)
        front = cls(
            target, factor, train, target.problem.s[:, None] * train, a, point.b, u,
            loss.piece(target.y[:, None], u), none, none.astype(bool), far, point.copy(),
            factor.ridge, point.drift,
        )  # fmt: skip
        if former is not None:
            ratio = former.ridge / factor.ridge
            if loss.piecewise_quadratic and (ratio <= NEAR).all():
                front.base = former.solution.scaled(ratio)
            there, unmoved = former.shifted(target), point.take(slice(1))
            better = np.flatnonzero(front.objective(there) < front.objective(unmoved))
            point.put(better, there.take(better))
            front._look(better)
        return front

    def objective(self, at: Point) -> Array:
        """The leave-out objective of every column at a point of its own, or at one for all."""
        fit = _dots(self.weights, self.target.problem.loss.value(self.y, at.u))
        return np.asarray(fit + self.ridge * _dots(at.a, at.u - at.b))

    @property
    def y(self) -> Array:
        return self.target.y[:, None]

    @property
    def scale(self) -> float:
        """The unit of errors."""
        return self.target.scale

    def take(self, columns: Any) -> Front:
        """Some of the problems."""
        return replace(
            self,
            factor=self.factor.take(columns),
            train=self.train[:, columns],
            weights=self.weights[:, columns],
            a=self.a[:, columns],
            b=self.b[columns],
            u=self.u[:, columns],
            pieces=self.pieces[:, columns],
            steps=self.steps[columns],
            settled=self.settled[columns],
            error=self.error[columns],
            base=self.base.take(columns),
            ridge=self.ridge[columns],
            drift=self.drift[columns],
        )

    def put(self, columns: Any, part: Front, some: Any = slice(None)) -> None:
        """Write back what :meth:`take` gave, or some columns of that."""
        self.base.put(columns, part.base.take(some))
        self.u = self.u.astype(part.u.dtype, copy=False)  # a bound leaves them in double precision
        for name in ("a", "u", "pieces", "b", "steps", "settled", "error", "drift"):
            getattr(self, name)[..., columns] = getattr(part, name)[..., some]

    def model(self, g: Array) -> tuple[Model, Array]:
        """Newton's model at weighted gradients g, seen from the base, and K times its fixed part.

        The curvature of a smooth loss is frozen at the full solution.
        """
        loss, two, base = self.target.problem.loss, 2.0 * self.ridge, self.base
        frozen = self.target.d[:, None]
        d = loss.curvature(self.y, self.u) if loss.piecewise_quadratic else frozen
        d = d * self.train
        curved, sd = d > 0, self.target.problem.s[:, None] * d
        gap = base.u - self.u
        gap *= sd
        gap += g
        gap /= two
        gap += base.a
        fixed = gap * (curved - 1.0)
        fixed *= np.abs(fixed) > 4.0 * np.finfo(gap.dtype).eps * np.abs(base.a)
        pull = product(self.target.problem.K, fixed)
        missing = -two * gap / (sd + ~curved) - pull
        missing *= curved
        total = base.a.sum(axis=0) + fixed.sum(axis=0)
        return Model(d, missing, fixed, total), pull

    def step(self, full: bool = False) -> None:
        """One Newton step of every column: in full, or as far as the objective falls."""
        loss, base = self.target.problem.loss, self.base
        g = self.weights * loss.gradient(self.y, self.u)
        model, pull = self.model(g)
        da, db, determined = self.factor.solve(model)
        u = product(self.target.problem.K, da)
        da += model.fixed
        change = self._sizes(da)
        u += base.u
        u += pull
        u += db
        da += base.a
        # the sum of products, and the rounding of the coefficients themselves
        drift = base.drift + self._rounding(change, u) + self._epsilon * self._sizes(da)
        self.base = Point(da, base.b + db, u, drift)
        pieces = loss.piece(self.y, u)
        changed = (pieces != self.pieces) & self.train
        moved = changed.any(axis=0)
        t, unsure = np.ones(db.size), np.flatnonzero(moved)
        if unsure.size and not full:
            t[unsure] = self._lengths(unsure, changed, g, model.d)
        self._go(t, pieces)
        self.settled = ~moved & determined & loss.piecewise_quadratic
        self.steps = self.steps + 1
        if not determined.all():
            self.slide(np.flatnonzero(~determined))

    def _go(self, t: Array, pieces: Array) -> None:
        """To the part t of the way to the base, which is on these pieces."""
        base, rest, self.pieces = self.base, 1.0 - t, pieces
        short = np.flatnonzero(rest)
        self.drift = t * base.drift + rest * self.drift
        if short.size == 0:
            self.a, self.b, self.u = base.a, base.b, base.u
            return
        self.a = base.a - rest * (base.a - self.a)
        self.b = base.b - rest * (base.b - self.b)
        self.u = base.u - rest * (base.u - self.u)
        self._look(short)

    def _look(self, columns: Any) -> None:
        """Which pieces some of the columns are on."""
        self.pieces[:, columns] = self.target.problem.loss.piece(self.y, self.u[:, columns])

    def _lengths(self, columns: NDArray[np.intp], changed: Mask, g: Array, d: Array) -> Array:
        """1 where the full step brings enough of what its slope promises, else the minimum.

        A point that keeps its piece (gradient g, curvature d) is on one parabola all the way, and
        these add up to one; only the others, ``changed``, are looked at.
        """
        loss, base = self.target.problem.loss, self.base
        some: Any = slice(None) if columns.size == self.b.size else columns
        rows = np.flatnonzero(changed[:, some].any(axis=1))
        g, s, a, u = (x[:, some] for x in (g, self.weights, self.a, self.u))
        da, db, du = base.a[:, some] - a, (base.b - self.b)[some], base.u[:, some] - u
        df, two = du - db, 2.0 * self.ridge[some]
        linear, quadratic = two * _dots(a, df), two * _dots(da, df)
        slope = _dots(g, du) + linear
        bent = s * du
        bent *= d[:, some]
        y, u, step, s = self.y[rows], u[rows], du[rows], s[rows]
        linear = slope - _dots(g[rows], step)
        quadratic += _dots(bent, du) - _dots(bent[rows], step)
        gain = _dots(s, loss.value(y, u + step) - loss.value(y, u))
        t = np.ones(columns.size)
        search = np.flatnonzero(~(gain + linear + 0.5 * quadratic <= DECREASE * slope))
        if search.size:
            y = np.broadcast_to(y, u.shape)
            t[search] = line_search(
                loss, y[:, search], u[:, search], step[:, search], s[:, search],
                linear[search], quadratic[search], tolerance=LEFT,
            )  # fmt: skip
        return t

    def slide(self, columns: NDArray[np.intp]) -> None:
        """Move the intercepts of some columns to where sum s g vanishes."""
        beta = self.take(columns)._centre()
        self.b, self.u = self.b.copy(), self.u.copy()
        self.b[columns] += beta
        self.u[:, columns] += beta
        self._look(columns)

    def _centre(self) -> Array:
        """The shift of b that makes sum s g vanish."""
        loss, s = self.target.problem.loss, self.weights
        g = s * loss.gradient(self.y, self.u)
        total, none = g.sum(axis=0), np.zeros(self.b.size)
        size = np.abs(g).sum(axis=0)
        sign = np.where(np.abs(total) <= 1e-15 * size, 0.0, -np.sign(total))
        beta = self._newton_centre(total) if loss.piecewise_quadratic else sign * np.nan
        far = np.flatnonzero(np.isnan(beta))
        if far.size:
            direction = np.ones_like(self.u[:, far]) * sign[far]
            y = np.broadcast_to(self.y, self.u.shape)
            beta[far] = sign[far] * line_search(
                loss, y[:, far], self.u[:, far], direction, s[:, far],
                none[far], none[far], tolerance=1e-12,
            )  # fmt: skip
        return np.asarray(beta)

    def _newton_centre(self, total: Array) -> Array:
        """Newton steps of that shift, or NaN where even the last changes the piece of a point."""
        loss, u, s = self.target.problem.loss, self.u, self.weights
        train, pieces = self.train, self.pieces
        beta, found, left = np.zeros_like(total), np.full_like(total, np.nan), np.arange(total.size)
        for _ in range(CENTRED):
            curvature = _dots(s, loss.curvature(self.y, u))
            with np.errstate(divide="ignore", invalid="ignore"):
                step = np.where(total == 0.0, 0.0, -total / curvature)
            beta, u = beta + step, u + step
            there = loss.piece(self.y, u)
            home = np.isfinite(beta) & ~((there != pieces) & train).any(axis=0)
            found[left[home]] = beta[home]
            on = np.flatnonzero(np.isfinite(beta) & ~home)
            if on.size == 0:
                break
            left, beta = left[on], beta[on]
            u, s, train, pieces = (x[:, on] for x in (u, s, train, there))
            total = _dots(s, loss.gradient(self.y, u))
        return found

    def recompute(self, precise: bool = False) -> None:
        """Predictions from the coefficients, without what rounding has added up over the steps."""
        if precise:
            norms, rows = self.target.problem.norms, np.arange(self.a.shape[0])
            self.u = predictions(norms, rows, rows, self.a, self.b, np.zeros_like(self.a))
        else:
            self.u = product(self.target.problem.K, self.a) + self.b
        sizes = self._sizes(self.a)
        fine = precise_summation(self.a.shape[0]) * sizes
        self.drift = fine if precise else self._rounding(sizes, self.u)
        self.base = self._point().copy()
        self._look(slice(None))

    def _point(self) -> Point:
        return Point(self.a, self.b, self.u, self.drift)

    @property
    def _epsilon(self) -> float:
        return float(np.finfo(self.target.problem.K.dtype).eps)

    @property
    def double(self) -> bool:
        """Whether the data are in double precision; arithmetic with others may be so in part."""
        return self.target.problem.K.dtype == np.float64

    def _sizes(self, a: Array) -> Array:
        """sum_j root(K_jj) |a_j| of every column."""
        return np.asarray(np.abs(a).T @ self.target.problem.norms.roots)

    def _rounding(self, size: Array, u: Array) -> Array:
        """What rounding makes of predictions that are sums of terms of this size."""
        terms = summation(u.shape[0]) * (self._epsilon / EPSILON) * size
        root = self.target.problem.norms.root
        return np.asarray(terms + 4.0 * self._epsilon * np.abs(u).max(axis=0) / root)

    @property
    def drifted(self) -> Mask:
        """Columns whose drift takes too much of what the error bound may be."""
        problem = self.target.problem
        norms, steep = problem.norms, float(problem.loss.max_curvature)
        stiff = steep * self.weights.sum(axis=0) / (8.0 * self.ridge)
        reach = norms.diagonal * self.drift * (1.0 + np.sqrt(stiff))
        return np.asarray(~(reach <= DRIFTED * EXACT * self.scale))

    def bound(self) -> None:
        """Set `error` of every column; it is infinite where nothing determines the intercept.

        Predictions become those in double precision that the bound is about.
        """
        candidates, roots = self._candidates(), self.target.problem.norms.roots[:, None]
        u, bound = candidates.u, candidates.bound()
        out = ~self.train | self.train.all(axis=0)
        kappa, size = ((out * x).max(axis=0) for x in (roots, np.abs(u)))
        self.error = np.where(np.isfinite(size), bound.at(kappa, size), np.inf)
        self.u = u

    def sharpen(self) -> None:
        """Set `error` of every column by the sharper bound, where that is smaller."""
        tested = [np.flatnonzero(~train) for train in self.train.T]
        largest = np.abs(np.where(self.train, 0.0, self.u)).max(axis=0)
        self.error = np.minimum(self.error, self._candidates().sharp(tested, largest))

    def _candidates(self) -> Candidates:
        problem, rows = self.target.problem, np.arange(self.a.shape[0])
        a, u, drift = self._in_double()
        return Candidates(
            problem.norms, rows, problem.loss, problem.fit_intercept, self.y, self.weights,
            self.factor.exact_ridge, a, u, drift,
        )  # fmt: skip

    def _in_double(self) -> tuple[Array, Array, Array]:
        """Coefficients, predictions and their drift in double precision."""
        if self.double:
            return self.a, self.u, self.drift
        norms, rows, a = self.target.problem.norms, np.arange(self.a.shape[0]), self.a.astype(float)
        u = predictions(norms, rows, rows, a) + self.b.astype(float)
        return a, u, summation(rows.size) * (np.abs(a).T @ norms.roots)

    def flat(self, columns: NDArray[np.intp]) -> Mask:
        """Whether a small shift of b, to one side at least, leaves no training row curved."""
        part, loss = self.take(columns), self.target.problem.loss
        nudge = self._epsilon**0.5 * (self.scale + np.abs(part.u).max(axis=0))
        shifts = (-nudge, 0.0 * nudge, nudge)
        curved = [(loss.curvature(part.y, part.u + x) > 0) & part.train for x in shifts]
        alone = np.logical_or.reduce([~one.any(axis=0) for one in curved])
        return np.asarray(alone & self.target.problem.fit_intercept)

    def moved(self) -> NDArray[np.intp]:
        """Training points on another piece than in the full solution."""
        loss = self.target.problem.loss
        changed = self.pieces != loss.piece(self.y, self.target.u[:, None])
        return np.asarray((changed & self.train).sum(axis=0))

    def slow(self, before: Array) -> Mask:
        """Columns that frozen curvature brings home in no fewer than PATIENCE further steps."""
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.log(before / self.error)
            missing = np.log(self.error / (TOLERANCE * self.scale))
        return np.asarray(~(missing <= PATIENCE * np.maximum(gain, 0.0)))

    def refit(self, column: int) -> None:
        """Solve one problem afresh, from where it stands."""
        target = self.target
        problem = replace(target.problem, Y=np.asfortranarray(target.y[:, None]))
        train = np.flatnonzero(self.train[:, column] & (problem.s > 0))
        start = Solution(self.a[:, [column]], self.b[[column]], self.u[:, [column]])
        everyone = np.arange(problem.n)
        found = refit_fold(problem, target.lam, train, everyone, start, target.problem.norms)
        self.a[:, column] = 0.0
        self.a[train, column] = found.solution.coef[:, 0]
        self.b[column], self.u[:, column] = found.solution.intercept[0], found.values[:, 0]
        self._look([column])
        self.steps[column] += found.solution.steps
        self.error[column], self.settled[column] = found.error[0], True
        at = self._point().take([column])
        self.drift[[column]] = self._rounding(self._sizes(at.a), at.u)
        self.base.put([column], self._point().take([column]))


def _dots(A: Array, B: Array) -> Array:
    """The inner product of every column of A with that of B."""
    return np.asarray(np.einsum("ij,ij->j", A, B))
