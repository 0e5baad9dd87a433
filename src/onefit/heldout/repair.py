"""Newton steps that take leave-out problems from the full solution to their own.

For a piecewise quadratic loss a column is at its solution when a full step moves no point to
another piece; for a smooth one, with its curvature frozen, when the error bound says so. What does
not get there is refitted from where it stands.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from onefit.certificate import EXACT
from onefit.heldout.front import TOLERANCE, Front
from onefit.heldout.refit import WANTED, cheap_to_refit

__all__ = ["refine", "repair", "sharpen"]

MAX_STEPS = 40
#: the part of the points with curvature below which the model says too little of the intercept
FEW = 1.0 / 12.0


def refine(front: Front) -> None:
    """Bound the errors, and refine settled columns whose rounding is too much for the bound.

    Those that do not have a certificate then are refitted if that costs little, or if they have
    ended at one side of a flat stretch, in whose middle a refit would be.
    """
    if front.drifted.any():
        front.recompute()
    front.bound()
    rough = np.flatnonzero(front.settled & ~(front.error <= EXACT * front.scale))
    if rough.size and front.double:
        part = front.take(rough)
        part.recompute(precise=True)
        part.step()
        part.steps = part.steps - 1  # the same point again, with more digits
        part.recompute(precise=True)
        part.bound()
        if (part.error > EXACT * front.scale).any():
            part.sharpen()
        better = np.flatnonzero(part.error < front.error[rough])
        front.put(rough[better], part, better)
    rough = rough[~(front.error[rough] <= EXACT * front.scale)]
    if not cheap_to_refit(front.a.shape[0], rough.size):
        rough = rough[front.flat(rough)]
    for column in rough:
        front.refit(int(column))


def sharpen(front: Front) -> None:
    """The sharper bound for columns that are not at their solutions, where it costs little."""
    rough = np.flatnonzero(~front.settled & (front.error > EXACT * front.scale))
    if rough.size and front.double and cheap_to_refit(front.a.shape[0], 1):
        part = front.take(rough)
        part.recompute(precise=True)
        part.bound()
        part.sharpen()
        better = np.flatnonzero(part.error < front.error[rough])
        front.put(rough[better], part, better)


def approach(front: Front) -> NDArray[np.intp]:
    """Newton steps until every column is at its solution; which columns did not get there."""
    piecewise = front.target.problem.loss.piecewise_quadratic
    pending = np.flatnonzero(~front.settled)
    if pending.size == 0:
        return pending
    part = replace(front) if pending.size == front.b.size else front.take(pending)
    for _ in range(MAX_STEPS):
        before = part.error
        part.step()
        if piecewise:
            left, slow = ~part.settled, np.zeros(pending.size, dtype=bool)
        else:
            part.bound()
            left = ~(part.error <= TOLERANCE * part.scale)
            slow = left & part.slow(before) & np.isfinite(before)
            # as good as rounding lets it be
            done = slow & (part.error <= WANTED * EXACT * part.scale)
            left, slow = left & ~done, slow & ~done
        on = left & ~slow
        if not on.all():
            front.put(pending[~on], part, ~on)
        for column in pending[slow]:
            front.refit(int(column))
        pending = pending[on]
        if pending.size == 0:
            break
        part = part if on.all() else part.take(on)
    else:
        front.put(pending, part)
    return pending


def repair(front: Front) -> None:
    """Newton steps, refinement, and refits for what these do not bring home."""
    problem, few = front.target.problem, FEW * front.target.y.size
    piecewise, pending = problem.loss.piecewise_quadratic, np.flatnonzero(~front.settled)
    centred = piecewise and problem.fit_intercept and front.target.active.size < few
    if centred and pending.size:
        front.slide(pending)
    pending = approach(front)
    if piecewise:
        refine(front)
    for column in np.union1d(pending, np.flatnonzero(np.isinf(front.error))):
        front.refit(int(column))
