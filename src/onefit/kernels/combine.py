"""Sums of kernels with non-negative weights, as multiple kernel learning needs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onefit.kernels.base import Kernel, require_number
from onefit.kernels.distances import Array, Geometry, Points, as_points


@dataclass(frozen=True)
class WeightedSum(Kernel):
    """``K(x, y) = sum_k weights_k K_k(x, y)``; the parts share one geometry, and may be sums.

    Parameters
    ----------
    kernels : sequence of Kernel
    weights : sequence of float
        Non-negative, one for each kernel: a negative weight could make the sum indefinite.
    """

    kernels: Sequence[Kernel]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        kernels = tuple(self.kernels)
        for k, kernel in enumerate(kernels):
            if not isinstance(kernel, Kernel):
                raise TypeError(
                    f"kernels[{k}] must be a Kernel object such as Gaussian(1.0), got {kernel!r}."
                )
        weights = tuple(
            require_number(weight, f"weights[{k}]", positive=False)
            for k, weight in enumerate(self.weights)
        )
        if not kernels or len(kernels) != len(weights):
            raise ValueError(
                f"kernels and weights must be of one length, at least 1, got {len(kernels)} "
                f"kernels and {len(weights)} weights."
            )
        object.__setattr__(self, "kernels", kernels)
        object.__setattr__(self, "weights", weights)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for kernel in self.kernels for name in kernel.metrics))

    @property
    def definite(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(kernel.definite for kernel in self.kernels)

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        out = geometry.output(out)
        out.fill(0.0)
        part: Array | None = None
        for kernel, weight in self._active():
            part = kernel.matrix(geometry, geometry.output(part))
            part *= weight
            out += part
        return out

    def diag(self, X: Points) -> Array:
        points = as_points(X, "X")
        total = np.zeros(points.shape[0], points.dtype)
        for kernel, weight in self._active():
            total += weight * kernel.diag(points)
        return total

    def __call__(self, X: Points, Y: Points | None = None) -> Array:
        return self.matrix(Geometry(X, Y))

    def _active(self) -> list[tuple[Kernel, float]]:
        return [pair for pair in zip(self.kernels, self.weights, strict=True) if pair[1] > 0]
