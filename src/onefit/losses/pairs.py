"""A loss of some of the rows: one class against another.

The model of a pair of classes is trained on the rows of the two, labelled -1 and +1. All other rows
have the label 0, where this loss is zero, so that they change neither the fit nor its derivatives.
All pairs are then targets of one problem: columns of the same kernel matrix and the same folds,
without weights or masks of their own.

Lambda is the same for all pairs, as C is in libsvm. Under mean scaling that is lam times the
weight of all training rows, not of the pair's: C = 1 / (2 n lam) holds for every pair.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onefit.losses.base import Array, Loss, loss_of
from onefit.losses.widened import widened_loss

__all__ = ["InPairs"]


@dataclass(frozen=True)
class InPairs:
    """A loss on the rows with a label, nothing on those whose label is 0.

    Parameters
    ----------
    loss : Loss
    """

    loss: Loss
    task = "classification"
    quadratic = False

    @property
    def name(self) -> str:
        """Name of the loss, with a mark for pairs."""
        return f"{self.loss.name} in pairs"

    @property
    def piecewise_quadratic(self) -> bool:
        """Whether the loss is."""
        return self.loss.piecewise_quadratic

    @property
    def max_curvature(self) -> float:
        """Largest curvature of the loss."""
        return float(self.loss.max_curvature)

    def take(self, columns: Any) -> InPairs:
        """The loss of some of the targets."""
        some = loss_of(self.loss, columns)
        return self if some is self.loss else InPairs(some)

    def widened(self, factor: float) -> tuple[InPairs, float]:
        """The loss widened on the rows with a label."""
        loss, multiple = widened_loss(self.loss, factor)
        return self if loss is self.loss else InPairs(loss), multiple

    def value(self, y: Array, u: Array) -> Array:
        return np.where(y == 0.0, 0.0, self.loss.value(y, u))

    def gradient(self, y: Array, u: Array) -> Array:
        return np.where(y == 0.0, 0.0, self.loss.gradient(y, u))

    def curvature(self, y: Array, u: Array) -> Array:
        return np.where(y == 0.0, 0.0, self.loss.curvature(y, u))

    def piece(self, y: Array, u: Array) -> Array:
        return np.where(y == 0.0, np.int8(0), self.loss.piece(y, u))

    @property
    def third(self) -> Callable[[Array, Array], Array]:
        """d3V/du3, if the loss has it."""
        third = self.loss.third  # type: ignore[attr-defined]
        return lambda y, u: np.where(y == 0.0, 0.0, third(y, u))

    @property
    def reweight(self) -> Callable[[Array, Array], tuple[Array, Array]]:
        """Weight and target of a quadratic upper bound that touches it at u, if it has one."""
        reweight = self.loss.reweight  # type: ignore[attr-defined]

        def labelled(y: Array, u: Array) -> tuple[Array, Array]:
            weight, z = reweight(y, u)
            return np.where(y == 0.0, 0.0, weight), np.where(y == 0.0, u, z)

        return labelled
