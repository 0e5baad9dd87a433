"""Kernels made of kernels: sums with non-negative weights, and a kernel scaled to K(x, x) = 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from onefit.kernels.base import Composite, Kernel, require_number
from onefit.kernels.distances import Array, Geometry, Points, as_points, ones_of
from onefit.linalg import arrays_of


@dataclass(frozen=True)
class WeightedSum(Composite):
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
    def parts(self) -> Sequence[Kernel]:
        return self.kernels

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        out = geometry.output(out)
        out[...] = 0.0
        part: Array | None = None
        for kernel, weight in self._active():
            part = kernel.matrix(geometry, geometry.output(part))
            part *= weight
            out += part
        return out

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        """Gradient in the logarithms of the weights and the parts' parameters ("0.gamma", ...)."""
        found: dict[str, Array] = {"weights": np.zeros(len(self.weights))}
        for k, (kernel, weight) in enumerate(zip(self.kernels, self.weights, strict=True)):
            xp = arrays_of(X)
            value = float((left * xp.host(kernel(X) @ xp.asarray(right))).sum())
            found["weights"][k] = weight * value
            for name, part in kernel.pullback(X, weight * left, right).items():
                found[f"{k}.{name}"] = part
        return found

    def diag(self, X: Points) -> Array:
        points = as_points(X, "X")
        total = 0.0 * ones_of(points)
        for kernel, weight in self._active():
            total += weight * kernel.diag(points)
        return total

    def __call__(self, X: Points, Y: Points | None = None) -> Array:
        return self.matrix(Geometry(X, Y))

    def _active(self) -> list[tuple[Kernel, float]]:
        return [pair for pair in zip(self.kernels, self.weights, strict=True) if pair[1] > 0]


@dataclass(frozen=True)
class Normalized(Composite):
    """``K(x, y) / sqrt(K(x, x) K(y, y))``: the cosine of the angle in feature space.

    Papers that bound K(x, x) by one use it for polynomial kernels.

    Parameters
    ----------
    kernel : Kernel
        With K(x, x) > 0 for every point.
    """

    kernel: Kernel

    @property
    def parts(self) -> Sequence[Kernel]:
        return (self.kernel,)

    def matrix(self, geometry: Geometry, out: Array | None = None) -> Array:
        out = self.kernel.matrix(geometry, geometry.output(out))
        right = self._roots(geometry.Y)
        out /= (right if geometry.symmetric else self._roots(geometry.X))[:, None]
        out /= right[None, :]
        if geometry.symmetric and geometry.arrays.on_host:
            np.fill_diagonal(out, 1.0)
        return out

    def diag(self, X: Points) -> Array:
        return ones_of(as_points(X, "X"))

    def pullback(self, X: Points, left: Array, right: Array) -> dict[str, Array]:
        """Gradient of the kernel, minus the part of its diagonal."""
        xp = arrays_of(X)
        roots = xp.host(self._roots(xp.astype(as_points(X, "X"), np.float64)))[:, None]
        N = xp.astype(self(X), np.float64)
        one, other = (xp.host(N @ xp.asarray(side)) for side in (right, left))
        pull = (left * one + right * other).sum(axis=1) / roots[:, 0] ** 2
        found = self.kernel.pullback(X, left / roots, right / roots)
        own = self.kernel.pullback(X, np.diag(0.5 * pull), np.eye(pull.size))
        return {name: found[name] - own[name] for name in found}

    def _roots(self, X: Points) -> Array:
        found = self.kernel.diag(X)
        arrays = arrays_of(found)
        values = arrays.host(found)
        if not (values > 0.0).all():
            row = int(np.argmin(values > 0.0))
            raise ValueError(
                f"{self.kernel!r} is {values[row]:.3g} for row {row} and itself, so that it cannot "
                "be normalised; leave the row out, or use a kernel with coef0 > 0."
            )
        return arrays.lib.sqrt(found)  # type: ignore[no-any-return]
