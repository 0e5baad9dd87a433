"""Sample weights and groups: where they go, with and without metadata routing."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.datasets import make_friedman1
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import get_scorer, make_scorer, max_error, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from onefit import KernelRegressor, KernelSearchCV
from onefit.journal import JournalError

X, y = make_friedman1(40, random_state=0)
weights = np.random.default_rng(0).uniform(0.1, 5.0, 40)
groups = np.arange(40) % 7
GRID = {"gamma": [0.3], "lam": [1e-3, 1e-1]}


def assert_same(ours, theirs):
    for key, value in theirs.cv_results_.items():
        if "_test_" in key:
            np.testing.assert_allclose(ours.cv_results_[key], value, rtol=1e-8, err_msg=key)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-8)


def both(estimator, fit, **options):
    found = []
    for kind in (KernelSearchCV, GridSearchCV):
        found.append(kind(estimator, GRID, **options).fit(X, y, **fit))
    return found


weighted_scores = pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.7"),
    reason="GridSearchCV weights its scores from scikit-learn 1.7 on",
)


@weighted_scores
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error", "explained_variance"])
def test_without_routing_weights_go_to_fit_and_scorer(scoring):
    fit = {"sample_weight": weights}
    assert_same(*both(KernelRegressor(), fit, cv=KFold(4), scoring=scoring))


@weighted_scores
def test_without_routing_a_scorer_that_takes_no_weights_gets_none():
    scoring = {"worst": make_scorer(max_error, greater_is_better=False), "r2": "r2"}
    with pytest.warns(UserWarning, match="does not support sample_weight"):
        found = both(
            KernelRegressor(), {"sample_weight": weights}, cv=3, scoring=scoring, refit="r2"
        )
    assert_same(*found)


def test_without_routing_groups_go_to_the_splitter():
    assert_same(*both(KernelRegressor(), {"groups": groups}, cv=GroupKFold(3)))


@pytest.mark.parametrize("fit_request", [True, False])
@pytest.mark.parametrize("score_request", [True, False])
@pytest.mark.parametrize("several", [True, False])
def test_with_routing_weights_go_where_they_are_requested(fit_request, score_request, several):
    with sklearn.config_context(enable_metadata_routing=True):
        machine = KernelRegressor().set_fit_request(sample_weight=fit_request)
        scorer = get_scorer("r2").set_score_request(sample_weight=score_request)
        other = get_scorer("neg_mean_squared_error").set_score_request(sample_weight=True)
        scoring = {"a": scorer, "b": other} if several else scorer
        options = {"cv": GroupKFold(3), "scoring": scoring, "refit": "a" if several else True}
        wanted = fit_request or score_request or several
        fit = {"groups": groups} | ({"sample_weight": weights} if wanted else {})
        assert_same(*both(machine, fit, **options))


def test_with_routing_unset_requests_are_refused():
    with sklearn.config_context(enable_metadata_routing=True):
        search = KernelSearchCV(KernelRegressor(), GRID)
        with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
            search.fit(X, y, sample_weight=weights)


def test_a_test_set_without_weight_is_refused():
    zero = weights.copy()
    zero[:10] = 0.0
    with pytest.raises(ValueError, match="test rows of split 0 all have sample_weight 0"):
        KernelSearchCV(KernelRegressor(), GRID, cv=KFold(4)).fit(X, y, sample_weight=zero)


def test_a_journal_of_other_weights_of_the_scorer_is_refused(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        machine = KernelRegressor().set_fit_request(sample_weight=False)
        scorer = get_scorer("r2").set_score_request(sample_weight=True)
        search = KernelSearchCV(machine, GRID, scoring=scorer, journal=tmp_path / "journal")
        search.fit(X, y, sample_weight=weights)
        with pytest.raises(JournalError, match="metadata of the scorers was"):
            search.fit(X, y, sample_weight=weights**2)


def test_a_journal_of_weights_that_went_to_other_steps_is_not_used(tmp_path):
    uneven = {"sample_weight": np.where(X[:, 0] > 0.5, 50.0, 1.0)}
    scores = []
    with sklearn.config_context(enable_metadata_routing=True):
        scorer = make_scorer(r2_score).set_score_request(sample_weight=False)
        for weighted in (True, False):
            scaler = StandardScaler().set_fit_request(sample_weight=weighted)
            model = KernelRegressor().set_fit_request(sample_weight=True)
            grid = {f"kernelregressor__{name}": values for name, values in GRID.items()}
            for journal in (None, tmp_path / "journal"):
                search = KernelSearchCV(
                    make_pipeline(scaler, model), grid, scoring=scorer, journal=journal
                )
                scores.append(search.fit(X, y, **uneven).best_score_)
    assert scores[0] == scores[1]
    assert scores[2] == scores[3] != scores[0]
