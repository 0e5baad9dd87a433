"""scikit-learn's own conformance suite, for both estimators and several losses."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelClassifier, KernelRegressor
from onefit.losses import Expectile, Quantile

#: what differs in the estimator's own code: one solve or Newton steps, a width from residuals,
#: classes with and without probabilities, pairs and weights of classes
ESTIMATORS = [
    KernelRegressor(),
    KernelRegressor(loss="epsilon_insensitive", kernel="laplacian"),
    KernelClassifier(loss="log"),
    KernelClassifier(loss="squared_hinge", multi_class="ovo", class_weight="balanced"),
]
#: what differs in loss, kernel and scaling alone
OTHERS = [
    KernelRegressor(loss="huber"),
    KernelRegressor(loss="epsilon_quadratic", kernel="laplacian"),
    KernelRegressor(loss="logistic", fit_intercept=False),
    KernelRegressor(scaling="total", kernel="linear"),
    KernelRegressor(loss=Quantile(0.7)),
    KernelRegressor(loss=Expectile(0.7)),
    KernelClassifier(),
    KernelClassifier(loss="smoothed_hinge"),
    KernelClassifier(loss="squared_hinge", kernel="poly"),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_compatible(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(OTHERS)
def test_others_are_sklearn_compatible(estimator, check):
    check(estimator)
