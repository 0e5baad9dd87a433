"""The numbers a search is judged by: the winner's score, its gain over a baseline, its error.

- **Pooled.** The metric of all held-out rows at once. The mean over splits that scikit-learn takes
  is another number for every metric that is not a mean over rows (root mean squared error, R^2, the
  area under a ROC curve), and drifts with the size of the splits: of single rows, the mean of the
  root mean squared errors is the mean absolute error.
- **Beside a baseline** (:mod:`onefit.search.baseline`): the best constant by the same metric. An
  error rate of 0.011 says nothing where one row in ninety is of the other class.
- **With an interval** (:mod:`onefit.uncertainty.score_interval`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.metrics import r2_score

from onefit.folds import Folds
from onefit.heldout import HeldOut
from onefit.scoring.row_losses import RowLosses, jackknife_error, optimism_of_splits
from onefit.search.baseline import Baseline, baselines_of
from onefit.search.scorers import build_scoring, call_pooled, name_of, only
from onefit.uncertainty.score_interval import COVERAGE_LEVEL, inflation, range_of, score_interval

Array = NDArray[Any]

__all__ = ["Headline", "HeadlineInputs", "Rival", "blocks_of", "make_headline", "rival_of"]

#: the most blocks that are left out in turn, of groups, and for metrics without a formula
MAX_JACKKNIFE_BLOCKS = 50
#: seed of the draws for the optimism, so that a search gives the same numbers again
OPTIMISM_SEED = 0


@dataclass(frozen=True)
class Headline:
    """What to say of a winner. Scores are the scorer's: the larger the better, errors negative.

    Attributes
    ----------
    scoring : str
        The metric of the search, whose scores these are: "r2", "neg_mean_absolute_error", ...
    score : float
        Of all held-out rows together.
    interval : (float, float)
        For the score on new rows, of level 0.95; its middle is below the score by the optimism.
    standard_error : float
        Of the score, rows (or groups) taken as independent.
    optimism : float
        By how much the score flatters the winner for having been chosen by it.
    baseline : float
        The best score, on the same rows, of a constant that is learned without looking at X; NaN,
        with a reason, where the scorer does not take it or is not defined for it.
    lead : (float, float)
        An interval, like the other, for what the score is above the baseline's. Both are of the
        same rows, and row by row where the metric allows it: what makes a row hard for one often
        does so for the other.
    baseline_name : str
    mean_of_splits : float
        The score as scikit-learn averages it.
    r2 : float or None
        Of a regression, all rows together.
    shares : dict
        Of a classification: the share of each class.
    rows : int
        That were held out.
    level : float
    reason : str
        Why there is no baseline, if there is none.
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
        """Whether the whole of :attr:`lead` is positive; None where that is not known."""
        return None if np.isnan(self.lead[0]) else self.lead[0] > 0.0

    @property
    def drifts(self) -> bool:
        """Whether the mean over the splits is another number, by a standard error or more."""
        return abs(self.score - self.mean_of_splits) > self.standard_error

    def verdict(self, shown: Callable[[float], float] = float, name: str = "score") -> str:
        """A sentence where the winner is not known to beat the baseline, else nothing.

        Parameters
        ----------
        shown : callable, default=float
            From scores to the numbers that are to be shown.
        name : str, default="score"
            What they are.
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
            f"({self.baseline_name}): its {name} is {shown(self.score):.4g}, 95% interval "
            f"{low:.4g} to {high:.4g}, and the baseline's is {shown(self.baseline):.4g}"
        )


@dataclass(frozen=True)
class Rival:
    """The baseline, and its score on all rows; NaN and the reason where it has none."""

    baseline: Baseline | None
    score: float
    reason: str = ""


@dataclass(frozen=True)
class HeadlineInputs:
    """What a headline is made from.

    Attributes
    ----------
    scorers, metric : the scorers, and the name of the one that counts
    model : the winner, as far as scorers need it
    X, y, params : the caller's data, and the metadata of the scorers
    s : (n,) array
        Weights of the rows in the fits.
    rival : Rival
    held : HeldOut
        Of the winner.
    splits : (C, k) array
        Scores of all candidates.
    best : int
        The winner.
    losses, rivals : RowLosses or None
        Of winner and baseline, and of all candidates, where the metric follows from them.
    grouped : bool
        Whether splits keep groups of rows together.
    """

    scorers: Any
    metric: str
    model: Any
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    params: Mapping[str, Any] = field(repr=False)
    s: Array = field(repr=False)
    rival: Rival
    held: HeldOut = field(repr=False)
    splits: Array = field(repr=False)
    best: int
    losses: RowLosses | None = field(repr=False)
    rivals: RowLosses | None = field(repr=False)
    grouped: bool

    @property
    def scorer(self) -> Any:
        """The scorer that counts, alone."""
        return _scorer(self.scorers, self.metric)

    @property
    def rows_count_alike(self) -> bool:
        """Whether the metric is known to be of one mean over all rows."""
        return self.losses is not None and self.losses.metric.members is None

    def pooled(self, folds: Folds, values: Array) -> Array:
        """Scores of the winner on each of some sets of rows, given its values there."""
        one = only(self.scorers, self.metric)
        scoring = build_scoring(
            one, self.model, self.X, self.y, self.params, folds, undefined=True,
            plain=self.model.spec().coding.columns_are_targets,
        )  # fmt: skip
        return np.asarray(scoring.score(self.model, values[None])[self.metric][0])


def make_headline(judged: HeadlineInputs) -> Headline:
    """The numbers of a winner."""
    held, random = judged.held, np.random.default_rng(OPTIMISM_SEED)
    rows = held.folds.rows
    score, left, ahead = _score_and_left(judged)
    error = float(jackknife_error(left))
    if judged.rivals is not None:
        optimism = judged.rivals.optimism(rows, random)
    else:
        optimism = optimism_of_splits(judged.splits, random)
    classifier = is_classifier(judged.model)
    tested = held.tested
    train = float(np.mean([part.size for part in held.folds.train]))
    shares = _shares(judged.y, tested) if classifier else {}
    factor = inflation(tested.size, train)
    interval = score_interval(
        range_of(judged.scorer, judged.model, classifier),
        score,
        left,
        optimism=optimism,
        factor=factor,
        rows=float(tested.size) if judged.rows_count_alike else _rows_of(shares, tested.size),
    )
    rival = judged.rival
    lead = (interval[0] - rival.score, interval[1] - rival.score)
    if ahead is not None:
        ends, gap = (-np.inf, np.inf), score - rival.score
        lead = score_interval(ends, gap, ahead, optimism=optimism, factor=factor)
    return Headline(
        scoring=name_of(judged.scorer, judged.model),
        score=score,
        interval=interval,
        standard_error=error,
        optimism=optimism,
        baseline=rival.score,
        lead=lead,
        baseline_name="" if rival.baseline is None else rival.baseline.name,
        mean_of_splits=float(judged.splits[judged.best].mean()),
        r2=None if classifier else _r2(judged),
        shares=shares,
        rows=int(tested.size),
        reason=rival.reason,
    )


def blocks_of(folds: Folds, grouped: bool, most: int | None = None) -> Array:
    """The block of each test row: rows one by one, or ``most`` blocks; whole splits for groups."""
    if grouped:
        k = len(folds)
        split = np.repeat(np.arange(k), np.diff(folds.offsets))
        return np.unique(split % min(k, MAX_JACKKNIFE_BLOCKS), return_inverse=True)[1]
    place = np.unique(folds.rows, return_inverse=True)[1]
    return place if most is None else place % min(most, int(place.max()) + 1)


def _score_and_left(judged: HeadlineInputs) -> tuple[float, Array, Array | None]:
    """The pooled score; it, and its lead over the baseline, without each block of rows."""
    folds, values = judged.held.folds, judged.held.values
    if judged.losses is not None:
        left = judged.losses.without(blocks_of(folds, judged.grouped))
        return float(judged.losses.scores()[0, 0]), left[:, 0], left[:, 0] - left[:, 1]
    blocks = blocks_of(folds, judged.grouped, MAX_JACKKNIFE_BLOCKS)
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


def rival_of(
    scorers: Any, metric: str, model: Any, data: tuple[Any, Any, Any], s: Array, folds: Folds
) -> Rival:
    """The baseline that scores best; NaN and the reason where the scorer does not take it."""
    X, y, params = data
    best = Rival(None, np.nan, "the metric is not defined for a constant")
    try:
        for one in baselines_of(model, _scorer(scorers, metric), y, s, folds):
            found = call_pooled(only(scorers, metric), X, y, params, folds, one.estimator)
            score = found.get(metric, np.nan)
            if score > best.score or best.baseline is None:
                why = best.reason if np.isnan(score) else ""
                best = Rival(one, score, why)
    except Exception as error:  # a scorer of the caller's may ask for anything
        return Rival(best.baseline, np.nan, f"the scorer does not take the baseline: {error}")
    return best


def _scorer(scorers: Any, metric: str) -> Any:
    return getattr(scorers, "_scorers", {}).get(metric, scorers)


def _shares(y: Any, rows: Array) -> dict[Any, float]:
    classes, counts = np.unique(np.ravel(np.asarray(y))[rows], return_counts=True)
    return {one: float(n / rows.size) for one, n in zip(classes.tolist(), counts, strict=True)}


def _rows_of(shares: dict[Any, float], rows: int) -> float:
    """Rows that a share of 0 or 1 was counted on, if every class counts alike: rare ones few."""
    if not shares:
        return float(rows)
    counts = rows * np.array(list(shares.values()))
    return float(counts.size**2 / np.sum(1.0 / counts))


def _r2(judged: HeadlineInputs) -> float | None:
    """None for several levels of one target, which R^2 does not compare."""
    rows = judged.held.folds.rows
    Y = np.asarray(judged.y, dtype=float).reshape(judged.held.folds.n, -1)
    if Y.shape[1] != judged.held.values.reshape(rows.size, -1).shape[1]:
        return None
    return float(r2_score(Y[rows], judged.held.values, sample_weight=judged.s[rows]))
