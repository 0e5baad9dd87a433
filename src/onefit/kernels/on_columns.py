"""A kernel of some of the columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onefit.kernels.base import Composite, Kernel
from onefit.kernels.distances import Array, Geometry, Points, as_points
from onefit.linalg import arrays_of

__all__ = ["OnColumns"]


@dataclass(frozen=True)
class OnColumns(Composite):
    """``K(x, y) = kernel(x[columns], y[columns])``.

    Parameters
    ----------
    kernel : Kernel
    columns : sequence of int
        Numbers of the columns, none twice.
    """

    #: none that other kernels share, as these columns have distances of their own
    metrics = ()
    vectors = True

    kernel: Kernel
    columns: Sequence[int]

    def __post_init__(self) -> None:
        columns = tuple(map(int, self.columns))
        if not columns or min(columns) < 0 or len(set(columns)) < len(columns):
            raise ValueError(
                f"columns must be numbers of columns from 0 on, none twice, got {self.columns!r}"
            )
        object.__setattr__(self, "columns", columns)

    @property
    def parts(self) -> Sequence[Kernel]:
        return (self.kernel,)

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        Y = None if geometry.symmetric else self._of(geometry.Y)
        return self.kernel.matrix(Geometry(self._of(geometry.X), Y, keep=False), out)

    def diag(self, X: Points) -> Array:
        return self.kernel.diag(self._of(X))

    def separation(self, X: Points, Y: Points) -> Array:
        return self.kernel.separation(self._of(X), self._of(Y))

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        return self.kernel.pullback(self._of(X), left, right)

    def _of(self, X: Points) -> Points:
        points = as_points(X, "X")
        if max(self.columns) >= points.shape[1]:
            raise ValueError(
                f"the kernel looks at column {max(self.columns)}, but X has {points.shape[1]} "
                "columns, counted from 0"
            )
        return arrays_of(points).columns(points, list(self.columns))
