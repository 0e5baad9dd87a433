"""scikit-learn's own conformance suite, for the search."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelClassifier, KernelGradientSearchCV, KernelRegressor, KernelSearchCV
from onefit.search import Interval

GRID = {"lam": [1e-3, 1e-1]}
SEARCHES = [
    KernelSearchCV(KernelRegressor(), GRID, cv=2),
    KernelSearchCV(KernelClassifier(), {"lam": [1e-1]}, cv=2),
    KernelGradientSearchCV(
        KernelRegressor(), {"gamma": Interval(1e-2, 1.0), "lam": [1e-3]}, cv=2, steps=2
    ),
]


@parametrize_with_checks(SEARCHES)
def test_sklearn_compatible(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([KernelSearchCV(KernelClassifier(loss="log"), {"lam": [1e-1]}, cv=2)])
def test_others_are_sklearn_compatible(estimator, check):
    check(estimator)
