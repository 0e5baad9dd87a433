"""Sums and products in nearly twice the digits of double precision, by double precision alone.

The residuals that error bounds are made of are small differences of large numbers: where lambda is
tiny, K a is a sum of terms many powers of ten above it. Everything here is made of two operations
whose rounding error is itself computed exactly, the sum and the product of two numbers [1]_, and of
matrix products whose factors are so short that nothing is rounded at all (onefit.linalg.slices).

References
----------
.. [1] T. J. Dekker, "A floating-point technique for extending the available precision", Numerische
   Mathematik 18, 1971.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.linalg.slices import SLICE_BITS, leading, power_of_two, top_of, two_sum
from onefit.proof.norms import Norms

__all__ = [
    "EPSILON",
    "precise_summation",
    "predictions",
    "summation",
    "two_product",
    "two_sum",
]

#: rounding of one operation
EPSILON = float(np.finfo(np.float64).eps)


def summation(n: int, block: int = 0) -> float:
    """What rounding may make of a sum of n products, relative to the sum of their sizes.

    n roundings that all have one sign would make n times EPSILON / 2. Independent ones stay below
    this with a probability that leaves no doubt (Higham and Mary 2019). Where blocks are added up
    first, and then their sums, no term is rounded more often than both have terms.
    """
    n = min(n, block + -(-n // block)) if block else n
    return float(EPSILON * min(float(n), 8.0 + 6.0 * n**0.5))


def precise_summation(n: int) -> float:
    """The same for `predictions` that are precise, their last rounding apart."""
    return 8.0 * EPSILON**2 + 2.0 ** (4 - 3 * SLICE_BITS) * n * summation(n)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a b rounded, and its rounding error."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    error = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return product, error


def _halves(a: Any) -> tuple[Any, Any]:
    """Two numbers of half as many bits."""
    scaled = 134217729.0 * a
    high = scaled - (scaled - a)
    return high, a - high


def predictions(
    norms: Norms, rows: Array, columns: Array, a: Array, plus: Any = 0.0, low: Array | None = None
) -> Array:
    """K[rows, columns] a + plus in double precision, or precisely.

    Parameters
    ----------
    norms : Norms
        Of K.
    rows, columns : index arrays
    a : (m, k) array
    plus : (n, k) or (k,) array, default=0.0
        Where it takes away most of the product, digits of the difference are what is won.
    low : (m, k) array, default=None
        What the coefficients have beyond the digits of a; the sum is precise where it is given.

    Notes
    -----
    With T = diag(t) the powers of two next to the roots of K's diagonal, T^-1 K T^-1 and T a are
    cut into three slices and a rest. The products of slices that matter are exact, and added
    without loss.
    """
    a = np.asarray(a, dtype=np.float64)
    xp = norms.K.arrays
    whole = low is None if not xp.on_host else not norms.K.held
    if whole:
        V = np.zeros((norms.roots.size, a.shape[1]))
        V[columns] = a
        return np.asarray(norms.K.matmul(V)[rows] + plus)
    plus = np.broadcast_to(plus, (rows.size, a.shape[1]))
    out = np.empty(plus.shape)
    t = power_of_two(norms.roots)
    height = xp.panel_rows
    for first in range(0, rows.size, height):
        some = slice(first, first + height)
        K = norms.part(rows[some], columns)
        if low is None:
            out[some] = linalg.matmul(K, a) + plus[some]
        else:
            out[some] = _precise(xp, K, a, low, plus[some], t[rows[some]][:, None], t[columns])
    return out


def _precise(
    xp: linalg.Arrays, K: Any, a: Array, low: Array, plus: Array, left: Array, right: Array
) -> Array:
    """Slices of K are made, and multiplied, where K is; what is as small as a is NumPy's."""

    def times(part: Any, b: Array) -> Array:
        return xp.host(xp.matmul(part, xp.asarray(b)))

    K, a, low = K / xp.asarray(left) / xp.asarray(right), right[:, None] * a, right[:, None] * low
    plus = plus / left
    K1, K2, K3, K4 = _slices(K, float(top_of(4.0)))
    a1, a2, a3, a4 = _slices(a, top_of(np.abs(a).max(axis=0, initial=0.0)))
    first, lost = two_sum(times(K1, a1), plus)
    second, lost2 = two_sum(times(K1, a2), times(K2, a1))
    third, lost3 = two_sum(times(K1, a3), times(K2, a2))
    third, lost4 = two_sum(third, times(K3, a1))
    rest = times(K1, a4) + times(K2, a3 + a4) + times(K3, a - a1)
    rest += times(K4, a) + times(K, low)
    total, lost5 = two_sum(first, second)
    total, lost6 = two_sum(total, third)
    return np.asarray(
        left * (total + (((lost + lost5) + (lost2 + lost6)) + (lost3 + lost4 + rest)))
    )


def _slices(x: Any, top: Any) -> tuple[Any, Any, Any, Any]:
    """Three times the leading SLICE_BITS bits, and what is left."""
    parts = []
    for _ in range(3):
        parts.append(leading(x, top))
        x, top = x - parts[-1], top * 2.0**-SLICE_BITS
    return parts[0], parts[1], parts[2], x
