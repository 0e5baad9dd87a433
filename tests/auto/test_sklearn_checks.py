"""scikit-learn's own conformance suite, for the automatic estimators."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import AutoKernelClassifier, AutoKernelRegressor

SMALL = {"cv": 2, "param_grid": {"kernel": ["rbf"], "gamma": [0.1], "lam": [1e-3, 1e-1]}}
ESTIMATORS = [
    AutoKernelRegressor(**SMALL),
    AutoKernelClassifier(**SMALL),
    AutoKernelClassifier(**SMALL, calibrate="sigmoid"),
    AutoKernelRegressor(**SMALL, prepare="passthrough"),
]


def _expected_failures(estimator):
    failures = {}
    equivalence = "check_sample_weight_equivalence_on_{}_data"
    if estimator.prepare is None:
        failures[equivalence.format("dense")] = "columns are standardised without weights"
    if getattr(estimator, "calibrate", None):
        failures["check_class_weight_classifiers"] = "calibration undoes weights of classes"
    return failures


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=_expected_failures)
def test_sklearn_compatible(estimator, check):
    check(estimator)
