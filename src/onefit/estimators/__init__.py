"""The models as scikit-learn estimators.

The rest of the package reads ``estimator.spec()`` (:mod:`onefit.spec`); the private methods that it
uses are listed in :class:`onefit.estimators._base.KernelEstimator`.
"""

from onefit.estimators.classifier import KernelClassifier
from onefit.estimators.regressor import KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]
