"""Where several machines stand, and where they were at another lambda."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from onefit.heldout.full import Target

Array = NDArray[Any]

__all__ = ["Former", "Point"]


@dataclass(frozen=True)
class Point:
    """Coefficients, intercepts and predictions, u = K a + b, of several machines as columns."""

    a: Array
    b: Array
    u: Array

    def copy(self) -> Point:
        return Point(self.a.copy(), self.b.copy(), self.u.copy())

    def take(self, columns: Any) -> Point:
        return Point(self.a[:, columns], self.b[columns], self.u[:, columns])

    def put(self, columns: Any, part: Point) -> None:
        self.a[:, columns], self.b[columns], self.u[:, columns] = part.a, part.b, part.u

    def beyond(self, other: Point, part: float) -> Point:
        """On the line from another point, further by a part of the way from there."""
        a, b, u = ((self.a, other.a), (self.b, other.b), (self.u, other.u))
        return Point(*(here + part * (here - there) for here, there in (a, b, u)))

    def scaled(self, ratio: Array) -> Point:
        """The machines with their functions, not their intercepts, each multiplied by a ratio."""
        return Point(ratio * self.a, self.b.copy(), ratio * (self.u - self.b) + self.b)


@dataclass(frozen=True)
class Former:
    """Leave-out solutions at another lambda, and the full solution there."""

    solution: Point
    full: Target
    ridge: Array
    grown: float = 1.0

    def shifted(self, target: Target) -> Point:
        """A full solution, shifted as the leave-out solutions are from theirs."""
        return Point(
            target.a[:, None] + (self.solution.a - self.full.a[:, None]),
            target.b + (self.solution.b - self.full.b),
            target.u[:, None] + (self.solution.u - self.full.u[:, None]),
        )
