"""Baselines against scikit-learn's, fitted to every training part."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import get_scorer, make_scorer, mean_pinball_loss
from sklearn.model_selection import KFold, RepeatedKFold, TimeSeriesSplit

from onefit import KernelClassifier, KernelRegressor
from onefit.folds import Folds
from onefit.uncertainty.baseline import baselines_of, weighted_quantile

random = np.random.default_rng(0)
n = 40
X = random.normal(size=(n, 2))
WEIGHT = random.integers(0, 3, n).astype(float)
WEIGHT[:3] = 1.0
SPLITS = [KFold(4), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), TimeSeriesSplit(3)]


PINBALL = make_scorer(mean_pinball_loss, alpha=0.8, greater_is_better=False)


@pytest.mark.parametrize("cv", SPLITS)
@pytest.mark.parametrize("s", [np.ones(n), WEIGHT], ids=["even", "weights"])
@pytest.mark.parametrize(
    ("scorer", "level", "name"),
    [
        (get_scorer("r2"), None, "always the mean"),
        (get_scorer("neg_mean_absolute_error"), 0.5, "always the median"),
        (PINBALL, 0.8, "always the quantile 0.8"),
    ],
    ids=["mean", "median", "quantile"],
)
def test_constants_of_the_training_parts(cv, s, scorer, level, name):
    y = random.normal(size=(n, 2))
    machine = KernelRegressor()
    machine._code_targets(y, np.float64)
    folds = Folds.draw(cv, X, y)
    (found,) = baselines_of(machine, scorer, y, s, folds)
    assert found.name == name
    values = found.estimator.predict(X[folds.rows])
    if level is not None:
        for (a, _), one in zip(folds, np.split(values, folds.offsets[1:-1]), strict=True):
            for target, constant in zip(y[a].T, one[0], strict=True):
                below, at = s[a][target < constant].sum(), s[a][target <= constant].sum()
                assert below <= level * s[a].sum() + 1e-9 <= at + 2e-9
        return
    expected = [
        DummyRegressor().fit(X[a], y[a], sample_weight=s[a]).predict(X[b]) for a, b in folds
    ]
    np.testing.assert_allclose(values, np.concatenate(expected))
    np.testing.assert_allclose(found.values, values)


def test_quantiles_are_those_of_the_rows_that_are_left():
    values = np.round(random.normal(size=n), 1)  # with ties
    for removed in (random.choice(n, size=k, replace=False) for k in (0, 1, 2, 7, 38)):
        left = np.isin(np.arange(n), removed, invert=True).astype(float)
        for level in (0.1, 0.5, 0.75, 0.9):
            expected = np.quantile(
                np.delete(values, removed), level, method="averaged_inverted_cdf"
            )
            assert weighted_quantile(values, left, level) == pytest.approx(expected)
    whole = np.repeat(values, WEIGHT.astype(int))
    assert weighted_quantile(values, WEIGHT, 0.5) == pytest.approx(np.median(whole))


def test_relative_and_logarithmic_errors_have_their_own_constants():
    """No other constant has a smaller error on the rows that it is learned from."""
    y = np.exp(random.normal(size=n))
    for name in ("neg_mean_absolute_percentage_error", "neg_mean_squared_log_error"):
        scorer = get_scorer(name)
        machine = KernelRegressor()
        machine._code_targets(y, np.float64)
        folds = Folds(n, [np.arange(n)], [np.arange(n)])
        (found,) = baselines_of(machine, scorer, y, np.ones(n), folds)
        best = scorer(found.estimator, X, y)
        for constant in (y.mean(), np.median(y), 1.1 * found.values[0, 0], *y):
            other = scorer._sign * scorer._score_func(y, np.full(n, constant))
            assert other <= best + 1e-12


@pytest.mark.parametrize("cv", SPLITS)
@pytest.mark.parametrize("s", [np.ones(n), WEIGHT], ids=["even", "weights"])
def test_shares_and_labels(cv, s):
    y = np.array(["a", "b", "c"])[random.choice(3, p=[0.4, 0.4, 0.2], size=n)]
    y[:3] = ["a", "b", "c"]  # every training part has them all
    machine = KernelClassifier()
    machine._code_targets(y, np.float64)
    folds = Folds.draw(cv, X, y)
    (shares,) = baselines_of(machine, get_scorer("neg_log_loss"), y, s, folds)
    dummies = [
        (DummyClassifier(strategy="prior").fit(X[a], y[a], sample_weight=s[a]), b) for a, b in folds
    ]
    proba = np.concatenate([one.predict_proba(X[b]) for one, b in dummies])
    np.testing.assert_allclose(shares.estimator.predict_proba(X[folds.rows]), proba)
    assert shares.name == "the shares of the classes"
    with pytest.raises(ValueError, match="not the 3 asked for"):
        shares.estimator.predict(X[:3])
    (label,) = baselines_of(machine, get_scorer("accuracy"), y, s, folds)
    whole = DummyClassifier().fit(X, y, sample_weight=s).predict(X[:1])
    assert set(label.estimator.predict(X[folds.rows])) == set(whole)
    assert set(label.values.argmax(axis=1)) == {"abc".index(whole[0])}
    every = baselines_of(machine, get_scorer("f1_macro"), y, s, folds)
    assert {one.estimator.predict(X[folds.rows])[0] for one in every} == {"a", "b", "c"}
