"""Prepared rows with targets, weights and groups: what every search of a selection is fitted to."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from onefit import plan
from onefit._types import Array
from onefit.search.setup import Setup, set_up

__all__ = ["PreparedRows", "planned_seconds", "seconds_of"]


@dataclass(frozen=True)
class PreparedRows:
    """Rows that a search takes.

    Attributes
    ----------
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,) or (n, q)
    params : dict
        ``groups`` and ``sample_weight``, arrays of shape (n,), if given.
    """

    X: Any = field(repr=False)
    y: Array = field(repr=False)
    params: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def groups(self) -> Any:
        """Groups of the rows, or None."""
        return self.params.get("groups")

    @property
    def sample_weight(self) -> Any:
        """Weights of the rows, or None."""
        return self.params.get("sample_weight")

    def set_up(self, search: Any) -> Setup:
        """Candidates, splits and plan of a search."""
        return set_up(search, self.X, self.y, self.sample_weight, {"groups": self.groups})

    def planned_seconds(self, search: Any) -> tuple[float, str]:
        """Seconds that a search is expected to take, and why it does not fit into memory, if so."""
        return planned_seconds(self.set_up(search))

    def announce(self, search: Any) -> None:
        """Print on stderr how long a search will take, and what would be faster, if it is long."""
        text = plan.announce(self.set_up(search).works)
        if text:
            print(text, file=sys.stderr, flush=True)

    def fit(self, search: Any) -> Any:
        """The search, fitted."""
        return search.fit(self.X, self.y, **self.params)

    def take(self, rows: Array) -> PreparedRows:
        """A subset of the rows."""
        params = {name: np.asarray(one)[rows] for name, one in self.params.items()}
        return PreparedRows(self.X[rows], self.y[rows], params)


def planned_seconds(setup: Setup) -> tuple[float, str]:
    """Seconds that a search is expected to take, and why it does not fit into memory, if so."""
    known = [one.estimate.seconds for one in setup.choices if one.estimate is not None]
    try:
        setup.check_memory()
    except MemoryError as error:
        return sum(known) / len(setup.jobs), str(error).split(";")[0]
    return sum(known) / len(setup.jobs), ""


def seconds_of(search: Any) -> float:
    """Seconds that the candidates of a fitted search took."""
    return float((search.cv_results_["mean_fit_time"] * search.n_splits_).sum())
