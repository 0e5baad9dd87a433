r"""Least squares on many parts of the same rows, by factors or iterations in single precision.

The model of a part A solves

    (K_AA + c I) a + b 1 = y_A,         1'a = 0,                                               (1)

where c may depend on the part. Each way below solves (1) in single precision, and again for the
residual e = y_A - (K_AA + c I) a - b 1, computed in double precision, until the next correction
would change predictions by less than ``CHANGE_PER_TARGET``. A correction changes those of A by
e - c da. Where corrections do not shrink quickly, because (1) is ill-conditioned, a factor in
double precision is used instead (onefit.prefixes.factor).

**A factor** of the rows in an order serves all leading parts with the same ridge. A correction
multiplies the error by about the condition number times 1e-7.

**Conjugate gradients** (onefit.inverse.krylov) solve (1) for all large parts of all orders side by
side, with a ridge for each part: a step takes one product with K for all of them. With p parts of
m rows a factor for each takes p m^3 / 3 operations, and t steps take 2 p t n^2. So they pay where
each part has a ridge of its own (``scaling="mean"``), the ridges are not small, and there are many
rows. The steps are estimated from the spectrum of K (onefit.inverse.low_rank).

**A part that has all rows of an order** is the same part for all orders of these rows, and is
solved once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.gram import DenseGram
from onefit.inverse.krylov import CG_RESIDUAL, Ridged, bordered
from onefit.inverse.low_rank import LowRank
from onefit.prefixes.factor import Prefixes

__all__ = ["MAX_COLUMNS", "Order", "PartFits"]

#: change of a prediction, in units of the largest target, at which corrections end
#: (benchmarks/constants.py, with the next)
CHANGE_PER_TARGET = 1e-9
#: largest ratio of a correction to the last one; with more, a factor in double precision is cheaper
MAX_CORRECTION_RATIO = 1e-2
#: columns of n rows that are solved side by side (benchmarks/constants.py)
MAX_COLUMNS = 100

#: a and b for residuals (n, k) and sums of coefficients (k,)
_Solve = Callable[[Array, Array], tuple[Array, Array]]


class Order(NamedTuple):
    """Leading parts of some rows.

    Attributes
    ----------
    rows : (m,) array of int
        In their order.
    sizes : (S,) array of int
        Of the parts, increasing.
    ridges : (S,) array
        c of every part.
    """

    rows: Indices
    sizes: Indices
    ridges: Array

    def groups(self) -> Iterator[Indices]:
        """Places of the sizes that have the same ridge."""
        for ridge in np.unique(self.ridges):
            yield np.flatnonzero(self.ridges == ridge)

    def take(self, places: Indices) -> Order:
        """Some of the parts, on the rows of the largest one."""
        sizes = self.sizes[places]
        return Order(self.rows[: sizes.max(initial=0)], sizes, self.ridges[places])

    @property
    def operations(self) -> float:
        """Those of the factors of all groups."""
        return sum(float(self.sizes[group[-1]]) ** 3 / 3.0 for group in self.groups())


class Fit(NamedTuple):
    """Coefficients (n, q) of all rows, zero outside of the part, and intercepts (q,)."""

    a: Array
    b: Array


@dataclass(frozen=True)
class PartFits:
    """The models of parts of the rows.

    Parameters
    ----------
    K : (n, n) array
    Y : (n, q) array
    fit_intercept : bool
    """

    K: Array = field(repr=False)
    Y: Array = field(repr=False)
    fit_intercept: bool

    def fits(self, orders: Sequence[Order]) -> Iterator[list[Fit]]:
        """The models of all parts of each order."""
        known = self._by_iteration(orders) if self.K.dtype == np.float64 else {}
        for number, order in enumerate(orders):
            found = {
                place: known[key]
                for place in range(order.sizes.size)
                if (key := _key(orders, number, place)) in known
            }
            left = np.setdiff1d(np.arange(order.sizes.size), list(found))
            for places in self._chunks(left, order):
                for place, fit in zip(places, self._by_factor(order.take(places)), strict=True):
                    found[place] = fit
                    if order.sizes[place] == order.rows.size:
                        known[_key(orders, number, place)] = fit
            yield [found[place] for place in range(order.sizes.size)]

    def _chunks(self, places: Indices, order: Order) -> Iterator[Indices]:
        """Some of the sizes of an order, with equal ridges and not too many columns."""
        for group in order.take(places).groups():
            columns = group.size * self.Y.shape[1]
            yield from np.array_split(places[group], -(-columns // MAX_COLUMNS))

    @cached_property
    def _single(self) -> Array:
        return self.K.astype(np.float32)

    def _by_factor(self, order: Order) -> list[Fit]:
        """By one factor, in single precision where that is enough; all ridges are equal."""
        rows, sizes, ridge = order.rows, order.sizes, float(order.ridges[0])
        found = self._corrected_factor(order) if self.K.dtype == np.float64 else None
        if found is None:
            M = linalg.submatrix(self.K, rows, rows)
            prefixes = Prefixes(M, self.Y[rows], ridge, self.fit_intercept, overwrite=True)
            a = self._scattered(rows, prefixes.coefficients(sizes))
            found = a, prefixes.intercepts[sizes - 1]
        return self._fits(*found)

    @linalg.overflowing
    def _corrected_factor(self, order: Order) -> tuple[Array, Array] | None:
        rows, sizes, q = order.rows, order.sizes, self.Y.shape[1]
        M = linalg.submatrix(self._single, rows, rows).T
        M[np.diag_indices(rows.size)] += np.float32(order.ridges[0])
        try:
            lower = linalg.cholesky(M, overwrite=True)
        except linalg.LinAlgError:
            return None
        one = linalg.solve_lower(lower, np.ones(rows.size, dtype=np.float32))
        inside = np.arange(rows.size)[:, None] < np.repeat(sizes, q)
        weights = np.cumsum(np.square(one), dtype=np.float64)[np.repeat(sizes, q) - 1]

        def solve(residual: Array, total: Array) -> tuple[Array, Array]:
            size = np.abs(residual).max(axis=0)
            size[size == 0.0] = 1.0
            right = np.asfortranarray(residual[rows] / size, np.float32)
            t = inside * linalg.solve_lower(lower, right)
            db = np.zeros(size.size)
            if self.fit_intercept:
                db = (one @ t + total / size) / weights
                t = inside * (t - db * one[:, None])
            da = linalg.solve_lower(lower, np.asfortranarray(t, np.float32), transposed=True)
            return self._scattered(rows, da * size), db * size

        return self._corrected([order], solve)

    def _by_iteration(self, orders: Sequence[Order]) -> dict[tuple[bytes, float], Fit]:
        """The models of the parts with more than half of the rows, where that pays; else none."""
        if all(order.ridges[0] == order.ridges[-1] for order in orders):
            return {}  # one factor for each order
        large = [order.take(np.flatnonzero(2 * order.sizes > order.rows.size)) for order in orders]
        small = [order.take(np.flatnonzero(2 * order.sizes <= order.rows.size)) for order in orders]
        saved = sum(one.operations for one in orders) - sum(one.operations for one in small)
        rows = np.unique(np.concatenate([order.rows for order in orders]))
        distinct = _distinct(large)
        ridges = np.repeat([order.ridges[0] for order in distinct], self.Y.shape[1])
        # a step for each column, which spares the copy of K where there are few rows
        few = saved < 2.0 * float(rows.size) ** 2 * ridges.size
        if few or ridges.size > MAX_COLUMNS:
            return {}
        K = DenseGram(linalg.submatrix(self._single, rows, rows))
        low_rank = LowRank(K, np.ones(rows.size, dtype=np.float32))
        group = np.repeat(np.arange(len(distinct)), self.Y.shape[1])
        factors = low_rank.rates.cholesky_factor.cost(saved, rows.size)
        if factors.seconds < low_rank.seconds(ridges, group):
            return {}
        root = np.zeros((rows.size, ridges.size))
        for number, column in enumerate(group):
            part = distinct[column]
            root[np.searchsorted(rows, part.rows), number] = 1.0 / np.sqrt(part.ridges[0])
        systems = Ridged.prepare(
            K, low_rank.factor(ridges, group), root.astype(np.float32),
            np.arange(ridges.size), np.ones(ridges.size, dtype=np.float32), self.fit_intercept,
        )  # fmt: skip

        def solve(residual: Array, total: Array) -> tuple[Array, Array]:
            da, db = bordered(systems, root, residual[rows], total, CG_RESIDUAL)
            return self._scattered(rows, da), db

        found = self._corrected(distinct, solve)
        if found is None:
            return {}
        fits = self._fits(*found)
        return {_key(distinct, i, 0): fit for i, fit in enumerate(fits)}

    @linalg.overflowing
    def _corrected(self, orders: Sequence[Order], solve: _Solve) -> tuple[Array, Array] | None:
        """a (n, k) and b (k,), a column per part and target; None if corrections do not shrink."""
        q = self.Y.shape[1]
        c = np.repeat(np.concatenate([order.ridges for order in orders]), q)
        residual, scale = np.zeros((len(self.K), c.size), order="F"), np.ones(c.size)
        parts = [order.rows[:m] for order in orders for m in order.sizes]
        for place, rows in enumerate(parts):
            columns = slice(place * q, (place + 1) * q)
            residual[rows, columns] = self.Y[rows]
            scale[columns] = np.abs(self.Y[rows]).max(axis=0)
        scale[scale == 0.0] = 1.0
        inside = np.zeros(residual.shape, dtype=bool, order="F")
        for place, rows in enumerate(parts):
            inside[rows, place * q : (place + 1) * q] = True
        a, b, last = np.zeros_like(residual), np.zeros(c.size), np.inf
        while True:
            da, db = solve(residual, a.sum(axis=0))
            a, b = a + da, b + db
            change = float((np.abs(residual - c * da) / scale).max())
            if not (np.isfinite(change) and change <= MAX_CORRECTION_RATIO * last):
                return None
            if last < np.inf and change * change / last <= CHANGE_PER_TARGET:
                return a, b
            product = linalg.row_product(self.K, np.asfortranarray(da))
            residual = residual - inside * (product + c * da + db)
            last = change

    def _scattered(self, rows: Indices, a: Array) -> Array:
        """Coefficients of some rows among those of all."""
        whole = np.zeros((len(self.K), *a.shape[1:]), dtype=self.K.dtype, order="F")
        whole[rows] = a
        return whole

    def _fits(self, a: Array, b: Array) -> list[Fit]:
        n, q = self.Y.shape
        a, b = a.reshape(n, -1, q), b.reshape(-1, q)
        return [Fit(a[:, place], b[place]) for place in range(len(b))]


def _key(orders: Sequence[Order], number: int, place: int) -> tuple[bytes, float]:
    """The same for equal parts with equal ridges."""
    order = orders[number]
    rows = order.rows[: order.sizes[place]]
    return np.sort(rows).tobytes(), float(order.ridges[place])


def _distinct(orders: Sequence[Order]) -> list[Order]:
    """Every part by itself; those that are equal once."""
    parts = {
        _key(orders, number, place): orders[number].take(np.array([place]))
        for number, order in enumerate(orders)
        for place in range(order.sizes.size)
    }
    return list(parts.values())
