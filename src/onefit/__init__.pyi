from . import (
    cells,
    config,
    criteria,
    decide,
    diagnostics,
    estimators,
    features,
    folds,
    heldout,
    kernels,
    losses,
    plan,
    quantiles,
    report,
    rows,
    scoring,
    search,
    stacking,
    uncertainty,
)
from ._version import __version__
from .auto import AutoKernelClassifier, AutoKernelRegressor, select
from .estimators import KernelClassifier, KernelRegressor
from .grids import default_grid
from .learning import learning_curve
from .predict import heldout_predict
from .search_cv import KernelSearchCV
from .search_gradient import KernelGradientSearchCV
from .uncertainty import nested_cv, predict_interval

__all__ = [
    "AutoKernelClassifier",
    "AutoKernelRegressor",
    "KernelClassifier",
    "KernelGradientSearchCV",
    "KernelRegressor",
    "KernelSearchCV",
    "__version__",
    "cells",
    "config",
    "criteria",
    "decide",
    "default_grid",
    "diagnostics",
    "estimators",
    "features",
    "folds",
    "heldout",
    "heldout_predict",
    "kernels",
    "learning_curve",
    "losses",
    "nested_cv",
    "plan",
    "predict_interval",
    "quantiles",
    "report",
    "rows",
    "scoring",
    "search",
    "select",
    "stacking",
    "uncertainty",
]
