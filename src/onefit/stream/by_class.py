"""Weights of classes: an accumulator that is given the same rows, each weighted by its class.

Weights of classes belong to the fit and not to the scores, and every model of a search may have
its own. So they are multiplied in where a model's sums are taken, and nowhere else. What they are
is known from the survey: for targets of -1 and +1 with mean t, the class that is +1 has (1 + t)/2
of the weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.spec.coding import class_codes
from onefit.stream.accumulate import Accumulator, Chunk
from onefit.stream.survey import Surveyed

__all__ = ["ByClass", "class_totals", "reweighted"]


@dataclass(frozen=True)
class ByClass:
    """The accumulator of rows that weigh as their classes say."""

    base: Accumulator[Any, Any]
    weights: Array = field(repr=False)

    def init(self) -> Any:
        return self.base.init()

    def update(self, state: Any, chunk: Chunk) -> Any:
        s = chunk.s * self.weights[class_codes(chunk.Y)]
        return self.base.update(state, replace(chunk, s=s))

    def merge(self, one: Any, other: Any) -> Any:
        return self.base.merge(one, other)

    def finish(self, state: Any) -> Any:
        return self.base.finish(state)


def class_totals(survey: Surveyed) -> Array:
    """The weight of every class in every fold, (k, classes)."""
    means = np.array([one.mean for one in survey.targets])
    shares = (1.0 + means) / 2.0
    shares = np.hstack([1.0 - shares, shares]) if shares.shape[1] == 1 else shares
    return np.asarray(survey.weights[:, None] * shares)


def reweighted(survey: Surveyed, weights: Array) -> Surveyed:
    """The same survey, as far as the weights of the folds are asked for."""
    totals = class_totals(survey) @ weights
    targets = [
        replace(one, weight=float(total)) for one, total in zip(survey.targets, totals, strict=True)
    ]
    return replace(survey, targets=targets)
