"""Minimisers of columns: Newton's method from a start, and from easier problems where that fails.

**Why a start can be bad.** A loss with a narrow curved piece, such as the epsilon-insensitive loss
with a small delta, gives a row curvature only while its prediction is within that width of a
corner. From a point where few rows are, Newton's model takes all other slopes for constants and
sends predictions far away; a line search cuts the step where the next rows reach their corner, so
that each step gains a few rows, and a fit takes about as many steps as it has rows on corners.

**Easier problems.** `loss.widened(factor)` is the loss with its curved pieces ``factor`` times as
wide, and what Lambda is multiplied by; any other loss is kept, and Lambda multiplied by the factor.
At a large factor every row is on a curved piece, and the first step solves least squares. The
factor then falls to 1, and each solution starts the next. What carries over are the *slopes*, since
stationarity, 2 Lambda a = -s g, ties them to the coefficients: a row whose slope lies between two
straight pieces stays on the curved piece between them, where its residual shrinks with the width.
Predictions taken over as they are would leave nearly all rows on straight pieces, which is the bad
start again. If no row changes its piece, the first step is the solution at the new width. A factor
that does not lead to a solution is replaced by the geometric mean of itself and the last that did.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from onefit._types import Array, Mask
from onefit.columns.newton import Batch, minimise
from onefit.losses.widened import slope_points, widened_loss
from onefit.problem import Columns, Problem, Solution
from onefit.systems import Cholesky, System

__all__ = [
    "WIDENING_RATIO",
    "by_easier_problems",
    "from_coefficients",
    "minimised",
    "recomputed",
    "solve_columns",
    "stationary",
]

#: function that makes the systems of some columns
Way = Callable[[Problem, Array], System]
#: largest factor by which a problem is made easier
MAX_WIDENING_FACTOR = 1e100
#: ratio of the factors of two successive solutions (benchmarks/final_fits.py)
WIDENING_RATIO = 10.0
#: smallest such ratio, tried where larger ones do not lead to a solution
#: (benchmarks/constants.py)
MIN_WIDENING_RATIO = 1.3


def solve_columns(
    columns: Columns, start: Solution | None = None, system: Way = Cholesky
) -> Solution:
    """The minimisers of some columns, by a factor per column and step or another way of solving.

    Columns that do not converge are solved again from zero, by way of easier problems.
    """
    n, k = columns.weights.shape
    batch = _solved(columns, start or Solution.zero(n, k, columns.K.dtype), system)
    steps = batch.steps.copy()
    for column in np.flatnonzero(~stationary(batch)):
        part, more = _descend(columns.take([column]), system)
        batch.put([column], part)
        steps[column] += more
    return replace(batch.at, steps=int(steps.max()), converged=bool(stationary(batch).all()))


def _solved(columns: Columns, start: Solution, system: Way, match: bool = False) -> Batch:
    """Newton steps from a point.

    Parameters
    ----------
    match : bool, default=False
        Whether rows start from where the loss has the slopes that the coefficients ask for.
    """
    batch = Batch.start(columns, system(columns.problem, columns.ridge), start)
    if match:
        _match_slopes(batch)
    minimised(batch)
    return batch


def minimised(batch: Batch) -> None:
    """Newton steps to the minimum, in the middle of a flat interval of b.

    Predictions that were carried along are recomputed at the end; where that shows a gap, one
    more step closes it.
    """
    minimise(batch)
    batch.recompute()
    rough = np.flatnonzero(batch.settled & ~stationary(batch))
    if rough.size:
        part = batch.take(rough)
        part.step()
        part.recompute()
        batch.put(rough, part)
    flat = np.flatnonzero(batch.flat())
    if flat.size:
        batch.recentre(flat)


def _descend(columns: Columns, system: Way) -> tuple[Batch, int]:
    """One column by way of easier problems, and the steps that took."""
    n, k = columns.weights.shape
    start, steps, batch = Solution.zero(n, k, columns.K.dtype), 0, None

    def solved(factor: float) -> bool:
        nonlocal start, steps, batch
        batch = _solved(_eased(columns, factor), start, system, match=steps > 0)
        steps += int(batch.steps.max())
        settled = bool(batch.settled.all())
        start = batch.at if settled else start
        return settled

    by_easier_problems(_largest_factor(columns), solved)
    assert batch is not None
    return batch, steps


def by_easier_problems(largest: float, solved: Callable[[float], bool]) -> None:
    """Solve problems that are made easier by a factor, which falls from the largest to 1.

    ``solved`` solves one from the last solution, and returns whether it is at its minimum. Where
    no fall leads on, the problem itself is tried from there.
    """
    factor = last = largest
    fall = WIDENING_RATIO
    while True:
        if solved(factor):
            if factor == 1.0:
                return
            last = factor
        else:
            fall = fall**0.5
            if factor == last or fall < MIN_WIDENING_RATIO:
                break
        factor = max(1.0, last / fall)
    solved(1.0)


def _eased(columns: Columns, factor: float) -> Columns:
    """Problems with curved pieces ``factor`` times as wide, or ``factor`` times the Lambda."""
    if factor == 1.0:
        return columns
    loss, multiple = widened_loss(columns.loss, factor)
    return replace(columns, loss=loss, ridge=multiple * columns.ridge)


def _largest_factor(columns: Columns) -> float:
    """A power of WIDENING_RATIO at which the problem is easy from zero.

    There the penalty outweighs the losses, or a widened loss has no row on a straight slope.
    """
    zero = np.zeros_like(columns.weights)
    top = columns.problem.norms.diagonal * float(columns.weights.sum(axis=0).max())

    def hard(factor: float) -> bool:
        one = _eased(columns, factor)
        straight = one.loss.curvature(one.y, zero) == 0.0
        sloped = one.loss.gradient(one.y, zero) != 0.0
        same = one.loss is columns.loss
        return bool(one.ridge.min() < top and (same or (straight & sloped & one.train).any()))

    factor = 1.0
    while factor < MAX_WIDENING_FACTOR and hard(factor):
        factor *= WIDENING_RATIO
    return factor


def _match_slopes(batch: Batch) -> None:
    """Take the model of each row where the loss has the slope -2 Lambda a / s."""
    columns, at = batch.columns, batch.at
    if not columns.loss.piecewise_quadratic:
        return
    s = np.where(columns.train, columns.weights, 1.0)
    slope = -2.0 * columns.penalty * at.a / s
    small = 16.0 * columns.epsilon * np.abs(slope).max(axis=0)
    v = slope_points(columns.loss, columns.y, at.u, slope, small)
    moved = (v != at.u) & columns.train
    batch.held = np.where(moved, v, batch.held)
    batch.pieces = np.where(moved, columns.loss.piece(columns.y, v), batch.pieces)


def recomputed(columns: Columns, found: Solution) -> Solution:
    """Solutions with predictions from their coefficients, not converged unless stationary."""
    batch = Batch.start(columns, Cholesky(columns.problem, columns.ridge), found)
    batch.recompute()
    batch.settled[:] = True
    converged = found.converged and bool(stationary(batch).all())
    return replace(batch.at, steps=found.steps, converged=converged)


def from_coefficients(problem: Problem, lam: float, a: Array, b: Array, steps: int = 0) -> Solution:
    """The solution on all rows that has some coefficients and intercepts, as :func:`recomputed`."""
    a, b = np.asfortranarray(a, dtype=problem.K.dtype), b.astype(problem.K.dtype)
    columns = problem.targets(problem.positive, problem.ridge(lam))
    return recomputed(columns, Solution(a, b, np.zeros_like(a), np.zeros(b.size), steps))


def stationary(batch: Batch) -> Mask:
    """Whether 2 Lambda a = -s g holds, up to what rounding in u = K a makes of it."""
    columns, at = batch.columns, batch.at
    s, loss, epsilon = columns.weights, columns.loss, columns.epsilon
    g = s * loss.gradient(columns.y, at.u)
    gap = np.abs(2.0 * columns.penalty * at.a + g)
    size = columns.problem.norms.diagonal * np.abs(at.a).sum(axis=0)
    rounding = 8.0 * epsilon * (size + np.abs(at.u).max(axis=0))
    # rounding may have put a point on either side of a kink
    curvature = np.max(
        [
            (s * loss.curvature(columns.y, at.u + shift)).max(axis=0)
            for shift in (-rounding, 0.0 * rounding, rounding)
        ],
        axis=0,
    )
    allowed = epsilon**0.5 * np.abs(g).max(axis=0) + rounding * curvature
    ok = np.isfinite(gap).all(axis=0) & (gap.max(axis=0) <= allowed)
    return np.asarray(ok & batch.settled)
