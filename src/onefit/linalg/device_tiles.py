"""A kernel matrix on a device: by tiles that are as large as its memory allows, or held.

**Precise products.** With slices K1 of the matrix and A1 of the columns (onefit.linalg.slices),

    K A = K1 A1 + K1 (A - A1) + (K - K1) A,

the first product is exact, and what is rounded in the others is 2^-16 times as small. Sums over
tiles keep their rounding errors. Rows and columns are scaled by powers of two next to the roots of
the diagonal, so that no entry exceeds 2. Three large products take less time than the many small
ones that plain sums in blocks would need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onefit._types import Array, Indices
from onefit.linalg.arrays import arrays_of
from onefit.linalg.device import Device, DeviceMemoryError, dtype_name
from onefit.linalg.slices import leading, power_of_two, top_of, two_sum
from onefit.linalg.tiles import Tiles

__all__ = ["DeviceTiles"]

#: side of the largest and of the smallest tile
LARGE, SMALL = 16384, 1024
#: tiles that a device holds at a time, one of them while another is computed
TEMPORARY = 5


class DeviceTiles(Tiles):
    """A symmetric matrix on a device, by tiles that are larger, or held.

    Tiles are as large as the memory that is free allows, and become smaller where that turns out
    not to be enough.

    Parameters
    ----------
    block : callable
        As of :class:`Tiles`, with arrays of the device.
    diagonal : (n,) array of NumPy's
    arrays : Device
    """

    sliced = True
    arrays: Device

    def __init__(self, block: Callable[[Any, Any], Any], diagonal: Array, arrays: Device) -> None:
        super().__init__(block, diagonal)
        self.arrays = arrays
        room = (arrays.room() / (TEMPORARY * diagonal.dtype.itemsize)) ** 0.5
        self.side = int(min(LARGE, max(SMALL, room // SMALL * SMALL)))

    @classmethod
    def keeping(cls, held: Any) -> DeviceTiles:
        """A matrix that is there already."""
        arrays: Any = arrays_of(held)

        def block(rows: Any, columns: Any) -> Any:
            return arrays.columns(arrays.rows(held, rows), rows if columns is None else columns)

        diagonal = arrays.host(arrays.lib.linalg.diagonal(held))
        found = cls(block, diagonal, arrays)
        found.held = held
        return found

    def astype(self, dtype: Any) -> DeviceTiles:
        """The same numbers in another precision."""
        arrays, diagonal = self.arrays, self._diagonal.astype(dtype)
        other = DeviceTiles(lambda *some: arrays.astype(self.block(*some), dtype), diagonal, arrays)
        other.held = None if self.held is None else arrays.astype(self.held, dtype)
        return other

    def hold(self) -> DeviceTiles:
        """Keep the whole matrix from now on."""
        if self.held is None:
            self.held = self.whole()
        return self

    def columns(self, rows: Indices) -> Any:
        """Some of the columns, (n, m)."""
        if self.held is not None:
            return self.arrays.columns(self.held, rows)
        return self._smaller(lambda: self._columns(rows))

    def _columns(self, rows: Indices) -> Any:
        out = self.arrays.empty((self.shape[0], rows.size), self.dtype)
        for some in self._slices():
            out[some, :] = self.block(some, rows)
        return out

    def whole(self) -> Any:
        """The matrix itself."""
        n = self.shape[0]
        with self.arrays.within_memory(f"a kernel matrix of {n} rows, {self._size(n)},"):
            return self._smaller(self._whole)

    def _whole(self) -> Any:
        out = self.arrays.empty(self.shape, self.dtype)
        for rows, columns in self._pairs():
            tile = self._tile(rows, columns)
            out[rows, columns] = tile
            if rows != columns:
                out[columns, rows] = tile.T
        return out

    def part(self, rows: Indices, columns: Indices | None = None) -> Any:
        """Some rows and columns, or the symmetric part of some rows; not to be written to."""
        if self.held is None:
            return self.block(rows, columns)
        if columns is None and rows.size == self.shape[0]:
            return self.held
        return self.arrays.submatrix(self.held, rows, rows if columns is None else columns)

    def sample(self, rows: Indices) -> DeviceTiles:
        """The matrix of some of the rows, held."""
        return DeviceTiles.keeping(self.arrays.copy(self.part(rows)))

    def __matmul__(self, V: Any) -> Any:
        return self.product(V)

    def product(self, V: Any, precise: bool = False) -> Any:
        """K V in the wider of both precisions, or by slices if it is to be precise.

        It is where V is: arrays of NumPy come from the host and go back there.
        """
        arrays = self.arrays
        if isinstance(V, np.ndarray):
            return arrays.host(self.product(arrays.asarray(V), precise))
        wide = "float64" if "float64" in f"{V.dtype} {self.dtype}" else "float32"
        V = arrays.astype(V, wide)
        own = self._precise_product if precise and wide == "float64" else self._product
        return self._smaller(lambda: own(V))

    def _tiles(self, wide: Any) -> Iterator[tuple[slice, slice, Any]]:
        """Tiles on and above the diagonal, held or formed."""
        for rows, columns in self._pairs():
            tile = self.held[rows, columns] if self.held is not None else self._tile(rows, columns)
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

    def row_sum(self) -> float:
        """The largest absolute row sum of the matrix that is held."""
        return float(self.row_sums().max())

    def row_sums(self, squared: bool = False) -> Array:
        """Of every row the sum of absolute values, or of squares, of the matrix that is held."""
        arrays = self.arrays
        panels = (arrays.lib.abs(self.held[some, :]) for some in self._slices())
        sums = (arrays.lib.sum(one * one if squared else one, axis=1) for one in panels)
        return np.concatenate([arrays.host(one) for one in sums])

    def _smaller(self, action: Callable[[], Any]) -> Any:
        """What an action gives, with smaller tiles where the memory is not enough."""
        while True:
            try:
                return action()
            except self.arrays.exhausted as error:
                if isinstance(error, DeviceMemoryError) or self.side <= SMALL:
                    raise
            self.side = max(SMALL, self.side // 2)
            self.arrays.release()

    def _slices(self) -> list[slice]:
        n = self.shape[0]
        return [slice(i, min(i + self.side, n)) for i in range(0, n, self.side)]

    def _size(self, n: int) -> str:
        return f"{n * n * self.dtype.itemsize / 2**30:.3g} GiB"


def _sides(rows: slice, columns: slice) -> list[tuple[bool, slice, slice]]:
    """A tile and, off the diagonal, its transpose: which, and from where to where."""
    return [(True, rows, columns)] + ([(False, columns, rows)] if rows != columns else [])
