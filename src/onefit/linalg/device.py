"""The operations of `Arrays` on a device, for any library of the array API standard.

A few operations are not in the standard: writing to entries selected by index arrays, triangular
systems, and the free memory. Here they have slower substitutes with the same results;
onefit.linalg.torch_arrays and cupy_arrays use the functions of these two libraries.

**Triangular inverse by halves.** The inverse of [A, 0; B, C] is [A^-1, 0; -C^-1 B A^-1, C^-1], so
that all but small blocks on the diagonal are matrix products, the fastest operation of a device.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from onefit._types import Array
from onefit.linalg.arrays import Arrays, dtype_name, index
from onefit.linalg.rates import HOST_RATES
from onefit.linalg.reduced import Eigenvectors, OrthogonalBasis

__all__ = ["Device", "DeviceMemoryError"]

#: rows of a triangular matrix that is inverted directly
INVERTED_BLOCK_ROWS = 512
#: bytes for tiles on a computer without a separate device
HOST_TILE_BYTES = 2**31


class DeviceMemoryError(MemoryError):
    """A device has too little memory; the message has the number of free bytes."""


class Device(Arrays):
    """An array library on one device.

    Parameters
    ----------
    lib : module
        Its namespace, from array-api-compat.
    device : object
        The device object of the library.
    """

    on_host = False
    terms = 0
    panel_rows = 1024
    #: those of the processor, for a library that computes there
    rates = replace(HOST_RATES, on_device=True)
    #: exceptions that the library raises for too little memory
    exhausted: tuple[type[BaseException], ...] = (MemoryError,)

    def __init__(self, lib: Any, device: Any) -> None:
        self.lib, self.device = lib, device

    def __repr__(self) -> str:
        return f"device {self.device}"

    def same(self, other: Arrays) -> bool:
        """Whether one operation can have arrays of both as operands."""
        return isinstance(other, Device) and (self.lib, str(self.device)) == (
            other.lib,
            str(other.device),
        )

    def room(self) -> float:
        """Free bytes of its memory."""
        return float(HOST_TILE_BYTES)

    def wait(self) -> None:
        """Wait until all operations are finished."""

    def release(self) -> None:
        """Free the memory that the library caches."""

    @contextmanager
    def within_memory(self, what: str) -> Iterator[None]:
        """Turn an error for too little memory into one that says what to do."""
        try:
            yield
        except self.exhausted as error:
            if isinstance(error, DeviceMemoryError):
                raise
            self.release()
            raise DeviceMemoryError(
                f"{what} does not fit into the memory of {self}, of which "
                f"{self.room() / 2**30:.3g} GiB are free; free other arrays there, use float32, "
                "fewer lams or folds at a time, method='iterative', or fewer rows"
            ) from error

    # from NumPy's arrays and back

    def _dtype(self, dtype: Any) -> Any:
        return getattr(self.lib, np.dtype(dtype).name)

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        x = np.array(x, dtype=dtype, order="C")  # not the caller's memory
        return self.lib.asarray(x, device=self.device)

    def host(self, x: Any) -> Array:
        return np.array(np.from_dlpack(x))

    def astype(self, x: Any, dtype: Any) -> Any:
        return self.lib.astype(x, self._dtype(dtype), copy=False)

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.lib.zeros(shape, dtype=self._dtype(dtype), device=self.device)

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        return self.lib.empty(shape, dtype=self._dtype(dtype), device=self.device)

    def copy(self, x: Any) -> Any:
        return self.lib.asarray(x, copy=True)

    # some rows and columns

    def index(self, which: Any) -> Any:
        """A NumPy array of indices or a mask, as indices on this device."""
        return self.asarray(index(which), np.int64)

    def columns(self, x: Any, which: Any) -> Any:
        return self.lib.take(x, self.index(which), axis=1)

    def rows(self, x: Any, which: Any) -> Any:
        if isinstance(which, slice):
            # the standard has no slices beyond the end of an array
            return x[slice(*which.indices(x.shape[0])), ...]
        return self.lib.take(x, self.index(which), axis=0)

    def put(self, x: Any, which: Any, values: Any) -> None:
        where = index(which)
        if where.size and where[-1] - where[0] + 1 == where.size and (np.diff(where) == 1).all():
            x[:, int(where[0]) : int(where[-1]) + 1] = values
            return
        for place, column in enumerate(where.tolist()):
            x[:, column] = values[:, place]

    def put_pairs(self, x: Any, rows: Any, columns: Any, values: Any) -> None:
        """Overwrite single entries."""
        for i, j, k in zip(
            self.host(rows), self.host(columns), range(values.shape[0]), strict=True
        ):
            x[int(i), int(j)] = values[k]

    def submatrix(self, x: Any, rows: Any, columns: Any) -> Any:
        return self.columns(self.rows(x, rows), columns)

    def add_diagonal(self, a: Any, value: float | Array) -> Any:
        own = self.asarray(value) if isinstance(value, np.ndarray) else value
        a += self.lib.eye(a.shape[0], dtype=a.dtype, device=self.device) * own
        return a

    def rank_one(self, a: Any, x: Any, y: Any) -> None:
        a += x[:, None] * y[None, :]

    # one number per row or column

    def diagonal(self, a: Any) -> Array:
        return self.host(self.lib.linalg.diagonal(a))

    def row_norms(self, a: Any) -> Array:
        return self.host(self.lib.linalg.vector_norm(a, axis=1))

    def square_sums(self, a: Any, weights: Array) -> Array:
        return self.host((a * a) @ self.asarray(weights))

    def dots(self, a: Any, b: Any) -> Array:
        return self.host(self.lib.sum(a * b, axis=0))

    def norms(self, a: Any) -> Array:
        return np.asarray(np.sqrt(self.dots(a, a)))

    def largest(self, a: Any) -> Array:
        return self.host(self.lib.max(self.lib.abs(a), axis=0))

    def column_sums(self, a: Any) -> Array:
        """Pairwise column sums that keep the rounding error of every addition."""
        lost = self.lib.zeros_like(a)
        while a.shape[0] > 1:
            half, odd = divmod(a.shape[0], 2)
            rest, rest_lost = a[2 * half :, :], lost[2 * half :, :]
            x, y = a[:half, :], a[half : 2 * half, :]
            a = x + y
            other = a - x
            lost = lost[:half, :] + lost[half : 2 * half, :] + ((x - (a - other)) + (y - other))
            if odd:
                a, lost = (self.lib.concat(pair) for pair in ((a, rest), (lost, rest_lost)))
        return self.host(a[0, :] + lost[0, :])

    def add_scaled(self, x: Any, a: Any, scale: Array) -> None:
        x += self.asarray(scale) * a

    # matrices

    def city_block(self, X: Any, Y: Any) -> Any:
        """Sums of the absolute differences of all pairs of rows, one feature after the other."""
        out = self.zeros((X.shape[0], Y.shape[0]), dtype_name(X.dtype))
        for f in range(X.shape[1]):
            out += self.lib.abs(X[:, f][:, None] - Y[:, f][None, :])
        return out

    def fortran(self, a: Any) -> Any:
        return a

    def fortran_copy(self, a: Any) -> Any:
        return self.copy(a)

    def mirrored(self, a: Any) -> Any:
        return a

    def unit_ridge(self, a: Any, root: Array) -> Any:
        r = self.asarray(root)
        out = a * r[:, None]
        out *= r[None, :]
        return self.add_diagonal(out, 1.0)

    def cholesky(self, a: Any) -> Any:
        if a.shape[0] == 0:
            return a
        try:
            factor = self.lib.linalg.cholesky(a)
        except Exception as error:
            if "LinAlgError" not in type(error).__name__:
                raise
            raise LinAlgError(f"the matrix is not positive definite: {error}") from error
        if not bool(self.lib.isfinite(factor[-1, -1])):
            raise LinAlgError("the matrix is not positive definite")
        return factor

    def triangular_inverse(self, lower: Any) -> Any:
        out = self.lib.zeros_like(lower)
        self._invert(lower, out)
        return out

    def _invert(self, lower: Any, out: Any) -> None:
        """Write the inverse of a lower triangular matrix into zeros, by halves."""
        n = lower.shape[0]
        if n <= INVERTED_BLOCK_ROWS:
            out[:, :] = self._leaf(lower)
            return
        half = n // 2
        self._invert(lower[:half, :half], out[:half, :half])
        self._invert(lower[half:, half:], out[half:, half:])
        corner = lower[half:, :half] @ out[:half, :half]
        out[half:, :half] = -(out[half:, half:] @ corner)

    def _leaf(self, lower: Any) -> Any:
        eye = self.lib.eye(lower.shape[0], dtype=lower.dtype, device=self.device)
        return self.lib.tril(self.lib.linalg.solve(lower, eye))

    def solve_cholesky(self, lower: Any, b: Any) -> Any:
        W = self.triangular_inverse(lower)
        return W.T @ (W @ b)

    def inverse_spd(self, a: Any) -> Any:
        W = self.triangular_inverse(self.cholesky(a))
        return W.T @ W

    def solve_spd(self, a: Any, b: Any) -> Any:
        W = self.triangular_inverse(self.cholesky(a))
        return W.T @ (W @ b)

    def solve_rows(self, lower: Any, a: Any) -> Any:
        return self.lib.linalg.solve(lower, a.T).T

    def eigh(self, a: Any) -> tuple[Any, Any]:
        values, vectors = self.lib.linalg.eigh(a)
        return values, vectors

    def reduced(self, a: Any) -> Eigenvectors:
        return Eigenvectors(a, self)

    def complement(self, columns: Array) -> OrthogonalBasis:
        Q, _ = self.lib.linalg.qr(self.asarray(columns), mode="complete")
        return OrthogonalBasis(self.copy(Q[:, columns.shape[1] :]))

    def gram(self, a: Any) -> Any:
        return a.T @ a

    def add_gram(self, total: Any, a: Any) -> None:
        total += a @ a.T

    def matmul(self, a: Any, b: Any) -> Any:
        return a @ b
