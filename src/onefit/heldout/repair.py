"""Newton steps that take leave-out problems from the full solution to their own.

For a piecewise quadratic loss a column is at its solution when a full step moves no point to
another piece; for a smooth one, with its curvature frozen, when the error bound says so. What does
not get there is refitted from where it stands.
"""

from __future__ import annotations

import numpy as np

from onefit.heldout.front import TOLERANCE, Front

__all__ = ["refine", "repair"]

MAX_STEPS = 40


def refine(front: Front) -> None:
    """Bound the errors, and refine settled columns whose rounding is too much for the bound."""
    front.recompute()
    front.bound()
    rough = np.flatnonzero(front.settled & (front.error > TOLERANCE * front.scale))
    if rough.size:
        part = front.take(rough)
        part.step()
        part.steps = part.steps - 1  # the same point again, with more digits
        part.recompute()
        part.bound(refined=True)
        front.put(rough, part)


def repair(front: Front) -> None:
    """Newton steps until every column is at its solution."""
    piecewise = front.target.problem.loss.piecewise_quadratic
    pending = np.arange(front.b.size)
    for _ in range(MAX_STEPS):
        part = front.take(pending)
        before = part.error
        part.step()
        if piecewise:
            left, slow = ~part.settled, np.zeros(pending.size, dtype=bool)
        else:
            part.bound()
            left = part.error > TOLERANCE * part.scale
            slow = left & part.slow(before) & np.isfinite(before)
        front.put(pending, part)
        for column in pending[slow]:
            front.refit(int(column))
        pending = pending[left & ~slow]
        if pending.size == 0:
            break
    if piecewise:
        refine(front)
    for column in np.union1d(pending, np.flatnonzero(np.isinf(front.error))):
        front.refit(int(column))
