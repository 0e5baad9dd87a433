"""What a model has to beat: the best prediction that does not look at X, by the search's metric.

**Which constant.** The one that the metric itself rewards: the mean for squared errors and R^2, the
median for absolute errors, the quantile of its level for the pinball loss (each weighted like the
rows); the shares of the classes for scores of probabilities; one label for metrics of labels, the
best of them by the metric: the most frequent class for the accuracy, the positive one for F1.

**Learned from which rows.** Where the metric is a mean over rows that moves little with a constant
(squared, absolute and pinball losses, R^2, log loss, Brier score), from each training part,
as the model is: the constant then pays for being estimated, by a part of the order 1/n. The mean
squared error of leave-one-out means, for example, is (n / (n-1))^2 times the variance.

Metrics of ranks or labels do not forgive this. The share of a class among the other rows is the
smaller the more of its rows are held out, so constants of training parts rank the held-out rows in
the wrong order: by leave-one-out their area under the ROC curve is 0 on any data, and with as many
rows in each of two classes the most frequent class of the others is always wrong. For these, and
for scorers that are not known, the baseline is one constant for all rows, learned from all rows:
the area is 0.5, the average precision the share of the positive class, the balanced accuracy one
over the number of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier

from onefit._indexing import n_rows
from onefit.folds import Folds
from onefit.quantiles import levels_of, neg_pinball_loss
from onefit.scoring import ROW_METRICS, Metric
from onefit.search.scorers import look_up

Array = NDArray[Any]
#: from values of the rows, their weights and the rows that each part lacks, to a number per part
Constant = Callable[[Array, Array, Sequence[Array]], Array]

__all__ = ["Baseline", "Shares", "baselines_of", "training_means", "training_quantiles"]

#: means over rows of a loss that is flat at its best constant: learned from training parts
OF_MEANS = (
    metrics.d2_tweedie_score,
    metrics.explained_variance_score,
    metrics.mean_gamma_deviance,
    metrics.mean_poisson_deviance,
    metrics.mean_tweedie_deviance,
)
OF_MEDIANS = (
    metrics.d2_absolute_error_score,
    metrics.median_absolute_error,
)
OF_QUANTILES = (metrics.d2_pinball_score, metrics.mean_pinball_loss)
OF_LOGARITHMS = (metrics.mean_squared_log_error, metrics.root_mean_squared_log_error)
OF_PROBABILITIES = (
    metrics.brier_score_loss,
    # from scikit-learn 1.8 on
    getattr(metrics, "d2_brier_score", metrics.brier_score_loss),
    metrics.d2_log_loss_score,
    metrics.log_loss,
)
#: steps of the equation of an expectile, which is met after a few
EXPECTILE_STEPS = 100


@dataclass(frozen=True)
class Baseline:
    """A prediction that does not look at X.

    Attributes
    ----------
    name : str
    estimator : object
        Predicts all test rows, one split after the other.
    values : (N, q) array
        Decision values whose predictions are the baseline's.
    """

    name: str
    estimator: Any = field(repr=False)
    values: Array = field(repr=False)


class Shares(ClassifierMixin, BaseEstimator):
    """A classifier that knows nothing but a probability of each class, row by row.

    Parameters
    ----------
    classes : (K,) array
    shares : (N, K) array
    label : int, default=None
        The class to predict; None is the most probable one, of equally probable ones the first.
    """

    def __init__(self, classes: Array, shares: Array, label: int | None = None) -> None:
        self.classes = classes
        self.shares = shares
        self.label = label
        self.classes_ = classes

    def predict_proba(self, X: Any) -> Array:
        """The shares."""
        if n_rows(X) != len(self.shares):
            raise ValueError(
                f"the baseline knows {len(self.shares)} rows, not the {n_rows(X)} asked for"
            )
        return self.shares

    def decision_function(self, X: Any) -> Array:
        """The shares, or one class for all rows, as decision values; (N,) of two classes."""
        shares = self.predict_proba(X)
        if self.label is not None:
            shares = np.broadcast_to(np.eye(len(self.classes))[self.label], shares.shape)
        found = _as_decision(shares)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any) -> Array:
        """One class for all rows, or the most probable class of each."""
        shares = self.predict_proba(X)
        found = shares.argmax(axis=1) if self.label is None else np.full(len(shares), self.label)
        return np.asarray(self.classes[found])


def training_means(values: Array, s: Array, removed: Sequence[Array]) -> Array:
    """The weighted mean of the rows that each part has left, (parts, columns)."""
    weighted = np.column_stack([s[:, None] * values, s])
    split = np.repeat(np.arange(len(removed)), [rows.size for rows in removed])
    gone = np.zeros((len(removed), weighted.shape[1]))
    np.add.at(gone, split, weighted[np.concatenate(removed)])
    left = weighted.sum(axis=0) - gone
    return np.asarray(left[:, :-1] / left[:, -1:])


def training_quantiles(values: Array, s: Array, removed: Sequence[Array], level: float) -> Array:
    """The weighted quantile of the rows that each part has left, (parts,).

    The weight below it is ``level`` of the whole; of all numbers with this property, the middle.
    With the rows sorted once, the weight that a part has among the first j of them is a difference
    of two cumulative sums, and the j that is wanted is found by bisection, for all parts at once.
    """
    n, parts = len(values), np.arange(len(removed))
    order = np.argsort(values, kind="stable")
    rank = np.empty(n, dtype=np.int64)
    rank[order] = np.arange(n)
    total = np.concatenate([[0.0], np.cumsum(s[order])])
    rows = np.concatenate(removed)
    keys = n * np.repeat(parts, [one.size for one in removed]) + rank[rows]
    sort = np.argsort(keys)
    keys, gone = keys[sort], np.concatenate([[0.0], np.cumsum(s[rows][sort])])

    def left(first: Any) -> Array:
        ends = np.searchsorted(keys, n * parts + first), np.searchsorted(keys, n * parts)
        return np.asarray(total[first] - (gone[ends[0]] - gone[ends[1]]))

    goal = level * left(n)
    room = 8.0 * np.finfo(float).eps * n * total[-1]
    found = []
    for enough in (goal - room, goal + room):
        low, high = np.ones(len(parts), dtype=np.int64), np.full(len(parts), n)
        while (low < high).any():
            middle = (low + high) // 2
            there = left(middle) > enough
            low, high = np.where(there, low, middle + 1), np.where(there, middle, high)
        found.append(values[order[np.minimum(low, n) - 1]])
    return np.asarray((found[0] + found[1]) / 2.0)


def baselines_of(model: Any, scorer: Any, y: Any, s: Array, folds: Folds) -> list[Baseline]:
    """The baselines of a scorer, of which the one with the best score counts.

    Parameters
    ----------
    model : KernelEstimator
        That knows targets and classes.
    scorer : callable
        Of scikit-learn or the caller's.
    y : targets, as the caller gave them
    s : (n,) array
        Weights of the rows.
    folds : Folds
    """
    s = np.asarray(s, dtype=float)
    if is_classifier(model):
        return _of_classes(model, scorer, y, s, folds)
    name, constants, by_part = _constants(model, scorer)
    Y = model.spec().coding.columns(model._code_targets(y, np.float64))
    if len(constants) == 1:
        constants = constants * Y.shape[1]

    def constants_of(removed: Sequence[Array]) -> Array:
        pairs = zip(constants, Y.T, strict=True)
        return np.column_stack([constant(column, s, removed) for constant, column in pairs])

    values = _repeated(constants_of, folds, by_part)
    return [Baseline(name, look_up(model, values), values)]


def _of_classes(model: Any, scorer: Any, y: Any, s: Array, folds: Folds) -> list[Baseline]:
    classes, func = model.classes_, getattr(scorer, "_score_func", None)
    member = np.eye(len(classes))[np.searchsorted(classes, np.ravel(np.asarray(y)))]
    proper = func in OF_PROBABILITIES
    shares = _repeated(lambda removed: training_means(member, s, removed), folds, proper)
    of_labels = (
        hasattr(scorer, "_estimator") or getattr(scorer, "_response_method", "") == "predict"
    )
    if not of_labels and hasattr(scorer, "_response_method"):
        name = "the shares of the classes" if proper else "the same score for every row"
        return [Baseline(name, Shares(classes, shares), _as_decision(shares))]
    found: list[Baseline] = []
    for label in np.argsort(-shares[0], kind="stable"):
        name = f"always {classes[label]!s}" if found else "always the most frequent class"
        sure = np.broadcast_to(np.eye(len(classes))[label], shares.shape)
        found.append(Baseline(name, Shares(classes, shares, int(label)), _as_decision(sure)))
    return found[:1] if hasattr(scorer, "_estimator") or func is metrics.accuracy_score else found


def _as_decision(shares: Array) -> Array:
    """Decision values with the largest share in front."""
    return np.asarray(shares[:, 1:] - shares[:, :1] if shares.shape[1] == 2 else shares)


def _repeated(estimate: Callable[..., Array], folds: Folds, by_part: bool) -> Array:
    """What is learned from each training part, or from all rows, for every test row."""
    if by_part:
        return np.repeat(estimate(folds.removed), np.diff(folds.offsets), axis=0)
    return np.repeat(estimate([np.empty(0, dtype=np.intp)]), folds.rows.size, axis=0)


def _constants(model: Any, scorer: Any) -> tuple[str, list[Constant], bool]:
    """Name and constants of a regression, one for all columns or one each; whether by parts."""
    func, levels = getattr(scorer, "_score_func", None), levels_of(model)
    own = func is None and hasattr(scorer, "_estimator") and len(levels) > 1
    if own and model.spec().loss.name == "expectile":
        return "always the expectiles", [partial(_expectile, level=one) for one in levels], False
    if own or scorer is neg_pinball_loss:
        return _named(levels), [partial(training_quantiles, level=one) for one in levels], True
    if func in OF_QUANTILES:
        level = scorer._kwargs.get("alpha", 0.5)
        return _named((level,)), [partial(training_quantiles, level=level)], True
    metric = scorer if isinstance(scorer, Metric) else ROW_METRICS.get(func)
    loss = "" if metric is None else metric.loss
    if func in OF_MEDIANS or loss == "absolute":
        return _named((0.5,)), [partial(training_quantiles, level=0.5)], True
    if func is metrics.mean_absolute_percentage_error:
        return "always the median by 1/|y|", [_relative_median], True
    if func in OF_LOGARITHMS:
        return "always the mean of logarithms", [_of_logarithms], True
    known = func in OF_MEANS or loss == "squared" or hasattr(scorer, "_estimator")
    return "always the mean", [_mean], known


def _named(levels: Sequence[float]) -> str:
    if len(levels) > 1:
        return f"always the quantiles {', '.join(f'{one:g}' for one in levels)}"
    return "always the median" if levels[0] == 0.5 else f"always the quantile {levels[0]:g}"


def _mean(values: Array, s: Array, removed: Sequence[Array]) -> Array:
    return training_means(values[:, None], s, removed)[:, 0]


def _of_logarithms(values: Array, s: Array, removed: Sequence[Array]) -> Array:
    return np.asarray(np.expm1(_mean(np.log1p(values), s, removed)))


def _relative_median(values: Array, s: Array, removed: Sequence[Array]) -> Array:
    weight = s / np.maximum(np.abs(values), np.finfo(float).eps)
    return training_quantiles(values, weight, removed, 0.5)


def _expectile(values: Array, s: Array, removed: Sequence[Array], level: float) -> Array:
    """Expectile of all rows: the mean with weights level above itself, 1 - level below."""
    found = np.average(values, weights=s)
    for _ in range(EXPECTILE_STEPS):
        found = np.average(values, weights=s * np.where(values > found, level, 1.0 - level))
    return np.full(len(removed), found)
