"""onefit: choose kernel machines by cross-validation, from one fit."""

from onefit.criteria import granularity, kernel_stability
from onefit.diagnostics import influence
from onefit.estimators import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.grids import default_grid
from onefit.predict import heldout_predict
from onefit.robust import robust_select
from onefit.search.continuous import Interval
from onefit.selection import select
from onefit.uncertainty import nested_cv, optimism_note, predict_interval, standard_errors

__all__ = [
    "Interval",
    "KernelClassifier",
    "KernelRegressor",
    "KernelSearchCV",
    "default_grid",
    "granularity",
    "heldout_predict",
    "influence",
    "kernel_stability",
    "nested_cv",
    "optimism_note",
    "predict_interval",
    "robust_select",
    "select",
    "standard_errors",
]

__version__ = "0.1.0"
