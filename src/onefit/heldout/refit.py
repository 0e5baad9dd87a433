"""The honest way: refit without the fold, predict the fold. Slow, for any loss and any split.

Every other method is tested against this one. A refit is in double precision whatever the data are
in, and like any other solution it is believed as far as its certificate goes (onefit.certificate):
where that does not do, predictions are computed with more digits, and a further Newton step
removes what they show to be missing from stationarity.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from onefit import _linalg as linalg
from onefit._precise import EPSILON, precise_summation, predictions, summation, two_sum
from onefit.certificate import EXACT, Candidates
from onefit.folds import Folds, Indices
from onefit.heldout.base import HeldOut, HeldOutMethod, Prepared
from onefit.problem import Norms, Problem, Solution
from onefit.solvers import solve
from onefit.solvers.newton import solve_active

Array = NDArray[Any]

__all__ = ["WANTED", "Refit", "Refitted", "cheap_to_refit", "refit_fold"]

#: Newton steps that may follow a solution whose certificate does not do
MORE_STEPS = 3
#: the part of EXACT that a certificate had better leave
WANTED = 0.1
#: operations up to which folds are refitted for the sake of their certificate alone
CHEAP = 1e8


def cheap_to_refit(n: int, folds: int) -> bool:
    """Whether some folds of n rows had better be refitted than left without a certificate."""
    return 0.0 < folds * float(n) ** 3 <= CHEAP


class Refit(HeldOutMethod):
    """Fit again on every training set.

    Parameters
    ----------
    warm : bool, default=False
        Start each fold's Newton iteration from the full-sample solution instead of from zero.
    """

    name = "refit"

    def __init__(self, warm: bool = False) -> None:
        self.warm = warm

    def prepare(self, problem: Problem, folds: Folds, lams: Array) -> Prepared:
        self.check(problem)
        positive = folds.without(np.flatnonzero(problem.s == 0))
        return _Refit(problem, positive, folds, self.warm)


@dataclass
class _Refit(Prepared):
    problem: Problem
    positive: Folds
    folds: Folds
    warm: bool
    last: Solution | None = None

    def predict(self, lam: float) -> HeldOut:
        start = self._full(lam) if self.warm else None
        found = [refit_fold(self.problem, lam, *split, start) for split in self.positive]
        values = np.concatenate([one.values for one in found])
        error = np.array([one.error for one in found])
        steps = np.array([one.solution.steps for one in found], dtype=np.intp)
        return HeldOut.judged(
            self.problem, values, self.folds, "refit", error, np.zeros_like(steps), steps
        )

    def _full(self, lam: float) -> Solution:
        kept = np.flatnonzero(self.problem.s)
        if kept.size < self.problem.n:
            raise ValueError("a warm-started refit needs positive weights on every row")
        self.last = solve(self.problem, lam, start=self.last)
        return self.last


@dataclass(frozen=True)
class Refitted:
    """A machine of some rows.

    Attributes
    ----------
    values : (m, q) array
        Decision values of the test rows.
    error : (q,) array
        Bound on the largest error of each column.
    solution : Solution
        On the training rows.
    """

    values: Array
    error: Array
    solution: Solution


def refit_fold(
    problem: Problem,
    lam: float,
    train: Indices,
    test: Indices,
    start: Solution | None = None,
    norms: Norms | None = None,
) -> Refitted:
    """The machine of the training rows; ``norms`` are those of the kernel matrix, where known.

    From ``start``, a solution of the whole sample, the rows left out only lose their weight: their
    coefficients are where Newton's first step begins, and it takes them to zero. Where that ends
    without a certificate, the machine is solved from nothing.
    """
    machine = _Machine(problem, norms or problem.norms, lam, train, test)
    if start is None or problem.loss.name == "squared" or not np.isfinite(start.coef).all():
        solution, values, error = machine.certified(machine.solved())
    else:
        solution, values, error = machine.certified(machine.solved_from(start))
        if not (error <= EXACT * problem.scale).all():
            other = machine.certified(machine.solved())
            if other[2].max() < error.max():
                solution, values, error = other
    with np.errstate(over="ignore"):
        narrow = values.astype(problem.Y.dtype, copy=False)
    if not np.isfinite(narrow).all():
        raise FloatingPointError(
            f"a refit at lam={lam:g} gave values that are not finite in {narrow.dtype}; raise lam, "
            "or scale the data"
        )
    return Refitted(narrow, error + np.abs(narrow - values).max(axis=0), solution)


def _quietly(problem: Problem, lam: float, start: Solution | None = None) -> Solution:
    """What the solver comes to, whether it has converged or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return solve(problem, lam, start=start)


def _in_double(problem: Problem) -> Problem:
    K, Y, s = (x.astype(np.float64, copy=False) for x in (problem.K, problem.Y, problem.s))
    return replace(problem, K=K, Y=Y, s=s)


