"""From a finished search to its headline."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onefit.folds import Folds
from onefit.heldout import HeldOut
from onefit.scoring.row_losses import RowLosses
from onefit.search.inputs import FitInputs
from onefit.search.results import Results
from onefit.search.scorers import Scoring
from onefit.search.workers import Outcome
from onefit.uncertainty.headline import Headline, HeadlineInputs, blocks_of, make_headline, rival_of

Array = NDArray[Any]

__all__ = ["judge", "pooled_errors", "row_losses", "warn_of_drift"]

#: losses of rows by all candidates that are kept at a time, and test sets that are called tiny
MAX_KEPT_LOSSES, MAX_TINY_TEST_ROWS = 2**26, 30


def row_losses(scoring: Scoring | None, outcomes: list[Outcome], metric: Any) -> RowLosses | None:
    """Losses of the rows by all candidates.

    None for other scorers, where they are too many, or where held-out values are not kept.
    """
    if scoring is None or metric not in scoring.fast:
        return None
    C = 1 + max(max(one.indices) for one in outcomes)
    if C * outcomes[0].values[0].size > MAX_KEPT_LOSSES:
        return None
    return RowLosses.of(*scoring.fast[metric], ((one.indices, one.values) for one in outcomes), C)


def pooled_errors(rivals: RowLosses, folds: Folds, grouped: bool) -> Array:
    """Standard errors of the pooled scores of all candidates."""
    return rivals.errors(blocks_of(folds, grouped))


def judge(
    given: FitInputs,
    scoring: Scoring,
    results: Results,
    rivals: RowLosses | None,
    model: Any,
    metric: str,
    best: int,
    held: HeldOut,
) -> Headline | None:
    """The headline of a winner; None, with a warning, where a scorer does not take all rows."""
    losses = None
    weight = np.ones(held.folds.n) if given.weight is None else np.asarray(given.weight)
    data = given.X, given.y, given.params
    rival = rival_of(given.scorers, metric, model, data, weight, held.folds)
    if metric in scoring.fast and rival.baseline is not None:
        both = [([0], held.values[None]), ([1], rival.baseline.values[None])]
        losses = RowLosses.of(*scoring.fast[metric], both, 2)
    judged = HeadlineInputs(
        scorers=given.scorers,
        metric=metric,
        model=model,
        X=given.X,
        y=given.y,
        params=given.params,
        s=weight,
        rival=rival,
        held=held,
        splits=results.scores[metric],
        best=best,
        losses=losses,
        rivals=rivals,
        grouped=given.grouped,
    )
    try:
        return make_headline(judged)
    except Exception as error:  # a scorer of the caller's; the search is done, and stays
        warnings.warn(f"there is no headline_: all rows together gave: {error}", stacklevel=5)
        return None


def warn_of_drift(headline: Headline, folds: Folds) -> None:
    """Say where a mean over tiny splits is not what all rows together give."""
    smallest = int(np.diff(folds.offsets).min())
    if smallest < MAX_TINY_TEST_ROWS and headline.drifts:
        warnings.warn(
            f"the mean score over the splits, {headline.mean_of_splits:.4g}, is not the score of "
            f"all held-out rows together, {headline.score:.4g}: the metric is no mean over rows, "
            f"and splits with {smallest} test rows are too small for it; use aggregate='pooled'",
            stacklevel=5,
        )
