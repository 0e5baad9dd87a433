"""onefit: choose kernel machines by cross-validation, from one fit."""

from onefit.diagnostics import influence
from onefit.estimators import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.heldout.predict import heldout_predict

__all__ = ["KernelClassifier", "KernelRegressor", "KernelSearchCV", "heldout_predict", "influence"]

__version__ = "0.1.0"
