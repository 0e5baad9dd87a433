"""What a finished search says, as numbers: the one place that reads its table.

Everything is drawn from the fitted attributes of a :class:`onefit.KernelSearchCV`; nothing is
computed anew but means, standard errors and the cost model's estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from onefit import plan
from onefit.scoring.row_losses import optimism_of_splits
from onefit.search.scorers import name_of
from onefit.uncertainty.headline import OPTIMISM_SEED, Headline
from onefit.uncertainty.score_interval import inflation, range_of, score_interval

Array = NDArray[Any]

__all__ = ["Facts", "Family", "SpeedUp"]

#: methods that no other loss has
OF_SQUARED_LOSS = ("block", "eigen")
WORDS = {"r2": "R²", "accuracy": "error rate", "balanced_accuracy": "balanced accuracy"}


@dataclass(frozen=True)
class Scale:
    """From a score, the larger the better, to the number a reader expects: offset + sign * score.

    Attributes
    ----------
    label : str
    sign, offset : float
        An error, the smaller the better, has sign -1.
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
    """Candidates that differ in lam and gamma alone, as a grid.

    Attributes
    ----------
    fixed : dict
        The parameters they share.
    lams, gammas : lists
        Ascending; gammas is [None] where there is none.
    index : (len(gammas), len(lams)) int array
        The candidate of each cell, -1 where there is none.
    """

    fixed: dict[str, Any]
    lams: list[Any]
    gammas: list[Any]
    index: Array = field(repr=False)

    @property
    def name(self) -> str:
        """The shared parameters in words."""
        values = [
            str(v) if k == "kernel" else f"{_own(k)}={_short(v)}" for k, v in self.fixed.items()
        ]
        return ", ".join(values) or "all candidates"


@dataclass(frozen=True)
class SpeedUp:
    """Estimates of the cost model, in seconds: the method taken, and refitting every split."""

    chosen: float
    refit: float

    @property
    def ratio(self) -> float:
        """How many times longer refitting is expected to take."""
        return self.refit / self.chosen


@dataclass(frozen=True)
class Facts:
    """A reading of a fitted search.

    Parameters
    ----------
    search : KernelSearchCV
        Fitted, with one metric or with ``refit`` naming the one that counts.
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
        """How scores are shown."""
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
        name = f"{self.search.aggregate}_test_{self.metric}"
        return np.asarray(self.table[name])

    @cached_property
    def errors(self) -> Array:
        """Standard error of every candidate's score: rows, or splits, taken as independent."""
        return np.asarray(self.table[f"se_test_{self.metric}"])

    @property
    def best(self) -> int:
        """The winner."""
        return int(self.search.best_index_)

    @cached_property
    def order(self) -> Array:
        """Candidates, the best first: by the criterion if the search had one."""
        ranks = self.table.get("rank_criterion", self.table[f"rank_test_{self.metric}"])
        return np.argsort(ranks, kind="stable")

    @cached_property
    def near(self) -> Array:
        """Which candidates score within one standard error of the best score."""
        if np.isnan(self.scores).all():
            return np.zeros(self.scores.size, dtype=bool)
        top = int(np.nanargmax(self.scores))
        margin = self.errors[top] if np.isfinite(self.errors[top]) else 0.0
        return np.asarray(self.scores >= self.scores[top] - margin)

    @property
    def headline(self) -> Headline | None:
        """Pooled score, interval and baseline; None where a function chose, or lams per target."""
        return getattr(self.search, "headline_", None)

    @property
    def expected(self) -> float:
        """The winner's score on all held-out rows together, as shown."""
        score = self.scores[self.best] if self.headline is None else self.headline.score
        return float(self.scale(score))

    @property
    def baseline(self) -> float:
        """The baseline's score, as shown; NaN where it is not known."""
        return np.nan if self.headline is None else float(self.scale(self.headline.baseline))

    @property
    def verdict(self) -> str:
        """A sentence if the choice does not clearly beat the baseline."""
        if self.headline is None:
            return ""
        return self.headline.verdict(self.scale, self.scale.label)

    @property
    def interval(self) -> tuple[float, float]:
        """An interval of level 0.95 for the winner's expected error, as shown.

        That of :mod:`onefit.uncertainty.score_interval`. Where there is no headline, its standard
        error and optimism are those of the splits.
        """
        ends = self._interval_of_splits if self.headline is None else self.headline.interval
        low, high = sorted(float(self.scale(end)) for end in ends)
        return low, high

    @property
    def _interval_of_splits(self) -> tuple[float, float]:
        scorer, splits = self.search.scorer_, self.splits[self.best]
        score, k = float(self.scores[self.best]), splits.size
        by_score = score >= np.nanmax(self.scores)  # else a function chose
        random = np.random.default_rng(OPTIMISM_SEED)
        ends = range_of(
            scorer[self.metric] if isinstance(scorer, dict) else scorer,
            self.search.estimator,
            is_classifier(self.search.estimator),
        )
        return score_interval(
            ends,
            score,
            score + (splits.mean() - splits) / max(k - 1, 1),  # the mean without each split
            optimism=optimism_of_splits(self.splits, random) if by_score else 0.0,
            factor=inflation(k, max(k - 1.0, 1.0)),
        )

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
    def edges(self) -> list[str]:
        """Where the winner is the last of its grid, in words: better ones may lie beyond."""
        family = self.families[0]
        row, column = np.argwhere(family.index == self.best)[0]
        found = []
        for name, values, place in (("gamma", family.gammas, row), ("lam", family.lams, column)):
            if len(values) > 2 and not any(isinstance(value, str) for value in values):
                ends = {0: "smallest", len(values) - 1: "largest"}
                if place in ends:
                    found.append(f"{name} is the {ends[int(place)]} tried")
        return found

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

    @cached_property
    def speed_up(self) -> SpeedUp | None:
        """What the cost model expects of the methods taken and of refitting.

        None where it does not know a method.
        """
        works = self._works()
        if works is None:
            return None
        totals = [0.0, 0.0]
        for work, method, share in works:
            for place, name in enumerate((method, "refit")):
                totals[place] += share * plan.estimate(work, name).seconds
        return SpeedUp(*totals)

    @property
    def _approximate(self) -> bool:
        """Whether any candidate has features in place of its kernel matrix."""
        tried = [params.get("approximation") for params in self.table["params"]]
        return self.search.estimator.approximation is not None or any(tried)

    def _works(self) -> list[tuple[plan.Workload, str, float]] | None:
        """The distinct workloads with their methods, and the share of the kernels with each."""
        held = getattr(self.search, "heldout_", None)
        choices = self.search.plan_
        if held is None or not choices or any(choice.estimate is None for choice in choices):
            return None
        if self._approximate:
            return None  # a refit of every split would be another one: of features
        base = plan.Workload(
            n=held.folds.n,
            lams=1,
            removed=tuple(rows.size for rows in held.folds.removed),
            targets=held.values.shape[1],
            itemsize=held.values.dtype.itemsize,
            kernels=len(choices),
        )
        loss = self.search.estimator.spec().loss
        squared = getattr(loss, "quadratic", False)
        counts: dict[tuple[int, str], int] = {}
        for choice in choices:
            counts[choice.lams, choice.method] = counts.get((choice.lams, choice.method), 0) + 1
        return [
            (
                replace(
                    base,
                    lams=lams,
                    loss=loss.name,
                    quadratic=method in OF_SQUARED_LOSS or (squared and method == "iterative"),
                ),
                method,
                count / len(choices),
            )
            for (lams, method), count in counts.items()
        ]


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


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)
