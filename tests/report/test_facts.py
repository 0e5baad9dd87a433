"""The facts that a report states of a search, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_iris, make_friedman1

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.losses import Quantile
from onefit.quantiles import neg_pinball_loss
from onefit.report.facts import Facts, Scale
from onefit.report.words import expected

X, y = make_friedman1(50, random_state=0)
GRID = [
    {"kernel": ["rbf", "laplacian"], "gamma": [0.01, 0.1, 1.0], "lam": [1e-4, 1e-2, 1.0, 10.0]},
    {"kernel": ["linear"], "lam": [1e-2, 1.0]},
]


@pytest.fixture(scope="module")
def facts():
    scoring = "neg_mean_squared_error"
    return Facts(KernelSearchCV(KernelRegressor(), GRID, cv=5, scoring=scoring).fit(X, y))


def test_the_interval_is_the_headlines(facts):
    low, high = facts.search.headline_.interval
    np.testing.assert_allclose(facts.interval, (-high, -low))
    assert 0.0 < facts.interval[0] < facts.expected < facts.interval[1]
    assert facts.baseline == pytest.approx(-facts.search.headline_.baseline)
    assert facts.verdict == ""


def test_without_a_headline_there_is_no_interval():
    search = KernelSearchCV(KernelRegressor(), GRID, refit=lambda table: 3).fit(X, y)
    del search.headline_  # as where held-out values are not kept
    facts = Facts(search)
    assert facts.headline is None
    assert np.isnan(facts.interval).all()
    assert [name for name, _ in expected(facts)] == ["R², all held-out rows"]
    assert facts.expected == facts.scores[3]
    assert np.isnan(facts.baseline)
    assert facts.verdict == ""


def test_near_candidates_are_within_one_standard_error(facts):
    mean, error = facts.splits.mean(axis=1), facts.splits.std(axis=1, ddof=1) / np.sqrt(5)
    top = mean.argmax()
    np.testing.assert_array_equal(facts.near, mean >= mean[top] - error[top])
    assert facts.near[facts.best]
    assert 1 < facts.near.sum() < facts.near.size


def test_families_hold_every_candidate_once(facts):
    families = facts.families
    assert {one.name for one in families} == {"rbf", "laplacian", "linear"}
    assert facts.best in families[0].index
    found = np.concatenate([one.index.ravel() for one in families])
    assert sorted(found) == list(range(26))
    for family in families:
        for (row, column), i in np.ndenumerate(family.index):
            params = facts.table["params"][i]
            assert params["lam"] == family.lams[column]
            assert params.get("gamma") == family.gammas[row]
            assert params["kernel"] == family.fixed["kernel"]


@pytest.mark.parametrize(
    ("scoring", "label", "shown"),
    [
        ("r2", "R²", 0.25),
        ("neg_mean_absolute_error", "mean absolute error", -0.25),
        ("explained_variance", "explained variance", 0.25),
        ("score", "score", 0.25),
    ],
)
def test_scores_are_shown_as_readers_expect(scoring, label, shown):
    scale = Scale.of(scoring)
    assert (scale.label, scale(0.25)) == (label, shown)


def test_scores_of_other_scorers_have_their_names():
    def label(scoring, machine):
        return Facts(KernelSearchCV(machine, {"lam": [1.0]}, scoring=scoring).fit(X, y)).scale.label

    assert label(None, KernelRegressor()) == "R²"
    assert label(lambda *_: 0.0, KernelRegressor()) == "score"
    levels = KernelRegressor(Quantile([0.2, 0.8]))
    assert label(None, levels) == label(neg_pinball_loss, levels) == "pinball loss"


def test_an_accuracy_is_an_error_rate():
    X, y = load_iris(return_X_y=True)
    facts = Facts(KernelSearchCV(KernelClassifier(), {"lam": [1e-4, 1e-2]}, cv=3).fit(X, y))
    assert facts.scale.label == "error rate"
    assert facts.expected == pytest.approx((facts.search.heldout_.labels != y).mean())
    assert facts.interval[0] < facts.expected < facts.interval[1]


def test_splits_without_an_error_leave_some_doubt():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    search = KernelSearchCV(KernelClassifier(), {"lam": [1e-2]}, cv=2).fit(X, X.ravel() > 0)
    assert search.best_score_ == 1.0
    low, high = Facts(search).interval
    assert low == 0.0
    assert binomtest(0, 20).proportion_ci(0.95).high < high < 0.5


def test_pooled_scores_have_standard_errors_of_rows():
    search = KernelSearchCV(KernelRegressor(), GRID, cv=25, aggregate="pooled").fit(X, y)
    facts = Facts(search)
    np.testing.assert_array_equal(facts.errors, search.cv_results_["se_test_score"])
    assert facts.scores[facts.best] == search.best_score_


def test_several_metrics_and_other_aggregates():
    scoring = {"a": "r2", "b": "neg_mean_absolute_error"}
    options = {"cv": 3, "scoring": scoring, "refit": "b", "aggregate": "median"}
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-3, 1.0]}, **options).fit(X, y)
    facts = Facts(search)
    assert facts.scale.label == "mean absolute error"
    assert facts.scores[facts.best] == search.best_score_


def test_a_search_without_a_winner_is_refused():
    with pytest.raises(ValueError, match="no winner"):
        Facts(KernelSearchCV(KernelRegressor(), GRID))
