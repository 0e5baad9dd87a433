"""scikit-learn's own conformance suite, for both estimators and several losses."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelClassifier, KernelRegressor

ESTIMATORS = [
    KernelRegressor(),
    KernelRegressor(loss="huber"),
    KernelRegressor(loss="epsilon_quadratic", kernel="laplacian"),
    KernelRegressor(loss="logistic", fit_intercept=False),
    KernelRegressor(scaling="total", kernel="linear"),
    KernelRegressor(loss="epsilon_insensitive"),
    KernelRegressor(loss="quantile", level=0.7),
    KernelRegressor(loss="expectile", level=0.7),
    KernelClassifier(),
    KernelClassifier(loss="smoothed_hinge"),
    KernelClassifier(loss="squared_hinge", kernel="poly"),
    KernelClassifier(loss="log"),
    KernelClassifier(loss="squared_hinge", multi_class="ovo", class_weight="balanced"),
]


@parametrize_with_checks(ESTIMATORS)
def test_sklearn_compatible(estimator, check):
    check(estimator)
