"""The interface between ``KernelSearchCV.fit`` and the rows of a search, wherever these are.

``KernelSearchCV.fit`` is the same for all rows: set up, check, evaluate, tabulate, choose, refit.
What differs is where the rows are, and a :class:`SearchRows` knows that:

- rows in memory (:mod:`onefit.search.in_memory`; of pipelines :mod:`onefit.search.pipeline` and
  :mod:`onefit.search.fitted_once`): outcomes carry held-out values, scores and intervals are made
  from them, and the winner is fitted once more;
- streamed rows (:mod:`onefit.search.streamed`): outcomes carry scores and intervals that were made
  from row statistics, and the model of all rows is known already. Held-out values of the winner
  take one more pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from onefit._types import Array
from onefit.heldout import HeldOut
from onefit.plan import Explanation
from onefit.search.grid import PlannedSearch
from onefit.search.outcome import Outcome
from onefit.search.scorers import FitInputs, Scorers, Scoring

__all__ = ["NotKept", "SearchRows"]


class SearchRows(ABC):
    """The rows of a search: checked when made, then evaluated, then asked for the results.

    Attributes
    ----------
    scorers : Scorers
    names : list of str
        Metrics.
    subtasks : int
        Parts of a fit that callbacks are notified of.
    setup : PlannedSearch
        Candidates, their lams, gammas and specs.
    outcomes : list of Outcome
        Of all candidates, once they are evaluated.
    attributes : dict
        Fitted attributes that belong to these rows.
    """

    scorers: Scorers
    names: list[str]
    subtasks: int
    setup: PlannedSearch
    outcomes: list[Outcome]
    attributes: dict[str, Any]

    @abstractmethod
    def check(self, metric: Any) -> None:
        """Refuse, before any work, what does not go with the metric to choose by."""

    def explain(self) -> Explanation:
        """The plan of ``evaluate``, with the costs of alternatives."""
        raise ValueError("explain needs rows in memory; streamed ones take a few passes")

    @abstractmethod
    def evaluate(self, metric: Any, context: Any) -> None:
        """Evaluate every candidate; ``context`` is that of scikit-learn's callbacks."""

    @property
    @abstractmethod
    def sizes(self) -> Array:
        """Test rows of each split."""

    @property
    def scoring(self) -> Scoring | None:
        """The scoring of all held-out values; None if these are not kept."""
        return None

    @property
    def not_kept(self) -> str:
        """The reason why the winner has no held-out values; empty if it has."""
        return ""

    @abstractmethod
    def held_out(self, index: int) -> HeldOut:
        """The held-out values of a candidate, with targets and weights."""

    def heldouts(self) -> list[HeldOut]:
        """Held-out values of every candidate; empty if these are not kept."""
        return []

    @abstractmethod
    def judged_by(self, index: int, held: HeldOut) -> tuple[FitInputs, Scoring]:
        """The data of a headline of held-out values."""

    def compared(self, fitted: dict[str, Any], metric: Any) -> dict[str, Any]:
        """A comparison of the winner with a stricter evaluation of it, as fitted attributes."""
        return {}

    @abstractmethod
    def refit(self, fitted: dict[str, Any], context: Any) -> dict[str, Any]:
        """The winner fitted to all rows, as fitted attributes."""


class NotKept:
    """A fitted attribute whose absence has a reason, which the AttributeError names."""

    def __set_name__(self, owner: Any, name: str) -> None:
        self.name = name

    def __get__(self, search: Any, owner: Any = None) -> Any:
        if search is None:
            return self
        reason = vars(search).get("_not_kept")
        why = f": {reason}" if reason else ""
        kind = type(search).__name__
        raise AttributeError(f"{kind!r} object has no attribute {self.name!r}{why}")
