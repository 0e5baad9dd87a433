"""Baselines: the best prediction that ignores X, by the metric of the search.

**Which constant.** The best one by the metric: the mean for squared errors and R^2, the median for
absolute errors, the quantile of its level for the pinball loss (each with the weights of the rows);
the shares of the classes for scores of probabilities; one label for metrics of labels, the best of
them by the metric: the most frequent class for the accuracy, the positive one for F1.

**Learned from which rows.** From each training part, as the model is, if the metric is a mean over
rows that is flat around its best constant (squared, absolute and pinball losses, R^2, log loss,
Brier score). Estimating the constant then costs a share of the order 1/n: the mean squared error of
leave-one-out means, for example, is (n / (n-1))^2 times the variance.

For metrics of ranks or labels, constants of training parts fail. The more rows of a class are held
out, the smaller is its share among the other rows, so that these constants rank the held-out rows
in the wrong order: with leave-one-out their area under the ROC curve is 0 on any data, and with two
classes of equal size the most frequent class of the others is always wrong. For these metrics, and
for unknown scorers, the baseline is one constant for all rows, learned from all rows: the area is
0.5, the average precision the share of the positive class, the balanced accuracy one over the
number of classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, is_classifier

from onefit._indexing import n_rows
from onefit._types import Array
from onefit.folds import Folds
from onefit.quantiles import levels_of, neg_pinball_loss
from onefit.scoring.known import KnownScorer
from onefit.search.scorers import look_up
from onefit.uncertainty.ranked import rounding

#: from (n,) values and weights of rows, zero for those left out, to a number
Constant = Callable[[Array, Array], float]

__all__ = ["Baseline", "baselines_of", "weighted_quantile"]

#: losses whose best constant are the shares of the classes
PROPER_LOSSES = ("log", "brier")


@dataclass(frozen=True)
class Baseline:
    """A prediction that ignores X.

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


class _Shares(ClassifierMixin, BaseEstimator):
    """A classifier with given probabilities and decision values of its rows, in their order.

    Parameters
    ----------
    classes : (K,) array
    shares : (N, K) array
        Probabilities of the classes.
    values : (N, q) array
        Decision values.
    """

    def __init__(self, classes: Array, shares: Array, values: Array) -> None:
        self.classes, self.shares, self.values = classes, shares, values
        self.classes_ = classes

    def _known(self, X: Any, known: Array) -> Array:
        if n_rows(X) != len(known):
            raise ValueError(f"the baseline knows {len(known)} rows, not the {n_rows(X)} asked for")
        return known

    def predict_proba(self, X: Any) -> Array:
        """The shares."""
        return self._known(X, self.shares)

    def decision_function(self, X: Any) -> Array:
        """The decision values; (N,) of two classes."""
        values = self._known(X, self.values)
        return values[:, 0] if values.shape[1] == 1 else values

    def predict(self, X: Any) -> Array:
        """The class with the largest value, the first of equal ones."""
        values = self.decision_function(X)
        codes = (values > 0.0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes[codes])


def weighted_quantile(values: Array, s: Array, level: float) -> float:
    """The number with ``level`` of the weight below it; of several, the middle."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(s[order])
    ends = below[-1] * (level + np.array([-1.0, 1.0]) * rounding(s))
    places = np.minimum(np.searchsorted(below, ends, side="right"), values.size - 1)
    return float(values[order[places]].mean())


def baselines_of(model: Any, scorer: Any, y: Any, s: Array, folds: Folds) -> list[Baseline]:
    """The baselines of a scorer; the one with the best score is used.

    Parameters
    ----------
    model : KernelEstimator
        With targets and classes set.
    scorer : callable
        Of scikit-learn or the caller.
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

    orders = np.argsort(
        Y, axis=0, kind="stable"
    ).T  # so that quantiles sort sorted values, which is fast
    columns = [(y[order], order) for y, order in zip(Y.T, orders, strict=True)]

    def constants_of(weights: Array) -> list[float]:
        pairs = zip(constants, columns, strict=True)
        return [constant(y, weights[order]) for constant, (y, order) in pairs]

    values = _repeated(constants_of, s, folds, by_part)
    return [Baseline(name, look_up(model, values), values)]


