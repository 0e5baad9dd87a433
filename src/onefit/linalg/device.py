"""The same operations for arrays on a device: PyTorch's, CuPy's, or any that keep to the standard.

The namespace comes from array-api-compat, the device from the arrays. Three things are not in the
standard and are written for each library where it has them: overwriting an array elementwise,
writing to columns that are named by indices, and the room that is left in memory. Libraries without
them, such as array-api-strict, get plain substitutes: slower, and the same numbers.

**Triangular inverse by halves.** The inverse of [A, 0; B, C] is [A^-1, 0; -C^-1 B A^-1, C^-1], so
that all but small blocks on the diagonal are matrix products, the fastest thing a device does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError

from onefit._types import Array
from onefit.linalg.arrays import Arrays, index

__all__ = ["Device", "DeviceMemoryError", "named_device"]

#: rows of a triangular matrix that is inverted at once
LEAF = 512
#: steps of the power method for a norm
POWER = 10
#: bytes that a computer without a device of its own gives to tiles
ROOM = 2**31


class DeviceMemoryError(MemoryError):
    """A device has too little memory; the message says how little."""


class Device(Arrays):
    """An array library on one device.

    Parameters
    ----------
    lib : module
        Its namespace, by array-api-compat.
    device : object
        As the library names it.
    """

    on_host = False
    #: what a library raises where memory is not enough
    exhausted: tuple[type[BaseException], ...] = (MemoryError,)

    def __init__(self, lib: Any, device: Any) -> None:
        self.lib, self.device = lib, device

    def __repr__(self) -> str:
        return f"device {self.device}"

    @staticmethod
    def of(x: Any) -> Device:
        """The one that an array lies on."""
        compat = _compat()
        lib, device = compat.array_namespace(x), compat.device(x)
        name = type(x).__module__.partition(".")[0]
        return _KINDS.get(name, Device)(lib, device)

    def same(self, other: Arrays) -> bool:
        """Whether arrays of both can meet in one operation."""
        return isinstance(other, Device) and (self.lib, str(self.device)) == (
            other.lib,
            str(other.device),
        )

    def room(self) -> float:
        """Bytes that are free on it."""
        return float(ROOM)

    def release(self) -> None:
        """Give back what the library keeps for later."""

    @contextmanager
    def within_memory(self, what: str) -> Iterator[None]:
        """Say how much memory there is, and what to do, where it was not enough."""
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
        x = np.array(x, dtype=dtype, order="C")  # never the caller's own memory
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
        """Indices or a mask of NumPy's, as indices here."""
        return self.asarray(index(which), np.int64)

    def columns(self, x: Any, which: Any) -> Any:
        return self.lib.take(x, self.index(which), axis=1)

    def rows(self, x: Any, which: Any) -> Any:
        if isinstance(which, slice):
            return x[which, ...]
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

    def add_diagonal(self, a: Any, value: float) -> Any:
        a += value * self.lib.eye(a.shape[0], dtype=a.dtype, device=self.device)
        return a

    # one number per column

    def dots(self, a: Any, b: Any) -> Array:
        return self.host(self.lib.sum(a * b, axis=0))

    def norms(self, a: Any) -> Array:
        return np.asarray(np.sqrt(self.dots(a, a)))

    def largest(self, a: Any) -> Array:
        return self.host(self.lib.max(self.lib.abs(a), axis=0))

    def column_sums(self, a: Any) -> Array:
        """Of halves, and of their halves, with the rounding error of every sum kept."""
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

    # elementwise, in place

    def exp_(self, t: Any) -> None:
        t[...] = self.lib.exp(t)

    def sqrt_(self, t: Any) -> None:
        t[...] = self.lib.sqrt(t)

    def power_(self, t: Any, degree: int) -> None:
        t[...] = t**degree

    def one_minus_(self, t: Any) -> None:
        t *= -1.0
        t += 1.0

    def at_least_(self, t: Any, value: float) -> None:
        t[...] = self.lib.where(t < value, value + 0.0 * t, t)

    # matrices

    def fortran(self, a: Any) -> Any:
        return a

    def cholesky(self, a: Any) -> Any:
        try:
            factor = self.lib.linalg.cholesky(a)
        except Exception as error:
            if not self._singular(error):
                raise
            raise LinAlgError(f"the matrix is not positive definite: {error}") from error
        if not bool(self.lib.isfinite(factor[-1, -1])):
            raise LinAlgError("the matrix is not positive definite")
        return factor

    @staticmethod
    def _singular(error: Exception) -> bool:
        """Whether a library's error says that a matrix has no factor."""
        return "LinAlgError" in type(error).__name__

    def triangular_inverse(self, lower: Any) -> Any:
        out = self.lib.zeros_like(lower)
        self._invert(lower, out)
        return out

    def _invert(self, lower: Any, out: Any) -> None:
        """Write the inverse of a lower triangular matrix into zeros, by halves."""
        n = lower.shape[0]
        if n <= LEAF:
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

    def gram(self, a: Any) -> Any:
        return a.T @ a

    def add_gram(self, total: Any, a: Any) -> None:
        total += a @ a.T

    def matmul(self, a: Any, b: Any) -> Any:
        return a @ b

    def norm_of_gram(self, a: Any) -> float:
        """Twice what a few steps of the power method find."""
        x: Any = np.random.default_rng(0).normal(size=a.shape[1]).astype(_name(a.dtype))
        x, found = self.asarray(x[:, None]), 0.0
        for _ in range(POWER):
            x = x / float(self.norms(x)[0])
            x = a.T @ (a @ x)
            found = max(found, float(self.norms(x)[0]))
        return 2.0 * found


