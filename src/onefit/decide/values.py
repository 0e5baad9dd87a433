"""A classifier whose rows are decision values, for scikit-learn's own calibration code.

scikit-learn calibrates, and tunes thresholds, by fitting a classifier to every training part and
reading its decision values on the test part. Here these values are known. With a classifier that
returns them, passed as X, scikit-learn's code does the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from onefit._types import Array

__all__ = ["DecisionValues", "copy_feature_names"]


class DecisionValues(ClassifierMixin, BaseEstimator):
    """A classifier for which X holds the decision values.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> DecisionValues:
        """Nothing is learned but the names of the classes."""
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: Any) -> Array:
        """X itself: one value per row for two classes, else one column per class."""
        values = np.asarray(X)
        return values.reshape(len(values)) if len(self.classes_) == 2 else values

    def predict(self, X: Any) -> Array:
        """The class with the largest value; of two, the second where it is positive."""
        values = self.decision_function(X)
        codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        return np.asarray(self.classes_[codes])


def copy_feature_names(found: Any, model: Any) -> None:
    """Give an estimator the number and names of features that a fitted model has."""
    for name in ("n_features_in_", "feature_names_in_"):
        vars(found).pop(name, None)
        if hasattr(model, name):
            setattr(found, name, getattr(model, name))
