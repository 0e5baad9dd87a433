"""Random Fourier features of stationary kernels.

A stationary kernel [1]_ averages cos(omega'(x - z)) over its spectral measure; m/2 frequencies
drawn from it give the features sqrt(2/m) (cos omega'x, sin omega'x). The measure is normal for the
Gaussian kernel, a product of Cauchy distributions for the Laplace kernel, and Student's t for the
Matern kernels. Orthogonal frequencies [2]_ make the Gaussian kernel's error smaller. Frequencies do
not depend on the rows.

References
----------
.. [1] A. Rahimi and B. Recht, "Random features for large-scale kernel machines", NIPS 2007.
.. [2] F. X. Yu et al., "Orthogonal random features", NIPS 2016.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.features.maps import FeatureMap
from onefit.kernels import Kernel
from onefit.kernels.per_feature import PerFeature
from onefit.kernels.stationary import Gaussian, Laplace, Matern12, Matern32, Matern52

__all__ = ["FourierMap", "fourier_map"]


@dataclass(frozen=True)
class FourierMap(FeatureMap):
    """sqrt(2/m) (cos X'omega, sin X'omega).

    Attributes
    ----------
    frequencies : (d, m/2) array
    """

    frequencies: Array = field(repr=False)

    @property
    def size(self) -> int:
        return 2 * int(self.frequencies.shape[1])

    def apply(self, X: Any, out: Array | None = None) -> Any:
        half, xp = self.frequencies.shape[1], linalg.arrays_of(X)
        if not xp.on_host:
            angles = xp.astype(X, np.float64) @ xp.asarray(self.frequencies)
            return xp.lib.concat([xp.lib.cos(angles), xp.lib.sin(angles)], axis=1) * half**-0.5
        angles = np.asarray(X.astype(np.float64, copy=False) @ self.frequencies)
        values = np.empty((X.shape[0], 2 * half)) if out is None else out[: X.shape[0]]
        np.cos(angles, out=values[:, :half])
        np.sin(angles, out=values[:, half:])
        values *= half**-0.5
        return values

    def lengths(self, X: Any) -> Array:
        return np.full(X.shape[0], 1.0 + 1e-12)


def fourier_map(kernel: Kernel, d: int, size: int, seed: int, orthogonal: bool) -> FourierMap:
    """An even number of features of a stationary kernel of d columns."""
    scale: Any = 1.0
    if isinstance(kernel, PerFeature):
        gamma = np.asarray(kernel.gamma)
        scale = (np.sqrt(gamma) if kernel.kind is Gaussian else gamma)[:, None]
        kernel = kernel.kind(1.0)
    random, half = np.random.default_rng(seed), size // 2
    if isinstance(kernel, Gaussian):
        draw = _orthogonal(random, d, half) if orthogonal else random.normal(size=(d, half))
        return FourierMap(scale * np.sqrt(2.0 * kernel.gamma) * draw)
    if isinstance(kernel, Laplace):
        return FourierMap(scale * kernel.gamma * random.standard_cauchy(size=(d, half)))
    freedom = {Matern12: 1.0, Matern32: 3.0, Matern52: 5.0}.get(type(kernel))  # type: ignore[arg-type]
    if freedom is None:
        raise ValueError(
            f"approximation='fourier' needs a kernel that is a function of x - y (rbf, laplacian, "
            f"matern12, matern32, matern52), not {kernel!r}; use approximation='nystrom'"
        )
    spread = np.sqrt(freedom / random.chisquare(freedom, size=half))
    return FourierMap(scale * kernel.gamma * random.normal(size=(d, half)) * spread)  # type: ignore[attr-defined]


def _orthogonal(random: np.random.Generator, d: int, count: int) -> Array:
    """Normal columns, orthogonal in groups of d."""
    blocks = []
    for _ in range(-(-count // d)):
        Q, R = np.linalg.qr(random.normal(size=(d, d)))
        blocks.append(Q * np.sign(np.diag(R)) * np.sqrt(random.chisquare(d, size=d)))
    return np.concatenate(blocks, axis=1)[:, :count]