class _Torch(Device):
    """PyTorch."""

    def __init__(self, lib: Any, device: Any) -> None:
        super().__init__(lib, device)
        import torch

        self.torch = torch
        self.exhausted = (MemoryError, torch.OutOfMemoryError)

    def room(self) -> float:
        if self.device.type != "cuda":
            return super().room()
        free, _ = self.torch.cuda.mem_get_info(self.device)
        kept = self.torch.cuda.memory_reserved(self.device)
        return float(free + kept - self.torch.cuda.memory_allocated(self.device))

    def release(self) -> None:
        if self.device.type == "cuda":
            self.torch.cuda.empty_cache()

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        return self.torch.tensor(np.ascontiguousarray(x, dtype=dtype), device=self.device)

    def host(self, x: Any) -> Array:
        return np.asarray(x.cpu().numpy())

    def copy(self, x: Any) -> Any:
        return x.clone()

    def put(self, x: Any, which: Any, values: Any) -> None:
        x[:, self.index(which)] = values

    def put_pairs(self, x: Any, rows: Any, columns: Any, values: Any) -> None:
        x[rows, columns] = values

    def add_diagonal(self, a: Any, value: float) -> Any:
        a.diagonal().add_(value)
        return a

    def add_scaled(self, x: Any, a: Any, scale: Array) -> None:
        x.addcmul_(a, self.asarray(scale))

    def exp_(self, t: Any) -> None:
        t.exp_()

    def sqrt_(self, t: Any) -> None:
        t.sqrt_()

    def power_(self, t: Any, degree: int) -> None:
        t.pow_(degree)

    def at_least_(self, t: Any, value: float) -> None:
        t.clamp_(min=value)

    def _leaf(self, lower: Any) -> Any:
        eye = self.torch.eye(lower.shape[0], dtype=lower.dtype, device=self.device)
        return self.torch.linalg.solve_triangular(lower, eye, upper=False)

    def solve_rows(self, lower: Any, a: Any) -> Any:
        return self.torch.linalg.solve_triangular(lower.T, a, upper=True, left=False)


class _CuPy(Device):
    """CuPy."""

    def __init__(self, lib: Any, device: Any) -> None:
        super().__init__(lib, device)
        import cupy

        self.cupy = cupy
        self.exhausted = (MemoryError, cupy.cuda.memory.OutOfMemoryError)

    def room(self) -> float:
        free, _ = self.cupy.cuda.runtime.memGetInfo()
        return float(free + self.cupy.get_default_memory_pool().free_bytes())

    def release(self) -> None:
        self.cupy.get_default_memory_pool().free_all_blocks()

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        with self.device:
            return self.cupy.asarray(np.ascontiguousarray(x, dtype=dtype))

    def host(self, x: Any) -> Array:
        return np.asarray(self.cupy.asnumpy(x))

    def put(self, x: Any, which: Any, values: Any) -> None:
        x[:, self.index(which)] = values

    def put_pairs(self, x: Any, rows: Any, columns: Any, values: Any) -> None:
        x[rows, columns] = values

    def exp_(self, t: Any) -> None:
        self.cupy.exp(t, out=t)

    def sqrt_(self, t: Any) -> None:
        self.cupy.sqrt(t, out=t)

    def _leaf(self, lower: Any) -> Any:
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(lower, self.cupy.eye(lower.shape[0], dtype=lower.dtype), lower=True)

    def solve_rows(self, lower: Any, a: Any) -> Any:
        from cupyx.scipy.linalg import solve_triangular

        return solve_triangular(lower, a.T, lower=True).T


_KINDS: dict[str, type[Device]] = {"torch": _Torch, "cupy": _CuPy}


def named_device(name: Any) -> Device | None:
    """What ``device="cuda"`` means: PyTorch there, or CuPy without it; None for "cpu".

    A device that is not there is an error that says so.
    """
    if name is None or str(name) == "cpu":
        return None
    kind, _, number = str(name).partition(":")
    if kind != "cuda" or not (number == "" or number.isdigit()):
        raise ValueError(
            f"device={name!r} is not known; use 'cuda', 'cuda:0', ..., or 'cpu' for NumPy"
        )
    for attempt in (_cuda_torch, _cuda_cupy):
        found = attempt(int(number or 0))
        if found is not None:
            return found
    raise ValueError(
        f"device={name!r}, but neither PyTorch nor CuPy finds such a CUDA device: install one of "
        "them with CUDA (pip install 'onefit[gpu]'), check nvidia-smi, or leave the device out"
    )


def _cuda_torch(number: int) -> Device | None:
    try:
        import torch
    except ImportError:
        return None
    if number >= torch.cuda.device_count():
        return None
    return Device.of(torch.empty(0, device=f"cuda:{number}"))


def _cuda_cupy(number: int) -> Device | None:
    try:
        import cupy

        if number >= cupy.cuda.runtime.getDeviceCount():
            return None
    except Exception:  # without a driver CuPy raises errors of its own
        return None
    with cupy.cuda.Device(number):
        return Device.of(cupy.empty(0))


def _compat() -> Any:
    try:
        return import_module("array_api_compat")
    except ImportError:
        # scikit-learn brings a copy
        return import_module("sklearn.externals.array_api_compat")


def _name(dtype: Any) -> str:
    """NumPy's name of a library's float type."""
    return "float32" if "float32" in str(dtype) else "float64"
