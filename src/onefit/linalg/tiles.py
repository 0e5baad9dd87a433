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

__all__ = [
    "BLOCK", "SIDE", "Tiles", "blas_threads", "each", "in_flight", "product",
    "take_columns",
]  # fmt: skip

Result = TypeVar("Result")

#: rows and columns of a tile, and terms that a product adds up before it adds up their sums
SIDE, BLOCK = 1024, HOST.terms
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
    sliced : bool
        Whether a product that is to be precise is that of slices (onefit.linalg.slices).
    """

    arrays: Arrays = HOST
    terms = SIDE
    sliced = False
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

    def product(self, V: Array, precise: bool = False) -> Array:
        """K V; a tile's terms are added up before the sums are, which is precise."""
        return self @ V

    def row_sum(self) -> float:
        """The largest absolute row sum, of a matrix that is held."""
        raise NotImplementedError

    def _tile(self, rows: slice, columns: slice) -> Array:
        return self.block(rows, None if rows == columns else columns)

    def _slices(self) -> list[slice]:
        n = self.shape[0]
        return [slice(i, min(i + SIDE, n)) for i in range(0, n, SIDE)]

    def _pairs(self) -> Iterator[tuple[slice, slice]]:
        """Tiles on and above the diagonal."""
        slices = self._slices()
        return ((rows, columns) for i, rows in enumerate(slices) for columns in slices[i:])


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
    if isinstance(K, Tiles):
        return K.product(V, precise=block > 0)
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
