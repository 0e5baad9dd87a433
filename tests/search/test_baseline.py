"""Baselines against scikit-learn's, fitted to every training part."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

from onefit import KernelClassifier, KernelRegressor
from onefit.estimators import inside
from onefit.folds import Folds
from onefit.search.baseline import baseline_of

random = np.random.default_rng(0)
n = 40
X = random.normal(size=(n, 2))
WEIGHT = random.integers(0, 3, n).astype(float)
WEIGHT[:3] = 1.0
SPLITS = [KFold(4), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), TimeSeriesSplit(3)]


@pytest.mark.parametrize("cv", SPLITS)
@pytest.mark.parametrize("s", [np.ones(n), WEIGHT], ids=["even", "weights"])
def test_the_mean(cv, s):
    y = random.normal(size=(n, 2))
    machine = KernelRegressor()
    inside.check_targets(machine, y, np.float64)
    folds = Folds.draw(cv, X, y)
    expected = [
        DummyRegressor().fit(X[a], y[a], sample_weight=s[a]).predict(X[b]) for a, b in folds
    ]
    found = baseline_of(machine, y, s, folds).predict(X[folds.rows])
    np.testing.assert_allclose(found, np.concatenate(expected))


@pytest.mark.parametrize("cv", SPLITS)
@pytest.mark.parametrize("s", [np.ones(n), WEIGHT], ids=["even", "weights"])
def test_the_most_frequent_class_and_the_shares(cv, s):
    y = np.array(["a", "b", "c"])[random.choice(3, p=[0.4, 0.4, 0.2], size=n)]
    y[:3] = ["a", "b", "c"]  # every training part has them all
    machine = KernelClassifier()
    inside.check_targets(machine, y, np.float64)
    folds = Folds.draw(cv, X, y)
    found = baseline_of(machine, y, s, folds)
    dummies = [
        (DummyClassifier(strategy="prior").fit(X[a], y[a], sample_weight=s[a]), b) for a, b in folds
    ]
    labels = np.concatenate([one.predict(X[b]) for one, b in dummies])
    proba = np.concatenate([one.predict_proba(X[b]) for one, b in dummies])
    np.testing.assert_array_equal(found.predict(X[folds.rows]), labels)
    np.testing.assert_allclose(found.predict_proba(X[folds.rows]), proba)
    with pytest.raises(ValueError, match="not the 3 asked for"):
        found.predict(X[:3])
