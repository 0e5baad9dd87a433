"""Models of some splits and of all rows in feature space, in memory or streamed.

The rows are divided into parts: the folds of streamed rows (onefit.features.hashed), or the parts
from which the splits of rows in memory are put together (onefit.features.parts). For the squared
loss the moments of every part, from one pass, are enough. For another loss the model of all rows
comes first, at a target and lambda; its last pass has gradient and curvature part by part, from
which every split takes its steps (onefit.features.side_by_side).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

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
        Of the chunks of ``run``.
    loss : Loss
        That of all rows.
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
        From a target to the losses of the splits, if they differ, or None.
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

    def squared(
        self, moments: Moments, lams: Array, split: int | None = None
    ) -> tuple[RidgeModels, Array]:
        """Least squares of a split or of all rows at every lambda, and bounds on its predictions.

        The bounds (L, q) are for the test rows of the split, or for all rows.
        """
        removed, lost = np.empty(0, dtype=np.intp), self._no_functions
        longest = self.farthest
        if split is not None:
            removed, lost = np.flatnonzero(~self.train[:, split]), self.lost(split)
            longest = float(self.longest[split])
        ridge = Ridge(moments, removed.tolist(), self.fit_intercept, self.scaling, lost)
        found = ridge.models(lams)
        drift = self.features.drift(np.asfortranarray(found.W.reshape(found.W.shape[0], -1)))
        return found, found.errors(longest, drift)

    def whole(self, lam: float, target: int, start: Array | None = None) -> Minimum:
        """The model of all rows, with its sums part by part."""
        return minimise_one(self._all_rows(lam, target), start)

    def error(self, lam: float, target: int, full: Minimum) -> tuple[float, str]:
        """A bound on the errors of the model of all rows, and why it did not converge if so."""
        column, scale = self._all_rows(lam, target), float(self.scale[target])
        found = certify(column, full.theta[:, None], [full.factor])
        error = float(found.at(self.farthest, 0.0)[0])
        if full.converged or error <= EXACT_TOLERANCE * scale:
            return error, ""
        return error, _not_converged(self.loss, lam, full.steps, error, scale)

    def splits(
        self, lam: float, target: int, full: Minimum, refined: bool
    ) -> tuple[Array, Array, Array]:
        """Models (size, k) of the splits, bounds (k,) on their predictions, and their steps.

        Splits take one step, or steps until they are exact if ``refined``.
        """
        lost = [self.lost(split) for split in range(self.weights.size)]
        columns = self._columns(lam, target, self.train, self.weights, lost, self.longest)
        own = self.own_loss(target)
        if own is not None:
            columns = columns.eased(own)
        theta, bound, steps = solve_splits(columns, full, refined, own is not None)
        return theta, bound.at(self.longest, 0.0), steps

    def _all_rows(self, lam: float, target: int) -> PrimalColumns:
        """The column of all rows."""
        every, nothing = np.ones((self.train.shape[0], 1), dtype=bool), self._no_functions
        weight, farthest = np.array([self.weight]), np.array([self.farthest])
        return self._columns(lam, target, every, weight, [nothing], farthest)

    def _columns(
        self,
        lam: float,
        target: int,
        train: Array,
        weights: Array,
        lost: list[Array],
        longest: Array,
    ) -> PrimalColumns:
        loss = loss_of(self.loss, [target])
        return PrimalColumns(
            form=Form(self.features, loss, target, self.fit_intercept, train),
            ridge=lam * weights if self.scaling == "mean" else np.full(weights.shape, lam),
            lost=[np.pad(one, ((0, int(self.fit_intercept)), (0, 0))) for one in lost],
            longest=longest,
            scale=float(self.scale[target]),
            run=self.run,
        )

    @property
    def _no_functions(self) -> Array:
        return np.empty((self.features.size, 0))


def _not_converged(loss: object, lam: float, steps: int, error: float, scale: float) -> str:
    """The error of a fit that did not converge, with its measurements and advice."""
    bounded = f"an error of at most {error:.1e}" if np.isfinite(error) else "no bound"
    return (
        f"the fit did not reach its minimum (loss {loss!r}, lam={lam:g}, {steps} steps): its "
        f"predictions have {bounded} (at most {EXACT_TOLERANCE * scale:.1e} is needed); raise lam, "
        "or scale the data"
    )
