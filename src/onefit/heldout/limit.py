"""The limit of the influence series, how wrong it can be, and the repair that makes it exact.

**Limit.** The influence series of a fold (onefit.heldout.influence) sums to one Newton step of the
leave-fold-out problem from the full solution. It costs as much as the first term.

**Error bound.** Let (f, b) be any candidate for the leave-out solution (f*, b*), shift b by beta until
sum_i s_i g_i(u_i + beta) = 0, and let r_i = a_i + s_i g_i(u_i + beta) / (2 Lambda) be what is missing from
stationarity. The objective, minimised over b, is 2 Lambda-strongly convex in f with gradient 2 Lambda K r at
f, so ||f - f*|| <= sqrt(r'K r), and because sum s g is monotone in b, b + beta differs from b* by at most the
largest |f - f*| on the training rows. With kappa^2 = max K_ii, every held-out value obeys

    |u - u*| <= |beta| + 2 kappa sqrt(r'K r)                     (kappa sqrt(r'K r) without an intercept).

**Certificate.** For a piecewise quadratic loss r vanishes exactly if no training point changed its piece:
then the limit *is* the leave-out solution, and the bound, evaluated in floating point, says so.

**Repair.** Otherwise further Newton steps follow, with an exact line search, all folds side by side, each
a small change of the full solution's factor (onefit.heldout.downdate). For the smooth losses the
curvature is frozen at the full solution, and the steps converge linearly. Where a fold is too far from the
full solution for that, it is refitted from where it stands.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit import _linalg as linalg
from onefit.folds import Folds
from onefit.heldout.base import EXACT, HeldOut, HeldOutMethod, Prepared
from onefit.heldout.downdate import Downdate, Model
from onefit.heldout.full import FullPath, Target
from onefit.heldout.refit import refit_fold
from onefit.problem import Problem, Solution
from onefit.solvers.linesearch import line_search

Array = NDArray[Any]

__all__ = ["Exact", "Limit"]

#: repair stops once the bound is this small relative to the predictions; EXACT is what it promises
TOLERANCE = 1e-3 * EXACT
MAX_STEPS = 40
#: steps of a smooth loss beyond which a refit is the shorter way
PATIENCE = 12


class Limit(HeldOutMethod):
    """Order infinity of the influence series, with its error bound: one Newton step a fold."""

    name = "limit"
    requires = ("gradient", "curvature", "piece")
    repair = False

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        return _Newton(FullPath(problem, folds, lams), self.repair)


class Exact(Limit):
    """The limit, repaired by Newton steps until it is the leave-out solution."""

    name = "exact"
    repair = True


@dataclass
class _Front:
    """Leave-out problems of one target that share Lambda, side by side as columns."""

    target: Target
    ridge: float
    train: NDArray[np.bool_]
    a: Array
    b: Array
    u: Array
    steps: NDArray[np.intp]
    error: Array
    pending: NDArray[np.bool_]

    @property
    def weights(self) -> Array:
        return np.asarray(self.target.problem.s[:, None] * self.train)

    def take(self, columns: Array) -> _Front:
        """Some of the problems."""
        return _Front(
            self.target, self.ridge, self.train[:, columns], self.a[:, columns], self.b[columns],
            self.u[:, columns], self.steps[columns], self.error[columns], self.pending[columns],
        )  # fmt: skip


@dataclass
class _Newton(Prepared):
    path: FullPath
    repair: bool

    def predict(self, lam: float) -> HeldOut:
        path, folds = self.path, self.path.folds
        q = path.problem.Y.shape[1]
        values = np.empty((folds.rows.size, q), dtype=path.problem.Y.dtype)
        error, scale = np.zeros(len(folds)), np.ones(len(folds))
        moved, steps = np.zeros(len(folds), np.intp), np.zeros(len(folds), np.intp)
        for j in range(q):
            target = path.target(lam, j)
            for weight, members in path.groups():
                front = self._run(target, lam * weight, ~path.removed[:, members])
                pieces = _moved(front)
                for column, member in enumerate(members):
                    k = path.near[member]
                    values[folds.place(k), j] = front.u[folds.test[k], column]
                    error[k] = max(error[k], front.error[column])
                    moved[k] = max(moved[k], pieces[column])
                    steps[k] = max(steps[k], front.steps[column])
        for k in path.far:
            train, test = path.positive.train[k], path.positive.test[k]
            values[folds.place(k)], solution = refit_fold(path.problem, lam, train, test)
            error[k], steps[k] = (0.0 if solution.converged else np.inf), solution.steps
        scale += folds.largest(values)
        name = "exact" if self.repair else "limit"
        return HeldOut(values, folds, name, error <= EXACT * scale, error, moved, steps)

    def _run(self, target: Target, ridge: float, train: NDArray[np.bool_]) -> _Front:
        """The limit of every column and, if asked, its repair."""
        factor = Downdate(target, ridge)
        k = train.shape[1]
        column = np.ones((1, k))
        front = _Front(
            target, ridge, train, target.a[:, None] * column, np.full(k, target.b),
            target.u[:, None] * column, np.zeros(k, np.intp), np.full(k, np.inf),
            np.ones(k, dtype=bool),
        )  # fmt: skip
        a, b, solved = factor.solve(_model(front))
        _accept(front, a, b, solved)
        if self.repair:
            for _ in range(MAX_STEPS):
                if not front.pending.any():
                    break
                self._step(front, factor)
        for column_left in np.flatnonzero(front.pending & (self.repair | ~solved)):
            _refit(front, int(column_left))
        return front

    def _step(self, front: _Front, factor: Downdate) -> None:
        """One Newton step, with an exact line search, for every pending column."""
        columns = np.flatnonzero(front.pending)
        part = front.take(columns)
        a, b, solved = factor.solve(_model(part))
        u = linalg.matmul(front.target.problem.K, np.asfortranarray(a)) + b
        t, settled = _lengths(part, a, b, u)
        t = np.where(solved, t, 0.0)
        front.a[:, columns] += t * (a - part.a)
        front.b[columns] += t * (b - part.b)
        front.u[:, columns] += t * (u - part.u)
        front.steps[columns] += 1
        before = part.error
        part = front.take(columns)
        part.error = error_bound(part)
        left = _unfinished(part) & ~(settled & solved)
        front.error[columns], front.pending[columns] = part.error, left
        slow = (t == 0.0) | _slow(before, part)
        for column in columns[left & slow]:
            _refit(front, int(column))


def _accept(front: _Front, a: Array, b: Array, solved: Array) -> None:
    """Take the first full Newton step wherever there is one, and bound its error."""
    front.a[:, solved], front.b[solved] = a[:, solved], b[solved]
    front.u = linalg.matmul(front.target.problem.K, np.asfortranarray(front.a)) + front.b
    front.steps[solved] += 1
    front.error = np.where(solved, error_bound(front), np.inf)
    loss = front.target.problem.loss
    settled = solved & (_moved(front) == 0) & loss.piecewise_quadratic
    front.pending = _unfinished(front) & ~settled


def _model(front: _Front) -> Model:
    """Gradient and curvature at the current predictions; frozen curvature for a smooth loss."""
    target, loss = front.target, front.target.problem.loss
    y, use = target.y[:, None], front.weights > 0
    g = np.where(use, loss.gradient(y, front.u), 0.0)
    d = loss.curvature(y, front.u) if loss.piecewise_quadratic else target.d[:, None]
    return Model(g, np.where(use, d, 0.0), front.u)


def _lengths(front: _Front, a: Array, b: Array, u: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Step lengths, and where the full step keeps every training point on its piece.

    There the model was the objective itself, the length is 1 and the minimum is reached.
    """
    loss, y = front.target.problem.loss, front.target.y[:, None]
    t = np.ones(b.size)
    settled = np.zeros(b.size, dtype=bool)
    if loss.piecewise_quadratic:
        changed = loss.piece(y, u) != loss.piece(y, front.u)
        settled = ~(changed & front.train).any(axis=0)
    search = ~settled
    if search.any():
        da = (a - front.a)[:, search]
        df = (u - b - front.u + front.b)[:, search]
        t[search] = line_search(
            loss,
            np.repeat(y, int(search.sum()), axis=1),
            front.u[:, search],
            (u - front.u)[:, search],
            front.weights[:, search],
            2.0 * front.ridge * (front.a[:, search] * df).sum(axis=0),
            2.0 * front.ridge * (da * df).sum(axis=0),
        )
    return t, settled


