r"""The models of all splits from the model of all rows: the limit, and exact ones.

**limit.** Newton's step of the problem without fold k is one solve with H - H_k, H the Hessian at
the model of all rows (onefit.features.hessian). If the split drops landmarks, it is the minimum of
the same quadratic model over the functions that remain, theta = Q v:

    Q'(H - H_k) Q v = Q'((H - H_k) theta - gradient_k).

**exact.** Further steps of all splits at once. A Hessian for each of them at each step would be k n
m^2 operations; instead the system of a step is solved by conjugate gradients, one product a pass,
preconditioned by the split's H - H_k at the solution of all rows, which differs from the right one
in the few rows that changed their curvature. Slopes at a few points of every step give its length
(onefit.features.lines). It ends where the bound is small enough (onefit.features.bound).
"""

from __future__ import annotations

import numpy as np

from onefit import linalg
from onefit._types import Array, Indices
from onefit.features.bound import Certificate, certify, certify_centred
from onefit.features.hessian import HessianFactor, PrimalColumns, total
from onefit.features.lines import recentre, step_lengths
from onefit.features.newton import (
    MAX_PRIMAL_STEPS,
    MAX_STEPS_WITHOUT_GAIN,
    Minimum,
    minimise_one,
)
from onefit.features.passes import Check, Products
from onefit.inverse.krylov import CG_RESIDUAL
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = ["limits", "refine", "solve_splits"]

#: largest number of steps of conjugate gradients (benchmarks/constants.py)
MAX_PRIMAL_CG_STEPS = 40


def solve_splits(
    columns: PrimalColumns, full: Minimum, refined: bool, own: bool = False
) -> tuple[Array, Certificate, Array]:
    """Models of all columns, how far they are from their minimisers, and their steps.

    ``full`` is the model of all rows; without ``refined`` there is one step. ``own``: each column
    has a loss of its own.
    """
    found, factors = limits(columns, full, own)
    if refined:
        return refine(columns, found, factors)
    found, bound = certify_centred(columns, found, factors)
    return found, bound, np.ones(columns.ridge.size, dtype=np.intp)


def limits(
    columns: PrimalColumns, full: Minimum, own: bool = False
) -> tuple[Array, list[HessianFactor]]:
    """One Newton step of every column from the model of all rows; and its factors.

    Where each column has a loss of its own, its gradient takes a pass more, and its curvature is
    that of the loss of all rows.
    """
    form, theta = columns.form, full.theta
    found, factors = np.empty((form.size, columns.ridge.size)), []
    if own:
        at = np.repeat(theta[:, None], columns.ridge.size, axis=1)
        gradient = columns.run(Check(form, at, np.empty(0))).g
    for c in range(columns.ridge.size):
        column, sums = columns.take(np.array([c])), total(full.parts, form.train[:, c])
        factor = HessianFactor(column, sums)
        g = gradient[:, c] if own else sums.g
        pull = g + column.penalty[:, 0] * theta
        right = factor.times(theta[:, None]) - pull[:, None]
        found[:, [c]] = factor.solve(right)
        factors.append(factor)
    found[-1] += _recentred(columns, found, factors)
    return found, factors


def refine(
    columns: PrimalColumns, theta: Array, factors: list[HessianFactor]
) -> tuple[Array, Certificate, Array]:
    """Newton steps of all columns until their bounds are exact, or no longer fall.

    Columns that do not converge with the factors of the model of all rows continue with factors
    of their own. Returns the columns, their certificate and the steps that each took.
    """
    wanted = 0.5 * EXACT_TOLERANCE * columns.scale
    state = _Refined(theta, certify(columns, theta, factors), columns.longest)
    for _ in range(MAX_PRIMAL_STEPS):
        on = np.flatnonzero((state.best > wanted) & (state.waited < MAX_STEPS_WITHOUT_GAIN))
        if on.size == 0:
            break
        part, own, at = columns.take(on), [factors[i] for i in on], state.theta[:, on]
        move = _newton(part, at, own, state.found.gradient[:, on])
        at = at + move * step_lengths(part, at, move)
        at[-1] += _recentred(part, at, own)
        state.put(on, at, certify(part, at, own), 1)
    for c in np.flatnonzero(state.best > wanted)[:, None]:
        column = columns.take(c)
        end = minimise_one(column, state.kept[:, c[0]])
        state.put(c, *certify_centred(column, end.theta[:, None], [end.factor]), end.steps)
    return state.kept, state.found, state.steps


def _recentred(columns: PrimalColumns, theta: Array, factors: list[HessianFactor]) -> Array:
    """Shifts of the intercepts of columns that are flat in them, zero for the others."""
    shifts, flat = np.zeros(theta.shape[1]), np.flatnonzero([one.flat for one in factors])
    if flat.size:
        shifts[flat] = recentre(columns.take(flat), theta[:, flat])
    return shifts


class _Refined:
    """The present and the best model of each column, with bounds and steps."""

    def __init__(self, theta: Array, found: Certificate, longest: Array) -> None:
        self.theta, self.kept, self.found, self.longest = theta, theta.copy(), found, longest
        self.best, self.sizes = found.at(longest, 0.0), _sizes(found)
        self.steps = np.ones(longest.size, dtype=np.intp)
        self.waited = np.zeros(longest.size, dtype=np.intp)

    def put(self, some: Indices, theta: Array, new: Certificate, steps: int) -> None:
        """Set the present models of some columns, after a number of steps."""
        bounds, sizes = new.at(self.longest[some], 0.0), _sizes(new)
        gained = (bounds < 0.5 * self.best[some]) | (sizes < 0.5 * self.sizes[some])
        self.waited[some] = np.where(gained, 0, self.waited[some] + 1)
        self.theta[:, some], self.found.gradient[:, some] = theta, new.gradient
        better = (bounds < self.best[some]) | ~np.isfinite(self.best[some])
        where = some[better]
        self.kept[:, where] = theta[:, better]
        for name in ("function", "intercept", "drift"):
            getattr(self.found, name)[where] = getattr(new, name)[better]
        self.best[where] = bounds[better]
        self.sizes[some] = np.minimum(sizes, self.sizes[some])
        self.steps[some] += steps


def _sizes(found: Certificate) -> Array:
    return np.asarray(np.linalg.norm(found.gradient, axis=0))


def _newton(
    columns: PrimalColumns, theta: Array, factors: list[HessianFactor], gradient: Array
) -> Array:
    """Newton's steps, by conjugate gradients with a product a pass for all columns."""

    def precondition(r: Array) -> Array:
        return np.concatenate([one.solve(r[:, [c]]) for c, one in enumerate(factors)], axis=1)

    # a loss that is flat in b would make the system singular
    penalty = columns.penalty
    ridges = np.where(penalty == 0.0, [one.floor for one in factors], penalty)
    x, r = np.zeros_like(gradient), -gradient
    z = precondition(r)
    p, energy = z.copy(), linalg.dots(r, z)
    first = energy.copy()
    for _ in range(MAX_PRIMAL_CG_STEPS):
        bent: Array = columns.run(Products(columns.form, theta, p))
        Hp = bent + ridges * p
        bend = linalg.dots(p, Hp)
        alpha = np.where(bend > 0.0, energy / np.where(bend > 0.0, bend, 1.0), 0.0)
        x += alpha * p
        r = r - alpha * Hp
        z = precondition(r)
        new = np.maximum(linalg.dots(r, z), 0.0)
        if (new <= CG_RESIDUAL**2 * first).all():
            break
        p = z + np.where(energy > 0.0, new / np.where(energy > 0.0, energy, 1.0), 0.0) * p
        energy = new
    return x
