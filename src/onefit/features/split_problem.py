"""Models of some splits and of all rows in feature space, in memory or streamed.

All rows are the last split, which tests none and is trained on every part.

The rows are divided into parts: the folds of streamed rows (onefit.features.hashed), or the parts
from which the splits of rows in memory are put together (onefit.features.parts). For the squared
loss the moments of every part, from one pass, are enough. For another loss the model of all rows
comes first, at a target and lambda; its last pass has gradient and curvature part by part, from
which every split takes its steps (onefit.features.side_by_side).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from onefit._types import Array
from onefit.features.bound import certify_centred
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
    """The problem of the models of k splits and, as the last one, of all rows.

    Attributes
    ----------
    features : FeatureMap
        Of the chunks of ``run``.
    loss : Loss
        That of all rows.
    fit_intercept : bool
    scaling : {"mean", "total"}
    scale : (q,) array
        The unit of errors of every target.
    weights : (k + 1,) array
        Of the rows that each split is trained on.
    train : (parts, k + 1) bool array
        The parts that each split is trained on.
    lost : callable
        From a split to the functions that it may not use, (m, d).
    longest : (k + 1,) array
        The largest |phi| of the rows that each split predicts.
    run : callable
        Makes a pass over all rows.
    own_loss : callable or None
        From a target to the losses of the k splits, if they differ, or None.
    """

    features: FeatureMap
    loss: Loss
    fit_intercept: bool
    scaling: str
    scale: Array
    weights: Array
    train: Array = field(repr=False)
    lost: Callable[[int], Array] = field(repr=False)
    longest: Array
    run: Run = field(repr=False)
    own_loss: Callable[[int], Loss | None] = field(repr=False, default=lambda target: None)

    @property
    def folds(self) -> int:
        """Number of splits without that of all rows."""
        return self.weights.size - 1

    def squared(self, moments: Moments, lams: Array, split: int) -> tuple[RidgeModels, Array]:
        """Least squares of a split at every lambda, and bounds (L, q) on what it predicts."""
        removed = np.flatnonzero(~self.train[:, split]).tolist()
        ridge = Ridge(moments, removed, self.fit_intercept, self.scaling, self.lost(split))
        found = ridge.models(lams)
        drift = self.features.drift(np.asfortranarray(found.W.reshape(found.W.shape[0], -1)))
        return found, found.errors(float(self.longest[split]), drift)

    def whole(self, lam: float, target: int, start: Array | None = None) -> Minimum:
        """The model of all rows, with its sums part by part."""
        return minimise_one(self._columns(lam, target, [self.folds]), start)

    def certified(self, lam: float, target: int, full: Minimum) -> tuple[Array, float, str]:
        """The model of all rows, a bound on its errors, and why it did not converge if so."""
        column, scale = self._columns(lam, target, [self.folds]), float(self.scale[target])
        theta, found = certify_centred(column, full.theta[:, None], [full.factor])
        error, why = float(found.at(column.longest, 0.0)[0]), ""
        if not full.converged and error > EXACT_TOLERANCE * scale:
            why = _not_converged(self.loss, lam, full.steps, error, scale)
        return theta[:, 0], error, why

    def splits(
        self, lam: float, target: int, full: Minimum, refined: bool
    ) -> tuple[Array, Array, Array]:
        """Models (size, k) of the splits, bounds (k,) on their predictions, and their steps.

        Splits take one step, or steps until they are exact if ``refined``.
        """
        columns, own = self._columns(lam, target, range(self.folds)), self.own_loss(target)
        if own is not None:
            columns = columns.eased(own)
        theta, bound, steps = solve_splits(columns, full, refined, own is not None)
        return theta, bound.at(columns.longest, 0.0), steps

    def _columns(self, lam: float, target: int, splits: Sequence[int]) -> PrimalColumns:
        """Some of the splits, side by side."""
        loss, some = loss_of(self.loss, [target]), list(splits)
        weights, border = self.weights[some], ((0, int(self.fit_intercept)), (0, 0))
        return PrimalColumns(
            form=Form(self.features, loss, target, self.fit_intercept, self.train[:, some]),
            ridge=lam * weights if self.scaling == "mean" else np.full(weights.shape, lam),
            lost=[np.pad(self.lost(split), border) for split in some],
            longest=self.longest[some],
            scale=float(self.scale[target]),
            run=self.run,
        )


def _not_converged(loss: object, lam: float, steps: int, error: float, scale: float) -> str:
    """The error of a fit that did not converge, with its measurements and advice."""
    bounded = f"an error of at most {error:.1e}" if np.isfinite(error) else "no bound"
    return (
        f"the fit did not reach its minimum (loss {loss!r}, lam={lam:g}, {steps} steps): its "
        f"predictions have {bounded} (at most {EXACT_TOLERANCE * scale:.1e} is needed); raise lam, "
        "or scale the data"
    )
