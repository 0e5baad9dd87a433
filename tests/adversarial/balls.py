"""Ball arithmetic: numbers with a rigorous radius, by python-flint's arb.

An ``arb`` is a midpoint and a radius that surely hold the true number between them; every
operation keeps that promise, and a comparison is true only where it is certain. Matrices are
``arb_mat``, vectors plain lists.
"""

from __future__ import annotations

import math

import numpy as np
from flint import arb, arb_mat

__all__ = [
    "column",
    "dot",
    "entries",
    "exact",
    "matrix",
    "midpoints",
    "nearest",
    "positive_definite",
    "size",
    "total",
]


def exact(values):
    """Floats of any width as exact numbers."""
    return [arb(float(value)) for value in np.asarray(values).ravel()]


def matrix(values, rows, columns):
    """A matrix of some rows and columns of a symmetric array, each entry (K_ij + K_ji) / 2."""
    above = exact(values[np.ix_(rows, columns)])
    below = exact(values.T[np.ix_(rows, columns)])
    mean = [p if p == q else (p + q) / 2 for p, q in zip(above, below, strict=True)]
    return arb_mat(len(rows), len(columns), mean)


def column(values):
    """A list as a matrix of one column."""
    return arb_mat(len(values), 1, list(values))


def entries(m):
    """A matrix of one column as a list."""
    return m.entries()


def midpoints(values):
    """The same list without its radii, for steps that need not be rigorous."""
    return [value.mid() for value in values]


def total(values):
    """The sum of a list."""
    result = arb(0)
    for value in values:
        result += value
    return result


def dot(p, q):
    """The inner product of two lists."""
    return total(x * y for x, y in zip(p, q, strict=True))


def size(values):
    """An upper bound on the largest absolute value, itself exact."""
    result = arb(0)
    for value in values:
        bound = abs(value).upper()
        if not bound <= result:
            result = bound
    return result


def nearest(values):
    """Floats nearest to the midpoints, and a bound on how far they are from what the balls hold."""
    rounded = np.array([float(value.mid()) for value in values])
    if not np.isfinite(rounded).all():
        return rounded, math.inf
    gap = size([v - arb(f) for v, f in zip(values, rounded.tolist(), strict=True)])
    return rounded, math.nextafter(float(gap) * (1.0 + 1e-15), math.inf)


def positive_definite(m):
    """Whether a symmetric matrix is positive definite: True, False, or None where unsure.

    By the pivots of an elimination without exchange, which are all positive if and only if it is.
    """
    n = m.nrows()
    left = np.array(m.entries(), dtype=object).reshape(n, n)
    for k in range(n):
        pivot = left[k, k]
        if not pivot > 0:
            return False if pivot <= 0 else None
        row = left[k, k + 1 :]
        left[k + 1 :, k + 1 :] -= np.outer(row / pivot, row)
    return True
