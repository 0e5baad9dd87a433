"""The true held-out values of a problem, in ball arithmetic, with a rigorous bound.

Truth is what the training part's problem has in exact real arithmetic, its data taken as the
floats they are: coefficients a and an intercept b with u = K a + b,

    a_i = -s_i g_i(u_i) / (2 Lambda),      sum_i a_i = 0 with an intercept.

*Unique.* Let d be the steepest slope of g and C = diag(2 Lambda / (s d)). Since g rises, and by no
more than d, (g(u) - g(v)) (u - v) >= (g(u) - g(v))^2 / d; two solutions differ by delta with
delta'(K + C) delta <= 0. Where M = K + C is positive definite there is one a at most, also for a
kernel matrix that rounding made indefinite; elsewhere nothing is decided.

*Pieces.* For a piecewise quadratic loss Newton's method at high precision guesses the piece of
every row. The linear system of these pieces is then solved in balls; if every u_i is certainly on
its piece, this is the solution. Where no row has curvature, b is the middle of an interval, or
the end of one that is open on the other side.

*Bound.* For smooth losses, and for a row so near to a kink that its piece cannot be determined, let
a, b be any point, b moved so that sum s g(u) = 0, and r = a + s g(u) / (2 Lambda). The inequality
above, between this point and the solution, gives

    delta'M delta <= r'(M + C) delta - r'C r,   so   |k'delta| <= |k|_* |(M + C) r|_*

in the norm of M^-1, for every k. The interval of minimising b moves by no more than f does.

Precision doubles until the radius is far below a float's rounding, or nothing was decided.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat, ctx

from adversarial.balls import (
    column,
    dot,
    entries,
    exact,
    matrix,
    nearest,
    positive_definite,
    size,
    total,
)
from adversarial.curves import Pieces, curves
from adversarial.newton import Machine, Point, approach
from onefit.columns.fit import fit
from onefit.problem import Problem

__all__ = ["Task", "Truth", "UnclearError", "reference"]

FIRST_BITS = 320
LAST_BITS = 5120
#: a radius below this part of the targets' size decides
DECIDED = 2.0**-64


@dataclass(frozen=True)
class Truth:
    """Held-out values of one split, the nearest floats to them, and how far off these can be."""

    values: np.ndarray
    error: float
    decided: bool
    bits: int = 0


class UndecidableError(Exception):
    """The problem has no solution that can be shown to be the only one."""


class UnclearError(Exception):
    """More precision may help."""


def reference(problem, lam, train, test, j=0, bits=FIRST_BITS):
    """The values of the model of the training rows at the test rows, for target j."""
    train = np.asarray(train)[problem.s[np.asarray(train)] > 0]
    scale = float(np.abs(problem.Y[train, j]).max()) if train.size else 0.0
    start, error = None, math.inf
    while bits <= LAST_BITS and train.size:
        with ctx.workprec(bits):
            task = Task.of(problem, lam, train, test, j)
            try:
                task.check_unique()
                start = start or _double(problem, lam, train, j) or _zero(train.size)
                found, start = task.values(start)
            except UndecidableError:
                break
            except (UnclearError, ZeroDivisionError):
                found, start = None, _zero(train.size)
            if found is not None and size([v.rad() for v in found]) <= DECIDED * (scale or 1.0):
                values, error = nearest(found)
                return Truth(values, error, math.isfinite(error), bits)
        bits *= 2
    return Truth(np.full(len(test), np.nan), math.inf, False, bits)


def _zero(n):
    return [arb(0)] * n, arb(0)


def _double(problem, lam, train, j):
    """The package's own solution, as a place to start; nothing depends on its being right."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            part = [
                np.asarray(x, dtype=float) for x in (problem.K.matrix, problem.Y[:, [j]], problem.s)
            ]
            wide = Problem(*part, problem.loss, problem.fit_intercept, problem.scaling)
            solution = fit(wide.take(train), lam)
        if not np.isfinite(solution.a).all() or not np.isfinite(solution.b).all():
            return None
        return exact(solution.a), arb(float(solution.b[0]))
    except Exception:
        return None


