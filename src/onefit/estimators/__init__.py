"""The scikit-learn face."""

from onefit.estimators.classifier import KernelClassifier
from onefit.estimators.regressor import KernelRegressor
from onefit.estimators.search_cv import KernelSearchCV

__all__ = ["KernelClassifier", "KernelRegressor", "KernelSearchCV"]
