"""What is known of scorers: the loss of a row that their metric is about, and its range.

Baselines, intervals of scores and nested cross-validation ask the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn import metrics

from onefit.scoring.metric import Metric
from onefit.scoring.metrics import ROW_METRICS

__all__ = ["KnownMetric", "KnownScorer"]

SHARE = 0.0, 1.0
AT_MOST_ONE = -np.inf, 1.0


class KnownMetric(NamedTuple):
    """What is known of a metric.

    Attributes
    ----------
    loss : str
        The loss of a row whose best constant is that of the metric; empty if unknown.
    range : (float, float) or None
        Of the metric. None if unknown: errors begin at 0, scores are taken as unbounded.
    of_mean : bool
        Whether the metric is a function of the mean of this loss.
    """

    loss: str = ""
    range: tuple[float, float] | None = None
    of_mean: bool = False


UNKNOWN = KnownMetric()
#: scikit-learn's function -> what is known of it
KNOWN: dict[Any, KnownMetric] = {
    **{func: KnownMetric(one.loss, one.range, bool(one.loss)) for func, one in ROW_METRICS.items()},
    metrics.balanced_accuracy_score: KnownMetric("balanced", SHARE, True),
    metrics.zero_one_loss: KnownMetric("zero_one", SHARE, True),
    metrics.log_loss: KnownMetric("log", None, True),
    metrics.brier_score_loss: KnownMetric("brier", (0.0, 2.0), True),  # of more than two classes
    metrics.mean_pinball_loss: KnownMetric("pinball", None, True),
    metrics.d2_absolute_error_score: KnownMetric("absolute", AT_MOST_ONE, True),
    metrics.d2_log_loss_score: KnownMetric("log", AT_MOST_ONE),
    metrics.d2_pinball_score: KnownMetric("pinball", AT_MOST_ONE),
    metrics.d2_tweedie_score: KnownMetric("squared", AT_MOST_ONE),
    metrics.explained_variance_score: KnownMetric("squared", AT_MOST_ONE),
    metrics.mean_gamma_deviance: KnownMetric("squared"),
    metrics.mean_poisson_deviance: KnownMetric("squared"),
    metrics.mean_tweedie_deviance: KnownMetric("squared"),
    metrics.median_absolute_error: KnownMetric("absolute"),
    metrics.mean_absolute_percentage_error: KnownMetric("relative"),
    metrics.mean_squared_log_error: KnownMetric("logarithmic"),
    metrics.root_mean_squared_log_error: KnownMetric("logarithmic"),
    **dict.fromkeys(
        (
            metrics.average_precision_score,
            metrics.f1_score,
            metrics.fbeta_score,
            metrics.hamming_loss,
            metrics.jaccard_score,
            metrics.ndcg_score,
            metrics.precision_score,
            metrics.recall_score,
            metrics.roc_auc_score,
            metrics.top_k_accuracy_score,
        ),
        KnownMetric("", SHARE),
    ),
    **dict.fromkeys(
        (metrics.matthews_corrcoef, metrics.cohen_kappa_score), KnownMetric("", (-1.0, 1.0))
    ),
}
if hasattr(metrics, "d2_brier_score"):  # from scikit-learn 1.8 on
    KNOWN[metrics.d2_brier_score] = KnownMetric("brier", AT_MOST_ONE)


@dataclass(frozen=True)
class KnownScorer:
    """A scorer as its metric and options.

    Attributes
    ----------
    func : callable or None
        The metric of a scorer of scikit-learn; None of any other.
    metric : KnownMetric
    own : bool
        Whether it is the score of the estimator itself.
    sign : int
        Factor that makes the metric a score, the larger the better.
    options : mapping
        Of the metric.
    response : str
        The method of an estimator that gives what is scored.
    """

    func: Any = None
    metric: KnownMetric = UNKNOWN
    own: bool = False
    sign: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)
    response: str = "predict"

    @classmethod
    def of(cls, scorer: Any) -> KnownScorer:
        """A scorer of scikit-learn, a :class:`Metric`, or any function."""
        if isinstance(scorer, Metric):
            known = KnownMetric(scorer.loss, scorer.range, bool(scorer.loss))
            return cls(metric=known, sign=scorer.sign)
        func = getattr(scorer, "_score_func", None)
        if func is None:
            return cls(own=scorer is None or hasattr(scorer, "_estimator"))
        options, response = scorer._kwargs, scorer._response_method
        return cls(func, KNOWN.get(func, UNKNOWN), False, scorer._sign, options, response)

    @property
    def range(self) -> tuple[float, float]:
        """The worst and the best possible score; infinite if unknown."""
        low, high = self.metric.range or (0.0 if self.sign < 0 else -np.inf, np.inf)
        if self.options.get("adjusted"):  # for chance, of balanced accuracy
            low = -1.0
        return (-high, -low) if self.sign < 0 else (low, high)
