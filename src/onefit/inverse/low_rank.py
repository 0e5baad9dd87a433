"""A low-rank factor of a kernel matrix, F F' <= K, from some of its columns.

F comes from a Cholesky factorisation of K whose pivots are drawn at random, in blocks [1]_. With
E = K - F F' what is left of K, the next pivots Z are drawn in proportion to its diagonal, and the
columns E_.Z E_ZZ^(-1/2) join F. So E stays positive semidefinite, and I + R F F'R is a
preconditioner of I + R K R that makes no eigenvalue worse. Unlike with uniform sampling, rows that
F already explains are rarely drawn again.

**When to stop.** Steps of conjugate gradients grow as the root of 1 + e R^2, with e the size of the
eigenvalues of E that matter. Their mean weighted by themselves, tr(E^2) / tr(E), is known from
the diagonal of E and from the squares of a small sample of its other entries; e is set to that.
The set-up grows as n m^2 + folds m^3 (`iteration_cost`). Blocks join F until the sum of both has
risen for a while, and those that do not pay are dropped: all of them if K is nearly diagonal.

References
----------
.. [1] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky: practical
   approximation of a kernel matrix with few entry evaluations", Communications on Pure and Applied
   Mathematics 78, 2025.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit._types import Array, Indices
from onefit.linalg import arrays_of
from onefit.linalg.device import Device
from onefit.linalg.rates import Cost, Rates

__all__ = ["LowRank", "iteration_cost", "most_landmarks"]

# benchmarks/constants.py varies those of the host
#: rows whose eigenvalues approximate those of K
SPECTRUM_SAMPLE_ROWS = 500
#: blocks without gain after which no more are added
MAX_BLOCKS_WITHOUT_GAIN = 3
#: steps of conjugate gradients for each unit of the root of the condition number
CG_STEPS_PER_ROOT_CONDITION = 10.0


#: the largest number of columns of F on the host and on a device
MAX_LANDMARKS, MAX_DEVICE_LANDMARKS = 1000, 2000
#: the largest number of elements of F on the host, and the number of columns of a block
MAX_FACTOR_ELEMENTS, BLOCK_COLUMNS = 2**28, 100


def most_landmarks(n: int, device_elements: float | None = None) -> int:
    """The largest number of columns of F for n rows, on the host or in the room of a device."""
    if device_elements is None:
        return min(MAX_LANDMARKS, n // 3, MAX_FACTOR_ELEMENTS // max(n, 1))
    return int(min(MAX_DEVICE_LANDMARKS, n // 3, device_elements // max(n, 1)))


def iteration_cost(
    n: int,
    m: int,
    columns: float,
    groups: int,
    steps: float,
    rates: Rates,
    several: bool = True,
    tiled: bool = False,
) -> Cost:
    """Cost of conjugate gradients with m columns of F, and of their set-up.

    Parameters
    ----------
    n, m : int
    columns : float
        That a step has, on average.
    groups : int
        Different sets of rows among the columns.
    steps : float
    rates : Rates
    several : bool, default=True
        Whether the columns of a group have several ridges, so that its small matrix is decomposed
        instead of inverted.
    tiled : bool, default=False
        Whether each product forms K.
    """
    setup = 3 * rates.product(n, m, m)
    setup += groups * (rates.eigendecomposition(m) if several else rates.inverse_spd(m))
    step = rates.product(n, n, columns) + 2 * rates.product(n, m, columns)
    step += rates.passes(n * columns, 16)
    if tiled:
        step += rates.entries(n * n)
    return setup + steps * step


class LowRank:
    """The factor F; columns are added while they reduce the total cost.

    Parameters
    ----------
    K : Gram
    s : (n,) array
        Weights: rows of weight zero are never drawn.

    Attributes
    ----------
    blocks : list of (n, b) arrays
        The columns of F, on the device of K.
    left : (n,) array
        s times the diagonal of K - F F'.
    sizes : list of float
        e of R (K - F F') R, R^2 = diag(s), before the first block and after each.
    """

    def __init__(self, K: Any, s: Array) -> None:
        self.K, self.s, self.arrays = K, s.astype(np.float64), arrays_of(K)
        self.rates = self.arrays.rates.at(1, np.dtype(K.dtype).itemsize)
        # on a device F twice, and as much
        room = self.arrays.room() / 32.0 if isinstance(self.arrays, Device) else None
        #: the largest number of blocks
        self.most = most_landmarks(s.size, room) // BLOCK_COLUMNS
        self.random = np.random.default_rng(0)
        positive = np.flatnonzero(s)
        self.rows = np.sort(self.random.permutation(positive)[:SPECTRUM_SAMPLE_ROWS])
        root = np.sqrt(self.s[self.rows])
        self.small = self.arrays.host(K.block(self.rows)) * root[:, None] * root
        pairs = self.rows.size * (self.rows.size - 1)
        self.times = positive.size * (positive.size - 1) / max(1, pairs)
        self.left = np.maximum(self.s * K.diagonal, 0.0)
        self.blocks: list[Array] = []
        self.sizes = [self._size()]

    def factor(self, ridge: Array, group: Indices) -> Array:
        """F (n, m) for columns with these Lambda, each on the rows of its group."""
        best = self._best(ridge, group)
        empty = self.arrays.empty((self.K.shape[0], 0), self.K.dtype)
        return self.arrays.lib.concat([empty, *self.blocks[:best]], axis=1)  # type: ignore[no-any-return]

    def _best(self, ridge: Array, group: Indices) -> int:
        """The number of blocks of least cost; blocks are drawn as needed."""
        best, lowest = 0, self._seconds(0, ridge, group)
        for count in range(1, self.most + 1):
            if count > len(self.blocks) and not self._grow():
                break
            cost = self._seconds(count, ridge, group)
            if cost < lowest:
                best, lowest = count, cost
            elif count - best >= MAX_BLOCKS_WITHOUT_GAIN:
                break
        return best

    def steps(self, ridge: Array, group: Indices) -> Array:
        """Expected steps of conjugate gradients for each column."""
        return self._steps(self._best(ridge, group), ridge)

    def seconds(self, ridge: Array, group: Indices) -> float:
        """Expected time of set-up and iteration."""
        return self._seconds(self._best(ridge, group), ridge, group)

    def _steps(self, count: int, ridge: Array) -> Array:
        return np.asarray(CG_STEPS_PER_ROOT_CONDITION * np.sqrt(1.0 + self.sizes[count] / ridge))

    def _seconds(self, count: int, ridge: Array, group: Indices) -> float:
        """The same with a number of blocks."""
        steps, groups = self._steps(count, ridge), np.unique(group).size
        several = np.unique(np.stack([group, ridge]), axis=1).shape[1] > groups
        longest, m = float(steps.max()), count * BLOCK_COLUMNS
        columns = float(steps.sum()) / longest  # those that have converged leave
        return iteration_cost(
            self.s.size, m, columns, groups, longest, self.rates, several, not self.K.held
        ).seconds

    def _grow(self) -> bool:
        """Draw a block; False if the remainder is rounding only."""
        epsilon = float(np.finfo(self.K.dtype).eps)
        total = float(self.left.sum())
        if total <= 100.0 * epsilon * float(np.abs(self.s * self.K.diagonal).sum()):
            return False
        rows = np.unique(
            self.random.choice(self.left.size, size=BLOCK_COLUMNS, p=self.left / total)
        )
        xp, columns = self.arrays, self.K.columns(rows)
        for block in self.blocks:
            columns -= block @ xp.rows(block, rows).T
        values, vectors = np.linalg.eigh(xp.host(xp.rows(columns, rows)))
        kept = values > 100.0 * rows.size * epsilon * values[-1]
        block = columns @ xp.asarray(vectors[:, kept] / np.sqrt(values[kept]))
        self.blocks.append(block)
        squares = xp.host(xp.lib.sum(block * block, axis=1))
        self.left = np.maximum(self.left - self.s * squares, 0.0)
        own = np.sqrt(self.s[self.rows])[:, None] * xp.host(xp.rows(block, self.rows))
        self.small -= own @ own.T
        self.sizes.append(self._size())
        return True

    def _size(self) -> float:
        """e, by the diagonal of E and a sample of its other entries."""
        total = float(self.left.sum())
        if total == 0.0:
            return 0.0
        others = float(np.square(self.small).sum() - np.square(np.diag(self.small)).sum())
        squares = float(np.square(self.left).sum()) + self.times * others
        return squares / total
