"""The numbers that a search is judged by."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import balanced_accuracy_score, make_scorer, r2_score, roc_auc_score
from sklearn.metrics import root_mean_squared_error as rmse
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut, cross_val_predict
from sklearn.preprocessing import scale

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, select
from onefit.uncertainty.score_interval import inflation, kind_of, score_interval

X, y = load_diabetes(return_X_y=True, scaled=False)
X, y = scale(X)[:150], y[:150]
GRID = {"gamma": [0.0121, 0.05], "lam": [1e-3, 1e-2]}
ROOT = "neg_root_mean_squared_error"


def searched(**options):
    machine = options.pop("machine", KernelRegressor())
    labels = options.pop("labels", y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KernelSearchCV(machine, GRID, **options).fit(X, labels)


@pytest.mark.parametrize("cv", [KFold(5), KFold(50), LeaveOneOut()])
def test_a_root_mean_square_is_that_of_all_rows(cv):
    search = searched(cv=cv, scoring=ROOT)
    found = search.headline_
    held = search.heldout_.predictions
    assert found.score == pytest.approx(-rmse(y, held), rel=1e-6)
    assert found.r2 == pytest.approx(r2_score(y, held))
    assert found.mean_of_splits == pytest.approx(search.best_score_)
    dummy = cross_val_predict(DummyRegressor(), X, y, cv=cv)
    assert found.baseline == pytest.approx(-rmse(y, dummy))
    assert found.baseline_name == "always the mean"
    pooled = searched(cv=cv, scoring=ROOT, aggregate="pooled")
    assert pooled.best_score_ == pytest.approx(pooled.headline_.score, rel=1e-6)


def test_a_mean_over_tiny_splits_gets_a_warning():
    def fit(cv, **options):
        KernelSearchCV(KernelRegressor(), GRID, cv=cv, scoring=ROOT, **options).fit(X, y)

    with pytest.warns(UserWarning, match="not the score of all held-out rows together"):
        fit(LeaveOneOut())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(LeaveOneOut(), aggregate="pooled")
        fit(KFold(5))
        options = {"cv": LeaveOneOut(), "scoring": "neg_mean_squared_error"}  # a mean over rows
        KernelSearchCV(KernelRegressor(), GRID, **options).fit(X, y)


def test_standard_errors_of_pooled_scores_are_those_of_rows():
    search = searched(cv=LeaveOneOut(), scoring="neg_mean_squared_error", aggregate="pooled")
    squares = np.square(y - search.heldout_.predictions)
    expected = squares.std(ddof=1) / np.sqrt(y.size)
    table = search.cv_results_
    assert table["se_test_score"][search.best_index_] == pytest.approx(expected, rel=1e-5)
    one_se = searched(cv=LeaveOneOut(), scoring=ROOT, aggregate="pooled", rule="one_se")
    assert one_se.best_params_["lam"] == 1e-2


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "roc_auc"])
def test_metrics_without_a_formula(scoring):
    labels = np.where(y > 150, "high", "low")
    search = searched(machine=KernelClassifier(), labels=labels, scoring=scoring, cv=KFold(10))
    found, held = search.headline_, search.heldout_
    if scoring == "roc_auc":
        expected = roc_auc_score(labels == "low", held.predictions)
        assert found.baseline_name == "the shares of the classes"
    else:
        expected = balanced_accuracy_score(labels, held.labels)
        assert found.baseline == pytest.approx(
            balanced_accuracy_score(
                labels, cross_val_predict(DummyClassifier(), X, labels, cv=KFold(10))
            )
        )
    assert found.score == pytest.approx(expected)
    assert found.shares == {
        name: pytest.approx((labels == name).mean()) for name in ("high", "low")
    }
    assert found.interval[0] < found.score < found.interval[1] <= 1.0
    bootstrap = np.random.default_rng(0)
    draws = [bootstrap.integers(y.size, size=y.size) for _ in range(200)]
    if scoring == "balanced_accuracy":
        spread = np.std([balanced_accuracy_score(labels[r], held.labels[r]) for r in draws])
        assert found.standard_error == pytest.approx(spread, rel=0.35)


def test_rare_rows_do_not_beat_the_baseline():
    labels = (np.arange(y.size) % 30 == 0).astype(int)
    search = searched(machine=KernelClassifier(), labels=labels, cv=5)
    found = search.headline_
    assert found.baseline == pytest.approx(1 - labels.mean())
    assert not found.beats_baseline
    assert "does not beat the baseline (always the most frequent class)" in found.verdict()
    shown = found.verdict(lambda score: 1.0 - score, "error rate")
    assert f"its error rate is {1 - found.score:.4g}" in shown
    good = searched(scoring=ROOT).headline_
    assert good.beats_baseline
    assert good.verdict() == ""


def test_the_lead_is_paired_by_rows():
    """Outliers that both miss by as much do not hide who is better."""
    wild = y + 3000.0 * (np.arange(y.size) % 25 == 0)
    search = searched(labels=wild, scoring="neg_mean_absolute_error", cv=KFold(5),
                      machine=KernelRegressor(loss="huber", threshold=50.0))  # fmt: skip
    found, held = search.headline_, search.heldout_.predictions
    dummy = cross_val_predict(DummyRegressor(), X, wild, cv=KFold(5))
    gain = np.abs(wild - dummy) - np.abs(wild - held)
    assert found.score - found.baseline == pytest.approx(gain.mean(), rel=1e-5)
    half = (found.lead[1] - found.lead[0]) / 2
    expected = np.sqrt(1 + 1 / 0.8) * gain.std(ddof=1) / np.sqrt(y.size)
    assert half / expected == pytest.approx(1.976, abs=0.01)  # Student's quantile
    assert found.beats_baseline
    assert found.interval[0] < found.baseline  # which the score's own interval would not tell


def test_select_warns_where_there_is_nothing_to_choose_by():
    draw = np.random.default_rng(0)
    noise = draw.normal(size=80)
    with pytest.warns(UserWarning, match="the baseline"):
        search = select(draw.normal(size=(80, 3)), noise, random_state=0)
    assert search.search.aggregate == "pooled"
    assert search.best_score_ == pytest.approx(search.headline_.score, abs=1e-6)


def test_groups_make_the_interval_wider():
    """Ten copies of a row are no ten rows."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(20, 2))
    many, groups = np.repeat(rows, 10, axis=0), np.repeat(np.arange(20), 10)
    target = np.repeat(rows[:, 0] + draw.normal(size=20), 10)
    search = KernelSearchCV(KernelRegressor(), GRID, cv=GroupKFold(20), aggregate="pooled")
    apart = search.fit(many, target, groups=groups).headline_
    splits = list(GroupKFold(20).split(many, target, groups))
    alike = search.set_params(cv=splits).fit(many, target).headline_
    assert apart.score == alike.score
    assert apart.standard_error > 2.0 * alike.standard_error


