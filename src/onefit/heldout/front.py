"""Several leave-out problems solved side by side, and how far each is from its solution.

**Error bound.** Let (f, b) be any candidate for a leave-out solution (f*, b*), shift b by beta
until sum_i s_i g_i(u_i + beta) = 0, and let r_i = a_i + s_i g_i(u_i + beta) / (2 Lambda) be
what is missing from stationarity. The objective, minimised over b, is 2 Lambda-strongly convex
in f with gradient 2 Lambda K r at f, so ||f - f*|| <= sqrt(r'K r); and because sum s g is
monotone in b, b + beta differs from b* by at most the largest |f - f*| on the training rows.
With kappa^2 = max K_ii, every held-out value obeys

    |u - u*| <= |beta| + 2 kappa sqrt(r'K r)          (kappa sqrt(r'K r) without an intercept).

**Certificate.** For a piecewise quadratic loss r vanishes if the last full Newton step moved no
training point to another piece: the model was the objective itself. What is left is rounding. Where
that is too much for the bound (it weighs r with all of K), one more step is taken: it starts and
ends on the same quadratic, so its length is the error it removes.

**Base.** Newton's model is minimised as a change from a base (a, b, u = K a + b), which need not be
where the loss is replaced by its model. A base at which points without curvature have their
coefficients a_i = -s_i g_i / (2 Lambda) already spares most of a product with K: the end of the
last full step is one, wherever the line search stopped; so is, for a piecewise quadratic loss, the
leave-out solution of another lambda, multiplied by the ratio of the two. So predictions are carried
from step to step and from lambda to lambda. What rounding does to them is multiplied too, and seen
by the coefficients through the condition number of the problem: before it counts, predictions are
computed from the coefficients anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout.base import EXACT
from onefit.heldout.full import Target
from onefit.heldout.model import Model, Solver, product
from onefit.heldout.point import Former, Point
from onefit.heldout.refit import refit_fold
from onefit.problem import Solution
from onefit.solvers.linesearch import line_search

Array = NDArray[Any]
Mask = NDArray[np.bool_]

__all__ = ["TOLERANCE", "Front"]

#: a smooth loss is solved to this, relative to the predictions; EXACT is what is promised
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
#: what rounding may do to the coefficients before predictions are computed from them anew
WORN = 1e-10


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
        The bound above.
    base : Point
        What the next step is measured from.
    ridge : (k,) array
        Lambda of each problem.
    grown : float
        By what the rounding errors of the predictions were multiplied since they were computed from
        the coefficients.
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
    grown: float

    @classmethod
    def at(
        cls, target: Target, factor: Solver, train: Mask, point: Point, base: Point, pieces: Array
    ) -> Front:
        """Problems that stand at some point, which is on these pieces; its arrays are theirs."""
        weights, k = target.problem.s[:, None] * train, train.shape[1]
        none, far = np.zeros(k, dtype=np.intp), np.full(k, np.inf)
        return cls(
            target, factor, train, weights, point.a, point.b, point.u, pieces,
            none, none.astype(bool), far, base, factor.ridge, 1.0,
        )  # fmt: skip

    @classmethod
    def start(cls, target: Target, factor: Solver, train: Mask, former: Former | None) -> Front:
        """At the full solution, or at it shifted as the folds were before, whichever is lower."""
        k, loss = train.shape[1], target.problem.loss
        a, u = (np.repeat(x[None, :], k, axis=0).T for x in (target.a, target.u))
        point = Point(a, np.full(k, target.b), u)
        front = cls.at(target, factor, train, point, point.copy(), loss.piece(target.y[:, None], u))
        if former is not None:
            ratio = former.ridge / factor.ridge
            if loss.piecewise_quadratic and (ratio <= NEAR).all():
                front.base = former.solution.scaled(ratio)
                front.grown = former.grown * float(ratio.max(initial=1.0))
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
    def scale(self) -> Array:
        return np.asarray(1.0 + np.abs(self.u).max(axis=0))

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
        )

    def put(self, columns: Any, part: Front, some: Any = slice(None)) -> None:
        """Write back what :meth:`take` gave, or some columns of that."""
        self.base.put(columns, part.base.take(some))
        for name in ("a", "u", "pieces", "b", "steps", "settled", "error"):
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
        u += base.u
        u += pull
        u += db
        da += model.fixed
        da += base.a
        self.base = Point(da, base.b + db, u)
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

    def recompute(self) -> None:
        """Predictions from the coefficients, without what rounding has added up over the steps."""
        self.u = product(self.target.problem.K, self.a) + self.b
        self.base, self.grown = Point(self.a, self.b, self.u).copy(), 1.0
        self._look(slice(None))

    @property
    def worn(self) -> bool:
        """Whether rounding may have made too much of a difference since."""
        blind = float(np.finfo(self.u.dtype).eps * self.factor.condition.max(initial=1.0))
        return self.grown > NEAR or blind * self.grown > WORN

    def bound(self, moves: Array | None = None) -> None:
        """Set `error` of every column; it is infinite where nothing determines the intercept.

        After a refining step from a settled point the objective is a quadratic that both share:
        what the step ``moves`` (the largest change of a prediction) is what was wrong before it, as
        far as its linear system can tell.
        """
        self.error, beta = self._bound()
        if moves is not None:
            blind = 64.0 * np.finfo(self.u.dtype).eps * self.factor.condition * self.scale
            sharper = np.minimum(self.error, moves + blind)
            self.error = np.where(self.settled, sharper, self.error)
        self.error[self._flat(beta)] = np.inf

    def _bound(self) -> tuple[Array, Array]:
        """|beta| + 2 kappa sqrt(r'K r) of every column, rounding included, and beta."""
        problem = self.target.problem
        beta = self._centre() if problem.fit_intercept else np.zeros(self.b.size)
        g = problem.loss.gradient(self.y, self.u + beta)
        r = self.a + self.weights * g / (2.0 * self.ridge)
        epsilon, scale = float(np.finfo(r.dtype).eps), self.scale
        two = 2.0 if problem.fit_intercept else 1.0
        unit = two * np.sqrt(self.factor.norms.diagonal)
        # r'K r is at most the largest eigenvalue times r'r, and hides that much in rounding
        energy = self.factor.norms.row_sum * np.square(r).sum(axis=0)
        rest = np.abs(beta) + 16.0 * epsilon * self.grown * scale
        rough = np.flatnonzero(~(rest + unit * np.sqrt(energy) <= TOLERANCE * scale))
        if rough.size:
            part = r[:, rough]
            sharp = np.maximum((part * product(problem.K, part)).sum(axis=0), 0.0)
            energy[rough] = sharp + epsilon * energy[rough]
        return rest + unit * np.sqrt(energy), beta

    def _flat(self, beta: Array) -> Mask:
        """Columns whose intercept, there or shifted by beta, no curvature determines on one side.

        A point with curvature on both ends of the stretch has it all along, and settles the matter.
        """
        problem = self.target.problem
        if not problem.fit_intercept:
            return np.zeros(self.b.size, dtype=bool)
        nudge = float(np.finfo(self.u.dtype).eps) ** 0.5 * self.scale
        reach = np.abs(beta) + nudge
        flat = ~np.logical_and(*(self._curved(shift) for shift in (-reach, reach))).any(axis=0)
        if flat.any():
            shifts = (side * nudge + middle for side in (-1, 0, 1) for middle in (0.0, beta))
            alone = [~self._curved(shift).any(axis=0) for shift in shifts]
            flat &= np.logical_or.reduce(alone)
        return np.asarray(flat)

    def _curved(self, shift: Array) -> Mask:
        """Training points with curvature after a shift of the intercepts."""
        curved = self.target.problem.loss.curvature(self.y, self.u + shift) > 0
        return np.asarray(curved & self.train)

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
        values, solution = refit_fold(problem, target.lam, train, everyone, start)
        self.a[:, column] = solution.coef[:, 0]
        self.b[column], self.u[:, column] = solution.intercept[0], values[:, 0]
        self._look([column])
        self.steps[column] += solution.steps
        # a flat intercept is the middle of its stretch, as in any refit
        self.error[column] = self.take([column])._bound()[0][0]
        self.settled[column] = True


def _dots(A: Array, B: Array) -> Array:
    """The inner product of every column of A with that of B."""
    return np.asarray(np.einsum("ij,ij->j", A, B))
