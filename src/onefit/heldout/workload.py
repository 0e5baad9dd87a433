"""Workloads and their expected costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Estimate", "Workload"]


@dataclass(frozen=True)
class Workload:
    """Held-out predictions for a grid of kernels and lambdas, as far as their cost depends on it.

    Parameters
    ----------
    n : int
        Rows.
    lams : int
        Lambdas per kernel.
    removed : tuple of int
        Rows that each split removes from training.
    ridges : int
        Different values of c = Lambda(training part) per lambda: 1 if the splits remove equal
        weight or the scaling is "total".
    targets : int
    itemsize : {8, 4}
        Bytes of a number.
    loss : str
        Name of the loss.
    quadratic : bool
        Whether one linear system solves it.
    kernels : int
    models : int
        Models of this kind on all kernels; 0 for one on each.
    workers : int
        Processes that share the kernels.
    threads : int
        BLAS threads of each of them.
    given : bool
        Whether the kernel matrix is there already, in the caller's memory.
    tiled : bool
        Whether the kernel matrix is formed again for every product, not stored; with features,
        whether these are made again for every pass, as those of streamed rows are.
    features : int
        Features that replace the kernel matrix; 0 for none.

    Examples
    --------
    >>> Workload(n=100, lams=20, removed=(10,) * 10).folds
    10
    """

    n: int
    lams: int
    removed: tuple[int, ...]
    ridges: int = 1
    targets: int = 1
    itemsize: int = 8
    loss: str = "squared"
    quadratic: bool = True
    kernels: int = 1
    models: int = 0
    workers: int = 1
    threads: int = 1
    given: bool = False
    tiled: bool = False
    features: int = 0

    @property
    def columns(self) -> int:
        """Problems that share one iteration."""
        return max(1, self.folds) * self.lams * self.targets

    @property
    def folds(self) -> int:
        """Number of splits."""
        return len(self.removed)

    @property
    def busy(self) -> int:
        """Workers that have a kernel to work on."""
        return max(1, min(self.workers, self.kernels))

    @property
    def repeats(self) -> int:
        """How often the work of one model on its kernel is done."""
        return self.models or self.kernels

    @property
    def rounds(self) -> int:
        """How often the busiest worker does it, one model after the other."""
        return -(-self.repeats // self.busy)

    @cached_property
    def by_formula(self) -> Counter[int]:
        """How many splits remove each number of rows, of those that a leave-out formula serves."""
        return Counter(m for m in self.removed if 2 * m <= self.n)

    @cached_property
    def by_refit(self) -> Counter[int]:
        """The other splits: they remove more rows than they keep, and are refitted."""
        return Counter(m for m in self.removed if 2 * m > self.n)

    @cached_property
    def largest(self) -> int:
        """Most rows removed by a split that a formula serves."""
        return max(self.by_formula, default=0)

    @cached_property
    def tested(self) -> int:
        """Rows removed by these splits, all together."""
        return sum(m * count for m, count in self.by_formula.items())

    @property
    def one_row_each(self) -> bool:
        """Leave-one-out, where the blocks are a diagonal."""
        return self.largest == 1 and len(self.removed) > 1 and self.tested <= self.n


@dataclass(frozen=True)
class Estimate:
    """Expected cost of a workload by one method.

    Attributes
    ----------
    method : str
    flops : float
        Floating-point operations, all kernels together.
    nbytes : int
        Peak memory beyond the data, all workers together.
    seconds : float
        Wall time, all kernels together, with the workers side by side.
    tiled : bool
        Whether the kernel matrix is not held.
    """

    method: str
    flops: float
    nbytes: int
    seconds: float
    tiled: bool = False
