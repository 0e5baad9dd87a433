"""heldout_predict against the definition: refit by scikit-learn's own tools."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification, make_friedman1
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onefit
from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict
from onefit.folds import Folds
from onefit.heldout import Block, Influence
from onefit.predict import ridge_weights

X, y = make_friedman1(34, random_state=0)
Z, labels = make_classification(40, n_informative=5, n_classes=3, random_state=0)
METHODS = ["auto", "refit", "block", "eigen"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cv", [5, KFold(4, shuffle=True, random_state=0)])
@pytest.mark.parametrize("options", [{}, {"scaling": "total", "fit_intercept": False}])
def test_regressor(method, cv, options):
    machine = KernelRegressor(gamma=0.3, lam=1e-3, **options)
    held = heldout_predict(machine, X, y, cv=cv, method=method)
    np.testing.assert_allclose(held.predictions, cross_val_predict(machine, X, y, cv=cv), rtol=1e-8)
    assert held.exact.all()
    assert held.method in ("refit", "block", "eigen")
    assert held.seconds > 0
    assert not hasattr(machine, "X_fit_")


@pytest.mark.parametrize("method", METHODS)
def test_classifier(method):
    machine = KernelClassifier(gamma=0.1, lam=1e-2)
    held = heldout_predict(machine, Z, labels, cv=4, method=method)
    expected = cross_val_predict(machine, Z, labels, cv=4, method="decision_function")
    np.testing.assert_allclose(held.predictions, expected, rtol=1e-8, atol=1e-12)


def test_weights_and_groups():
    weights = np.random.default_rng(0).uniform(0.1, 3.0, 34)
    groups = np.arange(34) % 5
    machine = KernelRegressor(gamma=0.3)
    held = heldout_predict(machine, X, y, GroupKFold(3), groups, weights)
    for (train, test), values in zip(GroupKFold(3).split(X, y, groups), held.by_fold, strict=True):
        fitted = clone(machine).fit(X[train], y[train], sample_weight=weights[train])
        np.testing.assert_allclose(values, fitted.predict(X[test]), rtol=1e-8)


@pytest.mark.parametrize(
    "cv",
    [
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        ShuffleSplit(2, test_size=0.2, train_size=0.5, random_state=0),
    ],
)
def test_rows_tested_more_than_once_get_the_mean_and_untested_ones_nan(cv):
    machine = KernelRegressor(gamma=0.3)
    held = heldout_predict(machine, X, y, cv)
    found = [[] for _ in range(34)]
    for train, test in cv.split(X):
        for i, u in zip(test, clone(machine).fit(X[train], y[train]).predict(X[test]), strict=True):
            found[i].append(u)
    expected = [np.mean(u) if u else np.nan for u in found]
    np.testing.assert_allclose(held.predictions, expected, rtol=1e-8)


def test_several_targets():
    Y = np.column_stack([y, X[:, 0]])
    held = heldout_predict(KernelRegressor(), X, Y)
    assert held.predictions.shape == Y.shape


def test_a_method_object_is_taken():
    assert heldout_predict(KernelRegressor(), X, y, method=Block()).method == "block"
    held = heldout_predict(KernelRegressor(), X, y, method=Influence(order=2))
    assert (held.method, held.order) == ("influence", 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "blok"}, r"method='blok' is not known; did you mean 'block'\?"),
        ({"cv": 35}, "more folds than there are rows"),
        ({"cv": [([0], [1, 2])]}, "training part of split 0 has 1 rows"),
        ({"sample_weight": -np.ones(34)}, "must not be negative"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        heldout_predict(KernelRegressor(), X, y, **options)


def test_a_class_that_a_fold_takes_away_is_refused():
    with pytest.raises(ValueError, match="training part of split 0 holds no row of class 0"):
        heldout_predict(KernelClassifier(), Z, np.repeat([0, 1, 2], [13, 13, 14]), KFold(3))


def test_other_estimators_are_refused():
    with pytest.raises(TypeError, match="does not take a Pipeline"):
        heldout_predict(make_pipeline(StandardScaler(), KernelRegressor()), X, y)
    search = KernelSearchCV(KernelRegressor(), {"lam": [1.0]}).fit(X, y)
    with pytest.raises(TypeError, match="best_estimator_"):
        heldout_predict(search, X, y)
    with pytest.raises(TypeError, match="got StandardScaler"):
        heldout_predict(StandardScaler(), X, y)


def test_ridge_weights_counts_the_values_of_the_ridge():
    folds = Folds.draw(KFold(4), X)  # two folds of 9 rows, two of 8
    assert ridge_weights(folds, np.ones(34), "mean") == 2
    assert ridge_weights(folds, np.ones(34), "total") == 1
    assert ridge_weights(folds, np.arange(34.0), "mean") == 4


def test_it_is_public():
    assert onefit.heldout_predict is heldout_predict


def test_targets_of_a_data_frame_are_kept_as_an_array():
    """A pandas Series in a fitted search cannot be saved by skops."""
    target = pd.Series(labels).map({0: "a", 1: "b", 2: "c"})
    model = KernelClassifier(gamma=0.1)
    search = KernelSearchCV(model, {"lam": [0.1]}, cv=3).fit(Z, target)
    for held in (search.heldout_, heldout_predict(model, Z, target)):
        assert type(held.targets) is np.ndarray
