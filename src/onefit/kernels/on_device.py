"""Pair quantities of points on a device, by one product and a correction of close pairs.

As for NumPy arrays (onefit.kernels.distances) columns are centred, the arithmetic is float64, and
pairs that are close relative to their norms are evaluated from the differences, so distances are as
accurate. Unlike there, the centre is the mean, and close pairs are searched only in rows whose
smallest distance is small, which takes one pass over the matrix even without such pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from onefit.linalg.arrays import arrays_of, is_elsewhere

if TYPE_CHECKING:
    from onefit.kernels.distances import Geometry

__all__ = [
    "CANCELLATION_SHARE", "DEVICE_METRICS", "points_of", "refuse_grad",
    "require_representable", "squared_euclidean", "squared_norms",
]  # fmt: skip

#: pairs with ``||x - y||^2 < CANCELLATION_SHARE (||x||^2 + ||y||^2)`` are evaluated from their
#: differences
CANCELLATION_SHARE = 1e-6
#: entries of the differences of close pairs that are computed at a time
MAX_BLOCK_ELEMENTS = 2**26


def refuse_grad(values: Any, name: str) -> None:
    """Raise on a tensor that requires grad."""
    if getattr(values, "requires_grad", False):
        raise ValueError(
            f"{name} requires grad, but nothing here is differentiated by PyTorch; pass "
            f"{name}.detach()"
        )


def points_of(X: Any, name: str) -> Any:
    """`X` itself, if it is a matrix of floats."""
    refuse_grad(X, name)
    if getattr(X, "is_sparse", False):
        raise TypeError(f"{name} is a sparse tensor: pass {name}.to_dense(), or a SciPy matrix.")
    if X.ndim != 2:
        raise ValueError(
            f"{name} must be two-dimensional (rows are points), got shape {tuple(X.shape)}; "
            "use reshape(-1, 1) for a single feature."
        )
    if not str(X.dtype).endswith(("float32", "float64")):
        raise TypeError(
            f"{name} holds numbers of type {X.dtype} on a device, expected float32 or float64: "
            "convert it there, for example by X.double() or X.astype('float64')."
        )
    return X


def check_same(X: Any, Y: Any) -> None:
    """Refuse points on different devices: the caller must move one of them."""
    if is_elsewhere(X) and is_elsewhere(Y) and arrays_of(X).same(arrays_of(Y)):  # type: ignore[attr-defined]
        return
    raise ValueError(
        f"X is on {arrays_of(X)!r} and Y on {arrays_of(Y)!r}: move both to one place first."
    )


def squared_norms(X: Any) -> Any:
    """Squared Euclidean norms of the rows."""
    return arrays_of(X).lib.sum(X * X, axis=1)


def _dot(geometry: Geometry) -> Any:
    require_representable(geometry, squared_norms(geometry.X), squared_norms(geometry.Y))
    out = geometry.X @ geometry.Y.T
    return _mirrored(geometry, out) if geometry.symmetric else out


def squared_euclidean(geometry: Geometry, scale: float = 1.0) -> Any:
    """Squared distances times a scale.

    Norms and scale are part of one product, scale [-2 X, |x|^2, 1] [Y, 1, |y|^2]'.
    """
    xp, lib = geometry.arrays, geometry.arrays.lib
    Y = xp.astype(geometry.Y, np.float64)
    X = Y if geometry.symmetric else xp.astype(geometry.X, np.float64)
    centre = lib.mean(Y, axis=0)
    X, Y = X - centre, Y - centre
    x, y = squared_norms(X), squared_norms(Y)
    require_representable(geometry, x, y)
    left = lib.concat([-2.0 * X, x[:, None], lib.ones_like(x)[:, None]], axis=1)
    right = lib.concat([Y, lib.ones_like(y)[:, None], y[:, None]], axis=1)
    out = (scale * left) @ right.T
    if geometry.symmetric:
        # not a pair; set to zero below
        xp.add_diagonal(out, scale * (float(lib.max(x)) + 1.0))
    # on the scale of out, where distances may be negative numbers
    extreme = xp.host(lib.min(out, axis=1) if scale > 0 else -lib.max(out, axis=1))
    limit = abs(scale) * CANCELLATION_SHARE * (xp.host(x) + float(lib.max(y)))
    rows = np.flatnonzero(extreme <= limit)
    step = max(1, MAX_BLOCK_ELEMENTS // max(1, out.shape[1]))
    for first in range(0, rows.size, step):
        _mend(geometry, out, rows[first : first + step], x, y, scale)
    return xp.astype(_mirrored(geometry, out, 0.0) if geometry.symmetric else out, geometry.dtype)


def _mend(geometry: Geometry, out: Any, rows: Any, x: Any, y: Any, scale: float) -> None:
    """Distances of close pairs in some rows, from the points before centring."""
    xp, lib = geometry.arrays, geometry.arrays.lib
    where = xp.index(rows)  # type: ignore[attr-defined]
    limit = abs(scale) * CANCELLATION_SHARE * (lib.take(x, where, axis=0)[:, None] + y[None, :])
    i, j = lib.nonzero(float(np.sign(scale)) * lib.take(out, where, axis=0) <= limit)
    step = max(1, MAX_BLOCK_ELEMENTS // geometry.X.shape[1])
    for first in range(0, i.shape[0], step):
        some = slice(first, min(first + step, i.shape[0]))
        left, right = lib.take(where, i[some], axis=0), j[some]
        gap = xp.astype(lib.take(geometry.X, left, axis=0), np.float64)
        gap = gap - xp.astype(lib.take(geometry.Y, right, axis=0), np.float64)
        xp.put_pairs(out, left, right, scale * squared_norms(gap))  # type: ignore[attr-defined]


def _manhattan(geometry: Geometry) -> Any:
    """Sums of absolute differences."""
    xp, lib = geometry.arrays, geometry.arrays.lib
    sums = (lib.sum(lib.abs(Z), axis=1) for Z in (geometry.X, geometry.Y))
    require_representable(geometry, *sums)
    X, Y = (xp.astype(Z, np.float64) for Z in (geometry.X, geometry.Y))
    out = xp.city_block(X, Y)  # type: ignore[attr-defined]
    return xp.astype(_mirrored(geometry, out, 0.0) if geometry.symmetric else out, geometry.dtype)


def _mirrored(geometry: Geometry, out: Any, diagonal: float | None = None) -> Any:
    """A matrix that is symmetric to the last bit, by its upper triangle."""
    lib = geometry.arrays.lib
    upper = lib.triu(out, k=1)
    total = upper + upper.T
    if diagonal is None:
        total += lib.triu(lib.tril(out))
    return total


def require_representable(geometry: Geometry, *norms: Any) -> None:
    """Raise on points whose pair quantities, at most four times the largest norm, overflow.

    ``norms`` are those of X and of Y. Y is checked first, because both are centred by it.
    """
    lib, names = geometry.arrays.lib, ("X", "X" if geometry.symmetric else "Y")
    for name, own in reversed([*zip(names, norms, strict=True)]):
        if own.shape[0] and not float(lib.max(own)) < float(np.finfo(geometry.dtype).max) / 4:
            raise ValueError(
                f"{name} has NaN or infinite entries, or entries so large that distances overflow "
                f"{geometry.dtype.name}: clean or rescale {name}."
            )


DEVICE_METRICS: dict[str, Callable[[Geometry], Any]] = {
    "sqeuclidean": squared_euclidean,
    "manhattan": _manhattan,
    "dot": _dot,
}
"""What a `Geometry` of points on a device can compute."""
