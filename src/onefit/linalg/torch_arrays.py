"""Functions of PyTorch that the array API standard lacks, or that are faster."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import torch

from onefit._types import Array
from onefit.linalg.device import Device
from onefit.linalg.rates import CUDA_RATES

__all__ = ["Torch"]


@cache
def _compiled() -> Any:
    """Manhattan distances by Triton, or None where it does not work."""
    try:
        from onefit.linalg.triton_arrays import manhattan

        one = torch.ones((1, 1), dtype=torch.float64, device="cuda")
        manhattan(one, one)
    except Exception:  # not installed, or no compiler for this device
        return None
    return manhattan


class Torch(Device):
    """PyTorch."""

    def __init__(self, lib: Any, device: Any) -> None:
        super().__init__(lib, device)
        self.exhausted = (MemoryError, torch.OutOfMemoryError)
        self.fast = device.type == "cuda"
        if self.fast:
            self.rates = CUDA_RATES

    def room(self) -> float:
        if not self.fast:
            return super().room()
        free, _ = torch.cuda.mem_get_info(self.device)
        kept = torch.cuda.memory_reserved(self.device)
        return float(free + kept - torch.cuda.memory_allocated(self.device))

    def wait(self) -> None:
        if self.fast:
            torch.cuda.synchronize(self.device)

    def release(self) -> None:
        if self.fast:
            torch.cuda.empty_cache()

    def asarray(self, x: Any, dtype: Any = None) -> Any:
        return torch.tensor(np.ascontiguousarray(x, dtype=dtype), device=self.device)

    def host(self, x: Any) -> Array:
        return np.asarray(x.cpu().numpy())

    def put(self, x: Any, which: Any, values: Any) -> None:
        x[:, self.index(which)] = values

    def put_pairs(self, x: Any, rows: Any, columns: Any, values: Any) -> None:
        x[rows, columns] = values

    def add_diagonal(self, a: Any, value: float | Array) -> Any:
        a.diagonal().add_(self.asarray(value) if isinstance(value, np.ndarray) else value)
        return a

    def rank_one(self, a: Any, x: Any, y: Any) -> None:
        a.addr_(x, y)

    def submatrix(self, x: Any, rows: Any, columns: Any) -> Any:
        return x[self.index(rows)[:, None], self.index(columns)]

    def city_block(self, X: Any, Y: Any) -> Any:
        """City-block distances: PyTorch's routine on a CPU, a Triton kernel on a GPU."""
        own = _compiled() if self.fast else partial(torch.cdist, p=1.0)
        return super().city_block(X, Y) if own is None else own(X, Y)

    def solve_cholesky(self, lower: Any, b: Any) -> Any:
        return torch.cholesky_solve(b, lower)

    def _leaf(self, lower: Any) -> Any:
        eye = torch.eye(lower.shape[0], dtype=lower.dtype, device=self.device)
        return torch.linalg.solve_triangular(lower, eye, upper=False)

    def solve_rows(self, lower: Any, a: Any) -> Any:
        return torch.linalg.solve_triangular(lower.T, a, upper=True, left=False)