def test_a_scorer_that_does_not_take_the_baseline():
    def own(estimator, rows, target):
        return -float(np.abs(estimator.predict(rows) - target).mean()) * estimator.lam

    def classes(estimator, rows, target):
        return float((estimator.predict(rows) == target).mean()) + 0.0 * estimator.lam

    assert searched(scoring=own).headline_.baseline < 0.0  # a regressor is asked by its own class
    search = searched(machine=KernelClassifier(), labels=y > 150, scoring=classes, cv=3)
    assert np.isnan(search.headline_.baseline)
    assert "lam" in search.headline_.reason
    assert search.headline_.verdict() == ""


def test_a_scorer_that_does_not_take_all_rows():
    def few(estimator, rows, target):
        if len(rows) > 60:
            raise RuntimeError("too many rows")
        return -float(np.abs(estimator.predict(rows) - target).mean())

    with pytest.warns(UserWarning, match="no headline_.*too many rows"):
        search = KernelSearchCV(KernelRegressor(), GRID, cv=5, scoring=few).fit(X, y)
    assert not hasattr(search, "headline_")
    assert search.best_score_ < 0


def test_searches_without_a_headline():
    assert not hasattr(searched(lam_per_target=True), "headline_")
    assert not hasattr(searched(refit=lambda table: 0), "headline_")
    several = searched(scoring={"a": "r2", "b": ROOT}, refit="b", keep_heldout="none").headline_
    assert several.score < -1.0


