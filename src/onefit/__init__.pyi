from . import (
    config,
    criteria,
    decide,
    diagnostics,
    estimators,
    folds,
    heldout,
    kernels,
    losses,
    plan,
    quantiles,
    report,
    search,
    stream,
    uncertainty,
)
from ._version import __version__
from .auto import AutoKernelClassifier, AutoKernelRegressor, select
from .decide import CalibratedKernelClassifier, MinimumCostClassifier
from .diagnostics import asymptotic_variance, cv_loo_stability, influence
from .estimators import KernelClassifier, KernelRegressor
from .fit import FitError
from .grids import default_grid
from .heldout import HeldOut
from .kernels import Bank
from .predict import heldout_predict
from .relevance import relevance
from .robust import robust_select
from .search.continuous import Interval, coarse_to_fine
from .search_cv import KernelSearchCV
from .search_gradient import KernelGradientSearchCV
from .stream import HashKFold
from .uncertainty import nested_cv, novelty, predict_interval

__all__ = [
    "AutoKernelClassifier",
    "AutoKernelRegressor",
    "Bank",
    "CalibratedKernelClassifier",
    "FitError",
    "HashKFold",
    "HeldOut",
    "Interval",
    "KernelClassifier",
    "KernelGradientSearchCV",
    "KernelRegressor",
    "KernelSearchCV",
    "MinimumCostClassifier",
    "__version__",
    "asymptotic_variance",
    "coarse_to_fine",
    "config",
    "criteria",
    "cv_loo_stability",
    "decide",
    "default_grid",
    "diagnostics",
    "estimators",
    "folds",
    "heldout",
    "heldout_predict",
    "influence",
    "kernels",
    "losses",
    "nested_cv",
    "novelty",
    "plan",
    "predict_interval",
    "quantiles",
    "relevance",
    "report",
    "robust_select",
    "search",
    "select",
    "stream",
    "uncertainty",
]
