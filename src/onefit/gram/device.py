"""A kernel matrix on a device: tiles as large as its memory allows, or the whole matrix.

**Precise products.** With slices K1 of the matrix and A1 of the columns (onefit.linalg.slices),

    K A = K1 A1 + K1 (A - A1) + (K - K1) A,

the first product is exact, and what is rounded in the others is 2^-16 times as small. Sums over
tiles keep their rounding errors. Rows and columns are scaled by powers of two next to the roots of
the diagonal, so that no entry exceeds 2. Three large products take less time than the many small
ones that plain sums in blocks would need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from onefit._types import Array, Indices
from onefit.gram.tiled import TiledGram
from onefit.linalg.arrays import arrays_of, dtype_name
from onefit.linalg.device import Device, DeviceMemoryError
from onefit.linalg.slices import leading, power_of_two, top_of, two_sum

__all__ = ["DeviceGram"]

#: rows of the largest and of the smallest tile
LARGEST_TILE_ROWS, SMALLEST_TILE_ROWS = 16384, 1024
#: tiles that a device holds at a time
TILES_IN_MEMORY = 5


class DeviceGram(TiledGram):
    """A symmetric matrix on a device, formed tile by tile or held.

    Tiles are as large as the free memory allows, and become smaller if it is not enough.

    Parameters
    ----------
    tile : callable
        As for :class:`TiledGram`, with arrays of the device.
    diagonal : (n,) NumPy array
    arrays : Device
    """

    sliced = True
    arrays: Device

    def __init__(self, tile: Callable[[Any, Any], Any], diagonal: Array, arrays: Device) -> None:
        super().__init__(tile, diagonal)
        self.arrays = arrays
        self._held: Any = None
        room = (arrays.room() / (TILES_IN_MEMORY * diagonal.dtype.itemsize)) ** 0.5
        rows = max(SMALLEST_TILE_ROWS, room // SMALLEST_TILE_ROWS * SMALLEST_TILE_ROWS)
        self.tile_rows = int(min(LARGEST_TILE_ROWS, rows))

    @classmethod
    def keeping(cls, matrix: Any) -> DeviceGram:
        """The operator of an array on the device."""
        arrays: Any = arrays_of(matrix)

        def tile(rows: Any, columns: Any) -> Any:
            return arrays.columns(arrays.rows(matrix, rows), rows if columns is None else columns)

        diagonal = arrays.host(arrays.lib.linalg.diagonal(matrix))
        found = cls(tile, diagonal, arrays)
        found._held = matrix
        return found

    @property
    def held(self) -> bool:
        return self._held is not None

    @property
    def matrix(self) -> Any:
        return self._held if self._held is not None else super().matrix

    def hold(self) -> DeviceGram:
        """Keep the whole matrix from now on."""
        if self._held is None:
            n = self.shape[0]
            size = f"{n * n * self.dtype.itemsize / 2**30:.3g} GiB"
            with self.arrays.within_memory(f"a kernel matrix of {n} rows, {size},"):
                self._held = self._smaller(self._whole)
        return self

    def astype(self, dtype: Any) -> DeviceGram:
        arrays, tile, diagonal = self.arrays, self.tile, self._diagonal.astype(dtype)
        other = DeviceGram(lambda *some: arrays.astype(tile(*some), dtype), diagonal, arrays)
        other._held = None if self._held is None else arrays.astype(self._held, dtype)
        return other

    def columns(self, rows: Indices) -> Any:
        if self._held is not None:
            return self.arrays.columns(self._held, rows)
        return self._smaller(partial(super().columns, rows))

    def _each(self, action: Callable[..., None], jobs: Iterable[tuple[Any, ...]]) -> None:
        """Do all jobs, one after the other: the device is parallel itself."""
        for job in jobs:
            action(*job)

    def block(self, rows: Indices, columns: Indices | None = None) -> Any:
        if self._held is None:
            return self.tile(rows, columns)
        if columns is None and rows.size == self.shape[0]:
            return self._held
        return self.arrays.submatrix(self._held, rows, rows if columns is None else columns)

    def take(self, rows: Indices) -> DeviceGram:
        """The matrix of some of the rows, held."""
        return DeviceGram.keeping(self.arrays.copy(self.block(rows)))

    def matmul(self, V: Any, precise: bool = False) -> Any:
        """K V, by slices for a precise product.

        For a NumPy array V, V is copied to the device and the product back.
        """
        arrays = self.arrays
        if isinstance(V, np.ndarray):
            return np.asfortranarray(arrays.host(self.matmul(arrays.asarray(V), precise)))
        wide = "float64" if "float64" in f"{V.dtype} {self.dtype}" else "float32"
        V = arrays.astype(V, wide)
        own = self._precise_product if precise and wide == "float64" else self._product
        return self._smaller(lambda: own(V))

    def _tiles(self, wide: Any) -> Iterator[tuple[slice, slice, Any]]:
        """Tiles on and above the diagonal, held or formed."""
        for rows, columns in self._pairs():
            tile = self._held[rows, columns] if self.held else self._tile(rows, columns)
            yield rows, columns, self.arrays.astype(tile, wide)

    def _product(self, V: Any) -> Any:
        out = self.arrays.lib.zeros_like(V)
        for rows, columns, tile in self._tiles(dtype_name(V.dtype)):
            out[rows, :] += tile @ V[columns, :]
            if rows != columns:
                out[columns, :] += tile.T @ V[rows, :]
        return out

    def _precise_product(self, V: Any) -> Any:
        xp = self.arrays
        powers = power_of_two(np.sqrt(np.maximum(self._diagonal.astype(np.float64), 0.0)))
        t, even = xp.asarray(powers), bool((powers == 1.0).all())
        A = V * t[:, None]
        A1 = leading(A, xp.asarray(top_of(xp.largest(A))))
        A2, total, lost = A - A1, xp.lib.zeros_like(V), xp.lib.zeros_like(V)
        for rows, columns, tile in self._tiles(np.float64):
            if not even:
                tile = tile / t[rows][:, None] / t[columns][None, :]
            K1 = leading(tile, float(top_of(4.0)))
            K2 = tile - K1
            for side, here, there in _sides(rows, columns):
                k1, k2 = (K1, K2) if side else (K1.T, K2.T)
                total[here, :], error = two_sum(total[here, :], k1 @ A1[there, :])
                lost[here, :] += error
                lost[here, :] += k1 @ A2[there, :]
                lost[here, :] += k2 @ A[there, :]
        total += lost
        return total * t[:, None]

    def row_sums(self, squared: bool = False) -> Array:
        arrays, K = self.arrays, self.hold().matrix
        panels = (arrays.lib.abs(K[some, :]) for some in self._slices())
        sums = (arrays.lib.sum(one * one if squared else one, axis=1) for one in panels)
        return np.concatenate([arrays.host(one) for one in sums])

    def _smaller(self, action: Callable[[], Any]) -> Any:
        """The result of an action, repeated with smaller tiles while memory is not enough."""
        while True:
            try:
                return action()
            except self.arrays.exhausted as error:
                if isinstance(error, DeviceMemoryError) or self.tile_rows <= SMALLEST_TILE_ROWS:
                    raise
            self.tile_rows = max(SMALLEST_TILE_ROWS, self.tile_rows // 2)
            self.arrays.release()


def _sides(rows: slice, columns: slice) -> list[tuple[bool, slice, slice]]:
    """A tile and, off the diagonal, its transpose: which, and from where to where."""
    return [(True, rows, columns)] + ([(False, columns, rows)] if rows != columns else [])
