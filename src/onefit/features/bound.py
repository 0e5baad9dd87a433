r"""How far models in feature space are from their minimisers, by one pass.

(onefit.proof.certificate with v = u + rho, rho the rounding of predictions.) Let g_w be the
gradient in the functions that the model may use, g_b = sum s dV/du, D the largest curvature:

    ||w - w*||^2 <= A + B ||w - w*|| + T |b - b*|,

    A = D sum s rho^2 / (8 Lambda),   B = ||g_w|| / (2 Lambda),   T = |g_b| / (2 Lambda).

Where sum s dV/du is negative with all predictions lowered by beta and positive with all raised by
it, |b - b*| <= beta + max rho + kappa ||w - w*||. A few beta are tried in the pass. Where the loss
is flat in b, beta is the distance from the middle of the flat interval (onefit.features.lines); the
ends of an interval move by no more than predictions do, and one that is narrower than that may
vanish. Where there is neither, there is no bound, and the values are not called exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array
from onefit.features.hessian import HessianFactor, PrimalColumns
from onefit.features.lines import FlatIntervals, from_ends
from onefit.features.passes import Check, Checked, Form
from onefit.proof.certificate import EXACT_TOLERANCE, Bound, root_of
from onefit.proof.flat_interval import FlatInterval
from onefit.proof.precise import EPSILON, summation

__all__ = ["Certificate", "certify", "certify_centred"]

#: trial shifts of the intercept, in units of the targets' scale
TRIAL_SHIFTS_IN_SCALES = 10.0 ** np.arange(-13.0, 1.0)


@dataclass(frozen=True)
class Certificate(Bound):
    """How far columns are from their minimisers; ``drift`` is in units of |phi|, ``reach`` zero.

    Attributes
    ----------
    gradient : (size, c) array
        Of F.
    """

    gradient: Array = field(repr=False)


def certify(columns: PrimalColumns, theta: Array, factors: list[HessianFactor]) -> Certificate:
    """The bound of every column, by one pass."""
    form = columns.form
    betas = columns.scale * TRIAL_SHIFTS_IN_SCALES if form.intercept else np.empty(0)
    found: Checked = columns.run(Check(form, theta, betas))
    gradient = found.g + columns.penalty * theta
    w, two, D = theta[: form.features.size], 2.0 * columns.ridge, float(form.loss.max_curvature)
    drift, rounding = form.features.drift(w), summation(max(1, found.rows), found.terms)
    pulls = (_functions(form, one, g) for one, g in zip(factors, gradient.T, strict=True))
    inside = np.array([np.linalg.norm(one) for one in pulls])
    # b itself is rounded when it is added
    added = 4.0 * EPSILON * np.abs(theta[-1]) if form.intercept else 0.0
    rho = drift * found.longest + added
    squares = 2.0 * (np.square(drift) * found.squares + np.square(added) * found.weight)
    A = D * squares / (4.0 * two)
    B = (inside + rounding * (found.size + two * np.linalg.norm(w, axis=0))) / two
    if not form.intercept:
        return Certificate(root_of(A, B), np.zeros_like(B), drift, 0.0, gradient)
    noise = rounding * found.pull
    T = (np.abs(gradient[-1]) + noise) / two
    within = (found.below + noise < 0.0) & (found.above - noise > 0.0)
    beta = np.where(within.any(axis=0), betas[within.argmax(axis=0)], np.inf)
    width, flat = np.zeros_like(beta), np.flatnonzero(found.curved == 0.0)
    if flat.size:
        interval: FlatInterval = columns.run(FlatIntervals(form.take(flat), theta[:, flat]))
        nearer = interval.distance < beta[flat]
        beta[flat[nearer]] = interval.distance[nearer]
        width[flat[nearer]] = interval.width[nearer]
    kappa = found.longest
    with np.errstate(invalid="ignore"):
        function = root_of(A + T * (beta + rho), B + kappa * T)
    function = np.where(np.isfinite(function), function, np.inf)
    around = rho + kappa * function
    around += np.where(width < 2.0 * around, width, 0.0)
    return Certificate(function, beta + around, drift, 0.0, gradient)


def certify_centred(
    columns: PrimalColumns, theta: Array, factors: list[HessianFactor]
) -> tuple[Array, Certificate]:
    """The same, with columns moved from the end of a flat interval to its middle.

    Only columns whose intercept alone is in doubt may be at such an end.
    """
    found, wanted = certify(columns, theta, factors), EXACT_TOLERANCE * columns.scale
    bound, known = found.at(columns.longest, 0.0), columns.longest * found.function <= wanted
    lost = np.flatnonzero(~np.isfinite(bound) | (known & (bound > wanted)))
    if not (lost.size and columns.form.intercept):
        return theta, found
    shifts = np.zeros(theta.shape[1])
    shifts[lost] = from_ends(columns.take(lost), theta[:, lost])
    if not shifts.any():
        return theta, found
    theta = theta.copy()
    theta[-1] += shifts
    return theta, certify(columns, theta, factors)


def _functions(form: Form, factor: HessianFactor, gradient: Array) -> Array:
    """The gradient in w alone, in the functions that the column may use."""
    g = gradient[:, None].copy()
    if form.intercept:
        g[-1] = 0.0
    return factor.project(g)
