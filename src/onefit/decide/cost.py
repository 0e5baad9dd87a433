"""The decision of the least expected cost.

With probabilities p_i of the classes and the cost C_ij of deciding for j where i is true, the
decision for j has the expected cost sum_i p_i C_ij, and the best decision is the j with the least.
Of two classes, it is the second where p_2 / p_1 > (C_12 - C_11) / (C_21 - C_22): the costs
determine the threshold, and nothing is tuned. This needs correct probabilities, hence calibration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from onefit._types import Array
from onefit.decide.values import copy_feature_names

__all__ = ["MinimumCostClassifier", "cost_matrix"]


def cost_matrix(costs: Any, classes: Array) -> Array:
    """The matrix of costs, a row per true class and a column per decision, in order of the classes.

    Parameters
    ----------
    costs : (K, K) array, or mapping
        Of a true class to a mapping of decisions to costs; other pairs cost nothing.
    classes : (K,) array

    Examples
    --------
    >>> cost_matrix({"ill": {"well": 10}, "well": {"ill": 1}}, np.array(["ill", "well"]))
    array([[ 0., 10.],
           [ 1.,  0.]])
    """
    K = len(classes)
    if isinstance(costs, Mapping):
        found = np.zeros((K, K))
        for truth, row in costs.items():
            if not isinstance(row, Mapping):
                raise ValueError(
                    f"costs has {row!r} for the class {truth!r}; a dict of costs has a dict for "
                    "each true class: {truth: {decision: cost}}"
                )
            for decision, cost in row.items():
                found[_place(truth, classes), _place(decision, classes)] = cost
    else:
        found = np.asarray(costs, dtype=np.float64)
        if found.shape != (K, K):
            raise ValueError(
                f"costs must have shape ({K}, {K}) for the classes {classes.tolist()}, a row per "
                f"true class, got {found.shape}; or be a dict {{truth: {{decision: cost}}}}"
            )
    if not np.isfinite(found).all():
        raise ValueError("costs must be finite numbers; use 0 for pairs that cannot occur")
    return found


def _place(label: Any, classes: Array) -> int:
    known = classes.tolist()
    if label not in known:
        raise ValueError(f"costs names the class {label!r}, and the classes are {known}")
    return int(known.index(label))


class MinimumCostClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Predict the class with the smallest expected cost.

    :meth:`onefit.KernelSearchCV.minimise_cost` applies it to the winner of a search.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``
        Calibrated: a :class:`CalibratedKernelClassifier`, or loss="log".
    costs : array of shape (K, K), or dict {truth: {decision: cost}}
        In the order of ``classes_``, rows are true classes, columns decisions.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_ : as of the estimator
    estimator_ : classifier
        The fitted estimator.
    costs_ : array of shape (K, K)

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from onefit import KernelClassifier
    >>> from onefit.decide import MinimumCostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KernelClassifier(loss="log", lam=1e-2)
    >>> even, wary = (
    ...     MinimumCostClassifier(model, {0: {1: cost}, 1: {0: 1}}).fit(X, y) for cost in (1, 20)
    ... )
    >>> bool((wary.predict(X) == 0).sum() > (even.predict(X) == 0).sum())
    True
    """

    def __init__(self, estimator: Any, costs: Any) -> None:
        self.estimator = estimator
        self.costs = costs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    @classmethod
    def from_fitted(cls, estimator: Any, costs: Any) -> MinimumCostClassifier:
        """Use a classifier that is already fitted."""
        return cls(clone(estimator), costs)._around(estimator)

    def fit(self, X: Any, y: Any, **params: Any) -> MinimumCostClassifier:
        """Fit the estimator; ``params`` are for its fit."""
        return self._around(clone(self.estimator).fit(X, y, **params))

    def _around(self, estimator: Any) -> MinimumCostClassifier:
        self.costs_ = cost_matrix(self.costs, np.asarray(estimator.classes_))
        self.estimator_, self.classes_ = estimator, estimator.classes_
        copy_feature_names(self, estimator)
        return self

    def expected_costs(self, X: Any) -> Array:
        """Expected cost of each decision, (m, K)."""
        return self.predict_proba(X) @ self.costs_

    def predict_proba(self, X: Any) -> Array:
        """Probability of every class, by the estimator."""
        check_is_fitted(self, "costs_")
        return np.asarray(self.estimator_.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """The class with the smallest expected cost; the first of equal ones."""
        return np.asarray(self.classes_[self.expected_costs(X).argmin(axis=1)])
