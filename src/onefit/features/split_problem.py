"""Models of some splits and of all rows in feature space, wherever the rows lie.

Rows are known by their part alone: the folds of streamed rows (onefit.features.fold_models), or
what the splits of rows in memory have in common (onefit.features.parts). Sums over a part come from
passes. For the squared loss the moments of one pass are all there is to know; for another loss one
model of all rows comes first, at a target and lambda, whose last pass leaves gradient and curvature
part by part, and from these every split takes its steps (onefit.features.side_by_side).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from onefit._types import Array
from onefit.features.bound import certify
from onefit.features.hessian import PrimalColumns
from onefit.features.maps import FeatureMap
from onefit.features.moments import Moments
from onefit.features.newton import Minimum, minimise_one
from onefit.features.passes import Form, Run
from onefit.features.ridge import Ridge, RidgeModels
from onefit.features.side_by_side import solve_splits
from onefit.losses.base import Loss, loss_of
from onefit.proof.certificate import EXACT_TOLERANCE

__all__ = ["SplitProblem"]


@dataclass(frozen=True)
class SplitProblem:
    """The problem of the models of some splits.

    Attributes
    ----------
    features : FeatureMap
        Of the chunks that ``run`` gives.
    loss : Loss
        That of all rows together.
    fit_intercept : bool
    scaling : {"mean", "total"}
    scale : (q,) array
        The unit of errors of every target.
    weight : float
        sum s of all rows.
    weights : (k,) array
        Of the rows that each split is trained on.
    train : (parts, k) bool array
        The parts that each split is trained on.
    lost : callable
        From a split to the functions that it may not use, (m, d).
    longest : (k,) array
        The largest |phi| of the rows that each split tests.
    farthest : float
        The largest |phi| of all rows.
    run : callable
        Makes a pass over all rows.
    own_loss : callable or None
        From a target to the losses of the splits, where each has another.
    """

    features: FeatureMap
    loss: Loss
    fit_intercept: bool
    scaling: str
    scale: Array
    weight: float
    weights: Array
    train: Array = field(repr=False)
    lost: Callable[[int], Array] = field(repr=False)
    longest: Array
    farthest: float
    run: Run = field(repr=False)
    own_loss: Callable[[int], Loss | None] = field(repr=False, default=lambda target: None)

    def form(self, target: int) -> Form:
        """Quantities shared by the columns of a target."""
        return Form(self.features, loss_of(self.loss, [target]), target, self.fit_intercept)

    def ridge(self, lam: float, weights: Array) -> Array:
        """Lambda of training rows with these total weights."""
        return np.asarray(lam * weights if self.scaling == "mean" else np.full(weights.shape, lam))

    def squared(
        self, moments: Moments, lams: Array, split: int | None = None
    ) -> tuple[RidgeModels, Array]:
        """Least squares at every lambda, of a split or of all rows, and bounds on what it predicts.

        The bounds (L, q) are for the rows that the split tests; for all rows without a split.
        """
        removed, lost = np.empty(0, dtype=np.intp), np.empty((self.features.size, 0))
        longest = self.farthest
        if split is not None:
            removed, lost = np.flatnonzero(~self.train[:, split]), self.lost(split)
            longest = float(self.longest[split])
        form = self.fit_intercept, self.scaling
        found = Ridge.without(moments, removed.tolist(), *form, lost).models(lams)
        drift = self.features.drift(np.asfortranarray(found.W.reshape(found.W.shape[0], -1)))
        return found, found.errors(longest, drift)

    def whole(self, lam: float, target: int, start: Array | None = None) -> Minimum:
        """The model of all rows, with its sums part by part."""
        scale = float(self.scale[target])
        columns = self._whole_columns(lam)
        return minimise_one(self.form(target), columns, self.run, start, scale, self.farthest)

    def error(self, lam: float, target: int, full: Minimum) -> tuple[float, str]:
        """A bound on the error of a model of all rows for any of them, and why it is no minimum."""
        form, scale = self.form(target), float(self.scale[target])
        at, columns = full.theta[:, None], self._whole_columns(lam)
        found = certify(form, at, columns, [None], self.run, scale)
        error = float(found.at(self.farthest, 0.0)[0])
        if full.converged or error <= EXACT_TOLERANCE * scale:
            return error, ""
        return error, _not_converged(self.loss, lam, full.steps, error, scale)

    def splits(
        self, lam: float, target: int, full: Minimum, refined: bool
    ) -> tuple[Array, Array, Array]:
        """Models (size, k) of the splits, bounds (k,) on what they predict, and their steps.

        ``refined`` splits take steps until they are exact, others one.
        """
        form, own, scale = self.form(target), self.own_loss(target), float(self.scale[target])
        if own is not None:
            form = replace(form, loss=own)
        pad = (0, int(self.fit_intercept)), (0, 0)
        lost = [np.pad(self.lost(split), pad) for split in range(self.weights.size)]
        columns = PrimalColumns(self.train, self.ridge(lam, self.weights), lost)
        at, far = (full.theta, full.pieces), self.longest
        theta, bound, steps = solve_splits(
            form, at, columns, self.run, scale, far, refined, own is not None
        )
        return theta, bound.at(far, 0.0), steps

    def _whole_columns(self, lam: float) -> PrimalColumns:
        """The column of all rows."""
        nothing = [np.empty((self.features.size + int(self.fit_intercept), 0))]
        ridge = self.ridge(lam, np.array([self.weight]))
        return PrimalColumns(np.ones((self.train.shape[0], 1), dtype=bool), ridge, nothing)


def _not_converged(loss: object, lam: float, steps: int, error: float, scale: float) -> str:
    """The error of a fit that did not converge, with its measurements and advice."""
    bounded = f"an error of at most {error:.1e}" if np.isfinite(error) else "no bound"
    return (
        f"the fit did not reach its minimum (loss {loss!r}, lam={lam:g}, {steps} steps): its "
        f"predictions have {bounded} (at most {EXACT_TOLERANCE * scale:.1e} is needed); raise lam, "
        "or scale the data"
    )