def test_several_targets_and_weights_of_rows():
    both, weight = np.column_stack([y, -2 * y]), np.linspace(0.5, 2.0, y.size)
    search = KernelSearchCV(KernelRegressor(), GRID, cv=5, aggregate="pooled")
    search.fit(X, both, sample_weight=weight)
    found = search.headline_
    assert found.score == pytest.approx(search.best_score_, rel=1e-6)
    assert found.interval[0] < found.score < 1.0


def test_the_kind_of_a_score():
    from sklearn.metrics import get_scorer

    kinds = {"r2": "explained", "accuracy": "share", "neg_log_loss": "error", "roc_auc": "share"}
    for name, kind in kinds.items():
        assert kind_of(get_scorer(name), classifier=True) == kind
    assert kind_of(make_scorer(lambda a, b: 0.0), classifier=True) == "plain"
    assert searched(machine=KernelClassifier(), labels=y > 150).headline_.interval[1] < 1.0


def test_intervals():
    low, high = score_interval("share", 0.5, 0.05, 10**6)
    assert (low + high) / 2 == pytest.approx(0.5)
    assert high - low == pytest.approx(2 * 1.96 * 0.05, rel=0.03)
    low, high = score_interval("explained", 0.9, 0.01, 10**6, optimism=0.02)
    assert (1 - low) * (1 - high) == pytest.approx(0.12**2)
    assert score_interval("plain", 2.0, 1.0, 10**6) == pytest.approx((0.04, 3.96), abs=1e-3)
    assert score_interval("error", 0.0, 0.0, 10) == (0.0, 0.0)
    assert np.isnan(score_interval("plain", np.nan, 1.0, 10)).all()
    assert inflation(100, 90.0) == pytest.approx(1 + 10 / 9)  # ten folds
    narrow, wide = (
        score_interval("plain", 0.0, 1.0, 100, factor=factor)[1] for factor in (1.0, 4.0)
    )
    assert wide == pytest.approx(2 * narrow)


@pytest.mark.parametrize("loss", ["squared", "log"])
def test_held_out_answers(loss):
    Z, three = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[three]
    search = KernelSearchCV(KernelClassifier(loss=loss), {"lam": [1e-3]}, cv=KFold(3, shuffle=True))
    held = search.fit(Z, names).heldout_
    np.testing.assert_array_equal(
        held.labels, np.array(["a", "b", "c"])[held.predictions.argmax(1)]
    )
    if loss == "squared":
        with pytest.raises(ValueError, match=r"search\.calibrate"):
            _ = held.proba
        return
    np.testing.assert_allclose(held.proba.sum(axis=1), 1.0)
    gamma = {"gamma": 1.0 / (4 * Z.var())}  # that of all rows, as in the search
    machine = search.best_estimator_.set_params(**gamma)
    expected = cross_val_predict(machine, Z, names, cv=list(held.folds), method="predict_proba")
    np.testing.assert_allclose(held.proba, expected, atol=1e-6)


def test_rows_that_no_split_tests_have_no_label():
    labels = y > 150
    half = [(np.arange(75), np.arange(75, 150))]
    held = searched(machine=KernelClassifier(loss="log"), labels=labels, cv=half).heldout_
    assert held.labels.mask.tolist() == [True] * 75 + [False] * 75
    assert np.isnan(held.proba[:75]).all()
    assert np.isfinite(held.proba[75:]).all()
    regression = searched().heldout_
    for name in ("labels", "proba"):
        with pytest.raises(ValueError, match="for classifiers"):
            getattr(regression, name)
