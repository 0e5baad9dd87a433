"""A fitted search as numbers: the only reader of its table.

Everything comes from the fitted attributes of a :class:`onefit.KernelSearchCV`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from onefit._format import number
from onefit.estimators.accepted import unwrap
from onefit.uncertainty.headline import Headline
from onefit.uncertainty.score_interval import name_of

Array = NDArray[Any]

__all__ = ["MIN_GAIN_IN_STANDARD_ERRORS", "Facts", "Family", "Scale"]

#: standard errors by which a winner at an end of a list must be better than without that end
MIN_GAIN_IN_STANDARD_ERRORS = 0.1
WORDS = {"r2": "R²", "accuracy": "error rate", "balanced_accuracy": "balanced accuracy"}


@dataclass(frozen=True)
class Scale:
    """Conversion of a score (larger is better) to the number shown: offset + sign * score.

    Attributes
    ----------
    label : str
    sign, offset : float
        Errors, for which smaller is better, have sign -1.
    """

    label: str
    sign: float = 1.0
    offset: float = 0.0

    @classmethod
    def of(cls, scoring: str) -> Scale:
        """Negated scores are shown as errors, the accuracy as an error rate."""
        if scoring == "accuracy":
            return cls(WORDS[scoring], -1.0, 1.0)
        if scoring.startswith("neg_"):
            return cls(scoring.removeprefix("neg_").replace("_", " "), -1.0)
        return cls(WORDS.get(scoring, scoring.replace("_", " ")))

    def __call__(self, score: Any) -> Any:
        return self.offset + self.sign * score


@dataclass(frozen=True)
class Family:
    """Candidates that differ in lam and gamma only, as a grid.

    Attributes
    ----------
    fixed : dict
        The parameters they share.
    lams, gammas : lists
        Ascending; gammas is [None] without a gamma.
    index : (len(gammas), len(lams)) int array
        The candidate of each cell, -1 for empty cells.
    """

    fixed: dict[str, Any]
    lams: list[Any]
    gammas: list[Any]
    index: Array = field(repr=False)

    @property
    def name(self) -> str:
        """The shared parameters in words."""
        values = [
            str(v) if k == "kernel" else f"{_own(k)}={number(v)}" for k, v in self.fixed.items()
        ]
        return ", ".join(values) or "all candidates"

    def row(self, candidate: int) -> tuple[Array, list[int]]:
        """The lams and candidates that share the gamma of a candidate."""
        cells = self.index[np.argwhere(self.index == candidate)[0, 0]]
        lams = [lam for lam, i in zip(self.lams, cells, strict=True) if i >= 0]
        return np.array(lams, dtype=float), [int(i) for i in cells if i >= 0]


@dataclass(frozen=True)
class Facts:
    """The results of a fitted search.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with one metric or with ``refit`` naming the metric that chooses.
    """

    search: Any

    def __post_init__(self) -> None:
        if not hasattr(self.search, "best_index_"):
            raise ValueError(
                "the search has no winner; fit it, with refit naming a metric if it has several"
            )

    @cached_property
    def table(self) -> dict[str, Any]:
        """``cv_results_``."""
        found: dict[str, Any] = self.search.cv_results_
        return found

    @cached_property
    def metric(self) -> str:
        """The metric's name in the columns of the table."""
        if not self.search.multimetric_:
            return "score"
        return self.search.refit if isinstance(self.search.refit, str) else next(
            name.removeprefix("mean_test_") for name in self.table if name.startswith("mean_test_")
        )  # fmt: skip

    @cached_property
    def scale(self) -> Scale:
        """The way scores are shown."""
        scoring, scorer = self.search.scoring, self.search.scorer_
        if self.search.multimetric_ and isinstance(scorer, dict):
            scoring = scoring[self.metric] if isinstance(scoring, dict) else self.metric
            scorer = scorer[self.metric]
        if isinstance(scoring, str):
            return Scale.of(scoring)
        return Scale.of(name_of(scorer, self.search.estimator))

    @cached_property
    def splits(self) -> Array:
        """Scores of the splits, (C, k)."""
        columns = [self.table[f"split{i}_test_{self.metric}"] for i in range(self.search.n_splits_)]
        return np.column_stack(columns)

    @cached_property
    def scores(self) -> Array:
        """The score of every candidate, by the search's aggregate."""
        return np.asarray(self.table[f"{self.search.aggregate}_test_{self.metric}"])

    @cached_property
    def errors(self) -> Array:
        """Standard error of every candidate's score, for independent rows or splits."""
        return np.asarray(self.table[f"se_test_{self.metric}"])

    @property
    def best(self) -> int:
        """The winner."""
        return int(self.search.best_index_)

    @property
    def is_classification(self) -> bool:
        """Whether the targets are labels."""
        return bool(is_classifier(self.search.estimator))

    @cached_property
    def model(self) -> Any:
        """The winner, fitted if the search refits it."""
        best = unwrap(getattr(self.search, "best_estimator_", None))
        if best is not None:
            return best
        known = self.search.estimator.get_params()
        params = {k: v for k, v in self.search.best_params_.items() if k in known}
        return clone(self.search.estimator).set_params(**params)

    @cached_property
    def order(self) -> Array:
        """Candidates, the best first; by the criterion if the search has one."""
        ranks = self.table.get("rank_criterion", self.table[f"rank_test_{self.metric}"])
        return np.argsort(ranks, kind="stable")

    @cached_property
    def near(self) -> Array:
        """The candidates within one standard error of the best score."""
        if np.isnan(self.scores).all():
            return np.zeros(self.scores.size, dtype=bool)
        top = int(np.nanargmax(self.scores))
        margin = self.errors[top] if np.isfinite(self.errors[top]) else 0.0
        return np.asarray(self.scores >= self.scores[top] - margin)

    @property
    def headline(self) -> Headline | None:
        """Pooled score, interval and baseline; None if a function chose."""
        return getattr(self.search, "headline_", None)

    @property
    def expected(self) -> float:
        """The winner's score on all held-out rows together, as shown."""
        score = self.scores[self.best] if self.headline is None else self.headline.score
        return float(self.scale(score))

    @property
    def proof(self) -> tuple[bool, float]:
        """Whether the held-out predictions of the choice are exact, and the bound on their error.

        Of an average, those of its members with their weights.
        """
        if not hasattr(self.search, "stack_"):
            return bool(self.table["exact"][self.best]), float(self.table["error"][self.best])
        held = self.search.heldout_
        return bool(np.all(held.exact)), float(np.max(held.error))

    @property
    def baseline(self) -> float:
        """The baseline's score, as shown; NaN if unknown."""
        return np.nan if self.headline is None else float(self.scale(self.headline.baseline))

    @property
    def verdict(self) -> str:
        """A sentence if the choice does not clearly beat the baseline."""
        if self.headline is None:
            return ""
        return self.headline.verdict(self.scale, self.scale.label)

    @property
    def interval(self) -> tuple[float, float]:
        """A 95 % interval of the winner's expected error, as shown; NaN without a headline."""
        ends = (np.nan, np.nan) if self.headline is None else self.headline.interval
        low, high = sorted(float(self.scale(end)) for end in ends)
        return low, high

    @cached_property
    def families(self) -> list[Family]:
        """Families of candidates, the winner's first, then by their best score."""
        groups: dict[str, list[int]] = {}
        for i, params in enumerate(self.table["params"]):
            fixed = {k: v for k, v in params.items() if k not in ("lam", "gamma")}
            groups.setdefault(repr(fixed), []).append(i)
        scores = np.where(np.isnan(self.scores), -np.inf, self.scores)
        ranked = sorted(groups.values(), key=lambda g: (self.best not in g, -scores[g].max()))
        return [self._family(group) for group in ranked]

    @cached_property
    def edge_sides(self) -> dict[str, str]:
        """The parameters, "gamma" or "lam", whose "smallest" or "largest" value was chosen.

        Only where candidates with another value are worse by more than a little: towards flat
        kernels and small lams the score often tends to a limit.
        """
        family, params = self.families[0], self.table["params"]
        row, column = np.argwhere(family.index == self.best)[0]
        by_score = "criterion" not in self.table
        ranks = self.scores if by_score else -np.asarray(self.table["criterion"], dtype=float)
        error = float(np.nan_to_num(self.errors[self.best])) if by_score else 0.0
        found = {}
        for name, values, place in (("gamma", family.gammas, row), ("lam", family.lams, column)):
            ends = {0: "smallest", len(values) - 1: "largest"}
            if place not in ends or len(values) < 2 or any(isinstance(one, str) for one in values):
                continue
            own = params[self.best].get(name)
            others = [i for i, one in enumerate(params) if not np.array_equal(one.get(name), own)]
            gain = ranks[self.best] - np.nanmax(ranks[others], initial=-np.inf)
            if gain > MIN_GAIN_IN_STANDARD_ERRORS * error:
                found[name] = ends[int(place)]
        return found

    @property
    def edges(self) -> list[str]:
        """The same in words."""
        return [f"{name} is the {side} tried" for name, side in self.edge_sides.items()]

    def _family(self, group: list[int]) -> Family:
        params = self.table["params"]
        fixed = {k: v for k, v in params[group[0]].items() if k not in ("lam", "gamma")}
        lam, gamma = self.search.estimator.lam, None
        cells = [
            (_named(params[i].get("gamma", gamma), i), params[i].get("lam", lam)) for i in group
        ]
        gammas, lams = (sorted({cell[i] for cell in cells}, key=_ascending) for i in (0, 1))
        index = np.full((len(gammas), len(lams)), -1)
        for i, (one, other) in zip(group, cells, strict=True):
            index[gammas.index(one), lams.index(other)] = i
        return Family(fixed, lams, gammas, index)


def _named(gamma: Any, candidate: int) -> Any:
    """gamma, or a name for an array with a value for every column."""
    return f"per column ({candidate})" if np.ndim(gamma) else gamma


def _ascending(value: Any) -> tuple[int, float, str]:
    """Numbers first, in their order, then names."""
    if isinstance(value, (int, float, np.number)):
        return 0, float(value), ""
    return 1, 0.0, str(value)


def _own(name: str) -> str:
    """The name of a nested parameter without its object: threshold for loss__threshold."""
    return name.rpartition("__")[2]
