"""The smallest ball that encloses points given by their inner products.

With G the matrix of inner products and p its diagonal, weights beta >= 0 that sum to one make a
centre c = sum_i beta_i x_i, at squared distances |x_j - c|^2 = p_j - 2 (G beta)_j + beta'G beta
from the points. The ball around c that reaches the farthest point encloses them all, and the
smallest ball's dual problem is a lower bound for every such beta:

    p'beta - beta'G beta  <=  R^2  <=  max_j |x_j - c|^2,

with equality on both sides at the maximiser of the left. So every beta bounds its distance from
R^2, however it was found: the difference is the *gap*.

**Active set.** On a face (the points whose weights may be positive) the maximiser solves one linear
system, 2 G beta + nu = p, 1'beta = 1. A walk towards it stops where the first weight becomes zero;
that point leaves the face, and the walk continues. At the face's own maximiser the points outside
the ball join the face, all of them. There the slope of the lower bound is the same in all weights
of the face and larger in those that join, so that an ascent raises at least one of these: some
points that joined may have to leave again at once, but never all, and the lower bound rises with
every round. As there are finitely many faces, the search ends. Points that are affinely dependent
would make the system singular: a ridge of the size of K's rounding is added for the walk, not for
the bounds. First the origin is moved to the mean of the points, because points far from the origin
would lose their differences in rounding. Then it is moved off the space that they span by their
root mean square distance, because the matrix of a face around the mean would be singular.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array, Mask
from onefit.linalg.blas import LinAlgError, fortran, matmul, solve_spd

__all__ = ["Ball", "enclosing_ball"]

#: a gap below this share of R^2 counts as zero
GAP_TOLERANCE = 1e-10


@dataclass(frozen=True)
class Ball:
    """A ball that encloses all points.

    Attributes
    ----------
    squared_radius : float
        Of the ball around sum_i weights_i x_i that reaches the farthest point.
    gap : float
        That minus a lower bound: the smallest ball's R^2 is within it.
    weights : (n,) array
        Not negative, with sum one; positive on points of the sphere only, where the gap is zero.
    """

    squared_radius: float
    gap: float
    weights: Array = field(repr=False)


def enclosing_ball(K: Array) -> Ball:
    """The smallest ball around points with inner products ``K``.

    Parameters
    ----------
    K : (n, n) array
        Symmetric and positive semidefinite.

    Examples
    --------
    The corners of a regular simplex of edge sqrt(2):

    >>> import numpy as np
    >>> round(enclosing_ball(np.eye(4)).squared_radius, 12)
    0.75
    """
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape[0] == 0:
        raise ValueError(f"K must be a square matrix of inner products, got shape {K.shape}")
    G = _moved(K)
    p, ridge = np.einsum("ii->i", G).copy(), _rounding(K)
    found, distances = _measured(G, p, _vertex(p))
    while found.gap > GAP_TOLERANCE * found.squared_radius:
        lower = found.squared_radius - found.gap
        better, beyond = _measured(G, p, _walk(G, p, ridge, found.weights, distances > lower))
        if better.squared_radius - better.gap <= lower:  # no improvement beyond rounding
            break
        found, distances = better, beyond
    return found


def _rounding(K: Array) -> float:
    """Bound on negative eigenvalues of inner products that are due to rounding."""
    largest = float(np.abs(np.einsum("ii->i", K)).max())
    epsilon, smallest = float(np.finfo(K.dtype).eps), float(np.finfo(np.float64).tiny)
    return max(float(K.shape[0]) * epsilon * largest, smallest)


def _moved(K: Array) -> Array:
    """Inner products around an origin beside the mean of the points, off their space."""
    G = fortran(K.astype(np.float64, copy=False))
    means = G.mean(axis=0)
    G -= means[:, None]
    G -= (means - means.mean())[None, :]
    G += np.einsum("ii->i", G).mean()
    return G


def _vertex(p: Array) -> Array:
    """All weight on the point farthest from the mean."""
    weights = np.zeros(p.size)
    weights[p.argmax()] = 1.0
    return weights


def _measured(G: Array, p: Array, weights: Array) -> tuple[Ball, Array]:
    """The ball around a centre, and the squared distances from it."""
    image = matmul(G, weights[:, None])[:, 0]
    size = float(weights @ image)
    distances = p - 2.0 * image + size
    farthest = float(distances.max())
    return Ball(farthest, max(farthest - float(p @ weights) + size, 0.0), weights), distances


def _walk(G: Array, p: Array, ridge: float, weights: Array, joining: Mask) -> Array:
    """Move to smaller faces until the maximiser of one has positive weights."""
    face = joining | (weights > 0.0)
    while True:
        target = _maximiser(G, p, ridge, face)
        falling = face & (target <= 0.0)
        if not falling.any():
            return target
        fall = weights - target
        # a zero weight that would decrease stops the walk at once
        part = np.divide(weights, fall, out=np.zeros_like(fall), where=falling & (weights > 0.0))
        step = part[falling].min()
        weights = np.maximum(weights - step * fall, 0.0)
        left = falling & (part <= step)
        weights[left] = 0.0
        face = face & ~left


def _maximiser(G: Array, p: Array, ridge: float, face: Mask) -> Array:
    """The weights with 2 G beta + nu = p on the face, zero elsewhere, that sum to one."""
    on = np.flatnonzero(face)
    M = fortran(G[np.ix_(on, on)])
    M[np.diag_indices_from(M)] += ridge
    sides = np.asfortranarray(np.column_stack([0.5 * p[on], np.ones(on.size)]))
    try:
        first, ones = solve_spd(M, sides, overwrite=True).T
    except LinAlgError as error:
        raise LinAlgError(f"the matrix of inner products is not semidefinite: {error}") from error
    weights = np.zeros(p.size)
    weights[on] = first + (1.0 - first.sum()) / ones.sum() * ones
    return weights
