"""Pair quantities of two sets of points, computed once for all kernel parameters.

A kernel of this package is a cheap elementwise map of one of

========================  =====================================
``"sqeuclidean"``         ``||x - y||_2^2``
``"euclidean"``           its root, taken on the fly
``"manhattan"``           ``||x - y||_1``
``"dot"``                 ``<x, y>``
========================  =====================================

so a search over bandwidths has the ``O(n m d)`` cost once.

Squared distances come from one product, ``||x||^2 + ||y||^2 - 2 <x, y>``, whose rounding error is
a few ``eps (||x||^2 + ||y||^2)`` [1]_: harmless for far points, fatal for close ones. Three
measures keep every distance accurate relative to itself: dense columns are centred at their median
(distances do not change, norms shrink), the arithmetic is float64 for float32 data too, and the few
pairs that are close relative to their norms are evaluated again from the differences. Duplicate
rows therefore have distance zero exactly.

References
----------
.. [1] N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., SIAM, 2002, ch. 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from onefit.kernels import compiled, on_device
from onefit.kernels.on_device import CANCELLATION_SHARE, require_representable
from onefit.kernels.rows import is_objects, is_table, number_type
from onefit.linalg.arrays import HOST, Arrays, arrays_of, is_elsewhere

Array = npt.NDArray[Any]
Points = Any
"""A dense (n, d) array or a CSR matrix."""

CENTRE_SAMPLE_ROWS = 256
"""Points whose median or mean is near enough to that of all to be subtracted from all."""

MAX_DEVICE_COPY_ELEMENTS = 2**28
"""Entries of a matrix on a device, up to which a second one beside it has room: a large tile."""

MAX_SQUARED_NORM = 1e300
"""Above this, distances are scaled after they are computed, because scaled norms may overflow."""


class Geometry:
    """The pair quantities of the rows of `X` and of `Y`, each computed at most once.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        float32 and float64 are kept, anything else becomes float64.
    Y : array or sparse matrix of shape (m, d), default=None
        ``None`` means `X` itself; the results are then exactly symmetric.
    keep : bool, default=True
        Whether to cache. With ``False`` a kernel matrix overwrites its distances, so that a single
        evaluation needs one n x m array instead of two.

    Attributes
    ----------
    X, Y : the points, as arrays or CSR (`Y` is `X` when none was given)
    shape : (n, m)
    dtype : float32 when all points are, else float64
    vectors : whether the points are vectors of numbers; others have no pair quantities
    arrays : Arrays
        Where the points are, and so the results.
    """

    def __init__(self, X: Points, Y: Points | None = None, *, keep: bool = True) -> None:
        self.X = as_points(X, "X")
        self.symmetric = Y is None or Y is X
        self.Y = self.X if self.symmetric else as_points(Y, "Y")
        self.keep = keep
        self._cache: dict[str, Array] = {}
        self.shape: tuple[int, int] = (self.X.shape[0], self.Y.shape[0])
        self.dtype = np.result_type(number_type(self.X), number_type(self.Y))
        self.vectors = not (is_objects(self.X) or is_objects(self.Y))
        self.arrays = arrays_of(self.X)
        if not self.vectors:
            return
        if self.X.shape[1] != self.Y.shape[1]:
            raise ValueError(
                f"X has {self.X.shape[1]} columns but Y has {self.Y.shape[1]}: "
                "both must hold the same features."
            )
        if not (self.arrays.on_host and arrays_of(self.Y).on_host):
            on_device.check_same(self.X, self.Y)
        elif is_sparse(self.X) != is_sparse(self.Y):
            self.X, self.Y = sp.csr_array(self.X), sp.csr_array(self.Y)
        self.X, self.Y = (self.arrays.astype(Z, self.dtype) for Z in (self.X, self.Y))

    @property
    def nbytes(self) -> int:
        """Bytes held by the cached pair quantities."""
        return sum(pairs.nbytes for pairs in self._cache.values())

    def pairs(self, metric: str) -> Array:
        """The (n, m) array of `metric`: the cache itself, read-only, or a new array if not kept."""
        if metric not in HOST_METRICS:
            raise ValueError(f"metric must be one of {sorted(HOST_METRICS)}, got {metric!r}.")
        if not self.vectors:
            raise TypeError(
                f"the points are not vectors of numbers, between which the kernel's {metric!r} is "
                "computed; use a function of your own as kernel."
            )
        if metric in self._cache:
            return self._cache[metric]
        here = HOST_METRICS if self.arrays.on_host else on_device.DEVICE_METRICS
        with np.errstate(over="ignore", invalid="ignore"):  # found by require_representable
            pairs = here[metric](self)
        if self.keep:
            if self.arrays.on_host:
                pairs.setflags(write=False)
            self._cache[metric] = pairs
        return pairs

    def take(
        self,
        metric: str,
        out: Array | None = None,
        scale: float = 1.0,
        function: Callable[[Any, Any], Any] | None = None,
    ) -> Array:
        """Write ``function(scale * metric)`` into `out` (a new array by default) and return it.

        ``function(t, lib)`` is elementwise, the identity by default; `t` is a block of rows and
        `lib` the namespace of its array library.
        """
        lib, at_once = self.arrays.lib, metric == "sqeuclidean" and not self.keep and self.vectors
        largest = float(np.finfo(self.dtype).max)
        scale = min(max(scale, -largest), largest)
        with np.errstate(over="ignore", invalid="ignore"):
            # a symmetric matrix is rounded like one whose distances are cached
            if at_once and self.arrays.on_host and not self.symmetric and 0 < abs(scale) < 1e100:
                pairs, scale = _squared_euclidean(self, scale, out), 1.0
            elif at_once and out is None and not self.arrays.on_host and 0 < abs(scale) < 1e100:
                pairs, scale = on_device.squared_euclidean(self, scale), 1.0
            else:
                pairs = self.pairs(_stored(metric))
                self._require_digits(pairs, metric, scale)

            def values(t: Array) -> Array:
                t = lib.sqrt(t) if metric == "euclidean" else t
                t = t if scale == 1.0 else scale * t
                return t if function is None else function(t, lib)

            fresh, n = out is None and not self.keep, self.shape[0] * self.shape[1]
            if fresh and not self.arrays.on_host and n <= MAX_DEVICE_COPY_ELEMENTS:
                return values(pairs)
            out = pairs if fresh else self.output(out)
            for rows in row_blocks(self.shape, self.arrays):
                out[rows, :] = values(pairs[rows, :])
        return out

    def _require_digits(self, pairs: Array, metric: str, scale: float) -> None:
        """Raise on rows whose distances all vanish, although their scale would tell them apart."""
        limits = np.finfo(self.dtype)
        smallest = float(limits.tiny) ** (0.5 if metric == "euclidean" else 1.0)
        if abs(scale) * smallest < float(limits.eps) or 0 in self.shape:
            return
        if float(self.arrays.lib.max(pairs)) >= float(limits.tiny):
            return
        rows = self.X.toarray() if is_sparse(self.X) else self.arrays.host(self.X)
        if (rows != rows[0]).any():
            wider = " or pass it as float64" if self.dtype == np.float32 else ""
            raise ValueError(
                f"the rows of X differ so little that their distances vanish in {self.dtype.name}: "
                f"rescale X{wider}."
            )

    def output(self, out: Array | None = None) -> Array:
        """`out` after a check of its shape, or a new uninitialised array."""
        if out is None:
            return self.arrays.empty(self.shape, self.dtype)  # type: ignore[no-any-return]
        if out.shape != self.shape:
            raise ValueError(f"out has shape {out.shape}, but the matrix has shape {self.shape}.")
        return out

    def drop(self, metric: str) -> None:
        """Remove a metric from the cache, to free its n x m array."""
        self._cache.pop(_stored(metric), None)


def is_sparse(X: Points) -> bool:
    """Whether `X` is a SciPy sparse matrix or array."""
    return bool(sp.issparse(X))


def as_points(X: Points, name: str) -> Points:
    """`X` as a float array or canonical CSR, copied only when its type must change.

    An array of objects stays as it is, unless it is a table of numbers.
    """
    if is_elsewhere(X):
        return on_device.points_of(X, name)
    if is_sparse(X):
        points = X.tocsr()
        if not points.has_canonical_format:
            points = points.copy()
            points.sum_duplicates()
    else:
        points = np.asarray(X)
        if is_objects(points) and not is_table(points):
            return points
        if points.ndim != 2:
            raise ValueError(
                f"{name} must be two-dimensional (rows are points), got shape {points.shape}; "
                "use reshape(-1, 1) for a single feature."
            )
    if points.dtype in (np.float32, np.float64):
        return points
    return points.astype(np.float64)


def ones_of(X: Points) -> Array:
    """A one for each of some points, on their device."""
    return arrays_of(X).zeros((X.shape[0],), number_type(X)) + 1.0  # type: ignore[no-any-return]


def row_blocks(shape: tuple[int, ...], arrays: Arrays = HOST) -> Iterator[slice]:
    """Slices of rows, small enough for temporary arrays."""
    size = int(np.clip(2**18 // max(shape[1], 1), 16, 256))
    if not arrays.on_host:
        size = max(1, 2**26 // max(shape[1], 1))
    for start in range(0, shape[0], size):
        yield slice(start, min(start + size, shape[0]))


def squared_norms(X: Points) -> Array:
    """Squared Euclidean norms of the rows, in the dtype of `X`."""
    if is_sparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    if is_elsewhere(X):
        return on_device.squared_norms(X)  # type: ignore[no-any-return]
    norms: Array = np.einsum("ij,ij->i", X, X)
    return norms


def _stored(metric: str) -> str:
    return "sqeuclidean" if metric == "euclidean" else metric


def _dot(geometry: Geometry) -> Array:
    X, Y = geometry.X, geometry.Y
    require_representable(geometry, squared_norms(X), squared_norms(Y))
    out = geometry.output()
    if not is_sparse(X):
        return np.matmul(X, Y.T, out=out)
    transposed = Y.T.tocsr()
    for rows in row_blocks(out.shape):
        out[rows] = (X[rows] @ transposed).toarray()
    return out


def _manhattan(geometry: Geometry) -> Array:
    X, Y = geometry.X, geometry.Y
    require_representable(geometry, *(np.asarray(abs(Z).sum(axis=1)) for Z in (X, Y)))
    if is_sparse(X):
        from sklearn.metrics.pairwise import manhattan_distances

        return _distances(geometry, lambda rows, cols: manhattan_distances(X[rows], Y[cols]))
    if compiled.pays(geometry.shape):
        return compiled.manhattan(X, None if geometry.symmetric else Y, geometry.output())
    return _distances(geometry, lambda rows, cols: cdist(X[rows], Y[cols], "cityblock"))


def _squared_euclidean(geometry: Geometry, scale: float = 1.0, out: Array | None = None) -> Array:
    """Squared distances in float64 by row blocks, times a scale, with close pairs corrected.

    Norms and scale are part of one product, scale [-2 X, |x|^2, 1] [Y, 1, |y|^2]'.
    """
    X, Y = _centred(geometry)
    x, y = squared_norms(X), squared_norms(Y)
    require_representable(geometry, x, y)
    farthest = float(y.max(initial=0.0))
    inside = (
        scale if abs(scale) * max(farthest, float(x.max(initial=0.0))) < MAX_SQUARED_NORM else 1.0
    )
    product = _product_of(X, Y, x, y, inside)
    sign, unit = float(np.sign(inside)), abs(inside) * CANCELLATION_SHARE

    def block(rows: slice, columns: slice) -> Array:
        squared = product(rows, columns)
        if geometry.symmetric:
            np.fill_diagonal(squared, sign * np.inf)  # not a pair; zero in the end
        nearest = squared.min(axis=1) if sign > 0 else -squared.max(axis=1)
        for i in np.flatnonzero(nearest <= unit * (x[rows] + farthest)):
            row = rows.start + i
            close = sign * squared[i] <= unit * (x[row] + y[columns])
            if close.any():
                again = _squared_differences(geometry, row, columns, close)
                squared[i, close] = inside * again
        return squared

    out = _distances(geometry, block, out)
    return out if inside == scale else np.multiply(out, scale, out=out)


def _product_of(
    X: Points, Y: Points, x: Array, y: Array, scale: float
) -> Callable[[slice, slice], Array]:
    """A function for scale (|x|^2 + |y|^2 - 2 x'y) of some rows and columns."""
    if is_sparse(X):

        def sparse(rows: slice, columns: slice) -> Array:
            squared: Array = (X[rows] @ Y[columns].T).toarray()
            squared *= -2.0 * scale
            squared += scale * (x[rows, None] + y[None, columns])
            return squared

        return sparse
    left = scale * np.column_stack([-2.0 * X, x, np.ones_like(x)])
    right = np.column_stack([Y, np.ones_like(y), y])
    return lambda rows, columns: left[rows] @ right[columns].T


def _centred(geometry: Geometry) -> tuple[Points, Points]:
    """Both sets of points in float64, minus a median of `Y` (sparse points are unchanged)."""
    Y = geometry.Y.astype(np.float64)
    X = Y if geometry.symmetric else geometry.X.astype(np.float64)
    if is_sparse(Y):
        return X, Y
    centre = np.median(Y[:: 1 + Y.shape[0] // CENTRE_SAMPLE_ROWS], axis=0)
    Y -= centre
    return (Y if geometry.symmetric else X - centre), Y


def _squared_differences(geometry: Geometry, row: int, columns: slice, close: Array) -> Array:
    """Squared distances of one point to the close ones, from the points before centring."""
    y = geometry.Y[columns][close].astype(np.float64)
    x = geometry.X[[row]].astype(np.float64)
    if is_sparse(x):
        x = x[np.zeros(y.shape[0], dtype=int)]
    return squared_norms(x - y)


def _distances(
    geometry: Geometry, block: Callable[[slice, slice], Array], out: Array | None = None
) -> Array:
    """Fill a distance matrix by blocks of rows; if symmetric, by the upper triangle alone."""
    out = geometry.output(out)
    for rows in row_blocks(out.shape):
        if not geometry.symmetric:
            out[rows] = block(rows, slice(None))
            continue
        values = block(rows, slice(rows.start, None))
        size = rows.stop - rows.start
        upper = np.triu(values[:, :size], 1)
        np.add(upper, upper.T, out=values[:, :size])
        out[rows, rows.start :] = values
        out[rows.stop :, rows] = values[:, size:].T
    return out


HOST_METRICS: dict[str, Callable[[Geometry], Array]] = {
    "sqeuclidean": _squared_euclidean,
    "manhattan": _manhattan,
    "dot": _dot,
}
"""What a `Geometry` can cache, and how."""
