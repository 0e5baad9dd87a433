"""A low-rank factor of a kernel matrix, F F' <= K, from some of its columns.

F comes from a Cholesky factorisation of K whose pivots are drawn at random, in blocks [1]_. With
E = K - F F' what is left of K, the next pivots Z are drawn in proportion to its diagonal, and the
columns E_.Z E_ZZ^(-1/2) join F. So E stays positive semidefinite, and I + R F F'R is a
preconditioner of I + R K R that makes no eigenvalue worse. Unlike with uniform sampling, rows that
F already explains are rarely drawn again.

**When to stop.** Steps of conjugate gradients grow as the root of 1 + e R^2, with e the size of the
eigenvalues of E that matter. Their mean weighted by themselves, tr(E^2) / tr(E), is known from
the diagonal of E and from the squares of a small sample of its other entries; e is set to twice
that, as measured for a few kernels on one data set. The set-up grows as n m^2 + folds m^3. Blocks
join F until the sum of both has risen for a while, and those that do not pay are dropped: all of
them if K is nearly diagonal.

References
----------
.. [1] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky: practical
   approximation of a kernel matrix with few entry evaluations", Communications on Pure and Applied
   Mathematics 78, 2025.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from onefit._types import Array
from onefit.linalg import arrays_of
from onefit.linalg.device import Device

__all__ = ["LowRank"]

#: rows whose eigenvalues approximate those of K
SPECTRUM_SAMPLE_ROWS = 500
#: blocks without gain after which no more are added
MAX_BLOCKS_WITHOUT_GAIN = 3
#: steps of conjugate gradients for each unit of the root of the condition number
CG_STEPS_PER_ROOT_CONDITION = 8.0
#: e, in units of tr(E^2) / tr(E)
TAIL_IN_MEAN_EIGENVALUES = 2.0


class Prices(NamedTuple):
    """The costs of set-up and iteration, and the limits of the set-up.

    Attributes
    ----------
    block, most, room : int
        Columns added to F at a time, their largest number, and the largest number of entries of F.
    decomposition, entry : float
        Cost in operations of a product: of a small eigendecomposition, per m^3, and of an entry of
        a tile.
    narrow : float
        Columns below which a product takes no less time.
    """

    block: int
    most: int
    room: int
    decomposition: float
    entry: float
    narrow: float


#: for K on the host, and on a device: those of an H200 (benchmarks/gpu.py)
PRICES = {
    True: Prices(100, 1500, 2**28, 24.0, 400.0, 28.0),
    False: Prices(250, 4000, 2**30, 200.0, 1000.0, 60.0),
}
#: rows below which blocks have the same number of columns as on the host
MIN_DEVICE_PRICED_ROWS = 5000


class LowRank:
    """The factor F; columns are added while they reduce the total cost.

    Parameters
    ----------
    K : Gram
    s : (n,) array
        Weights: rows of weight zero are never drawn.
    decomposition : float, default=None
        Operations on a small matrix, per cube of its size; None means those of an
        eigendecomposition.

    Attributes
    ----------
    blocks : list of (n, b) arrays
        The columns of F, on the device of K.
    left : (n,) array
        s times the diagonal of K - F F'.
    sizes : list of float
        e of R (K - F F') R, R^2 = diag(s), before the first block and after each.
    """

    def __init__(self, K: Any, s: Array, decomposition: float | None = None) -> None:
        self.K, self.s, self.arrays = K, s.astype(np.float64), arrays_of(K)
        self.prices = PRICES[self.arrays.on_host]
        if decomposition is not None:
            self.prices = self.prices._replace(decomposition=decomposition)
        if isinstance(self.arrays, Device):
            room = min(self.prices.room, int(self.arrays.room() / 32.0))  # F twice, and as much
            self.prices = self.prices._replace(room=room)
        if s.size < MIN_DEVICE_PRICED_ROWS:
            self.prices = self.prices._replace(block=PRICES[True].block)
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

    @property
    def most(self) -> int:
        """The largest number of blocks."""
        n, prices = int(self.K.shape[0]), self.prices
        return min(prices.most, n // 3, prices.room // n) // prices.block

    def factor(self, ridge: Array, folds: int) -> Array:
        """F (n, m) for columns with these Lambda, on ``folds`` different sets of rows."""
        best = self._best(ridge, folds)
        empty = self.arrays.empty((self.K.shape[0], 0), self.K.dtype)
        return self.arrays.lib.concat([empty, *self.blocks[:best]], axis=1)  # type: ignore[no-any-return]

    def _best(self, ridge: Array, folds: int) -> int:
        """The number of blocks of least cost; blocks are drawn as needed."""
        best, lowest = 0, self._cost(0, ridge, folds)
        for count in range(1, self.most + 1):
            if count > len(self.blocks) and not self._grow():
                break
            cost = self._cost(count, ridge, folds)
            if cost < lowest:
                best, lowest = count, cost
            elif count - best >= MAX_BLOCKS_WITHOUT_GAIN:
                break
        return best

    def steps(self, ridge: Array, folds: int) -> Array:
        """Expected steps of conjugate gradients for columns with these Lambda."""
        best = self._best(ridge, folds)
        return np.asarray(CG_STEPS_PER_ROOT_CONDITION * np.sqrt(1.0 + self.sizes[best] / ridge))

    def cost(self, ridge: Array, folds: int) -> float:
        """Expected operations of set-up and iteration."""
        return self._cost(self._best(ridge, folds), ridge, folds)

    def _cost(self, count: int, ridge: Array, folds: int) -> float:
        """Cost of set-up and iteration with a number of blocks, in operations of a product."""
        n, m, prices = int(self.K.shape[0]), count * self.prices.block, self.prices
        steps = CG_STEPS_PER_ROOT_CONDITION * np.sqrt(1.0 + self.sizes[count] / ridge)
        products = float(steps.sum() + prices.narrow * steps.max())
        tiled = not self.K.held
        entries = prices.entry * n * n / 2.0 * float(steps.max()) if tiled else 0.0
        setup = 6.0 * n * m * m + prices.decomposition * folds * float(m) ** 3
        return setup + entries + (2.0 * n * n + 4.0 * n * m) * products

    def _grow(self) -> bool:
        """Draw a block; False if the remainder is rounding only."""
        epsilon = float(np.finfo(self.K.dtype).eps)
        total = float(self.left.sum())
        if total <= 100.0 * epsilon * float(np.abs(self.s * self.K.diagonal).sum()):
            return False
        size = self.prices.block
        rows = np.unique(self.random.choice(self.left.size, size=size, p=self.left / total))
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
        return TAIL_IN_MEAN_EIGENVALUES * squares / total
