"""A race: all candidates on a sample of the rows, then on all rows those that did not lose there.

Most of the time of a search goes into bandwidths that lose by far, and a sample of the rows shows
that at a small part of the cost (benchmarks/results/svm_analysis.md). From ``MIN_ROWS`` rows on,
every candidate is evaluated on a sample first, by the same splits. One whose score there is further
below the best than ``MAX_LAG_IN_STANDARD_ERRORS`` standard errors is left out: it has no score, its
method in ``cv_results_`` is "left out", and its reason says what it scored on the sample. Scores
are exact on the sample, too: limits of the influence series take half the time, but are too low by
up to nine points where lam is small, and lose winners.

This is a statistical rule, no proof: the best candidate on few rows need not be the best on many.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier

from onefit._indexing import draw_rows, select_params, split_rows
from onefit._types import Array
from onefit.search.grid import CandidateModel, grid_of
from onefit.search.outcome import LEFT_OUT, Outcome

if TYPE_CHECKING:
    from onefit.search.setup import Setup

__all__ = ["left_out", "racing", "without_scores"]

#: rows below which all candidates are evaluated on all rows (benchmarks/race.py, as for the rest)
MIN_ROWS = 1000
#: share of the rows in the sample, which has MIN_ROWS, or half of all, where that is more
SAMPLE_SHARE = 0.25
#: how far below the best a candidate may be, in standard errors of a good candidate's score
MAX_LAG_IN_STANDARD_ERRORS = 2.5
#: the share of the candidates that count as good
GOOD_SHARE = 0.1


def racing(method: Any) -> bool:
    """Whether the method of a search is a race."""
    return isinstance(method, str) and method == "race"


def left_out(
    search: Any, setup: Setup, X: Any, y: Any, params: dict[str, Any], metric: str
) -> dict[int, str]:
    """The candidates that lose on a sample of the rows, and what they scored there.

    Parameters
    ----------
    search : KernelSearchCV
    setup : Setup
    X, y, params : what ``fit`` was given
    metric : str
        The score that chooses.
    """
    n = setup.folds.n
    if n < MIN_ROWS:
        return {}
    size = max(int(SAMPLE_SHARE * n), min(MIN_ROWS, n // 2))
    rows = draw_rows(y if is_classifier(search.estimator) else None, n, size)
    lap = clone(search).set_params(
        param_grid=grid_of(search.estimator, setup.candidates),
        n_iter=None,
        method="auto",
        cv=setup.folds.among(rows),
        refit=False,
        journal=None,
        verbose=0,
    )
    lap.set_callbacks()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a sample that nobody asked for
        try:
            lap.fit(*split_rows(setup.model, X, y, rows), **select_params(X, params, rows))
        except ValueError:
            return {}  # the splits, or the metric, need more rows than the sample has
    scores = np.asarray(lap.cv_results_[f"{lap.aggregate}_test_{metric}"], dtype=np.float64)
    if not np.isfinite(scores).any():
        return {}
    best = float(np.nanmax(scores))
    margin = MAX_LAG_IN_STANDARD_ERRORS * _standard_error(
        scores, lap.cv_results_[f"se_test_{metric}"]
    )
    reason = f"on a sample of {rows.size} rows it has {{:.4g}}, and the best candidate {best:.4g}"
    return {int(i): reason.format(scores[i]) for i in np.flatnonzero(scores < best - margin)}


def _standard_error(scores: Array, errors: Array) -> float:
    """The median over good candidates: with few splits, that of one candidate varies much."""
    known = np.flatnonzero(np.isfinite(scores) & np.isfinite(errors))
    good = known[np.argsort(-scores[known])][: max(1, int(GOOD_SHARE * scores.size))]
    return float(np.median(errors[good])) if good.size else np.inf


def without_scores(
    models: list[CandidateModel], reasons: dict[int, str], like: Outcome
) -> list[Outcome]:
    """Outcomes of the candidates that were left out, with arrays of the shapes of ``like``."""
    lost = [model.take(reasons).indices for model in models]
    return [_unscored(indices, reasons, like) for indices in lost if indices]


def _unscored(indices: tuple[int, ...], reasons: dict[int, str], like: Outcome) -> Outcome:
    def filled(array: Array, value: Any) -> Array:
        return np.full((len(indices), *array.shape[1:]), value, dtype=array.dtype)

    return Outcome(
        indices=indices,
        method=LEFT_OUT,
        scores={},
        totals={},
        ends={},
        values=filled(like.values, np.nan),
        exact=filled(like.exact, False),
        error=filled(like.error, np.nan),
        moved=filled(like.moved, 0),
        steps=filled(like.steps, 0),
        order=None,
        reasons=[reasons[i] for i in indices],
    )
