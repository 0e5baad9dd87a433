"""A classifier whose rows are decision values, for scikit-learn's own calibration code.

scikit-learn calibrates, and tunes thresholds, by fitting a classifier to every training part and
looking at its decision values on the test part. Here these values are known. A classifier that
hands them on, in the place of X, lets scikit-learn's code do the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

Array = NDArray[Any]

__all__ = ["DecisionValues"]


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
