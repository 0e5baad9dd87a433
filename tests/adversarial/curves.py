"""The gradient of every loss in ball arithmetic, written from its definition.

A curve is the gradient of one row's loss, g(u), which never falls. That of a piecewise quadratic
loss is made of straight pieces; those of the log and logistic losses are smooth. ``steepest`` is
the largest slope anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from onefit.losses import (
    EpsilonInsensitive,
    EpsilonQuadratic,
    Expectile,
    Huber,
    Log,
    Logistic,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)

__all__ = ["Piece", "Pieces", "Smooth", "curves"]


@dataclass(frozen=True)
class Piece:
    """g = offset + slope u for low <= u <= high; an end that is None is infinite."""

    low: arb | None
    high: arb | None
    offset: arb
    slope: arb

    def holds(self, u):
        """Whether u is certainly on the piece."""
        return (self.low is None or u >= self.low) and (self.high is None or u <= self.high)

    def may_hold(self, u):
        """Whether some number of the ball u may be on the piece."""
        below = self.low is not None and u < self.low
        above = self.high is not None and u > self.high
        return not (below or above)

    def at(self, u):
        """The value of the straight line at u."""
        return self.offset + self.slope * u


@dataclass(frozen=True)
class Pieces:
    """A gradient of straight pieces, from left to right."""

    pieces: tuple[Piece, ...]
    steepest: arb

    def piece(self, u):
        """The number of the first piece that u, a number without radius, is on."""
        return next(k for k, piece in enumerate(self.pieces) if piece.may_hold(u))

    def gradient(self, u):
        possible = [piece.at(u) for piece in self.pieces if piece.may_hold(u)]
        hull = possible[0]
        for value in possible[1:]:
            hull = hull.union(value)
        return hull

    def slope(self, u):
        """The slope at a number without radius."""
        return self.pieces[self.piece(u)].slope


@dataclass(frozen=True)
class Smooth:
    """A gradient sign * tanh-like in u: that of the log or of the logistic loss."""

    y: arb
    loss: str

    @property
    def steepest(self):
        return arb(1) / (4 if self.loss == "log" else 2)

    def gradient(self, u):
        if self.loss == "log":
            return -self.y / (1 + (self.y * u).exp())
        return ((u - self.y) / 2).tanh()

    def slope(self, u):
        if self.loss == "log":
            return 1 / (2 + 2 * u.cosh())
        return 1 / (1 + (u - self.y).cosh())


def curves(loss, targets):
    """The gradient of each row's loss; ``targets`` are exact."""
    return [_curve(loss, y) for y in targets]


def _curve(loss, y):
    zero, two = arb(0), arb(2)
    match loss:
        case Squared() | EpsilonQuadratic(epsilon=0.0):
            return Pieces((Piece(None, None, -2 * y, two),), two)
        case Huber(threshold=b):
            low, high, edge = y - b, y + b, 2 * arb(b)
            pieces = (
                Piece(None, low, -edge, zero),
                Piece(low, high, -2 * y, two),
                Piece(high, None, edge, zero),
            )
            return Pieces(pieces, two)
        case EpsilonQuadratic(epsilon=epsilon):
            low, high = y - epsilon, y + epsilon
            pieces = (
                Piece(None, low, -2 * low, two),
                Piece(low, high, zero, zero),
                Piece(high, None, -2 * high, two),
            )
            return Pieces(pieces, two)
        case EpsilonInsensitive(epsilon=epsilon, delta=delta):
            steep, low, high = 1 / arb(delta), y - arb(epsilon), y + arb(epsilon)
            ends = low - arb(delta), high + arb(delta)
            pieces = (
                Piece(None, ends[0], arb(-1), zero),
                Piece(ends[0], low, -low * steep, steep),
                Piece(low, high, zero, zero),
                Piece(high, ends[1], -high * steep, steep),
                Piece(ends[1], None, arb(1), zero),
            )
            return Pieces(pieces, steep)
        case Quantile(level=level, delta=delta):
            level, width, steep = arb(level), arb(delta), 1 / arb(delta)
            low, high = y - level * width, y + (1 - level) * width
            pieces = (
                Piece(None, low, -level, zero),
                Piece(low, high, -y * steep, steep),
                Piece(high, None, 1 - level, zero),
            )
            return Pieces(pieces, steep)
        case Expectile(level=level):
            above, below = 4 * arb(level), 4 * (1 - arb(level))
            pieces = Piece(None, y, -above * y, above), Piece(y, None, -below * y, below)
            return Pieces(pieces, above if level > 0.5 else below)
        case SquaredHinge():
            flat, bent = Piece(y, None, zero, zero), Piece(None, y, -2 * y, two)
            return Pieces(_facing(y, (bent, flat)), two)
        case SmoothedHinge(delta=delta):
            near, far, steep = y * (1 - arb(delta)), y * (1 + arb(delta)), 1 / (2 * arb(delta))
            pieces = (
                Piece(None, near, -y, zero),
                Piece(near, far, -far * steep, steep),
                Piece(far, None, zero, zero),
            )
            return Pieces(_facing(y, pieces), steep)
        case Log():
            _facing(y, ())
            return Smooth(y, "log")
        case Logistic():
            return Smooth(y, "logistic")
    raise NotImplementedError(f"no exact gradient of {loss!r}; add it to {__name__}")


def _facing(y, pieces):
    """Pieces given for the label +1, for the label y: those of -1 are mirrored."""
    if y == 1:
        return pieces
    if y == -1:
        return tuple(Piece(p.high, p.low, p.offset, p.slope) for p in reversed(pieces))
    raise ValueError(f"a loss of labels needs -1 or +1, got {y}")
