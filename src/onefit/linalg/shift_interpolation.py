r"""Shift interpolation: the weights 1/(e + c) at many shifts c from those at a few.

Methods that hold eigenvalues e sum terms of weight 1/(e + c) over them, once for every c. Over
eigenvalues of similar size these functions of e depend on c so smoothly that those at a few c,
the chosen J, give all the others,

    1/(e + c_l) = sum_{j in J} T_jl / (e + c_j),

up to a relative error of WEIGHT_TOLERANCE * MAX_EIGENVALUE_RATIO,

and the sums at every c are combinations of the sums at the chosen ones. The relative error of a
weight, and so that of a sum of positive semidefinite terms, is at most that large: there is no new
cancellation.

The eigenvalues are cut into groups, those far below every c into one, the others by size. A
pivoted QR of the weights at sample points of a group's range picks its chosen c and T (an
interpolative decomposition).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import qr, solve_triangular

from onefit._types import Array, Indices

__all__ = ["ShiftGroup", "interpolate_shifts", "shift_groups"]

# benchmarks/constants.py varies these: only with fewer sample points do values lose digits
#: relative to the largest weight of a group, for eigenvalues of any type
WEIGHT_TOLERANCE = 2.5e-13
#: ratio of the largest to the smallest eigenvalue of a group
MAX_EIGENVALUE_RATIO = 20.0
#: eigenvalues below this share of the smallest c are one group
SMALL_EIGENVALUE_SHARE = 1e-3
#: sample points of a group's range
SAMPLE_POINTS = 48
#: cost of a sum in addition to its eigenvalues, in eigenvalues
CALL_COST_IN_EIGENVALUES = 50


@dataclass(frozen=True)
class ShiftGroup:
    """Eigenvalues of similar size, with the shifts whose sums give those at all the others.

    Attributes
    ----------
    group : slice
        Of the eigenvalues, which ascend.
    chosen : (r,) index array
        J, among the c.
    combine : (r, L) array
        T.
    error : (L,) array
        The largest relative error of a weight of the group, with the rounding of the combination.
    """

    group: slice
    chosen: Indices
    combine: Array
    error: Array


def interpolate_shifts(values: Array, ridges: Array) -> list[ShiftGroup] | None:
    """Groups of ascending eigenvalues with their chosen c; None if one c at a time is less work."""
    groups = shift_groups(values, ridges)
    work = sum(
        one.chosen.size
        * (one.group.stop - one.group.start + CALL_COST_IN_EIGENVALUES + ridges.size)
        for one in groups
    )
    return groups if work < ridges.size * (values.size + CALL_COST_IN_EIGENVALUES) else None


def shift_groups(values: Array, ridges: Array) -> list[ShiftGroup]:
    """Groups of ascending eigenvalues with their chosen c."""
    ends = [0, int(np.searchsorted(values, SMALL_EIGENVALUE_SHARE * ridges.min()))]
    while ends[-1] < values.size:
        ends.append(
            int(np.searchsorted(values, MAX_EIGENVALUE_RATIO * values[ends[-1]], side="right"))
        )
    groups = [slice(a, b) for a, b in pairwise(ends) if a < b]
    found = []
    for group in groups:
        chosen, combine = _interpolate(values[group], ridges)
        error = _error(values[group], ridges, chosen, combine)
        found.append(ShiftGroup(group, chosen, combine, error))
    return found


def _error(values: Array, ridges: Array, chosen: Indices, combine: Array) -> Array:
    """The largest relative error of a weight at every c."""
    weights = 1.0 / (values[:, None].astype(np.float64) + ridges)
    missed = np.abs(weights[:, chosen] @ combine - weights)
    rounding = np.finfo(values.dtype).eps * (weights[:, chosen] @ np.abs(combine))
    return np.asarray(((missed + rounding) / weights).max(axis=0))


def _interpolate(values: Array, ridges: Array) -> tuple[Indices, Array]:
    """J and T of one group."""
    low, high = float(values[0]), float(values[-1])
    # evenly spaced logarithms; evenly spaced if the range starts at zero
    steps = np.linspace(0.0, 1.0, SAMPLE_POINTS)
    at = low * (high / low) ** steps if low > 0.0 else high * steps
    weights = 1.0 / (at[:, None] + ridges)
    size = weights.max(axis=0)
    upper, pivots = qr(weights / size, mode="r", pivoting=True)
    pivot = np.abs(np.diagonal(upper))
    rank = int(np.count_nonzero(pivot > WEIGHT_TOLERANCE * pivot[0]))
    combine = np.eye(rank, ridges.size)
    combine[:, rank:] = solve_triangular(upper[:rank, :rank], upper[:rank, rank:])
    chosen = pivots[:rank]
    ordered = np.empty_like(combine)
    ordered[:, pivots] = combine * (size[pivots] / size[chosen][:, None])
    return chosen, ordered
