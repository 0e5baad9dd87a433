"""The headline of a search: the score of its winner with an interval and a baseline.

- **The score is pooled**: the metric of all held-out rows at once. For metrics that are not means
  over rows (root mean squared error, R^2, the area under a ROC curve), scikit-learn's mean over
  splits differs from it and depends on the size of the splits: with splits of single rows, the mean
  of the root mean squared errors is the mean absolute error.
- **The baseline** (:mod:`onefit.uncertainty.baseline`) is the best constant by the same metric. An
  error rate of 0.011 is poor if one row in ninety is of the other class.
- **The interval**: see :mod:`onefit.uncertainty.score_interval`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from onefit._format import number
from onefit._types import Array
from onefit.folds import Folds
from onefit.heldout import HeldOut
from onefit.scoring.row_losses import RowLosses, jackknife_error, optimism_of_splits
from onefit.search.outcome import Outcome
from onefit.search.scorers import FitInputs, Scoring
from onefit.uncertainty.baseline import Baseline, baselines_of
from onefit.uncertainty.score_interval import COVERAGE_LEVEL, name_of, range_of, score_interval

__all__ = ["Headline", "blocks_of", "judge", "row_losses", "warn_of_drift"]

#: largest number of blocks left out in turn for metrics without a formula
MAX_JACKKNIFE_BLOCKS = 50
#: seed of the draws for the optimism, so that a search gives the same numbers again
OPTIMISM_SEED = 0
#: numbers kept for the losses of all rows by all candidates: half a gigabyte of doubles
MAX_KEPT_LOSSES = 2**26
#: rows of a test set below which a mean over splits that differs from the pooled score is warned of
MIN_TEST_ROWS = 30


@dataclass(frozen=True)
class Headline:
    """Score of a winner with an interval and a baseline. Larger is better; errors are negative.

    Attributes
    ----------
    scoring : str
        The metric of the search, whose scores these are: "r2", "neg_mean_absolute_error", ...
    score : float
        Of all held-out rows together.
    interval : (float, float)
        For the score on new rows, of level 0.95; its middle is below the score by the optimism.
    standard_error : float
        Of the score, for independent rows, or groups.
    optimism : float
        Estimated increase of the score because the winner was chosen by it.
    baseline : float
        The best score, on the same rows, of a constant prediction that ignores X; NaN, with a
        reason, if the scorer is not defined for it.
    lead : (float, float)
        Interval for the difference between the scores of winner and baseline on the same rows,
        paired row by row if the metric allows it.
    baseline_name : str
    mean_of_splits : float
        Mean of the scores of the splits, as in scikit-learn.
    r2 : float or None
        Of a regression; of all rows together.
    shares : dict
        Of a classification: the share of each class.
    rows : int
        Number of held-out rows.
    level : float
    reason : str
        Why there is no baseline, else empty.
    """

    scoring: str
    score: float
    interval: tuple[float, float]
    standard_error: float
    optimism: float
    baseline: float
    lead: tuple[float, float]
    baseline_name: str
    mean_of_splits: float
    r2: float | None
    shares: dict[Any, float]
    rows: int
    level: float = COVERAGE_LEVEL
    reason: str = ""

    @property
    def beats_baseline(self) -> bool | None:
        """Whether the whole interval ``lead`` is positive; None if unknown."""
        return None if np.isnan(self.lead[0]) else self.lead[0] > 0.0

    @property
    def drifts(self) -> bool:
        """Whether the mean over the splits differs by a standard error or more."""
        return abs(self.score - self.mean_of_splits) > self.standard_error

    def verdict(self, shown: Callable[[float], float] = float, name: str = "score") -> str:
        """A sentence if the winner is not known to beat the baseline, else empty.

        Parameters
        ----------
        shown : callable, default=float
            Converts scores to the numbers that are displayed.
        name : str, default="score"
            Their name.
        """
        if self.beats_baseline:
            return ""
        if self.beats_baseline is None:
            why = self.reason or "the score has no interval"
            return f"it is not known whether the choice beats a baseline: {why}"
        worse = self.score <= self.baseline
        low, high = sorted(map(shown, self.interval))
        return (
            f"the choice {'does not beat' if worse else 'is not clearly better than'} the baseline "
            f"({self.baseline_name}): its {name} is {number(shown(self.score), 4)}, 95% interval "
            f"{number(low, 4)} to {number(high, 4)}, and the baseline's is "
            f"{number(shown(self.baseline), 4)}"
        )


class _Rival(NamedTuple):
    """The baseline, and its score on all rows; NaN and the reason where it has none."""

    baseline: Baseline | None = None
    score: float = np.nan
    reason: str = "the metric is not defined for a constant"


@dataclass(frozen=True)
class _Judged:
    """Data of a headline.

    Attributes
    ----------
    given : FitInputs
        With the scorer that chooses alone.
    scoring : Scoring
    model : estimator with the parameters and classes of the winner
    metric : str
        Name of the metric that chooses.
    held : HeldOut
        Of the winner.
    """

    given: FitInputs
    scoring: Scoring
    model: Any
    metric: str
    held: HeldOut

    @cached_property
    def s(self) -> Array:
        """Weights of the rows in the fits."""
        weight = self.given.weight
        return np.ones(self.held.folds.n) if weight is None else np.asarray(weight)

    @property
    def scorer(self) -> Any:
        """The scorer that chooses, alone."""
        return self.given.scorers.scorer(self.metric)

    @cached_property
    def rival(self) -> _Rival:
        """The baseline with the best score; NaN and the reason if the scorer refuses it."""
        given, folds, found = self.given, self.held.folds, _Rival()
        try:
            for one in baselines_of(self.model, self.scorer, given.y, self.s, folds):
                score = given.pooled(folds, one.estimator).get(self.metric, np.nan)
                if not np.isnan(score) and not score <= found.score:
                    found = _Rival(one, score, "")
                elif found.baseline is None:
                    found = _Rival(one)
        except Exception as error:  # the caller's scorer may need anything
            why = f"the scorer does not take the baseline: {error}"
            return _Rival(found.baseline, np.nan, why)
        return found

    @cached_property
    def losses(self) -> RowLosses | None:
        """Losses of winner and baseline, if the metric is a function of them."""
        if self.metric not in self.scoring.fast or self.rival.baseline is None:
            return None
        both = [([0], self.held.values[None]), ([1], self.rival.baseline.values[None])]
        return RowLosses.of(*self.scoring.fast[self.metric], both, 2)

    def pooled(self, folds: Folds, values: Array) -> Array:
        """Scores of the winner on each of some sets of rows, given its values there."""
        plain = self.model.spec().coding.columns_are_targets
        scoring = self.given.scoring(self.model, folds, undefined=True, plain=plain)
        return np.asarray(scoring.score(self.model, values[None])[self.metric][0])


def judge(
    given: FitInputs,
    scoring: Scoring,
    model: Any,
    metric: str,
    held: HeldOut,
    splits: Array,
    best: int,
    rivals: RowLosses | None,
) -> Headline | None:
    """The headline of a winner; None, with a warning, where a scorer does not take all rows.

    Parameters
    ----------
    given, scoring : as for the search
    model : estimator with the parameters and classes of the winner
    metric : str
        Name of the metric that chooses.
    held : HeldOut
        Of the winner.
    splits : (C, k) array
        Scores of all candidates in every split.
    best : int
        The winner among the candidates.
    rivals : RowLosses or None
        Losses of all candidates, if the metric is a function of them.
    """
    try:
        judged = _Judged(given.only(metric), scoring, model, metric, held)
        return _headline(judged, splits, best, rivals)
    except Exception as error:  # of the caller's scorer; the search itself is complete
        warnings.warn(f"there is no headline_: all rows together gave: {error}", stacklevel=5)
        return None


def _headline(judged: _Judged, splits: Array, best: int, rivals: RowLosses | None) -> Headline:
    held, losses, rival = judged.held, judged.losses, judged.rival
    random = np.random.default_rng(OPTIMISM_SEED)
    score, left, ahead = _score_and_left(judged)
    if rivals is not None:
        optimism = rivals.optimism(blocks_of(held.folds, judged.given.groups), random)
    else:
        optimism = optimism_of_splits(splits, random)
    classifier = is_classifier(judged.model)
    tested = held.tested
    shares = _shares(judged.given.y, tested) if classifier else {}
    # Nadeau and Bengio's factor of the variance
    factor = 1.0 + tested.size / float(np.mean([part.size for part in held.folds.train]))
    one_mean = losses is not None and losses.metric.members is None
    units = 1 + int(blocks_of(held.folds, judged.given.groups).max())
    interval = score_interval(
        range_of(judged.scorer, judged.model),
        score,
        left,
        optimism=optimism,
        factor=factor,
        units=float(units) if one_mean else _units_of(shares, units),
    )
    lead = (interval[0] - rival.score, interval[1] - rival.score)
    if ahead is not None:
        ends, gap = (-np.inf, np.inf), score - rival.score
        lead = score_interval(ends, gap, ahead, optimism=optimism, factor=factor)
    return Headline(
        scoring=name_of(judged.scorer, judged.model),
        score=score,
        interval=interval,
        standard_error=float(jackknife_error(left)),
        optimism=optimism,
        baseline=rival.score,
        lead=lead,
        baseline_name="" if rival.baseline is None else rival.baseline.name,
        mean_of_splits=float(splits[best].mean()),
        r2=None if classifier else _r2(judged),
        shares=shares,
        rows=int(tested.size),
        reason=rival.reason,
    )


def blocks_of(folds: Folds, groups: Any, most: int | None = None) -> Array:
    """The block of each test row: its group, or the row itself; several of them if over ``most``.

    A row that several splits test is in one block, and so is a group.
    """
    unit = folds.rows if groups is None else np.asarray(groups)[folds.rows]
    block = np.unique(unit, return_inverse=True)[1]
    return block if most is None else block % min(most, int(block.max()) + 1)


def _score_and_left(judged: _Judged) -> tuple[float, Array, Array | None]:
    """The pooled score; it, and its lead over the baseline, without each block of rows."""
    folds, values = judged.held.folds, judged.held.values
    if judged.losses is not None:
        left = judged.losses.without(blocks_of(folds, judged.given.groups))
        return float(judged.losses.scores()[0, 0]), left[:, 0], left[:, 0] - left[:, 1]
    blocks = blocks_of(folds, judged.given.groups, MAX_JACKKNIFE_BLOCKS)
    everything = np.ones(blocks.size, dtype=bool)
    parts = [everything, *(blocks != b for b in range(int(blocks.max()) + 1))]
    tests = [folds.rows[part] for part in parts]
    sets = Folds(folds.n, [folds.train[0]] * len(tests), tests)

    def scored(values: Array) -> Array:
        return judged.pooled(sets, np.concatenate([values[part] for part in parts]))

    scores, baseline = scored(values), judged.rival.baseline
    if baseline is None or is_classifier(judged.model):
        return float(scores[0]), scores[1:], None
    return float(scores[0]), scores[1:], scores[1:] - scored(baseline.values)[1:]


def _shares(y: Any, rows: Array) -> dict[Any, float]:
    classes, counts = np.unique(np.ravel(np.asarray(y))[rows], return_counts=True)
    return {one: float(n / rows.size) for one, n in zip(classes.tolist(), counts, strict=True)}


def _units_of(shares: dict[Any, float], units: int) -> float:
    """Effective number of units of a metric that weighs all classes alike: rare classes have few.

    Parameters
    ----------
    shares : dict
        Of the classes; empty for a regression.
    units : int
        Number of rows, or of groups.
    """
    if not shares:
        return float(units)
    counts = units * np.array(list(shares.values()))
    return float(counts.size**2 / np.sum(1.0 / counts))


def _r2(judged: _Judged) -> float | None:
    """R^2 of all rows; None for several levels of one target."""
    rows = judged.held.folds.rows
    Y = np.asarray(judged.given.y, dtype=float).reshape(judged.held.folds.n, -1)
    if Y.shape[1] != judged.held.values.reshape(rows.size, -1).shape[1]:
        return None
    return float(r2_score(Y[rows], judged.held.values, sample_weight=judged.s[rows]))


def row_losses(scoring: Scoring | None, outcomes: list[Outcome], metric: Any) -> RowLosses | None:
    """Losses of the rows by all candidates.

    None for scorers that are not functions of them, for too many losses, and where held-out values
    are not kept.
    """
    if scoring is None or metric not in scoring.fast:
        return None
    C = 1 + max(max(one.indices) for one in outcomes)
    if C * outcomes[0].values[0].size > MAX_KEPT_LOSSES:
        return None
    return RowLosses.of(*scoring.fast[metric], ((one.indices, one.values) for one in outcomes), C)


def warn_of_drift(headline: Headline, folds: Folds) -> None:
    """Warn if the mean over tiny splits differs from the score of all rows together."""
    smallest = int(np.diff(folds.offsets).min())
    if smallest < MIN_TEST_ROWS and headline.drifts:
        warnings.warn(
            f"the mean score over the splits, {headline.mean_of_splits:.4g}, is not the score of "
            f"all held-out rows together, {headline.score:.4g}: the metric is no mean over rows, "
            f"and splits with {smallest} test rows are too small for it; use aggregate='pooled'",
            stacklevel=5,
        )
