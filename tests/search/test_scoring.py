"""Any scorer is fed from held-out values; unsuitable ones are found out before the work."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.metrics import (
    check_scoring,
    fbeta_score,
    get_scorer_names,
    make_scorer,
    mean_squared_error,
)
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from watched import Refused

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.search.scorers import fast_metric

X, y = make_friedman1(40, random_state=0)
Z, labels = make_classification(40, random_state=0)
GRID = {"gamma": [0.3], "lam": [1e-3, 1e-1]}
#: a search that fails when it begins to work
REFUSED = {"kernel": [Refused(0.3)], "lam": [1e-3, 1e-1]}


def both(estimator, data, **options):
    ours = KernelSearchCV(estimator, GRID, **options).fit(*data)
    theirs = GridSearchCV(estimator, GRID, **options).fit(*data)
    return ours, theirs


def compare(ours, theirs):
    for key, value in theirs.cv_results_.items():
        if "_test_" in key:
            np.testing.assert_allclose(ours.cv_results_[key], value, rtol=1e-8, err_msg=key)
    assert ours.multimetric_ == theirs.multimetric_


def rows_seen(estimator, rows, target):
    """A user's scorer that looks at the rows, the target and the predictions."""
    return float(rows[:, 0].sum() + target.sum() + np.abs(estimator.predict(rows)).sum())


def several(estimator, rows, target):
    error = target - estimator.predict(rows)
    return {"bias": error.mean(), "size": -np.abs(error).max()}


def test_a_callable_sees_the_test_rows():
    cv = KFold(3, shuffle=True, random_state=0)
    compare(*both(KernelRegressor(), (X, y), scoring=rows_seen, cv=cv))


def test_a_callable_may_return_several_metrics():
    ours, theirs = both(KernelRegressor(), (X, y), scoring=several, refit="size", cv=3)
    compare(ours, theirs)
    assert ours.best_index_ == theirs.best_index_
    with pytest.raises(ValueError, match="multi-metric"):
        KernelSearchCV(KernelRegressor(), GRID, scoring=several).fit(X, y)


@pytest.mark.parametrize(
    "scoring",
    [
        ["r2", "neg_max_error"],
        ("neg_mean_squared_error", "r2"),
        {"mine": make_scorer(mean_squared_error, greater_is_better=False), "theirs": "r2"},
        {"seen": rows_seen, "r2": "r2"},
    ],
)
def test_several_metrics(scoring):
    first = next(iter(scoring))
    ours, theirs = both(KernelRegressor(), (X, y), scoring=scoring, refit=first, cv=4)
    compare(ours, theirs)
    assert ours.best_index_ == theirs.best_index_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y))
    assert set(ours.scorer_) == set(theirs.scorer_)


def test_several_metrics_without_refit_have_no_winner():
    search = KernelSearchCV(KernelRegressor(), GRID, scoring=["r2", "neg_max_error"], refit=False)
    search.fit(X, y)
    assert not hasattr(search, "best_index_")
    assert "rank_test_r2" in search.cv_results_


def test_refit_must_be_named_for_several_metrics():
    with pytest.raises(ValueError, match="multi-metric"):
        KernelSearchCV(KernelRegressor(), REFUSED, scoring=["r2", "neg_max_error"]).fit(X, y)


def test_refit_by_a_function():
    ours, theirs = both(KernelRegressor(), (X, y), refit=lambda table: 1, cv=3)
    assert ours.best_index_ == theirs.best_index_ == 1
    assert ours.best_score_ == ours.cv_results_["mean_test_score"][1]
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        ("log", get_scorer_names()),
        (
            "squared",
            ["accuracy", "average_precision", "neg_brier_score", "neg_log_loss", "roc_auc"],
        ),
    ],
    ids=["probabilities", "none"],
)
def test_every_named_scorer_of_a_classifier_agrees_or_is_refused_as_there(loss, names):
    """Whatever scikit-learn can score, by refits, is scored here to the same number."""
    machine, grid = KernelClassifier(loss=loss), {"lam": [1e-2], "gamma": [0.1]}
    for name in names:
        options = {"cv": StratifiedKFold(2), "scoring": name, "refit": False}
        theirs = GridSearchCV(machine, grid, error_score="raise", **options)
        ours = KernelSearchCV(machine, grid, method="refit", **options)
        try:
            expected = theirs.fit(Z, labels).cv_results_["mean_test_score"]
        except (ValueError, AttributeError):
            with pytest.raises(ValueError, match="cannot be computed"):
                ours.fit(Z, labels)
            continue
        found = ours.fit(Z, labels).cv_results_["mean_test_score"]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9, err_msg=name)


def test_probabilities_are_refused_where_the_loss_has_none():
    search = KernelSearchCV(KernelClassifier(), REFUSED, scoring="neg_log_loss")
    with pytest.raises(ValueError, match="cannot be computed from held-out decision values"):
        search.fit(Z, labels)


def test_a_callable_that_needs_a_fit_is_refused():
    def size(estimator, rows, target):
        return np.abs(estimator.dual_coef_).sum()

    with pytest.raises(ValueError, match=r"cannot be computed.*dual_coef_"):
        KernelSearchCV(KernelRegressor(), REFUSED, scoring=size).fit(X, y)


def test_a_callable_may_not_ask_for_other_rows():
    def half(estimator, rows, target):
        return estimator.predict(rows[:2]).sum()

    with pytest.raises(ValueError, match="asked for predictions of 2 rows"):
        KernelSearchCV(KernelRegressor(), REFUSED, scoring=half).fit(X, y)


def test_a_score_must_be_a_number():
    with pytest.raises(ValueError, match="must return a number"):
        KernelSearchCV(KernelRegressor(), REFUSED, scoring=lambda e, a, b: "good").fit(X, y)


def test_unknown_scoring_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match=r"did you mean 'neg_mean_squared_error'\?"):
        KernelSearchCV(KernelRegressor(), REFUSED, scoring="neg_mean_square_error").fit(X, y)


def test_a_score_method_of_a_subclass_is_used():
    class Mine(KernelRegressor):
        def score(self, X, y, sample_weight=None):
            return -float(np.abs(self.predict(X) - y).max())

    compare(*both(Mine(), (X, y), cv=3))


@pytest.mark.parametrize(
    ("machine", "name"),
    [(KernelRegressor(), "r2"), (KernelClassifier(), "accuracy")],
    ids=["regressor", "classifier"],
)
def test_an_estimators_own_score_needs_no_scorer_calls(machine, name):
    assert fast_metric(check_scoring(machine), machine)[0].name == name


def test_advice_for_a_metric_of_one_class_keeps_its_options():
    """An average over the classes needs no positive one, but scikit-learn asks for it."""
    names = np.where(labels > 0, "b", "a")
    for options, advice in (
        ({"average": "macro"}, r"fbeta_score, pos_label=None, beta=2, average='macro'"),
        ({}, r"fbeta_score, pos_label='b', beta=2"),
    ):
        scorer = make_scorer(fbeta_score, beta=2, **options)
        with pytest.raises(ValueError, match=advice):
            KernelSearchCV(KernelClassifier(), GRID, scoring=scorer).fit(Z, names)
