"""K V without K: a kernel matrix whose tiles are computed, used and discarded.

An iteration needs only products with a kernel matrix. If K does not fit into memory, it is formed
again for each product, tile by tile on and above the diagonal, with one thread per core; everything
else needs memory for n rows times the columns of V.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from onefit._types import Array, Indices
from onefit.gram.base import Gram
from onefit.gram.dense import DenseGram
from onefit.linalg.threads import each

__all__ = ["TILE_ROWS", "TiledGram"]

#: rows and columns of a tile
TILE_ROWS = 1024


class TiledGram(Gram):
    """A symmetric matrix given by a function that computes blocks of it.

    Parameters
    ----------
    tile : callable
        ``tile(rows, columns)`` computes that block, for slices and index arrays;
        ``tile(rows, None)`` the symmetric block of these rows.
    diagonal : (n,) array
    """

    terms = tile_rows = TILE_ROWS

    def __init__(self, tile: Callable[[Any, Any], Any], diagonal: Array) -> None:
        self.tile, self._diagonal = tile, diagonal

    @property
    def diagonal(self) -> Array:
        return self._diagonal

    @property
    def held(self) -> bool:
        return False

    @property
    def matrix(self) -> Any:
        raise RuntimeError("the kernel matrix is not in memory; hold() forms it")

    def hold(self) -> Gram:
        """The whole matrix, formed once."""
        return DenseGram(self._whole())

    def _whole(self) -> Any:
        out = self.arrays.empty(self.shape, self.dtype)

        def fill(rows: slice, columns: slice) -> None:
            tile = self._tile(rows, columns)
            out[rows, columns] = tile
            if rows != columns:
                out[columns, rows] = tile.T

        self._each(fill, self._pairs())
        return out

    def _each(self, action: Callable[..., None], jobs: Iterable[tuple[Any, ...]]) -> None:
        """Do all jobs, in threads."""
        each(action, jobs)

    def matmul(self, V: Array, precise: bool = False) -> Array:
        """K V; a tile's terms are summed up before their sums are, which is precise.

        The order of the sums is that of the tiles, however many threads compute them.
        """
        out = np.zeros(V.shape, dtype=np.result_type(self.dtype, V.dtype))
        if not V.any():
            return out

        def products(rows: slice, columns: slice) -> list[tuple[slice, Array]]:
            tile = self._tile(rows, columns).astype(out.dtype, copy=False)
            found = [(rows, tile @ V[columns])]
            return found if rows == columns else [*found, (columns, tile.T @ V[rows])]

        def add(found: list[tuple[slice, Array]]) -> None:
            for rows, product in found:
                out[rows] += product

        each(products, self._pairs(), add)
        return out

    def block(self, rows: Indices, columns: Indices | None = None) -> Any:
        return self.tile(rows, columns)

    def columns(self, rows: Indices) -> Any:
        out = self.arrays.empty((self.shape[0], rows.size), self.dtype)

        def fill(some: slice) -> None:
            out[some, :] = self.tile(some, rows)

        self._each(fill, [(some,) for some in self._slices()])
        return out

    def astype(self, dtype: Any) -> TiledGram:
        tile, diagonal = self.tile, self._diagonal
        return TiledGram(lambda *some: tile(*some).astype(dtype), diagonal.astype(dtype))

    def take(self, rows: Indices) -> Gram:
        return DenseGram(self.tile(rows, None))

    def _tile(self, rows: slice, columns: slice) -> Any:
        return self.tile(rows, None if rows == columns else columns)

    def _slices(self) -> list[slice]:
        n = self.shape[0]
        return [slice(i, min(i + self.tile_rows, n)) for i in range(0, n, self.tile_rows)]

    def _pairs(self) -> Iterator[tuple[slice, slice]]:
        """Tiles on and above the diagonal."""
        slices = self._slices()
        return ((rows, columns) for i, rows in enumerate(slices) for columns in slices[i:])
