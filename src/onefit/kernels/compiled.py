"""Manhattan distances compiled by Numba, where it is installed (``pip install onefit[fast]``).

Sums of absolute differences are not a matrix product, so the loop itself must be fast. For a tile
of rows, one feature after the other is subtracted from a contiguous block of columns, which the
compiler turns into vector instructions, and the sums stay in cache until the tile is complete.
Tiles run in threads. Of one set of points only the tiles on and above the diagonal are computed,
and each is written twice, so that the result is exactly symmetric.

Sums run over the features in their order, in float64, as SciPy's ``cdist`` does.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from onefit.linalg.threads import blas_threads, each

__all__ = ["manhattan", "pays"]

Array = npt.NDArray[Any]

#: rows and columns of a tile: its sums (1 MiB at most) stay in the cache of a core
TILE_ROWS, TILE_COLUMNS = 64, 1024
#: entries of a matrix below which SciPy takes less time than the import of Numba
MIN_ELEMENTS = 2**18


def pays(shape: tuple[int, int]) -> bool:
    """Whether Numba works here, and the matrix is so large that importing it pays off."""
    return shape[0] * shape[1] >= MIN_ELEMENTS and _works()


@cache
def _works() -> bool:
    try:
        import numba  # noqa: F401
    except Exception:  # not installed, or not made for the other packages that are
        return False
    return True


def manhattan(X: Array, Y: Array | None, out: Array) -> Array:
    """Write the Manhattan distances of the rows of `X` and of `Y` (None: of `X`) into `out`.

    Parameters
    ----------
    X : array of shape (n, d)
    Y : array of shape (m, d) or None
    out : array of shape (n, m)

    Returns
    -------
    array
        `out`.
    """
    tile = _compiled()
    left = np.ascontiguousarray(X, dtype=np.float64)
    right = left if Y is None else Y
    columns = np.ascontiguousarray(np.asarray(right, dtype=np.float64).T)
    n, m = out.shape
    tiles = [
        (left, columns, out, row, min(row + TILE_ROWS, n), first, min(first + TILE_COLUMNS, m),
         Y is None)
        for row in range(0, n, TILE_ROWS)
        for first in range(row if Y is None else 0, m, TILE_COLUMNS)
    ]  # fmt: skip
    if len(tiles) > 1 and blas_threads() > 1:
        each(tile, tiles)
    else:
        for one in tiles:
            tile(*one)
    return out


@cache
def _compiled() -> Any:
    """The function that computes a tile, compiled at its first call and kept on disk."""
    import numba

    try:
        return numba.njit(cache=True, nogil=True)(_tile)
    except RuntimeError:  # no folder to keep it in
        return numba.njit(nogil=True)(_tile)


def _tile(
    X: Array, Yt: Array, out: Array, row: int, row_end: int, first: int, end: int, mirror: bool
) -> None:  # pragma: no cover - compiled
    """Distances of some rows of `X` and some columns of `Yt`, and of their transpose."""
    sums = np.empty(end - first)
    for i in range(row, row_end):
        sums[:] = 0.0
        for f in range(X.shape[1]):
            x = X[i, f]
            y = Yt[f, first:end]
            for j in range(end - first):
                sums[j] += abs(x - y[j])
        if not mirror:
            for j in range(end - first):
                out[i, first + j] = sums[j]
            continue
        for j in range(max(first, i), end):
            out[i, j] = sums[j - first]
            out[j, i] = sums[j - first]
