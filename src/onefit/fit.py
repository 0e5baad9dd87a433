"""The fit: the minimiser at one lambda, for every target."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from onefit import linalg
from onefit._types import Array, Mask
from onefit.newton import Batch, minimise
from onefit.problem import Columns, Problem, Solution
from onefit.reweight import solve_reweight
from onefit.systems import Cholesky, Iterative, System

__all__ = ["SOLVERS", "fit", "solve_columns", "stationary"]

SOLVERS = ("auto", "newton", "reweight", "iterative")
#: what makes the systems of some columns, of a problem and their Lambda
Way = Callable[[Problem, Array], System]
#: Newton steps of a fit
MAX_STEPS = 100
#: a fit that does not converge begins at a ridge so many times as large, at most, and falls by this
FARTHEST, SMALLER = 1e100, 100.0


@linalg.overflowing
def fit(
    problem: Problem, lam: float, solver: str = "auto", start: Solution | None = None
) -> Solution:
    """The minimiser at ``lam`` on the rows of positive weight, one column per target.

    Parameters
    ----------
    problem : Problem
    lam : float
    solver : {"auto", "newton", "reweight", "iterative"}, default="auto"
        "iterative" solves the systems of Newton's method by conjugate gradients, and is the only
        one for a kernel matrix that is not held; "auto" is "newton" for any other.
    start : Solution, default=None
        Where to begin, near the minimiser; at zero by default.
    """
    if not problem.K.held:
        solver = "iterative"
    if solver == "reweight":
        return solve_reweight(problem.resolved, lam)
    columns = problem.targets(problem.positive, problem.ridge(lam))
    found = solve_columns(columns, start, Iterative if solver == "iterative" else Cholesky)
    if not found.converged:
        warnings.warn(
            f"Newton's method stopped after {found.steps} steps short of a stationary point "
            f"(loss {problem.loss!r}, lam={lam:g}); the problem is too ill-conditioned for "
            f"{problem.Y.dtype}: raise lam, or scale the data",
            ConvergenceWarning,
            stacklevel=3,
        )
    return found


def solve_columns(
    columns: Columns, start: Solution | None = None, system: Way = Cholesky
) -> Solution:
    """The minimisers of some columns, by a factor per column and step or another way of solving.

    Columns that do not converge start again from zero, along falling Lambda.
    """
    n, k = columns.weights.shape
    batch = _solved(columns, start or Solution.zero(n, k, columns.K.dtype), system)
    steps, failed = int(batch.steps.max()), np.flatnonzero(~stationary(batch))
    if failed.size:
        part, more = _descend(columns.take(failed), system)
        batch.put(failed, part)
        steps += more
    return replace(batch.at, steps=steps, converged=bool(stationary(batch).all()))


def _solved(columns: Columns, start: Solution, system: Way) -> Batch:
    """Newton steps from a point, to the middle of what is flat in b.

    Predictions that were carried along are computed anew in the end; where that shows a gap, one
    more step closes it.
    """
    batch = Batch.start(columns, system(columns.problem, columns.ridge), start)
    minimise(batch, MAX_STEPS)
    batch.recompute()
    batch.own()
    rough = np.flatnonzero(batch.settled & ~stationary(batch))
    if rough.size:
        part = batch.take(rough)
        part.step()
        part.recompute()
        batch.put(rough, part)
    flat = np.flatnonzero(batch.flat())
    if flat.size:
        batch.centre(flat)
    return batch


def _descend(columns: Columns, system: Way) -> tuple[Batch, int]:
    """From zero along falling Lambda: each solution starts the next, SMALLER times below."""
    n, k = columns.weights.shape
    top = columns.problem.norms.diagonal * float(columns.weights.sum(axis=0).max())
    ratio = min(max(1.0, top / float(columns.ridge.min())), FARTHEST)
    stages = np.ceil(np.log(ratio) / np.log(SMALLER))
    at, steps = Solution.zero(n, k, columns.K.dtype), 0
    for power in np.arange(stages, -1.0, -1.0):
        eased = replace(columns, ridge=columns.ridge * SMALLER**power)
        batch = _solved(eased, at, system)
        at, steps = batch.at, steps + int(batch.steps.max())
    return batch, steps


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
