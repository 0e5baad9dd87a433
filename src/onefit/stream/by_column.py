"""Models with columns of their own: one for each pair of classes, or for each level of a target.

Rows are read, and surveyed, with the targets that all models share. What a model makes of them
is made chunk by chunk, where its sums are taken; so models of several kinds share a pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.stream.accumulate import Accumulator, Chunk
from onefit.stream.survey import Spread, Surveyed

__all__ = ["ByColumn", "spread_over"]


@dataclass(frozen=True)
class ByColumn:
    """The accumulator of rows whose targets are those of a model's own columns."""

    base: Accumulator[Any, Any]
    columns: Callable[[Array], Array] = field(repr=False)

    def init(self) -> Any:
        return self.base.init()

    def update(self, state: Any, chunk: Chunk) -> Any:
        return self.base.update(state, replace(chunk, Y=self.columns(chunk.Y)))

    def merge(self, one: Any, other: Any) -> Any:
        return self.base.merge(one, other)

    def finish(self, state: Any) -> Any:
        return self.base.finish(state)


def spread_over(survey: Surveyed, count: int) -> Surveyed:
    """The same survey for so many columns, all with the unit of errors that the first target has.

    Levels are of one target, and classes are all labels.
    """
    first = np.zeros(count, dtype=np.intp)
    names = ("mean", "M", "low", "high", "labels")

    def wider(one: Spread) -> Spread:
        return replace(one, **{name: getattr(one, name)[first] for name in names})

    return replace(survey, targets=[wider(one) for one in survey.targets])
