"""A kernel that is a table: the points are row numbers.

``kernel="precomputed"`` is one matrix that replaces X, so it cannot be part of a sum. Here X is a
column of row numbers, and any number of tables can be combined, split and searched.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit.kernels.base import Kernel
from onefit.kernels.distances import Array, Geometry, Points, as_points, is_sparse
from onefit.kernels.precomputed import check_precomputed
from onefit.linalg import arrays_of, to_host

__all__ = ["Lookup"]


@dataclass(frozen=True, eq=False)
class Lookup(Kernel):
    """``K(i, j) = table[i, j]`` for points that are row numbers.

    Fit with ``X = rows[:, None]``, where ``rows`` are the numbers of the training rows, and predict
    with the numbers of other rows: the table has all of them.

    Parameters
    ----------
    table : (N, N) array
        A kernel matrix: symmetric and positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from onefit import KernelRegressor
    >>> from onefit.kernels import Gaussian, Lookup
    >>> Z = np.linspace(0.0, 1.0, 6)[:, None]
    >>> rows = np.arange(6)[:, None]
    >>> model = KernelRegressor(kernel=Lookup(Gaussian(1.0)(Z))).fit(rows[:4], Z[:4, 0])
    >>> model.predict(rows[4:]).shape
    (2,)
    """

    definite = False

    table: Array = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", check_precomputed(self.table))

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        rows = self._rows(geometry.X)
        columns = rows if geometry.symmetric else self._rows(geometry.Y)
        out = geometry.output(out)
        out[...] = geometry.arrays.asarray(self.table[np.ix_(rows, columns)])
        return out

    def diag(self, X: Points) -> Array:
        return arrays_of(X).asarray(self.table.diagonal()[self._rows(X)])  # type: ignore[no-any-return]

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        """A table has no parameters."""
        return {}

    def _rows(self, X: Points) -> Array:
        points = to_host(as_points(X, "X"))
        numbers = np.ravel(points.toarray() if is_sparse(points) else points)
        rows, size = numbers.astype(np.intp), len(self.table)
        if points.shape[1] != 1 or (rows != numbers).any():
            raise ValueError(
                "a Lookup kernel takes row numbers: X must have one column of whole numbers, got "
                f"shape {points.shape}"
            )
        if rows.size and (rows.min() < 0 or rows.max() >= size):
            raise ValueError(
                f"X holds row number {rows.min() if rows.min() < 0 else rows.max()}, but the table "
                f"has {size} rows, counted from 0"
            )
        return rows
