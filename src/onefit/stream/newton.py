"""Newton's method in feature space, one machine with its Hessian at every step."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from onefit._types import Array
from onefit.stream.flat import slide
from onefit.stream.hessian import Columns, Factor, penalty, total
from onefit.stream.passes import Form, Pieces, Run, Second
from onefit.stream.step_length import step_lengths

__all__ = ["PATIENCE", "STEPS", "Minimum", "minimise_one", "warn_unfinished"]

#: steps at most, and steps without a gain after which none is hoped for
STEPS, PATIENCE = 100, 4


@dataclass(frozen=True)
class Minimum:
    """Where Newton's method ended.

    Attributes
    ----------
    theta : (size,) array
    pieces : dict
        Sums there, part by part.
    factor : Factor
    steps : int
    converged : bool
    """

    theta: Array
    pieces: dict[int, Pieces] = field(repr=False)
    factor: Factor = field(repr=False)
    steps: int
    converged: bool


def minimise_one(
    form: Form, columns: Columns, run: Run, start: Array | None, scale: float, kappa: float
) -> Minimum:
    """The machine of one column by Newton's method with its Hessian at every step."""
    theta = np.zeros(form.size) if start is None else start.copy()
    ridge, kept = float(columns.ridge[0]), columns.train[:, 0]
    best, waited = np.inf, 0
    for step in range(1, STEPS + 1):
        pieces: dict[int, Pieces] = run(Second(form, theta))
        piece = total(pieces, kept)
        factor = Factor(form, piece, ridge, columns.lost[0])
        pull = piece.g + penalty(form, columns.ridge)[:, 0] * theta
        move = -factor.solve(pull[:, None])
        # what Newton's step still changes, in predictions
        change = kappa * float(np.linalg.norm(move[: form.features.size]))
        change += abs(float(move[-1, 0])) if form.intercept else 0.0
        waited = 0 if change < 0.5 * best else waited + 1
        best = min(best, change)
        settled = change <= 1e-10 * scale or (change <= 1e-6 * scale and waited >= PATIENCE)
        if not settled:
            theta += (move * step_lengths(form, columns, run, theta[:, None], move))[:, 0]
        if factor.flat:
            shift = float(slide(form, theta[:, None], columns.train, run, scale)[0])
            theta[-1] += shift
            settled &= abs(shift) <= 1e-10 * scale or step > STEPS // 2
        if settled:
            return Minimum(theta, pieces, factor, step, True)
    return Minimum(theta, run(Second(form, theta)), factor, STEPS, False)


def warn_unfinished(loss: object, lam: float) -> None:
    """Say that a fit is no minimum."""
    warnings.warn(
        f"Newton's method stopped after {STEPS} steps short of a stationary point (loss {loss!r}, "
        f"lam={lam:g}); raise lam, or scale the data",
        ConvergenceWarning,
        stacklevel=4,
    )
