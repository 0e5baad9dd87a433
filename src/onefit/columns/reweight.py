"""Any loss as a sequence of weighted least-squares problems (JMLR 2008, section 4.3).

For a residual loss the paper writes L'(r) = 2 W(r) r, solves least squares with weights W at
the last residuals, and repeats; its equation 16 should read f = K/n (K/n + lam W^-1)^-1 y. Read
as majorisation this works for every convex loss: at u choose a weight and a target z with

    V(y, v) <= V(y, u) + weight ((z - v)^2 - (z - u)^2)   for all v,

which forces the gradient, g = 2 weight (u - z). Minimising the bound instead of V never
increases the objective. ``loss.reweight(y, u)`` gives (weight, z): (W(r), y) for Huber and
logistic, the projection on the zero-loss set for the quadratic and hinge losses, and the bound
of Jaakkola and Jordan for the log loss. Convergence is linear where Newton's method is finite
or quadratic: this is the second opinion, not the fast way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from onefit.losses.base import loss_of, require
from onefit.problem import Problem, Solution
from onefit.systems.cholesky import CurvedFactor

__all__ = ["solve_reweight"]


def solve_reweight(
    problem: Problem, lam: float, max_steps: int = 5000, tolerance: float = 1e-11
) -> Solution:
    """Minimise by reweighting, from zero, until the predictions stop moving.

    ``converged`` says that they did. Convergence is linear: they may still be far from the minimum,
    which is for the caller to find out.
    """
    require(problem.loss, "reweight", "reweight")
    ridge, rows = problem.ridge(lam), problem.positive
    tolerance = max(tolerance, 4.0 * float(np.finfo(problem.Y.dtype).eps))
    found = Solution.zero(problem.n, problem.Y.shape[1], problem.Y.dtype)
    steps, still = 0, True
    for j, y in enumerate(problem.Y.T):
        u, loss = np.zeros_like(y), loss_of(problem.loss, [j])
        for _step in range(1, max_steps + 1):
            weight, z = loss.reweight(y, u)  # type: ignore[attr-defined]
            root = np.sqrt(problem.s * weight / ridge).astype(y.dtype, copy=False)
            factor = CurvedFactor(problem.K, rows, root[rows])
            a, b = np.zeros_like(y), 0.0
            a[rows], b = factor.solve(z[rows], 0.0, problem.fit_intercept)
            moved = problem.K.matmul(a[:, None])[:, 0] + y.dtype.type(b)
            change, u = float(np.abs(moved - u).max()), moved
            if change <= tolerance * (1.0 + float(np.abs(u).max())):
                break
        else:
            still = False
        found.a[:, j], found.b[j], found.u[:, j] = a, b, u
        steps = max(steps, _step)
    return replace(found, steps=steps, converged=still)
