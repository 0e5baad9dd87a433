"""A kernel matrix on a device: by tiles that are as large as its memory allows, or held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from onefit._types import Array, Indices
from onefit.linalg.arrays import arrays_of
from onefit.linalg.device import Device, DeviceMemoryError
from onefit.linalg.tiles import Tiles

__all__ = ["DeviceTiles"]

#: side of the largest and of the smallest tile, and terms of a sum that is to be precise
LARGE, SMALL, TERMS = 16384, 1024, 256
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

    terms = TERMS
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

    def __matmul__(self, V: Any) -> Any:
        return self.product(V)

    def product(self, V: Any, precise: bool = False) -> Any:
        """K V in the wider of both precisions, TERMS at a time if it is to be precise.

        It is where V is: arrays of NumPy come from the host and go back there.
        """
        arrays = self.arrays
        if isinstance(V, np.ndarray):
            return arrays.host(self.product(arrays.asarray(V), precise))
        wide = "float64" if "float64" in f"{V.dtype} {self.dtype}" else "float32"
        V = arrays.astype(V, wide)
        return self._smaller(lambda: self._product(V, wide, precise))

    def _product(self, V: Any, wide: str, precise: bool) -> Any:
        out = self.arrays.zeros(V.shape, wide)
        for rows, columns in self._pairs():
            tile = self.held[rows, columns] if self.held is not None else self._tile(rows, columns)
            tile = self.arrays.astype(tile, wide)
            _add(out, rows, tile, V[columns, :], precise)
            if rows != columns:
                _add(out, columns, tile.T, V[rows, :], precise)
        return out

    def row_sum(self) -> float:
        """The largest absolute row sum of the matrix that is held."""
        lib = self.arrays.lib
        panels = (lib.sum(lib.abs(self.held[some, :]), axis=1) for some in self._slices())
        return max(float(lib.max(panel)) for panel in panels)

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


def _add(out: Any, rows: slice, tile: Any, V: Any, precise: bool) -> None:
    """out[rows] += tile V."""
    width = TERMS if precise else max(1, tile.shape[1])
    for first in range(0, tile.shape[1], width):
        some = slice(first, min(first + width, tile.shape[1]))
        out[rows, :] += tile[:, some] @ V[some, :]