@dataclass(frozen=True)
class _Machine:
    """The problem of some rows, all targets side by side."""

    problem: Problem
    norms: Norms
    lam: float
    train: Indices
    test: Indices

    def solved(self) -> Solution:
        """A solution from nothing; whether it is one the certificate tells."""
        return _quietly(_in_double(self.problem.take(self.train)), self.lam)

    def solved_from(self, start: Solution) -> Solution:
        """A solution from one of the whole sample."""
        weights = np.zeros_like(self.problem.s)
        weights[self.train] = self.problem.s[self.train]
        found = _quietly(_in_double(replace(self.problem, s=weights)), self.lam, start)
        return replace(found, coef=found.coef[self.train], decision=found.decision[self.train])

    @cached_property
    def origin(self) -> Array:
        """What predictions are measured from: the targets, if the loss is one of residuals."""
        Y = self.problem.Y[self.train].astype(np.float64)
        return Y if getattr(self.problem.loss, "of_residual", False) else np.zeros_like(Y)

    @cached_property
    def y(self) -> Array:
        """Targets as seen from there."""
        return self.problem.Y[self.train].astype(np.float64) - self.origin

    def certified(self, solution: Solution) -> tuple[Solution, Array, Array]:
        """A solution, or what further steps make of it, with its values and their error bound."""
        a, b = solution.coef.astype(np.float64), solution.intercept.astype(np.float64)
        here = self._look(_State(a, np.zeros_like(a), b), precise=False)
        best = here
        for turn in range(1 + MORE_STEPS):
            rough = np.flatnonzero(~(best.error <= WANTED * EXACT * self.problem.scale))
            if rough.size == 0:
                break
            state = self._step(here, rough) if turn else here.state
            here = self._look(state, precise=True)
            if not (here.error < best.error).any():
                break
            best = best.or_better(here)
        state, decision = best.state, best.u + self.origin
        solution = replace(solution, coef=state.a, intercept=state.b, decision=decision)
        return solution, best.values, best.error

    def _look(self, state: _State, precise: bool) -> _View:
        """Predictions on both sets of rows, and the bound on those of the test rows."""
        problem, train, b = self.problem, self.train, state.b
        low = state.low if precise else None
        values = predictions(self.norms, self.test, train, state.a, b, low)
        shift, rest = two_sum(b, -self.origin)
        u = predictions(self.norms, train, train, state.a, shift, low) + rest
        size = (self.norms.roots[train][:, None] * np.abs(state.a)).sum(axis=0)
        candidates = Candidates(
            self.norms, train, problem.loss, problem.fit_intercept,
            self.y, problem.s[train][:, None].astype(np.float64),
            np.full(b.size, problem.ridge(self.lam, train)), state.a, u,
            (precise_summation if precise else summation)(train.size) * size, state.low,
        )  # fmt: skip
        largest = np.abs(values).max(axis=0)
        error = candidates.bound().at(self.norms.roots[self.test].max(), largest)
        if precise:
            error = np.minimum(error, candidates.sharp([self.test] * b.size, largest))
        return _View(state, u, values, error, candidates.gap())

    def _step(self, here: _View, columns: Array) -> _State:
        """A Newton step of some columns, its right-hand side from predictions of many digits."""
        problem, two = self.problem, 2.0 * self.problem.ridge(self.lam, self.train)
        state = here.state
        a, low, b = state.a.copy(), state.low.copy(), state.b.copy()
        s = problem.s[self.train].astype(np.float64)
        K = linalg.submatrix(problem.K, self.train, self.train).astype(np.float64, copy=False)
        for j in columns:
            y, u = self.y[:, j], here.u[:, j]
            g, d = problem.loss.gradient(y, u), problem.loss.curvature(y, u)
            gap = here.gap[:, j]
            reach = 1.0 + np.abs(y) + np.abs(u)
            active = np.flatnonzero(d * reach > EPSILON * np.abs(g))
            if active.size == 0:
                continue
            change = -gap / two
            change[active] = 0.0
            missing = -gap[active] / (s * d)[active] - (K @ change)[active]
            root = np.sqrt((s * d)[active] / two)
            total = fsum([*a[:, j], *low[:, j], *change])
            part, shift = solve_active(
                linalg.submatrix(K, active, active), missing, root, total, problem.fit_intercept
            )
            change[active] = part
            # the sum in two numbers, the second what the first has no room for
            change += low[:, j]
            whole = a[:, j] + change
            low[:, j] = (a[:, j] - whole) + change
            a[:, j] = whole
            b[j] += shift
        return _State(a, low, b)


@dataclass(frozen=True)
class _State:
    """Coefficients a + low, low being what a has no room for, and intercepts."""

    a: Array
    low: Array
    b: Array


@dataclass(frozen=True)
class _View:
    """Predictions on the training and on the test rows, the error of the latter, and what is
    missing from stationarity.
    """

    state: _State
    u: Array
    values: Array
    error: Array
    gap: Array

    def or_better(self, other: _View) -> _View:
        """Every column from where its error is smaller."""
        better = other.error < self.error

        def pick(mine: Array, others: Array) -> Array:
            return np.where(better, others, mine)

        one, two = self.state, other.state
        state = _State(pick(one.a, two.a), pick(one.low, two.low), pick(one.b, two.b))
        names = ("u", "values", "error", "gap")
        pairs = ((getattr(self, x), getattr(other, x)) for x in names)
        return _View(state, *(pick(*pair) for pair in pairs))
