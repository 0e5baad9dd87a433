"""The fit: the minimiser at one lambda, for every target, with a bound on its error.

A fit is at its minimiser, or it raises. It is there if the certificate that held-out values have
(onefit.proof.certificate) says so, or, where that has no small bound (single precision, many rows,
a kernel that is not definite), if it is stationary up to a rounding that leaves its predictions
their digits.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onefit import linalg
from onefit._types import Array
from onefit.columns.certify import bound, certify
from onefit.columns.newton import Batch
from onefit.columns.reweight import solve_reweight
from onefit.columns.solve import recomputed, solve_columns
from onefit.problem import Columns, Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.systems import Cholesky, KrylovSystem

__all__ = [
    "SOLVERS",
    "FitError",
    "certified",
    "certified_fit",
    "fit",
    "solve",
]

SOLVERS = ("auto", "newton", "reweight", "iterative")
#: largest share of rounding in the predictions of a fit without a small bound
MAX_ROUNDING_OF_PREDICTIONS = 1e-3


class FitError(linalg.LinAlgError, FloatingPointError):
    """A fit did not reach its minimiser."""


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

    Raises
    ------
    FitError
        If a column is not at its minimiser.
    """
    problem = problem.resolved
    found = solve(problem, lam, solver, start)
    return found if _reliable(problem, found) else certified_fit(problem, lam, found)[0]


@linalg.overflowing
def certified_fit(problem: Problem, lam: float, found: Solution) -> tuple[Solution, Array]:
    """Refine a result of :func:`solve`, and bound its error for each target.

    The bound is on the error of a prediction for any row of the sample that has a positive weight.
    It is infinite where none is known. The certificate is about u, which a refinement knows to more
    digits than K a + b has in working precision, where coefficients cancel. Twice their difference
    is added: the rounding of K a + b here, and one of the same size in a prediction.
    """
    columns = problem.targets(problem.positive, problem.ridge(lam))
    batch = certified(columns, found, columns.train)
    exact = bool((batch.error <= EXACT_TOLERANCE * columns.scale).all())
    if not exact and not _reliable(problem, found):
        raise _not_converged(problem, lam, found, batch.error)
    at = batch.at
    rounding = np.abs(np.where(columns.train, columns.K.matmul(at.a) + at.b - at.u, 0.0))
    error = batch.error + 2.0 * rounding.max(axis=0)
    return replace(at, steps=found.steps, converged=True), error


@linalg.overflowing
def solve(
    problem: Problem, lam: float, solver: str = "auto", start: Solution | None = None
) -> Solution:
    """As :func:`fit`, but without an error where the minimiser was not reached.

    ``converged`` says whether it is stationary up to rounding.
    """
    if not problem.K.held:
        solver = "iterative"
    problem = problem.resolved
    columns = problem.targets(problem.positive, problem.ridge(lam))
    if solver == "reweight":
        return recomputed(columns, solve_reweight(problem, lam))
    return solve_columns(columns, start, KrylovSystem if solver == "iterative" else Cholesky)


def certified(
    columns: Columns, found: Solution, tested: Array, wanted: float = EXACT_TOLERANCE
) -> Batch:
    """Solutions with bounds on their errors on the tested rows, refined where these are too large.

    Bounds are not refined for a kernel matrix that is not held, and do not exist for a loss
    without ``max_curvature``.
    """
    batch = Batch.start(columns, Cholesky(columns.problem, columns.ridge), found)
    batch.settled[:] = True  # the certificate decides whether it is
    batch.steps[:] = found.steps
    if not hasattr(columns.loss, "max_curvature"):
        return batch
    if not columns.K.held:
        bound(batch, tested)
    else:
        certify(batch, tested, wanted)
    return batch


def _reliable(problem: Problem, found: Solution) -> bool:
    """Whether a solution is stationary, and its predictions more than rounding.

    A singular K with a tiny lam can make them just that: stationarity, a = -s g / (2 Lambda), makes
    a grow as 1 / lam in directions that K does not see.
    """
    size = float(np.abs(found.u).max())
    return bool(found.converged and _rounding(problem, found) <= MAX_ROUNDING_OF_PREDICTIONS * size)


def _rounding(problem: Problem, found: Solution) -> float:
    """Estimate of the rounding error of K a."""
    root = problem.norms.roots  # |K_ij| <= root_i root_j
    terms = np.sqrt(np.square(root[:, None] * found.a).sum(axis=0).max())
    return float(np.finfo(found.a.dtype).eps * root.max() * terms)


def _not_converged(problem: Problem, lam: float, found: Solution, error: Array) -> FitError:
    """The error of a fit that did not converge, with its measurements and advice."""
    worst = int(np.argmax(error / problem.scale))
    bounded = f"an error of at most {error[worst]:.1e}" if np.isfinite(error[worst]) else "no bound"
    dtype, size = problem.Y.dtype, float(np.abs(found.u).max())
    double = "" if dtype == np.float64 else ", or pass X and y in float64"
    return FitError(
        f"the fit did not reach its minimum (loss {problem.loss!r}, lam={lam:g}, {found.steps} "
        f"steps in {dtype}): its predictions, near {size:.1e}, have {bounded} (at most "
        f"{EXACT_TOLERANCE * problem.scale[worst]:.1e} is needed) and rounding errors of about "
        f"{_rounding(problem, found):.1e}; raise lam, scale the data{double}"
    )
