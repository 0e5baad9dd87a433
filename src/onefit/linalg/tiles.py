"""K V without K: a symmetric matrix whose tiles are computed, used and forgotten.

An iteration needs nothing of a kernel matrix but its products. Where K is too large to be held it
is formed anew for each of them, tile by tile on and above the diagonal, with one thread per core;
everything else takes n rows times the columns of V.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from onefit._types import Array, Indices
from onefit.linalg.arrays import HOST, Arrays
from onefit.linalg.device import Device, DeviceMemoryError

__all__ = [
    "BLOCK", "SIDE", "DeviceTiles", "Tiles", "blas_threads", "each", "in_flight", "product",
    "take_columns",
]  # fmt: skip

Result = TypeVar("Result")

#: rows and columns of a tile, and terms that a product adds up before it adds up their sums
SIDE, BLOCK = 1024, 256
#: the same on a device: the largest and the smallest tile, and terms of a sum that is to be precise
LARGE, SMALL, TERMS = 16384, 1024, 256
#: tiles that a device holds at a time, one of them while another is computed
TEMPORARY = 5
#: numbers that are read between two looks at the signals of the user
PANEL = 2**27
_LIMITING = Lock()


class Tiles:
    """A symmetric matrix given by its tiles.

    Parameters
    ----------
    block : callable
        ``block(rows, columns)`` is that part of the matrix, for slices and index arrays;
        ``block(rows, None)`` the symmetric part of these rows.
    diagonal : (n,) array

    Attributes
    ----------
    arrays : Arrays
        Where the tiles are computed.
    held : whether the matrix is kept after all
    terms : int
        Terms of a product that are added up before their sums are.
    """

    arrays: Arrays = HOST
    terms = SIDE
    held: Any = None

    def __init__(self, block: Callable[[Any, Any], Array], diagonal: Array) -> None:
        self.block, self._diagonal = block, diagonal

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        n = int(self._diagonal.shape[0])
        return n, n

    @property
    def dtype(self) -> Any:
        """That of the tiles."""
        return self._diagonal.dtype

    def diagonal(self) -> Array:
        """The diagonal, without the matrix."""
        return self._diagonal

    def astype(self, dtype: Any) -> Tiles:
        """The same numbers in another precision."""
        return Tiles(lambda *some: self.block(*some).astype(dtype), self._diagonal.astype(dtype))

    def columns(self, rows: Indices) -> Array:
        """Some of the columns, (n, m)."""
        out = np.empty((self.shape[0], rows.size), dtype=self.dtype)

        def fill(some: slice) -> None:
            out[some] = self.block(some, rows)

        each(fill, [(some,) for some in self._slices()])
        return out

    def whole(self) -> Array:
        """The matrix itself."""
        out = np.empty(self.shape, dtype=self.dtype)

        def fill(rows: slice, columns: slice) -> None:
            tile = self._tile(rows, columns)
            out[rows, columns] = tile
            if rows != columns:
                out[columns, rows] = tile.T

        each(fill, self._pairs())
        return out

    def __matmul__(self, V: Array) -> Array:
        """The product with some columns, in the wider of both precisions."""
        out, lock = np.zeros(V.shape, dtype=np.result_type(self.dtype, V.dtype)), Lock()

        def add(rows: slice, columns: slice) -> None:
            tile = self._tile(rows, columns).astype(out.dtype, copy=False)
            right = tile @ V[columns]
            left = tile.T @ V[rows] if rows != columns else None
            with lock:
                out[rows] += right
                if left is not None:
                    out[columns] += left

        each(add, self._pairs())
        return out

    def _tile(self, rows: slice, columns: slice) -> Array:
        return self.block(rows, None if rows == columns else columns)

    def _slices(self) -> list[slice]:
        n = self.shape[0]
        return [slice(i, min(i + SIDE, n)) for i in range(0, n, SIDE)]

    def _pairs(self) -> Iterator[tuple[slice, slice]]:
        """Tiles on and above the diagonal."""
        slices = self._slices()
        return ((rows, columns) for i, rows in enumerate(slices) for columns in slices[i:])


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

    def __matmul__(self, V: Any) -> Any:
        return self.product(V)

    def product(self, V: Any, precise: bool = False) -> Any:
        """K V in the wider of both precisions; TERMS at a time if it is to be precise."""
        arrays = self.arrays
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


def each(action: Callable[..., None], jobs: Any) -> None:
    """Do all jobs, in as many threads as BLAS may use, each with one of its own."""
    threads = blas_threads()
    # the limit is the whole process's: of two threads that set and restore it, one would be wrong
    if threads == 1 or not _LIMITING.acquire(blocking=False):
        for job in jobs:
            action(*job)
        return
    try:
        with _controller().limit(limits=1, user_api="blas"):
            deque(in_flight(lambda job: action(*job), jobs, threads), maxlen=0)
    finally:
        _LIMITING.release()


def in_flight(
    work: Callable[[Any], Result], items: Iterable[Any], workers: int
) -> Iterator[Result]:
    """Results in the order of the items, of which at most two a worker are begun and not taken."""
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        for item in items:
            if len(waiting) == 2 * workers:
                yield waiting.popleft().result()
            waiting.append(pool.submit(work, item))
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def blas_threads() -> int:
    """The threads that BLAS may use at present."""
    blas = _controller().select(user_api="blas").lib_controllers
    return max((int(one.num_threads) for one in blas), default=1)


def product(K: Array | Tiles, V: Array, block: int = 0) -> Array:
    """K V, for a matrix that is held or one that is not, in the wider of both precisions.

    A matrix is read in panels: between two of them the user can interrupt. With a ``block``, so
    many terms are added up before their sums are, which loses fewer digits; tiles do it anyway.
    """
    if isinstance(K, DeviceTiles):
        return K.product(V, precise=block > 0)  # type: ignore[no-any-return]
    if not isinstance(K, np.ndarray):
        return K @ V
    n = K.shape[0]
    out = np.zeros((n, V.shape[1]), dtype=np.result_type(K.dtype, V.dtype))
    step = max(1, PANEL // n)
    for first in range(0, n, step):
        panel = K[first : first + step].astype(out.dtype, copy=False)
        if not block:
            np.matmul(panel, V, out=out[first : first + step])
            continue
        for begin in range(0, n, block):
            part = slice(begin, begin + block)
            out[first : first + step] += panel[:, part] @ V[part]
    return out


def take_columns(K: Array | Tiles, rows: Indices) -> Array:
    """Some columns of a symmetric matrix."""
    return K.columns(rows) if isinstance(K, Tiles) else np.ascontiguousarray(K[rows].T)
