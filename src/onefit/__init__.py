"""onefit: choose kernel machines by cross-validation, from one fit."""

from onefit.estimators import KernelClassifier, KernelRegressor

__all__ = ["KernelClassifier", "KernelRegressor"]

__version__ = "0.1.0"
