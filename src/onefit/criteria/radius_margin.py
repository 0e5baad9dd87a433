"""The radius-margin bound: Vapnik 1998; Chapelle, Vapnik, Bousquet and Mukherjee 2002, section 3.

For a model that separates its points without error, with coefficients alpha >= 0 and f = sum_i
y_i alpha_i K(x_i, .), the margin is 1 / |w|, |w|^2 = sum_i alpha_i, and R is the radius of a ball
around all points in the space of the kernel. The criterion is

    R^2 |w|^2 / n.

**The models it is defined for.** The margin must be a hard one. The squared hinge is such a
model in a larger space: slacks that cost s_i xi_i^2 beside Lambda |f|^2 are one more coordinate
per point,

    K~ = K + Lambda diag(1/s),      |w~|^2 = |f|^2 + sum_i s_i xi_i^2 / Lambda = sum_i |a_i|,

(the authors' K + I/C of the L2 model), and R is taken there. The hinge and the smoothed hinge
have rows with bounded coefficients beyond the margin, for which the argument below fails: they are
refused, and "span", "gacv" and "sv_count" serve them.

**Why it bounds leave-one-out**, with Lambda held fixed (total scaling). Without intercept a point
that is missed when it is left out has alpha_p K~_pp >= 1, so that at most max K~_ii |w|^2 are: the
ball is the one around the origin, R^2 = max K~_ii. With an intercept it has alpha_p S_p^2 >= 1, S_p
its span (onefit.criteria.span), which is at most the diameter 2 R of the smallest ball that
encloses the points, wherever its centre is: at most 4 R^2 |w|^2 are missed. The factor 4 is left
out, as the authors do; it makes no difference to a choice. So

    LOO error <= value (no intercept),      LOO error <= 4 value (intercept).

(A model with an intercept does not change when all points are moved, so the centre of its ball is
free; one without does.) Weighted rows: the mean of alpha_p is weighted like every other mean. The
smallest ball is a quadratic programme (onefit.linalg.enclosing_ball), solved until primal and dual
agree, on the host, to which a kernel matrix on a device is copied. Cost: a fit, and with an
intercept a few factorisations of the part of K on the sphere. When to use: to compare with the
literature; it is loose, and values above one only rank candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onefit import linalg
from onefit.criteria.base import OfSolution, weighted_mean
from onefit.linalg.enclosing_ball import enclosing_ball
from onefit.problem import Problem, Solution

__all__ = ["RadiusMargin", "squared_radius"]

#: largest gap between primal and dual, in units of R^2, as a power of the rounding unit: 5e-7 in
#: double precision
MAX_GAP_EXPONENT = 0.4


@dataclass(frozen=True)
class RadiusMargin(OfSolution):
    """The radius-margin bound of the squared hinge, R^2 |w|^2 / n."""

    name = "radius_margin"
    losses = ("squared_hinge",)

    def of_solution(self, problem: Problem, lam: float, solution: Solution) -> float:
        return squared_radius(problem, lam) * weighted_mean(np.abs(solution.a), problem.s)


def squared_radius(problem: Problem, lam: float) -> float:
    """R^2 of the ball around the points in the space with the slacks; weights must be positive."""
    slack = problem.ridge(lam) / problem.s
    if not problem.fit_intercept:
        return float((problem.K.diagonal + slack).max())
    K = linalg.fortran(np.asarray(problem.K))
    K[np.diag_indices_from(K)] += slack
    ball = enclosing_ball(K)
    if ball.gap > float(np.finfo(K.dtype).eps) ** MAX_GAP_EXPONENT * ball.squared_radius:
        raise linalg.LinAlgError(
            f"at lam={lam:g} rounding leaves {ball.gap / ball.squared_radius:.1g} of the squared "
            "radius of the smallest ball in doubt; raise lam, or scale the kernel"
        )
    return ball.squared_radius
