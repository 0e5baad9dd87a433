"""A bank of kernels whose weighted sum is learned: multiple kernel learning.

K_mu = sum_m mu_m K_m / d_m with mu >= 0 and ||mu||_p = 1 (ECML 2014, Remark 1). Every kernel is
divided by d_m, the mean of its diagonal over the rows of the fit, so that their scales compare:
with mu = 1/M for all, each has an equal part in the trace. p = 1 tends to few kernels, a larger p
to many.

The bank itself is not a kernel; a search by gradient (onefit.search.descend) turns it into one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onefit._validation import check_positive
from onefit.kernels.base import Kernel
from onefit.kernels.combine import WeightedSum
from onefit.kernels.distances import Array, Points
from onefit.kernels.on_columns import OnColumns
from onefit.kernels.stationary import Gaussian, Stationary

__all__ = ["Bank"]

#: largest number of kernels for which a search also starts from each of them alone
MAX_LISTED_KERNELS = 16


@dataclass(frozen=True)
class Bank:
    """Kernels whose weights are learned: ``kernel`` in the grid of a KernelGradientSearchCV.

    Parameters
    ----------
    kernels : sequence of Kernel
    p : float, default=1
        The weights have p-norm one; at least 1.

    Examples
    --------
    >>> from onefit.kernels import Bank
    >>> from onefit.kernels import Gaussian, Linear
    >>> len(Bank([Linear(), Gaussian(0.1), Gaussian(1.0)]).kernels)
    3
    >>> Bank.of_bandwidths([0.1, 1.0]).kernels
    (Gaussian(gamma=0.1), Gaussian(gamma=1.0))
    """

    kernels: Sequence[Kernel]
    p: float = 1.0
    _means: tuple[float, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        kernels = tuple(self.kernels)
        if not kernels:
            raise ValueError("the bank has no kernel; give at least one, such as Gaussian(1.0)")
        for m, kernel in enumerate(kernels):
            if not isinstance(kernel, Kernel):
                raise TypeError(
                    f"kernels[{m}] must be a Kernel object such as Gaussian(1.0), got {kernel!r}; "
                    "a kernel matrix becomes one as Lookup(K)"
                )
        if not check_positive("p", self.p, "it is the order of a norm") >= 1.0:
            raise ValueError(f"p must be at least 1, got {self.p!r}; below that it is not a norm")
        object.__setattr__(self, "kernels", kernels)

    @classmethod
    def of_bandwidths(
        cls, gammas: Iterable[float], kind: type[Stationary] = Gaussian, p: float = 1.0
    ) -> Bank:
        """A stationary kernel with each of several gammas."""
        return cls([kind(float(gamma)) for gamma in gammas], p)

    @classmethod
    def of_groups(
        cls,
        groups: Iterable[Sequence[int]],
        gammas: Iterable[float],
        kind: type[Stationary] = Gaussian,
        p: float = 1.0,
    ) -> Bank:
        """A stationary kernel on each group of columns, with each of several gammas."""
        gammas = list(gammas)
        return cls([OnColumns(kind(float(g)), group) for group in groups for g in gammas], p)

    def settled(self, X: Points) -> Bank:
        """The bank with the mean diagonal of every kernel over the rows of a fit."""
        means = tuple(float(np.mean(kernel.diag(X))) for kernel in self.kernels)
        for m, mean in enumerate(means):
            if not (np.isfinite(mean) and mean > 0.0):
                raise ValueError(
                    f"kernels[{m}] of the bank, {self.kernels[m]!r}, has a mean diagonal of "
                    f"{mean:.3g} on these rows; leave it out"
                )
        return replace(self, _means=means)

    def mixed(self, mu: Any) -> WeightedSum:
        """The kernel with some weights; the bank must be settled."""
        weights = np.asarray(mu, dtype=np.float64) / np.asarray(self._means)
        return WeightedSum(self.kernels, weights.tolist())

    def weights_of(self, kernel: WeightedSum) -> Array:
        """The mu of a kernel that the bank made."""
        return np.multiply(kernel.weights, self._means)

    def coarse(self) -> list[WeightedSum]:
        """Equal weights and, for few kernels, each of them alone."""
        m = len(self.kernels)
        alike = np.full(m, m ** (-1.0 / self.p))
        return [
            self.mixed(mu)
            for mu in ([alike, *np.eye(m)] if 1 < m <= MAX_LISTED_KERNELS else [alike])
        ]
