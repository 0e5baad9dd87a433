"""Newton's method in feature space, one model with its Hessian at every step.

A model that does not converge is solved again by way of easier problems, as in
onefit.columns.solve: with curved pieces that are wide at first, and with slopes that carry over to
narrower ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.columns.solve import WIDENING_RATIO, by_easier_problems
from onefit.features.hessian import HessianFactor, PrimalColumns, total
from onefit.features.lines import recentre, step_lengths
from onefit.features.passes import Form, Second, SecondSums
from onefit.losses.base import Loss
from onefit.losses.widened import Carried, widened_loss
from onefit.rows.accumulate import Accumulator, Chunk

__all__ = ["MAX_PRIMAL_STEPS", "MAX_STEPS_WITHOUT_GAIN", "Minimum", "minimise_one"]

#: largest number of steps, and steps without progress after which it stops
#: (benchmarks/constants.py)
MAX_PRIMAL_STEPS, MAX_STEPS_WITHOUT_GAIN = 40, 4
#: trial factors of widened losses, ascending
TRIAL_WIDENING_FACTORS = WIDENING_RATIO ** np.arange(1.0, 21.0)


@dataclass(frozen=True)
class Minimum:
    """Result of Newton's method.

    Attributes
    ----------
    theta : (size,) array
    parts : dict
        Gradient and curvature there, part by part.
    factor : HessianFactor
    steps : int
    converged : bool
    """

    theta: Array
    parts: dict[int, SecondSums] = field(repr=False)
    factor: HessianFactor = field(repr=False)
    steps: int
    converged: bool


def minimise_one(column: PrimalColumns, start: Array | None) -> Minimum:
    """The model of one column by Newton's method with its Hessian at every step."""
    found = _newton(column, np.zeros(column.form.size) if start is None else start)
    if found.converged:
        return found
    end = _descend(column)
    return replace(end, steps=found.steps + end.steps)


def _newton(column: PrimalColumns, start: Array, carried: Carried | None = None) -> Minimum:
    """Newton steps from a model, the first in full with the loss ``carried``, if given."""
    form, run, scale, kept = column.form, column.run, column.scale, column.form.train[:, 0]
    best, waited, theta = np.inf, 0, start.copy()
    for step in range(1, MAX_PRIMAL_STEPS + 1):
        first = carried is not None and step == 1
        loss: Any = carried if first else form.loss
        parts: dict[int, SecondSums] = run(Second(replace(form, loss=loss), theta))
        sums = total(parts, kept)
        factor = HessianFactor(column, sums)
        pull = sums.g + column.penalty[:, 0] * theta
        move = -factor.solve(pull[:, None])
        # how much Newton's step changes predictions
        change = float(column.longest[0]) * float(np.linalg.norm(move[: form.features.size]))
        change += abs(float(move[-1, 0])) if form.intercept else 0.0
        waited = 0 if change < 0.5 * best else waited + 1
        best = min(best, change)
        converged = change <= 1e-10 * scale or (
            change <= 1e-6 * scale and waited >= MAX_STEPS_WITHOUT_GAIN
        )
        converged &= not first
        if first:
            theta += move[:, 0]
        elif not converged:
            theta += (move * step_lengths(column, theta[:, None], move))[:, 0]
        if factor.flat:
            shift = float(recentre(column, theta[:, None])[0])
            theta[-1] += shift
            converged &= abs(shift) <= 1e-10 * scale or step > MAX_PRIMAL_STEPS // 2
        if converged:
            return Minimum(theta, parts, factor, step, True)
    return Minimum(theta, run(Second(form, theta)), factor, MAX_PRIMAL_STEPS, False)


def _descend(column: PrimalColumns) -> Minimum:
    """Solve by a sequence of easier problems; ``steps`` counts the steps of all of them."""
    theta, steps, found = np.zeros(column.form.size), 0, None
    loss, multiple = column.form.loss, 1.0

    def solved(factor: float) -> bool:
        """Solve from theta, the solution with ``loss`` at ``multiple`` times Lambda."""
        nonlocal theta, steps, found, loss, multiple
        new, more = (
            widened_loss(column.form.loss, factor) if factor > 1.0 else (column.form.loss, 1.0)
        )
        carried = Carried(new, loss, more / multiple) if steps else None
        found = _newton(column.eased(new, more), theta, carried)
        steps += found.steps
        if found.converged:
            theta, loss, multiple = found.theta, new, more
        return found.converged

    by_easier_problems(_largest_factor(column), solved)
    assert found is not None
    return replace(found, steps=steps)


def _largest_factor(column: PrimalColumns) -> float:
    """The factor at which the problem is easy from zero, by one pass."""
    form = column.form
    losses = [widened_loss(form.loss, float(factor)) for factor in TRIAL_WIDENING_FACTORS]
    multiples = np.array([multiple for _, multiple in losses])
    straight, weight = column.run(StraightWeights(form, [loss for loss, _ in losses]))
    same = np.array([loss is form.loss for loss, _ in losses])
    easy = (straight == 0.0) & ~same
    easy |= multiples * float(column.ridge[0]) >= column.longest[0] ** 2 * float(weight[0])
    return float(
        TRIAL_WIDENING_FACTORS[easy.argmax()] if easy.any() else TRIAL_WIDENING_FACTORS[-1]
    )


@dataclass(frozen=True)
class StraightWeights(Accumulator[tuple[Array, Array], tuple[Array, Array]]):
    """The weight of the rows on straight slopes of each loss at zero, and that of all rows."""

    form: Form
    losses: list[Loss]

    def init(self) -> tuple[Array, Array]:
        return np.zeros(len(self.losses)), np.zeros(1)

    def update(self, state: tuple[Array, Array], chunk: Chunk) -> tuple[Array, Array]:
        y, s = self.form.targets(chunk), self.form.weights(chunk)[:, 0]
        zero = np.zeros_like(y)
        for i, loss in enumerate(self.losses):
            straight = (loss.curvature(y, zero) == 0.0) & (loss.gradient(y, zero) != 0.0)
            state[0][i] += float(s @ straight[:, 0])
        state[1][0] += float(s.sum())
        return state
