"""onefit: choose kernel machines by cross-validation, from one fit."""

from onefit._version import __version__
from onefit.decide import CalibratedKernelClassifier, MinimumCostClassifier
from onefit.diagnostics import asymptotic_variance, cv_loo_stability, influence
from onefit.estimators import KernelClassifier, KernelRegressor
from onefit.grids import default_grid
from onefit.heldout import HeldOut
from onefit.kernels import Bank
from onefit.predict import heldout_predict
from onefit.relevance import relevance
from onefit.robust import robust_select
from onefit.search.continuous import Interval, coarse_to_fine
from onefit.search.objective import ByGradient
from onefit.search_cv import KernelSearchCV
from onefit.selection import select
from onefit.stream import HashKFold
from onefit.uncertainty import nested_cv, predict_interval

__all__ = [
    "Bank",
    "ByGradient",
    "CalibratedKernelClassifier",
    "HashKFold",
    "HeldOut",
    "Interval",
    "KernelClassifier",
    "KernelRegressor",
    "KernelSearchCV",
    "MinimumCostClassifier",
    "__version__",
    "asymptotic_variance",
    "coarse_to_fine",
    "cv_loo_stability",
    "default_grid",
    "heldout_predict",
    "influence",
    "nested_cv",
    "predict_interval",
    "relevance",
    "robust_select",
    "select",
]
