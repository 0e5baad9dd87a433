"""The machines as scikit-learn estimators.

What the rest of the package needs of a machine beside scikit-learn's methods goes through
:mod:`onefit.estimators.inside`.
"""

from onefit.estimators.classifier import KernelClassifier
from onefit.estimators.regressor import KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]
