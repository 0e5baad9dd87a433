"""Newton's method at any precision: a candidate for the solution, with no promise attached.

Coefficients a and intercept b of u = K a + b solve

    2 Lambda a_i / s_i + g_i(u_i) = 0,      sum_i a_i = 0 with an intercept.

Each step linearises g and walks to the minimum along its ray. Where all rows are on straight
pieces, 2^-99 of the steepest slope stands in, so that the step exists. For a smooth loss b alone
then moves to its own minimum, which spares many small steps through a stretch nearly flat in b.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, arb_mat, ctx

from adversarial.balls import column, dot, entries, midpoints, size, total
from adversarial.curves import Pieces

__all__ = ["Machine", "Point", "approach"]

MAX_STEPS = 120


@dataclass(frozen=True)
class Machine:
    """The training part of a problem in exact numbers."""

    K: arb_mat
    s: list
    ridge: arb
    curves: list
    fit_intercept: bool

    @property
    def n(self):
        return len(self.s)

    def decision(self, a, b):
        """u = K a + b."""
        return [f + b for f in entries(self.K * column(a))]

    def gradients(self, u):
        return [curve.gradient(x) for curve, x in zip(self.curves, u, strict=True)]

    def pull(self, u, shift=0):
        """sum_i s_i g_i(u_i + shift), which never falls in the shift."""
        return dot(self.s, self.gradients([x + shift for x in u]))

    def system(self, slopes):
        """The matrix of 2 Lambda a / s + slopes (K a + b) and, below it, of sum a (or of b)."""
        n, K = self.n, self.K
        both = [[slopes[i] * K[i, j] for j in range(n)] + [slopes[i]] for i in range(n)]
        for i in range(n):
            both[i][i] += 2 * self.ridge / self.s[i]
        last = [1] * n + [0] if self.fit_intercept else [0] * n + [1]
        return arb_mat([*both, last])


@dataclass
class Point:
    """Coefficients, intercept and predictions, none of them with a radius."""

    a: list
    b: arb
    u: list

    @classmethod
    def at(cls, machine, a, b):
        return cls(a, b, midpoints(machine.decision(a, b)))


def approach(machine, point):
    """Newton steps until they are of rounding size."""
    piecewise = all(isinstance(curve, Pieces) for curve in machine.curves)
    last = None
    for k in range(MAX_STEPS):
        move = _step(machine, point)
        if move is None or (not piecewise and k % 2 == 0 and size(move.u) > 1):
            move = _step(machine, point, tame=True)
        if piecewise and _same_pieces(machine, point, move):
            return _moved(machine, point, move, arb(1))
        length, reach = size(move.u), size(point.u) + 1
        if length <= reach * arb(2) ** (-ctx.prec):
            return point
        settled = length <= reach * arb(2) ** (-ctx.prec // 4)
        if settled and last is not None and length * 2 >= last:
            return point
        last = length
        t = arb(1) if settled and not piecewise else _walk(machine, point, move)
        point = _moved(machine, point, move, t)
        if machine.fit_intercept and not piecewise and not settled:
            point = _slide(machine, point)
    return point


def _step(machine, point, tame=False):
    """The way to the solution of the linearised problem; None where its system is singular."""
    g = midpoints(machine.gradients(point.u))
    slopes = [curve.slope(x).mid() for curve, x in zip(machine.curves, point.u, strict=True)]
    if all(slope == 0 for slope in slopes):
        slopes = [(curve.steepest * arb(2) ** -99).mid() for curve in machine.curves]
    if tame and not isinstance(machine.curves[0], Pieces):
        slopes = _tamed(machine, point, g, slopes)
    rest = [
        -(2 * machine.ridge * a / s + gradient).mid()
        for a, s, gradient in zip(point.a, machine.s, g, strict=True)
    ]
    rest.append(-total(point.a).mid() if machine.fit_intercept else arb(0))
    try:
        found = entries(machine.system(slopes).solve(column(rest), algorithm="approx"))
    except ZeroDivisionError:
        if tame:
            raise
        return None
    da, db = midpoints(found[:-1]), found[-1].mid()
    return Point.at(machine, da, db)


def _tamed(machine, point, g, slopes):
    """Slopes of a smooth loss, raised in its tails where the linear model would leap too far."""
    tamed = []
    for curve, x, gradient, slope in zip(machine.curves, point.u, g, slopes, strict=True):
        floor = abs(gradient) / (16 * (1 + abs(x - curve.y)))
        tamed.append(floor.mid() if slope < floor else slope)
    return tamed


def _same_pieces(machine, point, move):
    """Whether a full step leaves every row on its piece."""
    return all(
        curve.piece(x) == curve.piece((x + dx).mid())
        for curve, x, dx in zip(machine.curves, point.u, move.u, strict=True)
    )


def _moved(machine, point, move, t):
    a = [(x + t * dx).mid() for x, dx in zip(point.a, move.a, strict=True)]
    return Point.at(machine, a, (point.b + t * move.b).mid())


def _walk(machine, point, move):
    """The step length at the minimum along the ray."""
    f = [x - move.b for x in move.u]
    linear = 2 * machine.ridge * dot(point.a, f)
    quadratic = 2 * machine.ridge * dot(move.a, f)
    weights = [s * dx for s, dx in zip(machine.s, move.u, strict=True)]

    def slope(t):
        g = machine.gradients([(x + t * dx).mid() for x, dx in zip(point.u, move.u, strict=True)])
        return (dot(weights, g) + linear + t * quadratic).mid()

    start = slope(arb(0))
    if start >= 0:
        return arb(1)
    if abs(slope(arb(1))) <= -start / 4:
        return arb(1)
    return _root(slope, arb(0), start, arb(1), abs(start) / 1000)


def _slide(machine, point):
    """Move b alone to its minimum."""
    start = machine.pull(point.u).mid()
    level = total(abs(s * g) for s, g in zip(machine.s, machine.gradients(point.u), strict=True))
    if abs(start) <= level * arb(2) ** (-ctx.prec // 2):
        return point
    sign = -1 if start > 0 else 1

    def pull(t):
        return (sign * machine.pull(point.u, sign * t)).mid()

    t = _root(pull, arb(0), sign * start, arb(1), abs(start) / 1000)
    return Point.at(machine, point.a, (point.b + sign * t).mid())


def _root(rising, low, at_low, high, tolerance):
    """Where a rising function, negative at ``low``, is zero, roughly: bracket, then close in."""
    at_high = rising(high)
    for _ in range(200):
        if at_high >= 0:
            break
        low, at_low, high = high, at_high, 4 * high
        at_high = rising(high)
    for k in range(80):
        if abs(at_high) <= tolerance:
            return high
        if abs(at_low) <= tolerance and low > 0:
            return low
        middle = _between(low, at_low, high, at_high, k)
        value = rising(middle)
        if value >= 0:
            high, at_high = middle, value
        else:
            low, at_low = middle, value
    return high


def _between(low, at_low, high, at_high, k):
    """The chord's zero and the middle by turns; the middle of logarithms in a wide bracket."""
    if k % 2 == 0:
        return ((low * at_high - high * at_low) / (at_high - at_low)).mid()
    if low > 0 and high > 16 * low:
        return (low * high).sqrt().mid()
    return ((low + high) / 2).mid() if low > 0 else (high / 16).mid()
