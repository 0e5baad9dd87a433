"""Thresholds and costs on held-out values, against scikit-learn's refits and definitions."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import confusion_matrix, f1_score, make_scorer
from sklearn.model_selection import (
    LeaveOneOut,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    TunedThresholdClassifierCV,
)

from onefit import KernelClassifier, KernelSearchCV
from onefit.decide import MinimumCostClassifier, neyman_pearson
from onefit.decide.cost import cost_matrix
from onefit.decide.threshold import _rank

random = np.random.default_rng(0)
X = random.normal(size=(200, 3))
rare = X[:, 0] + X[:, 1] + 0.7 * random.normal(size=200) > 1.0
y = np.where(rare, "yes", "no")
CV = StratifiedKFold(4, shuffle=True, random_state=0)


def searched(cv=CV, loss="squared_hinge", **options):
    grid = {"gamma": [0.1], "lam": [1e-3, 1e-1]}
    return KernelSearchCV(KernelClassifier(loss=loss), grid, cv=cv, **options).fit(X, y)


@pytest.fixture(scope="module")
def search():
    return searched()


def test_a_metric_of_one_class_asks_for_its_name(search):
    with pytest.raises(ValueError, match=r"'no', 'yes'.*make_scorer\(f1_score, pos_label='yes'"):
        search.tune_threshold("f1")


COST = make_scorer(lambda a, b: -(5 * ((a == "yes") & (b == "no")) + (b == "yes")).sum())


@pytest.mark.parametrize(
    ("scoring", "cv"),
    [
        ("balanced_accuracy", CV),
        (make_scorer(f1_score, pos_label="yes"), CV),
        (make_scorer(f1_score, pos_label="no"), CV),
        (COST, RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=1)),
    ],
    ids=["balanced", "f1", "f1 of no", "cost, repeated"],
)
def test_a_metrics_threshold_is_scikit_learns_by_refits(scoring, cv):
    search = searched(cv)
    ours = search.tune_threshold(scoring, thresholds=15)
    theirs = TunedThresholdClassifierCV(
        clone(search.best_estimator_),
        scoring=scoring,
        response_method="decision_function",
        thresholds=15,
        cv=cv,
    ).fit(X, y)
    assert ours.best_threshold_ == pytest.approx(theirs.best_threshold_, abs=1e-6)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    again = clone(ours).fit(X, y)
    assert again.best_threshold_ == pytest.approx(ours.best_threshold_, abs=1e-6)


def test_a_metric_counts_rows_by_their_weights():
    """As scikit-learn does where fit and metric ask for them."""
    weight = np.random.default_rng(1).uniform(0.01, 3.0, y.size)
    scorer = make_scorer(f1_score, pos_label="yes")
    machine = KernelClassifier(loss="squared_hinge", gamma=0.1, lam=1e-2)
    found = KernelSearchCV(machine, {"lam": [1e-2]}, cv=CV).fit(X, y, sample_weight=weight)
    ours, plain = found.tune_threshold(scorer), _unweighted(found).tune_threshold(scorer)
    with config_context(enable_metadata_routing=True):
        theirs = TunedThresholdClassifierCV(
            clone(machine).set_fit_request(sample_weight=True),
            scoring=make_scorer(f1_score, pos_label="yes").set_score_request(sample_weight=True),
            response_method="decision_function",
            cv=CV,
        ).fit(X, y, sample_weight=weight)
    assert ours.best_threshold_ == pytest.approx(theirs.best_threshold_, abs=1e-6)
    assert ours.best_score_ == pytest.approx(theirs.best_score_, abs=1e-9)
    assert plain.best_score_ != pytest.approx(theirs.best_score_, abs=1e-3)


def _unweighted(search):
    """The search, its held-out values without their weights."""
    found = copy(search)
    found.heldout_ = replace(search.heldout_, sample_weight=None)
    return found


def test_all_rows_together_where_test_sets_are_small():
    search = searched(LeaveOneOut())
    with pytest.raises(ValueError, match="aggregate='pooled'"):
        search.tune_threshold()
    found = search.tune_threshold(aggregate="pooled", thresholds=100)
    held = search.heldout_.predictions
    scores = [np.mean([(held[rare] >= t).mean(), (held[~rare] < t).mean()]) for t in np.sort(held)]
    assert found.best_score_ == pytest.approx(max(scores), abs=0.02)


def test_the_searchs_aggregate_is_the_default(search):
    pooled = searched(aggregate="pooled").tune_threshold(thresholds=15)
    asked = search.tune_threshold(aggregate="pooled", thresholds=15)
    assert pooled.best_threshold_ == asked.best_threshold_
    mean = search.tune_threshold(thresholds=15).best_score_
    assert asked.best_score_ != mean
    # thresholds have no other aggregates
    assert searched(aggregate="weighted").tune_threshold(thresholds=15).best_score_ == mean


@pytest.mark.parametrize("confidence", [None, 0.9])
def test_false_alarms_are_bounded(search, confidence):
    found = search.tune_threshold("neyman_pearson", max_rate=0.1, confidence=confidence)
    held = np.sort(search.heldout_.predictions[~rare])
    m = held.size
    alarms = (held >= found.threshold).sum()
    k = m - alarms  # rows of the first class below the threshold
    if confidence is None:
        assert alarms / m <= 0.1 < (alarms + 1) / m
    else:
        assert binom.sf(k - 1, m, 0.9) <= 0.1 < binom.sf(k - 2, m, 0.9)
    labels = found.predict(X)
    values = search.best_estimator_.decision_function(X)
    np.testing.assert_array_equal(labels == "yes", values >= found.threshold)


def test_a_rate_that_is_a_whole_number_of_rows_is_reached(search):
    """0.29 * 100 is 28.999999999999996, and 29 of 100 rows are not above 0.29."""
    assert _rank(100, 0.29, None) == 71
    held = search.heldout_
    with pytest.raises(ValueError, match="no split tests a row of the first class"):
        neyman_pearson(search.best_estimator_, replace(held, targets=np.full(200, "yes")))


def test_the_bound_holds_on_new_rows():
    """In simulations with independent values the true rate exceeds alpha in few cases."""
    draw = np.random.default_rng(0)
    over = 0
    for _ in range(400):
        scores = np.sort(draw.uniform(size=100))
        over += 1.0 - scores[_rank(100, 0.1, 0.9) - 1] > 0.1
    assert 0.03 < over / 400 < 0.13


def test_too_few_rows_for_the_bound_are_counted(search):
    with pytest.raises(ValueError, match="needs 459 held-out rows"):
        search.tune_threshold("neyman_pearson", max_rate=0.01, confidence=0.99)
    with pytest.raises(ValueError, match="max_rate must lie between 0 and 1"):
        search.tune_threshold("neyman_pearson", max_rate=5)


COSTS = {"yes": {"no": 10.0}, "no": {"yes": 1.0}}


def test_decisions_of_least_expected_cost(search):
    found = search.minimise_cost(COSTS, calibration="isotonic")
    p = search.calibrate("isotonic").predict_proba(X)
    np.testing.assert_array_equal(found.predict(X) == "yes", 10.0 * p[:, 1] > p[:, 0])
    np.testing.assert_allclose(found.expected_costs(X), np.column_stack([10 * p[:, 1], p[:, 0]]))
    plain = confusion_matrix(y, search.predict(X))
    wary = confusion_matrix(y, found.predict(X))
    assert wary[1, 0] < plain[1, 0]  # fewer are missed
    assert (wary * found.costs_).sum() < (plain * found.costs_).sum()
    again = clone(found).fit(X, y)
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


def test_costs_of_three_classes_and_own_probabilities():
    Z, classes = load_iris(return_X_y=True)
    search = KernelSearchCV(KernelClassifier(loss="log"), {"lam": [1e-3]}).fit(Z, classes)
    C = random.uniform(size=(3, 3))
    found = search.minimise_cost(C, calibration=None)
    p = search.predict_proba(Z)
    np.testing.assert_array_equal(found.predict(Z), (p @ C).argmin(axis=1))
    fresh = MinimumCostClassifier(KernelClassifier(loss="log"), C).fit(Z, classes)
    np.testing.assert_array_equal(fresh.predict(Z), found.predict(Z))


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (np.ones((2, 3)), r"shape \(2, 2\)"),
        ({"yes": {"perhaps": 1.0}}, "names the class 'perhaps'"),
        ({"perhaps": {"yes": 1.0}}, "names the class 'perhaps'"),
        ({"yes": 1.0}, "a dict for each true class"),
        ([[0.0, np.inf], [1.0, 0.0]], "finite"),
    ],
)
def test_costs_that_make_no_sense(costs, words):
    with pytest.raises(ValueError, match=words):
        cost_matrix(costs, np.array(["no", "yes"]))


def test_a_decision_by_costs_can_be_saved(search):
    skops = pytest.importorskip("skops.io")
    found = search.minimise_cost(COSTS)
    data = skops.dumps(found)
    again = skops.loads(data, trusted=skops.get_untrusted_types(data=data))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))
    assert clone(again).costs == COSTS


def test_what_does_not_fit_is_refused(search):
    with pytest.raises(ValueError, match="gives no probabilities"):
        search.minimise_cost(COSTS, calibration=None)
    Z, classes = load_iris(return_X_y=True)
    three = KernelSearchCV(KernelClassifier(), {"lam": [1e-3]}).fit(Z, classes)
    for scoring in ("accuracy", "neyman_pearson"):
        with pytest.raises(ValueError, match="separates two classes"):
            three.tune_threshold(scoring)
