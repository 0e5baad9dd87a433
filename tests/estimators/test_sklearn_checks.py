"""scikit-learn's own conformance suite, for both estimators and several losses."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelClassifier, KernelRegressor

ESTIMATORS = [
    KernelRegressor(),
    KernelRegressor(loss="huber"),
    KernelRegressor(loss="epsilon_quadratic", kernel="laplacian"),
    KernelRegressor(loss="logistic", fit_intercept=False),
    KernelRegressor(scaling="total", kernel="linear"),
    KernelClassifier(),
    KernelClassifier(loss="smoothed_hinge"),
    KernelClassifier(loss="squared_hinge", kernel="poly"),
    KernelClassifier(loss="log"),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_compatible(estimator, check):
    check(estimator)