def _of_classes(model: Any, scorer: Any, y: Any, s: Array, folds: Folds) -> list[Baseline]:
    classes, known = model.classes_, KnownScorer.of(scorer)
    member = np.eye(len(classes))[np.searchsorted(classes, np.ravel(np.asarray(y)))]
    proper = known.metric.loss in PROPER_LOSSES
    shares = _repeated(lambda w: np.average(member, axis=0, weights=w), s, folds, proper)

    def baseline(name: str, leading: Array) -> Baseline:
        """With the largest entries of ``leading`` as decisions."""
        values = leading[:, 1:] - leading[:, :1] if len(classes) == 2 else leading
        return Baseline(name, _Shares(classes, shares, values), values)

    if known.response != "predict":
        name = "the shares of the classes" if proper else "the same score for every row"
        return [baseline(name, shares)]
    found: list[Baseline] = []
    for label in np.argsort(-shares[0], kind="stable"):
        name = f"always {classes[label]!s}" if found else "always the most frequent class"
        found.append(baseline(name, np.tile(np.eye(len(classes))[label], (len(shares), 1))))
    return found[:1] if known.own or known.metric.loss == "zero_one" else found


def _repeated(estimate: Callable[[Array], Any], s: Array, folds: Folds, by_part: bool) -> Array:
    """The estimate from each training part, or from all rows, repeated for every test row."""
    if not by_part:
        return np.repeat([estimate(s)], folds.rows.size, axis=0)
    found = []
    for removed in folds.removed:
        weights = s.copy()
        weights[removed] = 0.0
        found.append(estimate(weights))
    return np.repeat(found, np.diff(folds.offsets), axis=0)


def _constants(model: Any, scorer: Any) -> tuple[str, list[Constant], bool]:
    """Name and constants of a regression, one for all columns or one each; whether by parts."""
    known, levels = KnownScorer.of(scorer), levels_of(model)
    several = known.own and len(levels) > 1
    if several and model.spec().loss.name == "expectile":
        return "always the expectiles", [partial(_expectile, level=one) for one in levels], False
    if scorer is neg_pinball_loss or several:
        return _named(levels), [partial(weighted_quantile, level=one) for one in levels], True
    if known.metric.loss == "pinball":
        level = known.options.get("alpha", 0.5)
        return _named((level,)), [partial(weighted_quantile, level=level)], True
    if known.metric.loss in BEST_CONSTANTS:
        name, constant = BEST_CONSTANTS[known.metric.loss]
        return name, [constant], True
    return "always the mean", [_mean], known.own


def _named(levels: Sequence[float]) -> str:
    if len(levels) > 1:
        return f"always the quantiles {', '.join(f'{one:g}' for one in levels)}"
    return "always the median" if levels[0] == 0.5 else f"always the quantile {levels[0]:g}"


def _mean(values: Array, s: Array) -> float:
    return float(np.average(values, weights=s))


def _of_logarithms(values: Array, s: Array) -> float:
    return float(np.expm1(_mean(np.log1p(values), s)))


def _relative_median(values: Array, s: Array) -> float:
    weight = s / np.maximum(np.abs(values), np.finfo(float).eps)
    return weighted_quantile(values, weight, 0.5)


def _expectile(values: Array, s: Array, level: float) -> float:
    """The mean with weights level above itself, 1 - level below.

    With the k smallest values below it, it is a quotient of sums; the right k is the first whose
    quotient does not exceed the next value.
    """
    order = np.argsort(values, kind="stable")
    below = np.cumsum([s[order], s[order] * values[order]], axis=1)
    weight, total = (1.0 - level) * below + level * (below[:, -1:] - below)
    means = total / weight
    return float(means[np.append(means[:-1] <= values[order][1:], True).argmax()])


#: loss of a row -> name and value of its best constant
BEST_CONSTANTS: dict[str, tuple[str, Constant]] = {
    "squared": ("always the mean", _mean),
    "absolute": ("always the median", partial(weighted_quantile, level=0.5)),
    "relative": ("always the median by 1/|y|", _relative_median),
    "logarithmic": ("always the mean of logarithms", _of_logarithms),
}
