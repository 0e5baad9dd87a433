"""Inputs and results of the jobs of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from onefit._types import Array
from onefit.folds import Folds
from onefit.heldout import HeldOut, HeldOutPath
from onefit.proof.certificate import EXACT_TOLERANCE
from onefit.proof.norms import target_scale
from onefit.scoring.aggregate import aggregate
from onefit.search.criterion import CriterionLike
from onefit.search.grid import CandidateModel
from onefit.search.rows import FoldedSample
from onefit.search.scorers import Scoring

__all__ = ["LEFT_OUT", "ByMetric", "Outcome", "Task", "values_of"]

#: from the name of a metric to an array
ByMetric = dict[str, Array]
#: the method of candidates that lost on a sample of the rows, and have no score (race.py)
LEFT_OUT = "left out"
#: fields of an outcome that have an array for every metric
BY_METRIC = ("scores", "totals", "ends")


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

    def totals(self, scores: ByMetric, pooled: ByMetric) -> ByMetric:
        """One number per lambda, from scores of the splits (..., k) and of all rows (..., 1)."""
        sizes = np.diff(self.sample.folds.offsets)
        whole = {name: one[..., 0] for name, one in pooled.items()}
        return {
            name: aggregate(self.how, one, sizes, whole.get(name)) for name, one in scores.items()
        }

    def score(self, model: Any, held: HeldOutPath) -> tuple[ByMetric, ByMetric, ByMetric]:
        """Scores, totals and ends of an outcome with these held-out values."""
        if not self.scoring.names:
            return {}, {}, {}
        values, done = held.values, held.done
        pooled = {} if self.pooled is None else self.pooled.score(model, values, done)
        scores = self.scoring.score(model, values, done)
        return scores, self.totals(scores, pooled), self._ends(held)

    @cached_property
    def _tolerance(self) -> float:
        """What values of the method "exact" may differ by, so that intervals hold for them too."""
        return EXACT_TOLERANCE * float(target_scale(self.sample.Y, self.sample.s).max())

    def _ends(self, held: HeldOutPath) -> ByMetric:
        """The least and the largest total, (L, 2), NaN without values."""
        known = np.isfinite(held.values).all(axis=(1, 2))
        if not (self.scoring.fast and known.any()):
            return {}
        values, error = held.values[known].astype(np.float64), held.error[known]
        error = np.where(np.isnan(error), np.inf, error) + self._tolerance
        each = np.repeat(error, np.diff(self.sample.folds.offsets), axis=1)[..., None]
        pooled = {} if self.pooled is None else self.pooled.ends(values, each)
        found = {}
        for name, pair in self.totals(self.scoring.ends(values, each), pooled).items():
            found[name] = np.full((known.size, 2), np.nan)
            found[name][known] = pair.T
        return found


@dataclass(frozen=True)
class Outcome:
    """The outcome of one model; L lambdas, k splits, N test rows, q targets.

    Attributes
    ----------
    indices : the candidates, one per lambda
    method : str
    scores : name -> (L, k) array
        Of the splits.
    totals : name -> (L,) array
        Their aggregates.
    ends : name -> (L, 2) array
        The least and the largest total that bounds of held-out values leave open, for metrics with
        intervals.
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
    scores: ByMetric
    totals: ByMetric
    ends: ByMetric
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
        scores, totals, ends = task.score(model.estimator, held)
        return cls(
            indices=model.indices,
            method=method,
            scores=scores,
            totals=totals,
            ends=ends,
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
        by_lam: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in parts[0]._arrays()
        }
        for name in BY_METRIC:
            by_lam[name] = _stacked([getattr(part, name) for part in parts], sizes)
        return replace(
            parts[0],
            indices=tuple(chain.from_iterable(one.indices for one in parts)),
            order=next((one.order for one in parts if one.order is not None), None),
            reasons=list(chain.from_iterable(one.reasons for one in parts)),
            fit_seconds=float(np.average([one.fit_seconds for one in parts], weights=sizes)),
            score_seconds=float(np.average([one.score_seconds for one in parts], weights=sizes)),
            **by_lam,
        )

    def take(self, places: list[int]) -> Outcome:
        """The outcome of some of the lambdas."""
        by_lam: dict[str, Any] = {name: one[places] for name, one in self._arrays().items()}
        for name in BY_METRIC:
            by_lam[name] = {metric: one[places] for metric, one in getattr(self, name).items()}
        return replace(
            self,
            indices=tuple(self.indices[i] for i in places),
            reasons=[self.reasons[i] for i in places],
            **by_lam,
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

    def costs(self, metric: str | None) -> Array:
        """Values that rank the candidates, the smaller the better: criterion, or minus the score.

        NaN where there is no score.
        """
        if self.criterion is not None:
            return self.criterion
        none = np.full(len(self.reasons), np.nan)
        return -self.totals.get(metric or "", none)


def values_of(metric: str | None, outcomes: list[Outcome], size: int) -> Array:
    """Scores that rank the candidates, the larger the better; NaN without an outcome."""
    values = np.full(size, np.nan)
    for one in outcomes:
        values[list(one.indices)] = -one.costs(metric)
    return values


def _stacked(parts: list[ByMetric], sizes: list[int]) -> ByMetric:
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