@dataclass(frozen=True)
class Task:
    """One training part, and the kernel's rows of what is to be predicted."""

    machine: Machine
    rows: arb_mat
    weights: list
    linear: bool

    @classmethod
    def of(cls, problem, lam, train, test, j):
        s, y = exact(problem.s[train]), exact(problem.Y[train, j])
        ridge = arb(float(lam)) * (total(s) if problem.scaling == "mean" else 1)
        machine = Machine(
            matrix(problem.K.matrix, train, train), s, ridge, curves(problem.loss, y),
            problem.fit_intercept,
        )  # fmt: skip
        linear = isinstance(machine.curves[0], Pieces) and len(machine.curves[0].pieces) == 1
        weights = [Fraction(float(w)) for w in problem.s[train]]
        return cls(machine, matrix(problem.K.matrix, np.asarray(test), train), weights, linear)

    @property
    def piecewise(self):
        return isinstance(self.machine.curves[0], Pieces)

    def ridges(self):
        """The diagonal of C."""
        machine = self.machine
        return [
            2 * machine.ridge / (s * curve.steepest)
            for s, curve in zip(machine.s, machine.curves, strict=True)
        ]

    def convex(self):
        """M = K + C."""
        M = arb_mat(self.machine.K)
        for i, c in enumerate(self.ridges()):
            M[i, i] += c
        return M

    def check_unique(self):
        definite = positive_definite(self.convex())
        if definite is None:
            raise UnclearError
        if not definite:
            raise UndecidableError

    def predictions(self, a, b):
        return [f + b for f in entries(self.rows * column(a))]

    def values(self, start):
        """Balls around the values, and the point reached, from which to continue."""
        machine = self.machine
        if self.linear:
            return self.predictions(*_solve_pieces(machine, [0] * machine.n)), start
        point = approach(machine, Point.at(machine, *start))
        reached = (point.a, point.b)
        if self.piecewise:
            found = self.on_pieces(point)
            if found is not None:
                return self.predictions(*found), reached
        return self.around(point), reached

    def on_pieces(self, point):
        """The solution on the pieces of a point, if it is one; the flat case among them."""
        machine = self.machine
        labels = [c.piece(u) for c, u in zip(machine.curves, point.u, strict=True)]
        if machine.fit_intercept:
            straight = _straight(machine, point, labels)
            if straight is not None:
                found = self._flat(straight)
                if found is not None:
                    return found
        try:
            a, b = _solve_pieces(machine, labels)
        except ZeroDivisionError:
            return None
        u = machine.decision(a, b)
        pieces = [c.pieces[k] for c, k in zip(machine.curves, labels, strict=True)]
        return (a, b) if all(p.holds(x) for p, x in zip(pieces, u, strict=True)) else None

    def _flat(self, labels):
        """The solution with rows on straight pieces only, where b is the middle of an interval."""
        machine = self.machine
        pieces = [c.pieces[k] for c, k in zip(machine.curves, labels, strict=True)]
        levels = [Fraction(*_ratio(p.offset)) for p in pieces]
        if sum(w * g for w, g in zip(self.weights, levels, strict=True)) != 0:
            return None
        a = [-s * p.offset / (2 * machine.ridge) for s, p in zip(machine.s, pieces, strict=True)]
        f = machine.decision(a, arb(0))
        lows = [p.low - x for p, x in zip(pieces, f, strict=True) if p.low is not None]
        highs = [p.high - x for p, x in zip(pieces, f, strict=True) if p.high is not None]
        low, high = _extreme(lows, arb.max), _extreme(highs, arb.min)
        if low is None and high is None:
            raise UndecidableError
        if low is None or high is None:
            return a, high if low is None else low
        return (a, (low + high) / 2) if low < high else None

    def around(self, point):
        """Balls around the values from the bound on the distance to the solution."""
        machine = self.machine
        b = point.b + _bracket(machine, point) if machine.fit_intercept else arb(0)
        u = machine.decision(point.a, b)
        two = 2 * machine.ridge
        r = [
            a + s * g / two
            for a, s, g in zip(point.a, machine.s, machine.gradients(u), strict=True)
        ]
        M, C = self.convex(), self.ridges()
        v = [p + c * x for p, c, x in zip(entries(M * column(r)), C, r, strict=True)]
        rows = arb_mat([*self.rows.tolist(), *machine.K.tolist()])
        both = arb_mat([*rows.tolist(), v]).transpose()
        energy = M.solve(both).transpose().tolist()
        norms = [
            dot(p, q).upper().nonnegative_part().sqrt()
            for p, q in zip(both.transpose().tolist(), energy, strict=True)
        ]
        off, m = [norm * norms[-1] for norm in norms[:-1]], self.rows.nrows()
        moves = size(off[m:]) if machine.fit_intercept else arb(0)
        guess = self.predictions(point.a, b)
        return [_wider(x, e + moves) for x, e in zip(guess, off[:m], strict=True)]


def _wider(ball, radius):
    return ball + arb(0, radius.upper())


def _ratio(value):
    """Numerator and denominator of an exact number."""
    mantissa, exponent = value.man_exp()
    mantissa, exponent = int(mantissa), int(exponent)
    return (mantissa << exponent, 1) if exponent >= 0 else (mantissa, 1 << -exponent)


def _extreme(values, better):
    result = None
    for value in values:
        result = value if result is None else better(result, value)
    return result


def _solve_pieces(machine, labels):
    """Coefficients and intercept where every row is on the piece given."""
    pieces = [c.pieces[k] for c, k in zip(machine.curves, labels, strict=True)]
    right = column([*(-p.offset for p in pieces), 0])
    found = entries(machine.system([p.slope for p in pieces]).solve(right))
    return found[:-1], found[-1]


def _straight(machine, point, labels):
    """The labels with rows that sit on a kink moved to the straight side of it; None if not all."""
    near = (size(point.u) + 1) * arb(2) ** (-ctx.prec // 3)
    result = []
    for curve, u, k in zip(machine.curves, point.u, labels, strict=True):
        piece = curve.pieces[k]
        if piece.slope != 0:
            if piece.high is not None and abs(u - piece.high) < near:
                k += 1
            elif piece.low is not None and abs(u - piece.low) < near:
                k -= 1
            else:
                return None
        result.append(k)
    return result


def _bracket(machine, point):
    """A ball of shifts of b that surely holds every zero of sum s g(K a + b + shift)."""
    u = machine.decision(point.a, point.b)
    width = (size(u) + 1) * arb(2) ** (-ctx.prec // 2)
    for _ in range(4):
        if machine.pull(u, -width) < 0 and machine.pull(u, width) > 0:
            return arb(0, width)
        width = width * arb(2) ** (ctx.prec // 16)
    raise UnclearError
