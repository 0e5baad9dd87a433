"""An interval for the score of a search's winner on new rows.

It uses the jackknife: theta, the score of all held-out rows, and theta_b, the score without block b
of B blocks of rows (single rows, or groups). For seven reasons the plain interval, theta plus or
minus quantile times standard error, is too short or too optimistic. Each has a correction;
``benchmarks/coverage.py`` measures how often the interval holds the score on new rows.

- **Scores are bounded, and skewed near their bounds.** A score with a best value t (0 for an error,
  1 for R^2) is transformed to -log(t - score). A score with a worst value too is a share of its
  range, and has Wilson's interval, for the number of rows, or groups, that would give its standard
  error: it ends inside the range, and has positive length for a share of exactly 0 or 1.
- **The winner's score is the best of many.** The *optimism* (:mod:`onefit.scoring.row_losses`) is
  subtracted from the middle.
- **The optimism is an average** over the choices that other rows would have led to. For this winner
  it may be zero, or much larger. The standard deviation of such a quantity is about its mean (for
  an exponential distribution exactly), so the square of the optimism is added to the variance.
- **Training parts share rows, and other rows would have given another model.** Held-out losses are
  therefore not independent, and their mean varies by more than their own spread shows. Nadeau and
  Bengio (Machine Learning 52, 2003) multiply the variance by 1 + n_tested / n_train, about 2 for
  any number of folds.
- **A ratio is biased.** R^2 divides by the variance of these rows, which is too small by a
  share of 1/n. The jackknife estimate of the bias of theta on the logarithmic scale,
  (B-1) (mean theta_b - theta), is subtracted.
- **The standard error is itself an estimate**: Student's quantile.
- **A few rows may dominate it.** With B blocks of kurtosis k (the fourth moment of the theta_b
  over the square of the second), the variance of the squared standard error is (k-1)/B of its
  square, which is that of 2B / (k-1) degrees of freedom (Satterthwaite, Biometrics Bulletin 2,
  1946): B for normal losses, B/7 for squared normal errors, and few for heavy tails.

Rows, or the groups of a search with groups, are assumed to be independent. Those of time series are
not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student
from sklearn.base import is_classifier

from onefit._types import Array
from onefit.quantiles import levels_of, neg_pinball_loss
from onefit.scoring import Metric
from onefit.scoring.known import KnownScorer

Range = tuple[float, float]

__all__ = ["COVERAGE_LEVEL", "name_of", "range_of", "score_interval"]

#: probability with which the interval shall hold the score on new rows (benchmarks/coverage.py
#: measures it)
COVERAGE_LEVEL = 0.95


def range_of(scorer: Any, model: Any) -> Range:
    """The worst and the best possible score; infinite if unknown."""
    known = KnownScorer.of(scorer)
    if known.own and is_classifier(model):
        return 0.0, 1.0
    if known.own:
        return -np.inf, 0.0 if len(levels_of(model)) > 1 else 1.0
    return (-np.inf, 0.0) if scorer is neg_pinball_loss else known.range


def name_of(scorer: Any, model: Any) -> str:
    """The name of a scorer, as in scikit-learn: of errors, which are negated, it is "neg_..."."""
    known, levels = KnownScorer.of(scorer), levels_of(model)
    if isinstance(scorer, Metric):
        name = scorer.name
    elif known.func is not None:
        name = getattr(known.func, "__name__", "score").removesuffix("_score")
    elif not known.own:
        name = getattr(scorer, "__name__", "<")
        return "score" if name.startswith("<") else name
    elif len(levels) > 1:
        loss = model.spec().loss.name
        return "neg_pinball_loss" if loss == "quantile" else f"neg_{loss}_loss"
    else:
        return "accuracy" if is_classifier(model) else "r2"
    return f"neg_{name}" if known.sign < 0 else name


class _Jackknife(NamedTuple):
    """Standard error, bias and degrees of freedom of a score."""

    error: float
    bias: float
    freedom: float

    @classmethod
    def of(cls, score: float, left: Array) -> _Jackknife:
        B = left.size
        if B < 2:
            return cls(np.nan, np.nan, np.nan)
        square = np.square(left - left.mean())
        total = float(square.sum())
        kurtosis = B * float(np.square(square).sum()) / total**2 if total > 0.0 else 1.0
        freedom = min(2.0 * B / max(kurtosis - 1.0, 1.0 / B), B - 1.0)
        bias = (B - 1.0) * (float(left.mean()) - score)
        return cls(float(np.sqrt((B - 1.0) / B * total)), bias, freedom)


def score_interval(
    ends: Range,
    score: float,
    left: Array,
    *,
    optimism: float = 0.0,
    factor: float = 1.0,
    units: float = np.inf,
) -> tuple[float, float]:
    """The interval of level 0.95, for a score of which larger is better.

    Parameters
    ----------
    ends : (float, float)
        The worst and the best possible score.
    score : float
        Of all rows.
    left : (B,) array
        Without each block of rows.
    optimism : float, default=0.0
    factor : float, default=1.0
        Multiplies the variance.
    units : float
        Number of rows, or groups, of a share, for shares of 0 and 1.

    Examples
    --------
    >>> errors = np.random.default_rng(0).exponential(size=100)
    >>> left = -(errors.sum() - errors) / 99
    >>> low, high = score_interval((-np.inf, 0.0), -errors.mean(), left)
    >>> round(low, 3), round(high, 3)
    (-1.442, -0.976)
    >>> low, high = score_interval((0.0, 1.0), 1.0, np.ones(100), units=100)
    >>> round(low, 3), high
    (0.962, 1.0)
    """
    found = _Jackknife.of(score, left)
    if not np.isfinite([score, optimism, found.error]).all():
        return np.nan, np.nan
    worst, best = ends
    if np.isfinite(worst) and np.isfinite(best):
        wide = np.hypot(found.error * np.sqrt(factor), optimism)
        return _share(ends, score, score - optimism, wide, left.size - 1, units / factor)
    if score < best < np.inf and (left < best).all():

        def scaled(value: Any) -> Any:
            return -np.log(best - value)

        low, high = _student(
            scaled(score), scaled(left), scaled(score) - scaled(score - optimism), factor
        )
        return float(best - np.exp(-low)), float(best - np.exp(-high))
    low, high = _student(score, left, optimism, factor, correct=False)
    return max(low, worst), min(high, best)


def _student(
    score: float, left: Array, optimism: float, factor: float, correct: bool = True
) -> tuple[float, float]:
    """Student's interval on an unbounded scale, with or without a correction of the bias."""
    found = _Jackknife.of(score, left)
    middle = score - optimism - (found.bias if correct else 0.0)
    wide = np.hypot(found.error * np.sqrt(factor), optimism)
    half = _quantile(found.freedom) * wide
    return float(middle - half), float(middle + half)


def _share(
    ends: Range, score: float, middle: float, wide: float, freedom: int, units: float
) -> tuple[float, float]:
    """Wilson's interval for a share of a range, for the number of rows that gives its error."""
    worst, best = ends
    span = best - worst
    share, middle, wide = (score - worst) / span, (middle - worst) / span, wide / span
    spread = share * (1.0 - share)
    n = spread / wide**2 if spread > 0.0 and wide > 0.0 else units
    low, high = _wilson(min(max(middle, 0.0), 1.0), n, _quantile(freedom))
    return worst + span * low, worst + span * high


def _quantile(freedom: float) -> float:
    """The half width of Student's interval in standard errors."""
    return float(student.ppf(0.5 + COVERAGE_LEVEL / 2.0, freedom))


def _wilson(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval for a share of n draws; n need not be whole."""
    z = quantile**2 / n
    middle = (share + z / 2.0) / (1.0 + z)
    half = np.sqrt(z * share * (1.0 - share) + z**2 / 4.0) / (1.0 + z)
    return float(max(0.0, min(middle - half, share))), float(min(1.0, max(middle + half, share)))
