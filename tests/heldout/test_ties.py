"""Values that a refit does not tell apart are equal, whichever formula they come from."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict
from onefit.losses import Huber
from onefit.permutation import permutation_test
from onefit.value import removal_values

random = np.random.default_rng(0)
X = random.normal(size=(200, 5))
FAR = {"gamma": [1e4], "lam": [1e-4, 1e-1]}


def classes(count):
    noisy = X[:, 0] + random.normal(size=len(X))
    return np.argsort(np.argsort(noisy)) * count // len(X)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(
    ("loss", "method"),
    [
        ("squared", "block"),
        ("squared", "eigen"),
        ("log", "exact"),
        ("smoothed_hinge", "exact"),
        ("squared_hinge", "iterative"),
    ],
)
@pytest.mark.parametrize(("count", "scoring"), [(2, "roc_auc"), (2, "accuracy"), (4, "accuracy")])
def test_rows_far_from_all_others_say_nothing_about_their_class(
    count, scoring, loss, method, fit_intercept
):
    y = classes(count)
    make = {"cv": StratifiedKFold(5), "scoring": scoring}
    model = KernelClassifier(loss, fit_intercept=fit_intercept)
    ours = KernelSearchCV(model, FAR, method=method, **make).fit(X, y)
    theirs = GridSearchCV(model, FAR, **make).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("method", ["block", "eigen", "exact"])
def test_equal_rows_of_a_split_have_equal_values(method):
    twice, y = np.repeat(X[:40], 2, axis=0), classes(2)[:80]
    held = heldout_predict(KernelClassifier(lam=1e-3), twice, y, KFold(4), method=method)
    values = held.predictions.reshape(-1, 2)
    np.testing.assert_array_equal(values[:, 0], values[:, 1])
    refits = heldout_predict(KernelClassifier(lam=1e-3), twice, y, KFold(4), method="refit")
    assert (np.abs(held.values - refits.values) <= (held.error + refits.error).max()).all()


def test_a_permutation_test_of_far_rows_finds_nothing():
    y = classes(2)
    model = KernelClassifier(fit_intercept=False)
    search = KernelSearchCV(model, FAR, cv=KFold(5), scoring="accuracy")
    found = permutation_test(search, X, y, n_permutations=3)
    assert found.score == pytest.approx(0.5)
    np.testing.assert_allclose(found.permutation_scores, 0.5)


def test_removal_values_of_far_rows_are_of_no_prediction():
    y = classes(2)
    model = KernelClassifier(gamma=1e4, lam=1e-4, fit_intercept=False)
    found = removal_values(model, X, y, cv=StratifiedKFold(5), scoring="accuracy")
    assert found.score == pytest.approx(0.5)


def test_rounding_is_within_the_bounds():
    y = classes(2)
    model = KernelClassifier(gamma=0.3, lam=1e-3)
    held = heldout_predict(model, X, y, KFold(4), method="block")
    assert (held.values * 2.0**37 == np.rint(held.values * 2.0**37)).all()
    assert held.error.min() >= 0.25 * 2.0**-38
    fits = [clone(model).fit(X[a], y[a]).decision_function(X[b]) for a, b in KFold(4).split(X)]
    off = np.abs(held.values.ravel() - np.concatenate(fits)).max()
    assert 2.0**-39 < off <= held.error.max()


def test_values_of_a_regression_are_not_rounded():
    y = np.sin(2 * X[:, 0])
    held = heldout_predict(KernelRegressor(gamma=0.3, lam=1e-2), X, y, KFold(4))
    assert (held.values * 2.0**37 != np.rint(held.values * 2.0**37)).any()


def test_an_outlier_does_not_make_other_values_equal():
    y = np.sin(2 * X[:, 0])
    y[0] = 1e12
    model = KernelRegressor(Huber(0.5), gamma=0.3, lam=1e-2)
    cv = KFold(4)
    held = heldout_predict(model, X, y, cv)
    fitted = (clone(model).fit(X[a], y[a]).predict(X[b]) for a, b in cv.split(X))
    np.testing.assert_allclose(held.predictions, np.concatenate(list(fitted)), atol=1e-9)
