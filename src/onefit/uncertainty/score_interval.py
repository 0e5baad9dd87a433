"""An interval for the score of a search's winner on new rows.

Four things make the plain interval, score -+ quantile * standard error, too short or too hopeful.
Each has its remedy here; ``benchmarks/coverage.py`` measures how often the truth is inside.

- **The winner's score is the best of many.** The *optimism* (:mod:`onefit.search.rowwise`) is taken
  off the middle of the interval.
- **Training parts share rows, and the machine is one of many that other rows would have given.**
  Held-out losses are then not independent, and scatter about the error of this machine by more than
  their own spread shows. Nadeau and Bengio (Machine Learning 52, 2003) multiply the variance by
  1 + n_tested / n_train, about 2 for any number of folds.
- **Scores are bounded, and skewed near their bounds.** An error is treated on the scale of its
  logarithm, R^2 on that of log(1 - R^2), a share by Wilson's interval, for as many rows as would
  give its standard error: it ends inside [0, 1], and a share of exactly 0 or 1 leaves doubt.
- **The standard error is itself an estimate**: Student's quantile, with one degree of freedom less
  than there are blocks in the jackknife.

Rows are taken to be drawn independently, or in groups where the search had groups. Time series are
not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn import metrics

__all__ = ["LEVEL", "inflation", "kind_of", "score_interval"]

#: coverage that the interval is made for
LEVEL = 0.95

EXPLAINED = (metrics.r2_score, metrics.explained_variance_score)
SHARES = (
    metrics.accuracy_score,
    metrics.average_precision_score,
    metrics.balanced_accuracy_score,
    metrics.f1_score,
    metrics.jaccard_score,
    metrics.precision_score,
    metrics.recall_score,
    metrics.roc_auc_score,
    metrics.top_k_accuracy_score,
)


def kind_of(scorer: Any, classifier: bool) -> str:
    """How the score is bounded: "error", "explained", "share", or "plain" if that is not known."""
    func = getattr(scorer, "_score_func", None)
    if func is None and hasattr(scorer, "_estimator"):  # the estimator's own score
        return "share" if classifier else "explained"
    if getattr(scorer, "_sign", 1) < 0:
        return "error"
    return "explained" if func in EXPLAINED else "share" if func in SHARES else "plain"


def inflation(tested: int, train: float) -> float:
    """Nadeau and Bengio's factor of the variance."""
    return 1.0 + tested / train


def score_interval(
    kind: str,
    score: float,
    error: float,
    blocks: int,
    *,
    optimism: float = 0.0,
    factor: float = 1.0,
    rows: float = np.inf,
    level: float = LEVEL,
) -> tuple[float, float]:
    """The interval, for a score of which larger is better.

    Parameters
    ----------
    kind : {"error", "explained", "share", "plain"}
    score, error : float
        Pooled, and its standard error by the jackknife.
    blocks : int
        Of the jackknife.
    optimism : float, default=0.0
    factor : float, default=1.0
        Of the variance.
    rows : float
        How many a share was counted on, for shares of 0 and 1.

    Examples
    --------
    >>> low, high = score_interval("error", -1.0, 0.1, 100)
    >>> round(low, 3), round(high, 3)
    (-1.219, -0.82)
    >>> low, high = score_interval("share", 1.0, 0.0, 100, rows=100)
    >>> round(low, 3), high
    (0.962, 1.0)
    """
    quantile = float(student.ppf(0.5 + level / 2, max(blocks - 1, 1)))
    middle, wide = score - optimism, error * np.sqrt(factor)
    if not np.isfinite([middle, wide]).all():
        return np.nan, np.nan
    if kind == "share":
        return _wilson(min(max(middle, 0.0), 1.0), _rows_for(score, wide, rows / factor), quantile)
    top = {"error": 0.0, "explained": 1.0}.get(kind)
    if top is None or score >= top:
        return float(middle - quantile * wide), float(middle + quantile * wide)
    ratio = np.exp(quantile * wide / (top - score))
    return float(top - (top - middle) * ratio), float(top - (top - middle) / ratio)


def _rows_for(share: float, error: float, rows: float) -> float:
    """How many rows would give a share this standard error."""
    spread = share * (1.0 - share)
    return spread / error**2 if spread > 0.0 and error > 0.0 else rows


def _wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval for a share of n draws, n not always whole."""
    z = quantile**2 / n
    middle = (share + z / 2.0) / (1.0 + z)
    half = np.sqrt(z * share * (1.0 - share) + z**2 / 4.0) / (1.0 + z)
    return float(max(0.0, min(middle - half, share))), float(min(1.0, max(middle + half, share)))
