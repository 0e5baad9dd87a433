"""The scikit-learn face."""

from onefit.estimators.classifier import KernelClassifier
from onefit.estimators.regressor import KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]
