"""Where several machines stand, and where they were at another lambda."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout.full import Target

Array = NDArray[Any]

__all__ = ["Former", "Point"]


@dataclass(frozen=True)
class Point:
    """Coefficients, intercepts and predictions, u = K a + b, of several machines as columns.

    Attributes
    ----------
    a, b, u : (n, k), (k,), (n, k) arrays
    drift : (k,) array
        How far rounding may have taken u from K a + b, in units of the root of K_ii.
    """

    a: Array
    b: Array
    u: Array
    drift: Array

    def copy(self) -> Point:
        return Point(self.a.copy(), self.b.copy(), self.u.copy(), self.drift.copy())

    def take(self, columns: Any) -> Point:
        return Point(self.a[:, columns], self.b[columns], self.u[:, columns], self.drift[columns])

    def put(self, columns: Any, part: Point) -> None:
        self.a[:, columns], self.b[columns], self.u[:, columns] = part.a, part.b, part.u
        self.drift[columns] = part.drift

    def scaled(self, ratio: Array) -> Point:
        """The machines with their functions, not their intercepts, each multiplied by a ratio."""
        u = ratio * (self.u - self.b) + self.b
        return Point(ratio * self.a, self.b.copy(), u, np.abs(ratio) * self.drift)


@dataclass(frozen=True)
class Former:
    """Leave-out solutions at another lambda, and the full solution there."""

    solution: Point
    full: Target
    ridge: Array

    def shifted(self, target: Target) -> Point:
        """A full solution, shifted as the leave-out solutions are from theirs."""
        return Point(
            target.a[:, None] + (self.solution.a - self.full.a[:, None]),
            target.b + (self.solution.b - self.full.b),
            target.u[:, None] + (self.solution.u - self.full.u[:, None]),
            self.solution.drift + self.full.drift + target.drift,
        )
