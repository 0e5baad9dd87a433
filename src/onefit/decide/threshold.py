"""Thresholds for two classes, chosen on held-out decision values.

**By a metric.** As scikit-learn's ``TunedThresholdClassifierCV``, with its code but without refits:
the metric of every split at thresholds between the smallest and the largest decision value of the
test rows; the curves of the splits are averaged, and the best of evenly spaced thresholds is taken.
Where test sets are too small for a metric, all held-out rows together are one split ("pooled").
Sample weights are passed to metrics that take them, as in a search.

**By a bound on false alarms** (Neyman and Pearson): the smallest threshold whose rate of false
alarms is at most alpha, so that as few rows as possible of the other class are missed. Let
s_(1) <= ... <= s_(m) be the held-out decision values of the m rows of the first class. Any
threshold just above s_(k) has a true rate above alpha with probability at most

    P(Binomial(m, 1 - alpha) >= k),

whatever the distribution (Tong, Feng and Li, Science Advances 4, 2018: the umbrella algorithm). The
smallest k for which that is at most 1 - confidence is taken. With ``confidence=None`` it is the
smallest k with at most alpha m of the m rows above s_(k), m - floor(alpha m): on new rows the rate
is then above alpha about as often as below. Both assume that held-out values are independent values
of the final model; they are those of models without a fold, of a winner that was chosen on these
rows. Rates count rows: sample weights are for the fit alone.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn import config_context
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import check_scoring
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from onefit._types import Array
from onefit._validation import check_choice, takes_weight
from onefit.decide.values import DecisionValues, copy_feature_names
from onefit.heldout import HeldOut
from onefit.search.scorers import name_the_positive

__all__ = ["THRESHOLD_AGGREGATES", "neyman_pearson", "tune_threshold"]

THRESHOLD_AGGREGATES = ("mean", "pooled")


def tune_threshold(
    model: Any,
    held: HeldOut,
    scoring: Any = "balanced_accuracy",
    thresholds: Any = 100,
    aggregate: str = "mean",
) -> TunedThresholdClassifierCV:
    """The model with the threshold that is best on its held-out decision values.

    Parameters
    ----------
    model : KernelClassifier
        Fitted, of two classes.
    held : HeldOut
        Its held-out decision values.
    scoring : str or callable, default="balanced_accuracy"
        Any scorer of predicted labels.
    thresholds : int or array, default=100
        Number of thresholds to try, or their values.
    aggregate : {"mean", "pooled"}, default="mean"
        The mean of the curves of the splits, as in scikit-learn, or the curve of all rows.

    Returns
    -------
    TunedThresholdClassifierCV
        Fitted. Fitting a clone to the same rows refits every split and, with "mean", gives the same
        threshold.
    """
    check_choice("aggregate", aggregate, THRESHOLD_AGGREGATES)
    _check_two(model)
    folds, everything = held.folds, np.arange(held.values.shape[0])
    y = np.ravel(np.asarray(held.targets))[folds.rows]
    places = [np.arange(*folds.place(k).indices(everything.size)) for k in range(len(folds))]
    parts = [everything] if aggregate == "pooled" else places
    if min(part.size for part in parts) < 2:
        raise ValueError(
            "a threshold by the mean over splits needs test sets of at least two rows; use "
            "aggregate='pooled', which takes all held-out rows together"
        )
    found = TunedThresholdClassifierCV(
        DecisionValues(),
        scoring=scoring,
        response_method="decision_function",
        thresholds=thresholds,
        cv=[(everything, part) for part in parts],
        store_cv_results=True,
    )
    try:
        _fit_weighted(found, held.values, y, held.sample_weight, folds.rows)
    except ValueError as error:
        if "pos_label" in str(error):
            positive = name_the_positive(model, [check_scoring(model, scoring=scoring)])
            raise ValueError(positive) from error
        raise _clearer(error, aggregate) from error
    found.set_params(estimator=clone(model), cv=list(folds), scoring=scoring)
    found.estimator_ = model
    copy_feature_names(found, model)
    return found


def _fit_weighted(found: Any, values: Array, y: Array, weight: Any, rows: Array) -> None:
    """Fit scikit-learn's search, with sample weights for a metric that takes them."""
    scorer = check_scoring(found.estimator, scoring=found.scoring)
    weigh = weight is not None and takes_weight(scorer)
    with config_context(enable_metadata_routing=weigh):
        if not weigh:
            found.fit(values, y)
            return
        estimator = found.estimator.set_fit_request(sample_weight=False)
        found.set_params(estimator=estimator)
        found.set_params(scoring=deepcopy(scorer).set_score_request(sample_weight=True))
        found.fit(values, y, sample_weight=np.asarray(weight)[rows])


def _clearer(error: ValueError, aggregate: str) -> ValueError:
    """The error with advice for its usual reason, small test sets."""
    if aggregate == "pooled":
        return error
    return ValueError(
        f"{error} (in a test set; where these are small, use aggregate='pooled', which takes all "
        "held-out rows together)"
    )


def neyman_pearson(
    model: Any, held: HeldOut, max_rate: float = 0.05, confidence: float | None = 0.95
) -> FixedThresholdClassifier:
    """The model with the smallest threshold whose rate of false alarms is bounded.

    A false alarm is a row of the first class that is labelled as of the second.

    Parameters
    ----------
    model : KernelClassifier
        Fitted, of two classes.
    held : HeldOut
        Its held-out decision values.
    max_rate : float, default=0.05
        The bound, alpha.
    confidence : float or None, default=0.95
        Probability that the bound holds on new rows; None bounds the rate of the held-out rows.

    Returns
    -------
    FixedThresholdClassifier
    """
    _check_two(model)
    y, rows = np.ravel(np.asarray(held.targets)), held.tested
    rows = rows[y[rows] == model.classes_[0]]
    scores = np.sort(held.predictions[rows])
    k = _rank(scores.size, _share("max_rate", max_rate), confidence)
    threshold = float(np.nextafter(scores[k - 1], np.inf))
    found = FixedThresholdClassifier(
        FrozenEstimator(model), threshold=threshold, response_method="decision_function"
    )
    with config_context(enable_metadata_routing=False):
        found.fit(np.zeros((2, 1)), model.classes_)
    copy_feature_names(found, model)
    return found


def _rank(m: int, alpha: float, confidence: float | None) -> int:
    """The k of s_(k), counted from 1."""
    if m == 0:
        raise ValueError("no split tests a row of the first class, whose rate is to be bounded")
    if confidence is None:
        return m - int(np.floor(alpha * m * (1.0 + 1e-12)))
    # the smallest k with P(Binomial >= k) <= 1 - confidence
    k = 1 + int(binom.ppf(_share("confidence", confidence), m, 1.0 - alpha))
    if k > m:
        needed = int(np.ceil(np.log1p(-confidence) / np.log1p(-alpha)))
        raise ValueError(
            f"max_rate={alpha:g} with confidence={confidence:g} needs {needed} held-out rows of "
            f"the first class, and there are {m}; allow a higher rate, ask for less confidence, "
            "or use confidence=None"
        )
    return k


def _share(name: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number)) or not 0.0 < float(value) < 1.0:
        raise ValueError(f"{name} must lie between 0 and 1, got {value!r}")
    return float(value)


def _check_two(model: Any) -> None:
    classes = model.classes_.tolist()
    if len(classes) != 2:
        raise ValueError(
            f"a threshold separates two classes, and there are {len(classes)} ({classes}); use "
            "minimise_cost, which takes any number"
        )
