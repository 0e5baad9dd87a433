"""Bounds on the errors of a batch, and the digits that make them small enough.

Any column, at its minimiser or not, has a bound on its error (onefit.proof.certificate). Where
rounding is too much for it, predictions are computed in nearly twice the digits, further Newton
steps remove what these show to be missing from stationarity, and a sharper bound is taken. The
coefficients are then sums of two numbers, the second with the digits beyond those of the first. For
a loss of the residual, predictions are computed minus the targets: where y - u is small, its digits
count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import Any

import numpy as np

from onefit._types import Array, Indices, Mask
from onefit.columns.newton import Batch
from onefit.problem import Columns, Solution
from onefit.proof.certificate import EXACT_TOLERANCE, ApproximateModels
from onefit.proof.precise import EPSILON, precise_summation, predictions, summation, two_sum
from onefit.systems import NewtonModel, System

__all__ = ["WANTED_SHARE_OF_TOLERANCE", "bound", "certify", "refine"]

#: largest number of Newton steps after a solution whose certificate is not small enough
#: (benchmarks/constants.py)
MAX_EXTRA_STEPS = 3
#: share of EXACT_TOLERANCE that a certificate should reach, and the drift of the predictions may
#: before they are recomputed (benchmarks/constants.py)
WANTED_SHARE_OF_TOLERANCE = 0.1


def certify(
    batch: Batch, tested: Mask, wanted: float = EXACT_TOLERANCE, sharpen: bool = False
) -> None:
    """Bound the errors of a batch, and refine what is at its minimiser but for rounding.

    Parameters
    ----------
    batch : Batch
    tested : (n, k) bool array
        The rows whose predictions are bounded.
    wanted : float, default=EXACT_TOLERANCE
        The bound to be reached, in units of the scale.
    sharpen : bool, default=False
        Whether columns that are not at their minimisers get the sharper bound as well.
    """
    bound(batch, tested)
    rough = ~(batch.error <= wanted * batch.columns.scale)
    refine(batch, tested, np.flatnonzero(rough & batch.settled), wanted)
    if sharpen:
        refine(batch, tested, np.flatnonzero(rough & ~batch.settled), wanted, steps=0)


def bound(batch: Batch, tested: Mask) -> None:
    """Set the error of every column; it is infinite where nothing determines the intercept.

    Predictions become those in double precision that the bound is about.
    """
    if _drifted(batch).any():
        batch.recompute()
    columns, (a, u, drift) = batch.columns, _in_double(batch)
    candidates = _candidates(columns, columns.y, a, u, drift)
    kappa = (tested * columns.problem.norms.roots[:, None]).max(axis=0)
    size = (tested * np.abs(u)).max(axis=0)
    error = candidates.bound().at(kappa, size)
    batch.error = np.where(np.isfinite(size), error, np.inf)
    batch.at = replace(batch.at, u=u)


def refine(
    batch: Batch, tested: Mask, some: Indices, wanted: float, steps: int = MAX_EXTRA_STEPS
) -> None:
    """Give some columns more digits, wherever that makes their bound smaller."""
    if some.size == 0 or batch.columns.epsilon > EPSILON:
        return
    part = batch.take(some)
    found = _refined(_Digits.of(part, tested[:, some]), wanted, steps)
    better = np.flatnonzero(found.error < part.error)
    if better.size:
        size = np.abs(found.a).T @ batch.columns.problem.norms.roots
        part.at = Solution(found.a, found.b, found.values, summation(found.a.shape[0]) * size)
        part.error = found.error
        part.pieces = part.columns.loss.piece(part.columns.y, found.values)
        part.held = np.full_like(found.values, np.nan)
        batch.put(some[better], part, better)


def _refined(digits: _Digits, wanted: float, steps: int) -> _Digits:
    """The best of a few steps, column by column."""
    digits.look(wanted)
    best = digits
    for _ in range(steps):
        if (best.error <= wanted * digits.columns.scale).all():
            break
        digits = digits.stepped()
        digits.look(wanted)
        if not (digits.error < best.error).any():
            break
        best = best.or_better(digits)
    return best


@dataclass
class _Digits:
    """Models with coefficients a + low, where low has the digits beyond those of a.

    Attributes
    ----------
    u, values : (n, k) arrays
        Predictions minus ``origin``, and predictions.
    gap : (n, k) array
        2 Lambda a + s g, zero at the minimiser.
    error : (k,) array
        Bound on the error of the values of the tested rows.
    """

    columns: Columns
    system: System
    tested: Mask
    a: Array
    b: Array
    low: Array
    u: Array
    values: Array
    gap: Array
    error: Array

    @classmethod
    def of(cls, batch: Batch, tested: Mask) -> _Digits:
        """The state of a batch, with zeros in ``low``."""
        at, none = batch.at, np.zeros_like(batch.at.a)
        return cls(
            batch.columns, batch.system, tested, at.a, at.b, none, at.u, at.u, none, batch.error
        )

    @property
    def origin(self) -> Array:
        """The origin of predictions: training targets if the loss is of residuals, else zero."""
        if not getattr(self.columns.loss, "of_residual", False):
            return np.zeros((self.a.shape[0], 1))
        return np.asarray(self.columns.train * self.columns.y)

    def look(self, wanted: float) -> None:
        """Predictions, the bound on those of the tested rows, and the gap."""
        columns, origin = self.columns, self.origin
        norms, everyone = columns.problem.norms, np.arange(self.a.shape[0])
        some = np.flatnonzero(self.a.any(axis=1))
        shift, rest = two_sum(self.b, -origin)
        u = predictions(norms, everyone, some, self.a[some], shift, self.low[some]) + rest
        self.u, self.values = u, u + origin
        drift = precise_summation(some.size) * (np.abs(self.a).T @ norms.roots)
        candidates = _candidates(columns, columns.y - origin, self.a, u, drift, self.low)
        kappa = (self.tested * norms.roots[:, None]).max(axis=0)
        size = (self.tested * np.maximum(np.abs(u), np.abs(self.values))).max(axis=0)
        self.error = candidates.bound().at(kappa, size)
        if not (self.error <= wanted * columns.scale).all():
            rows = [np.flatnonzero(one) for one in self.tested.T]
            # values are rounded twice, once as seen from the origin
            self.error = np.minimum(self.error, candidates.sharp(rows, 2.0 * size))
        self.gap = candidates.gap()

    def stepped(self) -> _Digits:
        """A Newton step, its right-hand side from predictions of many digits."""
        columns, gap, two = self.columns, self.gap, 2.0 * self.columns.ridge
        d = self._curvature()
        curved, sd = d > 0.0, columns.weights * d
        fixed = np.where(curved, 0.0, -gap / two) * columns.train
        missing = -gap / np.where(curved, sd, 1.0) - columns.K.matmul(fixed)
        terms = zip(self.a.T, self.low.T, fixed.T, strict=True)
        total = np.array([fsum([*x, *y, *z]) for x, y, z in terms])
        change, db = self.system.solve(NewtonModel(d, missing * curved, fixed, total))
        # the sum in two numbers
        change = change + fixed + self.low
        a = self.a + change
        return replace(self, a=a, low=(self.a - a) + change, b=self.b + db)

    def _curvature(self) -> Array:
        columns, y = self.columns, self.columns.y - self.origin
        if self.system.curvature is not None and not columns.loss.piecewise_quadratic:
            return self.system.curvature * columns.train
        d, g = columns.loss.curvature(y, self.u), columns.loss.gradient(y, self.u)
        # beyond the reach of rounding g / d says nothing
        seen = d * (1.0 + np.abs(y) + np.abs(self.u)) > EPSILON * np.abs(g)
        return np.asarray(d * (seen & columns.train))

    def or_better(self, other: _Digits) -> _Digits:
        """Every column from where its error is smaller."""
        better = other.error < self.error
        names = ("a", "low", "b", "u", "values", "gap", "error")
        pairs = {name: (getattr(other, name), getattr(self, name)) for name in names}
        return replace(self, **{name: np.where(better, *pair) for name, pair in pairs.items()})


def _candidates(
    columns: Columns, y: Array, a: Array, u: Array, drift: Array, low: Any = 0.0
) -> ApproximateModels:
    problem = columns.problem
    return ApproximateModels(
        problem.norms, np.arange(a.shape[0]), columns.loss, problem.fit_intercept, y,
        columns.weights, columns.ridge, a, u, drift, low,
    )  # fmt: skip


def _drifted(batch: Batch) -> Mask:
    """Columns whose drift takes too much of what the error bound may be."""
    columns = batch.columns
    norms, steep = columns.problem.norms, float(columns.loss.max_curvature)
    stiff = steep * columns.weights.sum(axis=0) / (8.0 * columns.ridge)
    reach = norms.diagonal * batch.at.drift * (1.0 + np.sqrt(stiff))
    return np.asarray(~(reach <= WANTED_SHARE_OF_TOLERANCE * EXACT_TOLERANCE * columns.scale))


def _in_double(batch: Batch) -> tuple[Array, Array, Array]:
    """Coefficients, predictions and their drift in double precision."""
    at = batch.at
    if batch.columns.epsilon == EPSILON:
        return at.a, at.u, at.drift
    norms, rows, a = batch.columns.problem.norms, np.arange(at.a.shape[0]), at.a.astype(float)
    u = predictions(norms, rows, rows, a) + at.b.astype(float)
    return a, u, summation(rows.size) * (np.abs(a).T @ norms.roots)
