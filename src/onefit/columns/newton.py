"""Newton's method on the active set, for many columns side by side; a fit is the case of one.

At a point with predictions u, gradients g and curvatures d let A = {i : d_i > 0}. The Newton
model replaces g by its linearisation g + d (u' - u). Stationarity of the model, 2 Lambda a' =
-s (g + d (u' - u)), fixes the coefficients off A,

    a'_i = -s_i g_i / (2 Lambda),                                     i not in A,

and leaves a least-squares problem on A with ridge c_i = 2 Lambda / (s_i d_i), bordered by 1'a' = 0
when there is an intercept. Only points with curvature enter its system (onefit.systems): for the
smoothed hinge these are the few points on its corner.

**Steps.** For a piecewise quadratic loss, a full step after which no point has left its piece is
the minimiser: the model was the objective itself. A point that a step takes from one piece across
another is put onto the piece between, where it has the model of that piece in the next step:
otherwise its coefficient would go from one end of its range to the other. Such steps may raise the
objective and usually need no line search. A column that has taken MAX_FULL_STEPS of them, or that
one of them would take to MAX_OBJECTIVE_RATIO times its first objective, continues with an exact
line search where a full step does not lower the objective enough, which makes the method finite. A
smooth loss converges quadratically, or linearly where a system keeps its curvature to that of
another point. If A is empty the model says nothing of b, which then moves to where sum s g
vanishes; when the loss is flat in b at the minimum, the middle of the flat interval is taken.

**Start.** The model is minimised as a change from the current point (a, b, u = K a + b), which need
not be where the loss is replaced by its model. Where points without curvature have their
coefficients a_i = -s_i g_i / (2 Lambda) already, most of a product with K is spared: after a full
step they do, and so does, for a piecewise quadratic loss, the solution at another lambda multiplied
by the ratio of the two, with the model of that solution. So predictions are carried from step to
step and from lambda to lambda. What rounding does to them on the way, their drift, is counted;
before it matters to an error bound, predictions are recomputed from the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices, Mask
from onefit.columns.line_search import line_search
from onefit.losses.base import MAX_BISECTIONS, loss_of
from onefit.problem import Columns, Solution
from onefit.proof.flat_interval import shift_to_middle
from onefit.proof.precise import EPSILON, summation
from onefit.systems import NewtonModel, System

__all__ = ["Batch", "minimise"]

#: steps of a batch, at most (benchmarks/constants.py)
MAX_NEWTON_STEPS = 40
#: expected further steps above which a smooth loss with the curvature of another point is left to
#: another method (benchmarks/constants.py)
MAX_FIXED_CURVATURE_STEPS = 12
#: full steps of a column, from piece to next piece, before line searches (benchmarks/ablation.py)
MAX_FULL_STEPS = 12
#: multiple of the first objective that such steps may reach (benchmarks/constants.py); at 1, folds
#: of a smoothed hinge take up to a third more time, and those of narrow corners down to half;
#: without a limit, twice as much
MAX_OBJECTIVE_RATIO = 2.0
#: share of the predicted decrease above which a full step needs no line search
#: (benchmarks/ablation.py)
MIN_DECREASE_SHARE = 0.3
#: share of its slope that a line search may leave; a smaller one saves no steps
#: (benchmarks/ablation.py)
MAX_SLOPE_SHARE = 0.01
#: largest step of a smooth loss, in units of the distance of its points from zero
#: (benchmarks/constants.py)
MAX_RELATIVE_STEP = 16.0
#: error of predictions, in units of the scale, at which linear convergence ends: that of a smooth
#: loss with the curvature of another point, and of steps whose systems are not solved to rounding;
#: small beside EXACT_TOLERANCE (benchmarks/constants.py)
LINEAR_TOLERANCE_IN_SCALES = 1e-9

#: arrays of a column in addition to its solution
_STATE = ("pieces", "held", "ceiling", "steps", "settled", "stuck", "change", "error")


@dataclass
class Batch:
    """Columns on their way to their minimisers.

    Attributes
    ----------
    columns : Columns
    system : System
    at : Solution
        The current point of each column.
    pieces : (n, k) array
        The pieces of the loss that the next step takes for its model.
    held : (n, k) array
        Predictions at which the loss is replaced by its model, where ``at`` has others; NaN
        elsewhere.
    ceiling : (k,) array
        The objective that no step from piece to next piece may exceed, MAX_OBJECTIVE_RATIO times
        that of the first point; NaN before the first step, minus infinity after one that would
        have exceeded it.
    steps : (k,) int array
    settled : (k,) bool array
        Whether the last step ended at the minimiser, up to rounding.
    stuck : (k,) bool array
        Whether the last step could not lower the objective.
    change : (k,) array
        How far the last step would have moved a prediction.
    error : (k,) array
        Bound on the error of a held-out value (onefit.columns.certify).
    """

    columns: Columns
    system: System
    at: Solution
    pieces: Array
    held: Array
    ceiling: Array
    steps: Indices
    settled: Mask
    stuck: Mask
    change: Array
    error: Array

    @classmethod
    def start(
        cls, columns: Columns, system: System, at: Solution, spot: Array | None = None
    ) -> Batch:
        """Columns at the points ``at``, whose arrays are not written to.

        The first step's model is that of the loss at the predictions ``spot``, if given.
        """
        k, held = columns.ridge.size, np.full_like(at.u, np.nan) if spot is None else spot
        pieces = columns.loss.piece(columns.y, at.u if spot is None else spot)
        no, far = np.zeros((2, k), dtype=bool), np.full((2, k), np.inf)
        ceiling, steps = np.full(k, np.nan), np.zeros(k, dtype=np.intp)
        return cls(columns, system, at, pieces, held, ceiling, steps, *no, *far)

    def take(self, columns: Any) -> Batch:
        """A batch of some of the columns."""
        part = replace(self, columns=self.columns.take(columns), system=self.system.take(columns))
        part.at = self.at.take(columns)
        for name in _STATE:
            setattr(part, name, getattr(self, name)[..., columns])
        return part

    def put(self, columns: Any, part: Batch, some: Any = slice(None)) -> None:
        """Replace what :meth:`take` gave, or some columns of that; no array is written to."""
        self.at = self.at.copy()
        self.at.put(columns, part.at.take(some))
        for name in _STATE:
            found = getattr(self, name).copy()
            found[..., columns] = getattr(part, name)[..., some]
            setattr(self, name, found)

    @property
    def smooth(self) -> bool:
        """Whether curvature varies along a piece."""
        return not self.columns.loss.piecewise_quadratic

    @property
    def kept(self) -> bool:
        """Whether the curvature of a smooth loss is kept to that of another point."""
        return self.smooth and self.system.curvature is not None

    def step(self, full: bool = False) -> None:
        """One Newton step of every column: in full, or as far as the objective falls."""
        columns, spot = self.columns, self._spot()
        g = columns.weights * columns.loss.gradient(columns.y, spot)
        d = self._curvature(g)
        there, determined = self._minimum(g, d)
        if self.smooth and not self.kept:
            stray, held = self._stray(there, g)
            if stray.any():
                d = np.where(stray, np.maximum(d, held), d)
                there, determined = self._minimum(g, d)
        pieces = columns.loss.piece(columns.y, there.u)
        # points that are not on one parabola all the way: all of them if the loss is smooth
        bent = columns.train if self.smooth else (pieces != self.pieces) & columns.train
        self.change = np.abs(there.u - spot).max(axis=0)
        exact = self.system.tolerance * self.change <= LINEAR_TOLERANCE_IN_SCALES * columns.scale
        self.settled = (self.change <= self._small()) | (exact & ~bent.any(axis=0))
        leap, high = self._leaps(there, full)
        t, search = np.where(high, 0.0, 1.0), np.flatnonzero(~(self.settled | leap | high))
        if search.size and not full and not self.kept:
            t[search] = self._lengths(search, there)
        before = self.pieces
        self._go(there, t, pieces)
        if leap.any():
            self._next_piece(np.flatnonzero(leap & (self.steps + 1 < MAX_FULL_STEPS)), before, spot)
        self.steps = self.steps + 1
        self.stuck = ~(((t > 0.0) | high) & np.isfinite(self.change))
        if not determined.all():
            lost = np.flatnonzero(~determined)
            # a smooth loss without curvature has run out into its tails: that is no minimum
            self.settled[lost] &= ~self.shift_intercepts(lost) & (not self.smooth)

    def _leaps(self, there: Solution, full: bool) -> tuple[Mask, Mask]:
        """The columns that go from piece to next piece, and those that this would take too high.

        None where a step is to be in full anyway, or where curvature varies along a piece.
        """
        if full or self.smooth:
            return np.zeros_like(self.settled), np.zeros_like(self.settled)
        new = np.isnan(self.ceiling)
        if new.any():
            self.ceiling = np.where(
                new, MAX_OBJECTIVE_RATIO * self.columns.objective(self.at), self.ceiling
            )
        leap = ~self.settled & (self.steps < MAX_FULL_STEPS) & (self.ceiling > -np.inf)
        if not leap.any():
            return leap, leap
        high = leap & ~(self.columns.objective(there) <= self.ceiling)
        self.ceiling = np.where(high, -np.inf, self.ceiling)
        return leap & ~high, high

    def _curvature(self, g: Array) -> Array:
        """Curvature of the loss, zero where g / d would be rounding only; or that of the system."""
        columns = self.columns
        if self.smooth and self.system.curvature is not None:
            return self.system.curvature * columns.train
        d = columns.loss.curvature(columns.y, self._spot()) * columns.train
        if self.smooth:
            d = d * (columns.weights * d * self._reach() > columns.epsilon * np.abs(g))
        return np.asarray(d)

    def _spot(self) -> Array:
        """Predictions at which the loss is replaced by its model."""
        return np.where(np.isnan(self.held), self.at.u, self.held)

    def _reach(self) -> Array:
        """Distances of the points from zero, plus one."""
        return np.asarray(1.0 + np.abs(self.columns.y) + np.abs(self.at.u))

    def _stray(self, there: Solution, g: Array) -> tuple[Mask, Array]:
        """Columns that the model sends too far, and curvatures that prevent it.

        In the far tails of a smooth loss the model is worthless: it sends a point g / d away. With
        s d >= |g| / reach points are held within their own size of where they are.
        """
        reach = self._reach()
        stray = np.abs(there.u - self.at.u).max(axis=0) > MAX_RELATIVE_STEP * reach.max(axis=0)
        s = np.where(self.columns.train, self.columns.weights, 1.0)
        return stray, np.abs(g) / (s * reach)

    def _small(self) -> Array:
        """The change of a prediction at which steps end: rounding, or more for a smooth loss."""
        epsilon, scale = self.columns.epsilon, self.columns.scale
        tolerance = 4.0 * epsilon
        if self.smooth:
            tolerance = max(LINEAR_TOLERANCE_IN_SCALES, tolerance) if self.kept else epsilon**0.5
        return np.asarray(tolerance * scale + 4.0 * epsilon * np.abs(self.at.u).max(axis=0))

    def _minimum(self, g: Array, d: Array) -> tuple[Solution, Mask]:
        """The minimisers of the models at weighted gradients g."""
        K, at = self.columns.K, self.at
        model, pull = self._model(g, d)
        da, db = self.system.solve(model)
        determined = model.curved | (not self.columns.problem.fit_intercept)
        u = K.matmul(da)
        da += model.fixed
        size = self._sizes(da)
        u += at.u
        u += pull
        u += db
        da += at.a
        # the sum of products, and the rounding of the coefficients themselves
        drift = at.drift + self._rounding(size, u) + self.columns.epsilon * self._sizes(da)
        return Solution(da, at.b + db, u, drift), determined

    def _model(self, g: Array, d: Array) -> tuple[NewtonModel, Array]:
        """Newton's models as changes from the current points, and K times their fixed part."""
        two, at = 2.0 * self.columns.penalty, self.at
        curved, sd = d > 0, self.columns.problem.s[:, None] * d
        gap = at.u - self._spot()
        gap *= sd
        gap += g
        gap /= two
        gap += at.a
        fixed = gap * (curved - 1.0)
        fixed *= np.abs(fixed) > 4.0 * np.finfo(gap.dtype).eps * np.abs(at.a)
        pull = self.columns.K.matmul(fixed)
        missing = -two * gap / (sd + ~curved) - pull
        missing *= curved
        return NewtonModel(d, missing, fixed, at.a.sum(axis=0) + fixed.sum(axis=0)), pull

    def _go(self, there: Solution, t: Array, pieces: Array) -> None:
        """Move the part t of the way to a point whose rows are on ``pieces``."""
        at, short, self.pieces = self.at, np.flatnonzero(t != 1.0), pieces
        self.at, self.held = there, np.full_like(there.u, np.nan)
        if short.size:
            a, b, u = (_between(getattr(at, x), getattr(there, x), t) for x in ("a", "b", "u"))
            self.at = Solution(a, b, u, t * there.drift + np.abs(1.0 - t) * at.drift)
            self._look(short)

    def _next_piece(self, some: Indices, before: Array, u: Array) -> None:
        """Limit every point of some columns to the piece next to the one it was on.

        A point that went further is put onto that piece, between u and where it went.
        """
        label, old = self.pieces[:, some].astype(np.intp), before[:, some].astype(np.intp)
        far = (np.abs(label - old) > 1) & self.columns.train[:, some]
        rows, columns = np.flatnonzero(far.any(axis=1)), np.flatnonzero(far.any(axis=0))
        if rows.size == 0:
            return
        where, far = np.ix_(rows, some[columns]), far[np.ix_(rows, columns)]
        toward = np.sign(label - old)[np.ix_(rows, columns)]
        wanted = old[np.ix_(rows, columns)] + toward
        loss = loss_of(self.columns.loss, some[columns])
        y = self.columns.y_of(some[columns])[rows]
        low, high = u[where], self.at.u[where]
        for _ in range(MAX_BISECTIONS):
            middle = 0.5 * (low + high)
            ahead = (wanted - loss.piece(y, middle)) * toward
            low, high = np.where(ahead >= 0, middle, low), np.where(ahead <= 0, middle, high)
            if not ahead[far].any():
                break
        held = far & (ahead == 0)
        self.held[where] = np.where(held, middle, np.nan)
        self.pieces[where] = np.where(held, wanted, self.pieces[where])

    def _look(self, columns: Any) -> None:
        """Update the pieces on which some of the columns are."""
        y, loss = self.columns.y_of(columns), loss_of(self.columns.loss, columns)
        self.pieces[:, columns] = loss.piece(y, self.at.u[:, columns])
        self.held[:, columns] = np.nan

    def _lengths(self, some: Indices, there: Solution) -> Array:
        """1 where the full step decreases the objective enough for its slope, else the minimum."""
        columns, at, there = self.columns.take(some), self.at.take(some), there.take(some)
        loss, s, y, u, step = columns.loss, columns.weights, columns.y, at.u, there.u - at.u
        two, df = 2.0 * columns.penalty, step - (there.b - at.b)
        linear, quadratic = two * linalg.dots(at.a, df), two * linalg.dots(there.a - at.a, df)
        slope = linalg.dots(s * loss.gradient(y, u), step) + linear
        gain = linalg.dots(s, loss.value(y, u + step) - loss.value(y, u))
        t = np.ones(some.size)
        search = np.flatnonzero(~(gain + linear + 0.5 * quadratic <= MIN_DECREASE_SHARE * slope))
        if search.size:
            y = np.broadcast_to(y, u.shape)
            t[search] = line_search(
                loss_of(loss, search), y[:, search], u[:, search], step[:, search], s[:, search],
                linear[search], quadratic[search], tolerance=MAX_SLOPE_SHARE,
            )  # fmt: skip
        return t

    def shift_intercepts(self, some: Indices) -> Mask:
        """Move the intercepts of some columns to where sum s g vanishes; which of them moved."""
        columns, u = self.columns.take(some), self.at.u[:, some]
        g = columns.weights * columns.loss.gradient(columns.y, u)
        total, none = g.sum(axis=0, dtype=np.float64), np.zeros(some.size)
        sign = np.where(np.abs(total) <= 1e-12 * np.abs(g).sum(axis=0), 0.0, -np.sign(total))
        reach = sign * (1.0 + np.abs(columns.y - u).max(axis=0))
        y, direction = np.broadcast_to(columns.y, u.shape), np.ones_like(u) * reach
        beta = reach * line_search(columns.loss, y, u, direction, columns.weights, none, none)
        self.at = self.at.copy()
        self.at.b[some] += beta
        self.at.u[:, some] += beta
        self.pieces, self.held = self.pieces.copy(), self.held.copy()
        self._look(some)
        return np.asarray(sign != 0.0)

    def recompute(self) -> None:
        """Predictions from the coefficients, without what rounding has added up over the steps."""
        u = self.columns.K.matmul(self.at.a) + self.at.b
        drift = self._rounding(self._sizes(self.at.a), u)
        self.at = replace(self.at, u=u, drift=drift)
        self.pieces, self.held = self.columns.loss.piece(self.columns.y, u), np.full_like(u, np.nan)

    def _sizes(self, a: Array) -> Array:
        """sum_j root(K_jj) |a_j| of every column."""
        return np.asarray(np.abs(a).T @ self.columns.problem.norms.roots)

    def _rounding(self, size: Array, u: Array) -> Array:
        """Rounding error of predictions that are sums of terms of this size."""
        epsilon = self.columns.epsilon
        terms = summation(u.shape[0]) * (epsilon / EPSILON) * size
        root = self.columns.problem.norms.root
        return np.asarray(terms + 4.0 * epsilon * np.abs(u).max(axis=0) / root)

    def slow(self, before: Array) -> Mask:
        """Columns that need more than MAX_FIXED_CURVATURE_STEPS steps of linear convergence."""
        if not self.kept:
            return np.zeros(before.size, dtype=bool)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.log(before / self.change)
            missing = np.log(self.change / self._small())
        return np.asarray(
            np.isfinite(before) & ~(missing <= MAX_FIXED_CURVATURE_STEPS * np.maximum(gain, 0.0))
        )

    def _nudge(self) -> Array:
        """A shift of b that is small but exceeds rounding."""
        columns = self.columns
        return np.asarray(columns.epsilon**0.5 * (columns.scale + np.abs(self.at.u).max(axis=0)))

    def flat(self) -> Mask:
        """Whether a small shift of b, to one side at least, leaves no training row curved."""
        columns, nudge = self.columns, self._nudge()
        curved = [
            (columns.loss.curvature(columns.y, self.at.u + shift) > 0) & columns.train
            for shift in (-nudge, 0.0 * nudge, nudge)
        ]
        alone = np.logical_or.reduce([~one.any(axis=0) for one in curved])
        return np.asarray(alone & columns.problem.fit_intercept)

    def recentre(self, some: Indices) -> None:
        """Move columns that are flat in b to the middle of the flat interval.

        Where no training point has curvature there, stationarity gives the coefficients outright.
        """
        self.at, nudge = self.at.copy(), self._nudge()
        for k in some:
            one, at = self.columns.take([k]), self.at.take([k])
            s, loss, y = one.weights, one.loss, one.y
            b = at.b[0] + shift_to_middle(loss, y, at.u, s, float(nudge[k]))
            u = one.K.matmul(at.a) + b
            self.at.b[k] = b
            if not (loss.curvature(y, u) * one.train).any():
                self.at.a[:, [k]] = -s * loss.gradient(y, u) / (2.0 * one.penalty)
        self.recompute()


def minimise(batch: Batch, max_steps: int = MAX_NEWTON_STEPS) -> None:
    """Newton steps until every column has converged, or needs another method."""
    pending = np.flatnonzero(~batch.settled)
    part = batch.take(pending) if pending.size < batch.settled.size else replace(batch)
    for _ in range(max_steps if pending.size else 0):
        before = part.change
        part.step()
        on = ~(part.settled | part.stuck | part.slow(before))
        if not on.all():
            batch.put(pending[~on], part, ~on)
            pending = pending[on]
            if pending.size == 0:
                return
            part = part.take(on)
    if pending.size:
        batch.put(pending, part)


def _between(x: Array, y: Array, t: Array) -> Array:
    """x + t (y - x), from the end that is nearer: t may be too small to be seen beside 1."""
    way = y - x
    return np.asarray(np.where(t < 0.5, x + t * way, y - (1.0 - t) * way))
