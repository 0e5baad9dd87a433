"""Steps on the rows near a kink only.

Let W be the rows that have curvature in some problem of a front, or may come to have it or to
change their piece. Any other row keeps its gradient, and with it its coefficient a_i = -s_i g_i /
(2 Lambda). With these as they stay, v the predictions that they make and ``rest`` their sum, the
objective is, up to a constant,

    sum_W s V(y, u) + Lambda a_W'K_WW a_W - 2 Lambda b rest,        u_W = K_WW a_W + v + b:

the linear losses of the other rows take from it what the penalty adds for a_W'v. Changes of u_W
from a base at which those rows have their coefficients already need no v, so a front of the rows W
has to know ``rest`` alone. Where it stands, other rows may still be on their way; its first step,
to the minimiser of the model, is a full one and leaves that behind.

W is a guess, and the answer tells whether it was right: where another row has left its piece, the
steps go on with all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.heldout.apart import Apart
from onefit.heldout.front import Front
from onefit.heldout.model import product
from onefit.heldout.point import Point
from onefit.heldout.repair import approach

Array = NDArray[Any]
Rows = NDArray[np.intp]

__all__ = ["approach_near", "near"]


def near(front: Front, former: Array, reach: Array) -> Rows:
    """W: the rows that have curvature where a front stands, or are on another piece within reach of
    there, or at the former predictions, those of the base's coefficients, in any problem.
    """
    loss = front.target.problem.loss
    steady = loss.curvature(front.y, front.u) == 0.0
    for u in (former, front.u - reach, front.u + reach):
        steady &= loss.piece(front.y, u) == front.pieces
    return np.flatnonzero((~steady & front.train).any(axis=1))


def approach_near(front: Front, rows: Rows) -> None:
    """Newton steps on some rows; columns at their solutions are settled."""
    part = _part(front, rows)
    approach(part, full=True)
    base, problem = front.base, front.target.problem
    change = np.zeros_like(base.a)
    change[rows] = part.a - base.a[rows]
    u = product(problem.K, change)
    u += base.u
    u += part.b - base.b
    pieces = problem.loss.piece(front.y, u)
    left = (pieces != front.pieces) & front.train
    left[rows] = False
    front.a, front.b, front.u, front.pieces = base.a + change, part.b, u, pieces
    front.base = Point(front.a, front.b, front.u).copy()
    front.steps, front.settled = part.steps, part.settled & ~left.any(axis=0)


def _part(front: Front, rows: Rows) -> Front:
    """The front on some rows, each problem by a factor of its own."""
    base, target = front.base, front.target.take(rows)
    point, inner = (Point(_rows(x.a, rows), x.b.copy(), _rows(x.u, rows)) for x in (front, base))
    factor = Apart.of(target, front.factor.norms, front.ridge)
    train, pieces = _rows(front.train, rows), _rows(front.pieces, rows)
    part = Front.at(target, factor, train, point, inner, pieces)
    part.rest = base.a.sum(axis=0) - inner.a.sum(axis=0)
    return part


def _rows(x: Array, rows: Rows) -> Array:
    return np.asfortranarray(x[rows])
