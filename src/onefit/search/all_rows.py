"""Steps of a pipeline fitted once, to all rows: ``method="all_rows"``, and its effect on the score.

A scaler or an imputer that is fitted to all rows has seen the held-out ones, so that the score is
a little too high. In return a kernel has one matrix for all splits, and their held-out predictions
come from one fit to all rows. The increase of the score is measured for the winner: it is evaluated
once more with its steps fitted in every training part, and :class:`Optimism` holds both scores. The
increase of other candidates may differ, and the second score is still that of the best of many.

Steps that use the target are refused: the steps are fitted without it. With it, the increase would
be large (selecting columns of noise, encoding a column of many values by the mean target).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from onefit.heldout import HeldOut

__all__ = ["AllRows", "Optimism", "all_rows_of"]


@dataclass(frozen=True)
class AllRows:
    """``KernelSearchCV(method=AllRows())``: the steps of a pipeline are fitted once, to all rows.

    Parameters
    ----------
    method : str or object, default="auto"
        How held-out values of the transformed rows are computed, as for a kernel estimator alone.
    """

    method: Any = "auto"


@dataclass(frozen=True)
class Optimism:
    """The increase of the winner's score by steps that are fitted to all rows.

    Attributes
    ----------
    metric : str
    all_rows : float
        Score with the steps fitted once, to all rows: ``best_score_``.
    in_folds : float
        Score of the same candidate with the steps fitted in every training part.
    heldout : HeldOut
        Held-out values of the winner with the steps fitted in every training part.
    """

    metric: str
    all_rows: float
    in_folds: float
    heldout: HeldOut = field(repr=False)

    @property
    def difference(self) -> float:
        """The score with steps fitted to all rows minus that with steps fitted in the folds."""
        return self.all_rows - self.in_folds


def all_rows_of(method: Any) -> AllRows | None:
    """The choice of a search's method to fit steps to all rows, if it is that."""
    if isinstance(method, AllRows):
        return method
    return AllRows() if isinstance(method, str) and method == "all_rows" else None
