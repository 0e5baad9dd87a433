"""Functions of CuPy that the array API standard lacks, or that are faster."""

from __future__ import annotations

from typing import Any

import cupy
import cupyx
import numpy as np
from cupyx.scipy.linalg import solve_triangular

from onefit._types import Array
from onefit.linalg.device import Device
from onefit.linalg.rates import CUDA_RATES

__all__ = ["CuPy"]


class CuPy(Device):
    """CuPy."""

    rates = CUDA_RATES

    def __init__(self, lib: Any, device: Any) -> None:
        super().__init__(lib, device)
        self.exhausted = (MemoryError, cupy.cuda.memory.OutOfMemoryError)

    def room(self) -> float:
        free, _ = cupy.cuda.runtime.memGetInfo()
        return float(free + cupy.get_default_memory_pool().free_bytes())

    def wait(self) -> None:
        self.device.synchronize()

    def release(self) -> None:
        cupy.get_default_memory_pool().free_all_blocks()

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        with self.device:
            return cupy.asarray(np.ascontiguousarray(x, dtype=dtype))

    def host(self, x: Any) -> Array:
        return np.asarray(cupy.asnumpy(x))

    def put(self, x: Any, which: Any, values: Any) -> None:
        x[:, self.index(which)] = values

    def put_pairs(self, x: Any, rows: Any, columns: Any, values: Any) -> None:
        x[rows, columns] = values

    def submatrix(self, x: Any, rows: Any, columns: Any) -> Any:
        return x[self.index(rows)[:, None], self.index(columns)]

    def cholesky(self, a: Any) -> Any:
        """Raise LinAlgError if there is no factor; by default CuPy does not check."""
        with cupyx.errstate(linalg="raise"):
            return super().cholesky(a)

    def solve_cholesky(self, lower: Any, b: Any) -> Any:
        half = solve_triangular(lower, b, lower=True)
        return solve_triangular(lower, half, lower=True, trans="T")

    def _leaf(self, lower: Any) -> Any:
        return solve_triangular(lower, cupy.eye(lower.shape[0], dtype=lower.dtype), lower=True)

    def solve_rows(self, lower: Any, a: Any) -> Any:
        return solve_triangular(lower, a.T, lower=True).T