def _slow(before: Array, front: _Front) -> NDArray[np.bool_]:
    """Columns of a smooth loss that frozen curvature brings home in no fewer than PATIENCE steps."""
    if front.target.problem.loss.piecewise_quadratic:
        return np.zeros(before.size, dtype=bool)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(before / front.error)
        missing = np.log(front.error / (TOLERANCE * _scale(front)))
    return np.asarray(missing > PATIENCE * np.maximum(gain, 0.0))


def error_bound(front: _Front) -> Array:
    """|beta| + 2 kappa sqrt(r'K r) of every column, see the top of this file."""
    problem, y = front.target.problem, front.target.y[:, None]
    s = front.weights
    beta = _centre(front) if problem.fit_intercept else np.zeros(front.b.size)
    g = problem.loss.gradient(y, front.u + beta)
    r = front.a + s * g / (2.0 * front.ridge)
    energy = (r * linalg.matmul(problem.K, np.asfortranarray(r))).sum(axis=0)
    kappa = np.sqrt(float(np.einsum("ii->i", problem.K).max()))
    factor = 2.0 if problem.fit_intercept else 1.0
    return np.asarray(np.abs(beta) + factor * kappa * np.sqrt(np.maximum(energy, 0.0)))


def _centre(front: _Front) -> Array:
    """The shift of b that makes sum s g vanish."""
    loss, s = front.target.problem.loss, front.weights
    y = np.repeat(front.target.y[:, None], front.b.size, axis=1)
    g = s * loss.gradient(y, front.u)
    total = g.sum(axis=0)
    sign = np.where(np.abs(total) <= 1e-15 * np.abs(g).sum(axis=0), 0.0, -np.sign(total))
    none = np.zeros(front.b.size)
    direction = np.ones_like(front.u) * sign
    return np.asarray(sign * line_search(loss, y, front.u, direction, s, none, none))


