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
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.heldout.base import EXACT
from onefit.heldout.downdate import Downdate, Model, product
from onefit.heldout.full import Target
from onefit.heldout.refit import refit_fold
from onefit.problem import Solution
from onefit.solvers.linesearch import line_search

Array = NDArray[Any]
Mask = NDArray[np.bool_]

__all__ = ["Front"]

#: a smooth loss is solved to this, relative to the predictions; EXACT is what is promised
TOLERANCE = 1e-3 * EXACT
#: steps of a smooth loss beyond which a refit is the shorter way
PATIENCE = 12
#: the part of the predicted decrease that a full step must bring to spare the line search
DECREASE = 0.3


@dataclass
class Front:
    """Leave-out problems of one target that share Lambda, as columns.

    Attributes
    ----------
    train : (n, k) bool array
        The rows each problem is trained on.
    a, b, u : (n, k), (k,), (n, k) arrays
        Where each problem stands.
    steps : (k,) int array
    settled : (k,) bool array
        Whether the last full step moved no point to another piece.
    error : (k,) array
        The bound above.
    moves : (k,) array
        The largest change of a prediction by the last step.
    """

    target: Target
    factor: Downdate
    train: Mask
    a: Array
    b: Array
    u: Array
    steps: NDArray[np.intp]
    settled: Mask
    error: Array
    moves: Array

    @classmethod
    def start(cls, target: Target, factor: Downdate, train: Mask, shift: Shift | None) -> Front:
        """At the full solution, or at it shifted as the folds were before, whichever is lower."""
        k = train.shape[1]
        a, b, u = (
            np.repeat(x, k, axis=1) for x in (target.a[:, None], [[target.b]], target.u[:, None])
        )
        none = np.zeros(k, dtype=np.intp)
        far = np.full(k, np.inf)
        front = cls(target, factor, train, a, b[0], u, none, none.astype(bool), far, far.copy())
        if shift is not None:
            moved = replace(front, a=a + shift.a, b=b[0] + shift.b, u=u + shift.u)
            better = moved.objective() < front.objective()
            front.a[:, better], front.u[:, better] = moved.a[:, better], moved.u[:, better]
            front.b[better] = moved.b[better]
        return front

    def objective(self) -> Array:
        """The leave-out objective of every column."""
        fit = (self.weights * self.target.problem.loss.value(self.y, self.u)).sum(axis=0)
        return np.asarray(fit + self.ridge * (self.a * (self.u - self.b)).sum(axis=0))

    @property
    def shift(self) -> Shift:
        """How the leave-out solutions differ from the full one."""
        target = self.target
        return Shift(self.a - target.a[:, None], self.b - target.b, self.u - target.u[:, None])

    @property
    def ridge(self) -> float:
        return self.factor.ridge

    @property
    def weights(self) -> Array:
        return np.asarray(self.target.problem.s[:, None] * self.train)

    @property
    def y(self) -> Array:
        return np.asarray(np.broadcast_to(self.target.y[:, None], self.u.shape))

    @property
    def scale(self) -> Array:
        return np.asarray(1.0 + np.abs(self.u).max(axis=0))

    def take(self, columns: Any) -> Front:
        """Some of the problems."""
        return replace(
            self,
            train=self.train[:, columns],
            a=self.a[:, columns],
            b=self.b[columns],
            u=self.u[:, columns],
            steps=self.steps[columns],
            settled=self.settled[columns],
            error=self.error[columns],
            moves=self.moves[columns],
        )

    def put(self, columns: Any, part: Front) -> None:
        """Write back what :meth:`take` gave."""
        self.a[:, columns], self.u[:, columns] = part.a, part.u
        for name in ("b", "steps", "settled", "error", "moves"):
            getattr(self, name)[columns] = getattr(part, name)

    def model(self) -> Model:
        """Newton's model where the problems stand; curvature is frozen for a smooth loss."""
        loss, s = self.target.problem.loss, self.target.problem.s[:, None]
        use = self.weights > 0
        g = np.where(use, loss.gradient(self.y, self.u), 0.0)
        d = self.target.d[:, None]
        if loss.piecewise_quadratic:
            d = loss.curvature(self.y, self.u)
        d = np.where(use, d, 0.0)
        gap = self.a + s * g / (2.0 * self.ridge)
        fixed = np.where(d > 0, 0.0, -gap)
        weight = np.where(d > 0, s * d, 1.0)
        missing = -2.0 * self.ridge * gap / weight - product(self.target.problem.K, fixed)
        missing[d == 0] = 0.0
        return Model(d, missing, fixed, (self.a + fixed).sum(axis=0))

    def step(self, full: bool = False) -> None:
        """One Newton step of every column: in full, or as far as the objective falls."""
        da, db, determined = self.factor.solve(self.model())
        du = product(self.target.problem.K, da) + db
        kept = self._keep_pieces(du)
        t = np.ones(db.size) if full else self._lengths(da, db, du, kept)
        self.a, self.b, self.u = self.a + t * da, self.b + t * db, self.u + t * du
        self.moves = np.abs(t * du).max(axis=0)
        piecewise = self.target.problem.loss.piecewise_quadratic
        self.settled = kept & (t == 1.0) & determined & piecewise
        self.steps = self.steps + 1
        if not determined.all():
            self._slide(np.flatnonzero(~determined))

    def _keep_pieces(self, du: Array) -> Mask:
        loss = self.target.problem.loss
        changed = loss.piece(self.y, self.u + du) != loss.piece(self.y, self.u)
        return np.asarray(~(changed & (self.weights > 0)).any(axis=0))

    def _lengths(self, da: Array, db: Array, du: Array, kept: Mask) -> Array:
        """1 where the full step brings enough of what its slope promises, else the minimum."""
        loss, s, two = self.target.problem.loss, self.weights, 2.0 * self.ridge
        df = du - db
        linear, quadratic = two * (self.a * df).sum(axis=0), two * (da * df).sum(axis=0)
        slope = (s * loss.gradient(self.y, self.u) * du).sum(axis=0) + linear
        gain = (s * (loss.value(self.y, self.u + du) - loss.value(self.y, self.u))).sum(axis=0)
        t = np.ones(db.size)
        search = ~(gain + linear + 0.5 * quadratic <= DECREASE * slope) & ~kept
        if search.any():
            t[search] = line_search(
                loss, self.y[:, search], self.u[:, search], du[:, search], s[:, search],
                linear[search], quadratic[search], tolerance=1e-2,
            )  # fmt: skip
        return t

    def _slide(self, columns: NDArray[np.intp]) -> None:
        """Move the intercepts that no curvature determines to where sum s g vanishes."""
        beta = self.take(columns)._centre()
        self.b[columns] += beta
        self.u[:, columns] += beta

    def _centre(self) -> Array:
        """The shift of b that makes sum s g vanish."""
        loss, s = self.target.problem.loss, self.weights
        g = s * loss.gradient(self.y, self.u)
        total, none = g.sum(axis=0), np.zeros(self.b.size)
        sign = np.where(np.abs(total) <= 1e-15 * np.abs(g).sum(axis=0), 0.0, -np.sign(total))
        beta = self._nearby_centre(total) if loss.piecewise_quadratic else sign * np.nan
        far = np.flatnonzero(np.isnan(beta))
        if far.size:
            direction = np.ones_like(self.u[:, far]) * sign[far]
            beta[far] = sign[far] * line_search(
                loss, self.y[:, far], self.u[:, far], direction, s[:, far],
                none[far], none[far], tolerance=1e-12,
            )  # fmt: skip
        return np.asarray(beta)

    def _nearby_centre(self, total: Array) -> Array:
        """One Newton step of that shift, or NaN where it takes a point to another piece."""
        loss, s = self.target.problem.loss, self.weights
        curvature = (s * loss.curvature(self.y, self.u)).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            beta = np.where(total == 0.0, 0.0, -total / curvature)
        moved = loss.piece(self.y, self.u + beta) != loss.piece(self.y, self.u)
        return np.where((moved & (s > 0)).any(axis=0) | ~np.isfinite(beta), np.nan, beta)

    def recompute(self) -> None:
        """Predictions from the coefficients, without what rounding has added up over the steps."""
        K = self.target.problem.K
        self.u = linalg.matmul(K, np.asfortranarray(self.a)) + self.b

    def bound(self, refined: bool = False) -> None:
        """Set `error` of every column; it is infinite where nothing determines the intercept.

        After a refining step from a settled point the objective is a quadratic that both share:
        what the step moved is what was wrong before it, as far as its linear system can tell.
        """
        self.error, beta = self._bound()
        if refined:
            blind = 64.0 * np.finfo(self.u.dtype).eps * self.factor.condition * self.scale
            sharper = np.minimum(self.error, self.moves + blind)
            self.error = np.where(self.settled, sharper, self.error)
        self.error[self._flat(0.0) | self._flat(beta)] = np.inf

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
        rest = np.abs(beta) + 16.0 * epsilon * scale
        rough = np.flatnonzero(~(rest + unit * np.sqrt(energy) <= TOLERANCE * scale))
        if rough.size:
            part = r[:, rough]
            sharp = np.maximum((part * product(problem.K, part)).sum(axis=0), 0.0)
            energy[rough] = sharp + epsilon * energy[rough]
        return rest + unit * np.sqrt(energy), beta

    def _flat(self, beta: Array | float) -> Mask:
        """Columns whose intercept, shifted by beta, no curvature determines on one side."""
        problem = self.target.problem
        if not problem.fit_intercept:
            return np.zeros(self.b.size, dtype=bool)
        use = self.weights > 0
        nudge = float(np.finfo(self.u.dtype).eps) ** 0.5 * self.scale
        flat: Mask = np.logical_or.reduce(
            [
                ~((problem.loss.curvature(self.y, self.u + shift) > 0) & use).any(axis=0)
                for shift in (beta - nudge, beta, beta + nudge)
            ]
        )
        return flat

    def moved(self) -> NDArray[np.intp]:
        """Training points on another piece than in the full solution."""
        loss = self.target.problem.loss
        changed = loss.piece(self.y, self.u) != loss.piece(self.y, self.target.u[:, None])
        return np.asarray((changed & (self.weights > 0)).sum(axis=0))

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
        self.steps[column] += solution.steps
        # a flat intercept is the middle of its stretch, as in any refit
        self.error[column] = self.take([column])._bound()[0][0]
        self.settled[column] = True


@dataclass(frozen=True)
class Shift:
    """The difference of leave-out solutions from the full one."""

    a: Array
    b: Array
    u: Array
