"""Leading bits of numbers, whose products are summed without rounding.

A slice has the leading SLICE_BITS bits of some numbers, counted from those of the largest. A
product of two slices has 2 SLICE_BITS bits, and 2^17 of them add up in double precision without
rounding: a matrix product of slices is exact in any order of summation [1]_.

References
----------
.. [1] K. Ozaki, T. Ogita, S. Oishi and S. M. Rump, "Error-free transformations of matrix
   multiplication by using fast routines of matrix multiplication and its applications", Numerical
   Algorithms 59, 2012.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["SLICE_BITS", "leading", "power_of_two", "top_of", "two_sum"]

#: bits of a slice
SLICE_BITS = 18


def top_of(size: Any) -> Any:
    """Constant that, added and subtracted, leaves SLICE_BITS bits of numbers up to a size."""
    return np.exp2(np.ceil(np.log2(np.maximum(size, np.finfo(np.float64).tiny))) + 53 - SLICE_BITS)


def leading(x: Any, top: Any) -> Any:
    """The slice of an array x for a constant of :func:`top_of`."""
    out = x + top
    out -= top
    return out


def power_of_two(x: Any) -> Any:
    """The power of two nearest to every number, 1 for zero."""
    return np.exp2(np.round(np.log2(np.where(x > 0.0, x, 1.0))))


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """a + b rounded, and its rounding error."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)