def _scale(front: _Front) -> Array:
    return np.asarray(1.0 + np.abs(front.u).max(axis=0))


def _unfinished(front: _Front) -> Array:
    """Columns whose bound is too large, or whose intercept no curvature determines."""
    problem = front.target.problem
    far = front.error > TOLERANCE * _scale(front)
    if not problem.fit_intercept:
        return np.asarray(far)
    curved = problem.loss.curvature(front.target.y[:, None], front.u) > 0
    return np.asarray(far | ~(curved & (front.weights > 0)).any(axis=0))


def _moved(front: _Front) -> NDArray[np.intp]:
    """Training points on another piece than in the full solution."""
    loss, y = front.target.problem.loss, front.target.y[:, None]
    changed = loss.piece(y, front.u) != loss.piece(y, front.target.u[:, None])
    return np.asarray((changed & (front.weights > 0)).sum(axis=0))


def _refit(front: _Front, column: int) -> None:
    """Solve one leave-out problem afresh, from where it stands."""
    target = front.target
    problem = replace(target.problem, Y=target.y[:, None])
    train = np.flatnonzero(front.train[:, column])
    start = Solution(front.a[:, [column]], front.b[[column]], front.u[:, [column]])
    everyone = np.arange(problem.n)
    values, solution = refit_fold(problem, target.lam, train, everyone, start)
    front.a[:, column] = 0.0
    front.a[train, column] = solution.coef[:, 0]
    front.b[column], front.u[:, column] = solution.intercept[0], values[:, 0]
    front.steps[column] += solution.steps
    front.error[column] = error_bound(front.take(np.array([column])))[0]
    front.pending[column] = False
