"""scikit-learn's own conformance suite, for the search."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

GRID = {"lam": [1e-3, 1e-1]}
SEARCHES = [
    KernelSearchCV(KernelRegressor(), GRID, cv=2),
    KernelSearchCV(KernelClassifier(), GRID, cv=2),
    KernelSearchCV(KernelClassifier(loss="log"), {"lam": [1e-1]}, cv=2),
]


@parametrize_with_checks(SEARCHES)
def test_sklearn_compatible(estimator, check):
    check(estimator)
