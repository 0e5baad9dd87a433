"""A low-rank factor below a kernel matrix, F F' <= K, from some of its columns.

F comes from a Cholesky factorisation of K whose pivots are drawn at random, in blocks [1]_. With
E = K - F F' what is left of K, the next pivots Z are drawn in proportion to its diagonal, and the
columns E_.Z E_ZZ^(-1/2) join F. So E stays positive semidefinite, and I + R F F'R is a
preconditioner of I + R K R that makes no eigenvalue worse. Rows that F explains already are hardly
ever drawn again, which columns drawn uniformly are.

**When to stop.** Steps of conjugate gradients grow as the root of 1 + e R^2, with e the size of the
eigenvalues of E that matter. Their mean weighted by themselves, tr(E^2) / tr(E), is known from
the diagonal of E and from the squares of a small sample of its other entries; e is taken for twice
that, as a few kernels on one data set had it. The set-up grows as n m^2 + folds m^3. Blocks join F
until the sum of both has risen for a while, and those that do not pay leave again. Where K is
nearly diagonal that is all of them.

References
----------
.. [1] Y. Chen, E. N. Epperly, J. A. Tropp and R. J. Webber, "Randomly pivoted Cholesky: practical
   approximation of a kernel matrix with few entry evaluations", Communications on Pure and Applied
   Mathematics 78, 2025.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit._types import Array
from onefit.linalg.tiles import Tiles, take_columns

__all__ = ["LowRank"]

#: columns that join F at a time, at most in all, and numbers that F may have
BLOCK, MOST, ROOM = 100, 1500, 2**28
#: rows whose eigenvalues stand for those of K
SAMPLE = 500
#: blocks without gain after which no more join
PATIENCE = 3
#: steps of conjugate gradients for each unit of the root of the condition number
STEPS = 8.0
#: e, in units of tr(E^2) / tr(E)
MATTER = 2.0
#: operations, in those of a product: a small eigendecomposition in m^3, an entry of a tile; and the
#: columns below which a product takes no less time
DECOMPOSITION, ENTRY, NARROW = 24.0, 400.0, 28.0


class LowRank:
    """F, with as many columns as are worth their cost.

    Parameters
    ----------
    K : array or Tiles
    s : (n,) array
        Weights: rows of weight zero are never drawn.

    Attributes
    ----------
    blocks : list of (n, b) arrays
        The columns of F.
    left : (n,) array
        s times the diagonal of K - F F'.
    sizes : list of float
        e of R (K - F F') R, R^2 = diag(s), before the first block and after each.
    """

    def __init__(self, K: Any, s: Array) -> None:
        self.K, self.s = K, s.astype(np.float64)
        self.random = np.random.default_rng(0)
        positive = np.flatnonzero(s)
        self.rows = np.sort(self.random.permutation(positive)[:SAMPLE])
        root = np.sqrt(self.s[self.rows])
        tiled = isinstance(K, Tiles)
        small = K.block(self.rows, None) if tiled else K[np.ix_(self.rows, self.rows)]
        self.small = small * root[:, None] * root
        pairs = self.rows.size * (self.rows.size - 1)
        self.times = positive.size * (positive.size - 1) / max(1, pairs)
        self.left = np.maximum(self.s * K.diagonal(), 0.0)
        self.blocks: list[Array] = []
        self.sizes = [self._size()]

    @property
    def most(self) -> int:
        """Blocks that there may be."""
        n = int(self.K.shape[0])
        return min(MOST, n // 3, ROOM // n) // BLOCK

    def factor(self, ridge: Array, folds: int) -> Array:
        """F (n, m) for columns with these Lambda, on so many different sets of rows."""
        best = self._best(ridge, folds)
        empty = np.empty((self.K.shape[0], 0), dtype=self.K.dtype)
        return np.concatenate([empty, *self.blocks[:best]], axis=1)

    def _best(self, ridge: Array, folds: int) -> int:
        """How many blocks cost least; drawn as far as that takes."""
        best, lowest = 0, self._cost(0, ridge, folds)
        for count in range(1, self.most + 1):
            if count > len(self.blocks) and not self._grow():
                break
            cost = self._cost(count, ridge, folds)
            if cost < lowest:
                best, lowest = count, cost
            elif count - best >= PATIENCE:
                break
        return best

    def steps(self, ridge: Array, folds: int) -> Array:
        """Steps of conjugate gradients that are expected of columns with these Lambda."""
        best = self._best(ridge, folds)
        return np.asarray(STEPS * np.sqrt(1.0 + self.sizes[best] / ridge))

    def _cost(self, count: int, ridge: Array, folds: int) -> float:
        """Of set-up and iteration with so many blocks, in operations of a product."""
        n, m = int(self.K.shape[0]), count * BLOCK
        steps = STEPS * np.sqrt(1.0 + self.sizes[count] / ridge)
        products = float(steps.sum() + NARROW * steps.max())
        entries = ENTRY * n * n / 2.0 * float(steps.max()) if isinstance(self.K, Tiles) else 0.0
        setup = 6.0 * n * m * m + DECOMPOSITION * folds * float(m) ** 3
        return setup + entries + (2.0 * n * n + 4.0 * n * m) * products

    def _grow(self) -> bool:
        """Draw a block; False where nothing but rounding is left to draw from."""
        epsilon = float(np.finfo(self.K.dtype).eps)
        total = float(self.left.sum())
        if total <= 100.0 * epsilon * float(np.abs(self.s * self.K.diagonal()).sum()):
            return False
        rows = np.unique(self.random.choice(self.left.size, size=BLOCK, p=self.left / total))
        columns = take_columns(self.K, rows)
        for block in self.blocks:
            columns -= block @ block[rows].T
        values, vectors = np.linalg.eigh(columns[rows])
        kept = values > 100.0 * rows.size * epsilon * values[-1]
        block = columns @ (vectors[:, kept] / np.sqrt(values[kept]))
        self.blocks.append(block)
        self.left = np.maximum(self.left - self.s * np.square(block).sum(axis=1), 0.0)
        own = np.sqrt(self.s[self.rows])[:, None] * block[self.rows]
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
        return MATTER * squares / total
