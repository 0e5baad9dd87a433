"""Inputs and results of the jobs of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.folds import Folds
from onefit.heldout import HeldOut, HeldOutPath
from onefit.scoring.aggregate import aggregate
from onefit.search.criterion import CriterionLike
from onefit.search.grid import CandidateModel
from onefit.search.rows import FoldedSample
from onefit.search.scorers import Scoring

__all__ = ["LEFT_OUT", "Outcome", "Task", "values_of"]

#: the method of candidates that lost on a sample of the rows, and have no score (race.py)
LEFT_OUT = "left out"


@dataclass(frozen=True)
class Task:
    """The part of a job that is the same for all kernels of a search.

    Attributes
    ----------
    sample : FoldedSample
    scoring, pooled : Scoring
        By split; of all test rows at once, if the aggregate wants that.
    how : str
        The aggregate.
    criterion : CriterionLike or None
    metric : str or None
        The score to choose by, where there is one.
    """

    sample: FoldedSample
    scoring: Scoring
    pooled: Scoring | None
    how: str
    criterion: CriterionLike | None = None
    metric: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The outcome of one model; L lambdas, k splits, N test rows, q targets.

    Attributes
    ----------
    indices : the candidates, one per lambda
    method : str
    scores : name -> (L, k) array
    pooled : name -> (L,) array
    values : (L, N, q) array
    exact, error, moved, steps : (L, k) arrays, see :class:`onefit.heldout.HeldOut`
    order : int or None
    reasons : list of str
        Why a candidate has no score, empty where it has one.
    criterion : (L,) array or None
    fit_seconds, score_seconds : float
        A lambda's share.
    refined : tuple of float
        The last lambdas, where these were found in an interval and are not candidates yet: there
        is no index for them.
    """

    indices: tuple[int, ...]
    method: str
    scores: dict[str, Array]
    pooled: dict[str, Array]
    values: Array = field(repr=False)
    exact: Array
    error: Array
    moved: Array
    steps: Array
    order: int | None
    reasons: list[str]
    criterion: Array | None = None
    fit_seconds: float = 0.0
    score_seconds: float = 0.0
    refined: tuple[float, ...] = ()

    @classmethod
    def of(cls, task: Task, model: CandidateModel, held: HeldOutPath, method: str) -> Outcome:
        """The outcome with these held-out values, which are scored here; times are not set."""
        # counts are mostly small, or zero, and with leave-one-out there are many
        moved, steps = (
            x.astype(np.min_scalar_type(x.max(initial=0))) for x in (held.moved, held.steps)
        )
        pooled = {}
        if task.pooled is not None:
            pooled = task.pooled.score(model.estimator, held.values, held.done)
        return cls(
            indices=model.indices,
            method=method,
            scores=task.scoring.score(model.estimator, held.values, held.done),
            pooled={name: one[:, 0] for name, one in pooled.items()},
            values=held.values,
            exact=held.exact,
            error=held.error,
            moved=moved,
            steps=steps,
            order=held.order,
            reasons=held.reasons,
        )

    @classmethod
    def joined(cls, parts: Sequence[Outcome]) -> Outcome:
        """The lambdas of several outcomes of one model, one after the other."""
        if len(parts) == 1:
            return parts[0]
        sizes = [len(one.reasons) for one in parts]
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in parts[0]._arrays()
        }
        return replace(
            parts[0],
            indices=tuple(chain.from_iterable(one.indices for one in parts)),
            scores=_stacked([one.scores for one in parts], sizes),
            pooled=_stacked([one.pooled for one in parts], sizes),
            order=next((one.order for one in parts if one.order is not None), None),
            reasons=list(chain.from_iterable(one.reasons for one in parts)),
            fit_seconds=float(np.average([one.fit_seconds for one in parts], weights=sizes)),
            score_seconds=float(np.average([one.score_seconds for one in parts], weights=sizes)),
            **arrays,
        )

    def take(self, places: list[int]) -> Outcome:
        """The outcome of some of the lambdas."""
        return replace(
            self,
            indices=tuple(self.indices[i] for i in places),
            scores={name: one[places] for name, one in self.scores.items()},
            pooled={name: one[places] for name, one in self.pooled.items()},
            reasons=[self.reasons[i] for i in places],
            **{name: one[places] for name, one in self._arrays().items()},
        )

    def _arrays(self) -> dict[str, Any]:
        """The arrays with a row per lambda, by name."""
        return {name: one for name, one in vars(self).items() if isinstance(one, np.ndarray)}

    def heldout(self, index: int, folds: Folds) -> HeldOut:
        """The held-out values of a candidate, over the splits in the caller's order."""
        i = self.indices.index(index)
        return HeldOut(
            self.values[i],
            folds,
            self.method,
            self.exact[i],
            self.error[i],
            self.moved[i].astype(np.intp),
            self.steps[i].astype(np.intp),
            self.order,
            self.fit_seconds + self.score_seconds,
        )

    def costs(self, task: Task) -> Array:
        """Values that rank the candidates, the smaller the better: criterion, or minus the score.

        NaN where there is no score.
        """
        if self.criterion is not None:
            return self.criterion
        if task.metric is None or task.metric not in self.scores:
            return np.full(len(self.reasons), np.nan)
        sizes = np.diff(task.sample.folds.offsets)
        return -aggregate(task.how, self.scores[task.metric], sizes, self.pooled.get(task.metric))


def values_of(task: Task, outcomes: list[Outcome], size: int) -> Array:
    """Scores that rank the candidates, the larger the better; NaN without an outcome."""
    values = np.full(size, np.nan)
    for one in outcomes:
        values[list(one.indices)] = -one.costs(task)
    return values


def _stacked(parts: list[dict[str, Array]], sizes: list[int]) -> dict[str, Array]:
    """Scores one after the other; a part whose lams all failed has none, which is NaN here."""
    shapes = {name: one.shape[1:] for part in parts for name, one in part.items()}
    return {
        name: np.concatenate(
            [
                part.get(name, np.full((size, *shape), np.nan))
                for part, size in zip(parts, sizes, strict=True)
            ]
        )
        for name, shape in shapes.items()
    }
