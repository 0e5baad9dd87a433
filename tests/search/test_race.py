"""Scores as intervals, and races."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold, cross_val_score

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.heldout import Influence

LAMS = np.geomspace(1e-4, 1.0, 6)
GRID = {"gamma": [0.05, 0.5, 5.0], "lam": LAMS}


def data(seed, n=60, classes=2):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    u = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * random.normal(size=n)
    return X, u, np.digitize(u, np.quantile(u, np.arange(1, classes) / classes))


def fitted(loss, X, y, method="exact", grid=GRID, **options):
    kind = KernelRegressor if loss in ("huber", "squared_error") else KernelClassifier
    options = {"cv": 4} | options
    return KernelSearchCV(kind(loss=loss), grid, method=method, **options).fit(X, y)


@pytest.mark.parametrize(
    ("scoring", "aggregate"),
    [
        ("neg_mean_squared_error", "mean"), ("neg_mean_squared_error", "weighted"),
        ("neg_mean_squared_error", "pooled"), ("neg_root_mean_squared_error", "pooled"),
        ("neg_root_mean_squared_error", "median"), ("r2", "pooled"), ("r2", "mean"),
        ("neg_mean_absolute_error", "pooled"), ("neg_mean_absolute_error", "weighted"),
    ],
)  # fmt: skip
def test_intervals_hold_for_refits(scoring, aggregate):
    """A rough series of low order has wide intervals, a limit narrow ones; refits are inside."""
    X, y, _ = data(0)
    options = {"scoring": scoring, "aggregate": aggregate, "cv": KFold(4)}
    honest = fitted("huber", X, y, "refit", **options)
    column = f"{aggregate}_test_score"
    widths = []
    for method in ("limit", "exact"):
        found = fitted("huber", X, y, method, **options)
        low, high = (found.cv_results_[f"{end}_test_score"] for end in ("low", "high"))
        assert (low <= honest.cv_results_[column]).all()
        assert (honest.cv_results_[column] <= high).all()
        assert (low <= found.cv_results_[column]).all()
        widths.append(high - low)
    assert widths[0].max() > 100.0 * widths[1].max()
    assert widths[1].max() < 1e-4


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["smoothed_hinge", "log", "squared"])
def test_intervals_of_error_rates(loss, classes):
    X, _, y = data(1, 80, classes)
    honest = fitted(loss, X, y, "refit")
    found = fitted(loss, X, y, "limit")
    low, high = (found.cv_results_[f"{end}_test_score"] for end in ("low", "high"))
    scores = honest.cv_results_["mean_test_score"]
    assert (low <= scores + 1e-12).all()
    assert (scores <= high + 1e-12).all()
    assert (high <= 1.0).all()
    if loss == "squared":
        np.testing.assert_array_equal(low, high)


def test_a_value_on_the_border_is_in_doubt():
    """All values are zero up to rounding: nothing is known of the labels."""
    X, _, y = data(2)
    found = fitted("squared", X, y, "exact", {"lam": [1e12]}, cv=KFold(3))
    low, high = (found.cv_results_[f"{end}_test_score"][0] for end in ("low", "high"))
    assert low <= found.cv_results_["mean_test_score"][0] <= high


def test_no_bound_is_no_knowledge():
    X, _, y = data(3)
    with pytest.warns(UserWarning, match="have no score"):
        found = fitted("smoothed_hinge", X, y, Influence(order=1))
    table = found.cv_results_
    scored = table["reason"] == ""
    assert (table["low_test_score"][scored] == 0.0).all()
    assert (table["high_test_score"][scored] == 1.0).all()
    assert np.isnan(table["high_test_score"][~scored]).all()


def test_scores_without_intervals():
    X, _, y = data(4)
    found = fitted("smoothed_hinge", X, y, scoring="f1")
    assert "low_test_score" not in found.cv_results_


def test_the_winner_scores_as_refits_do():
    X, _, y = data(7)
    found = fitted("smoothed_hinge", X, y, "race", cv=KFold(4))
    honest = cross_val_score(found.best_estimator_, X, y, cv=KFold(4)).mean()
    assert found.best_score_ == pytest.approx(honest)
    assert found.cv_results_["exact"][found.best_index_]


def long_race(X, y, method="race", **options):
    """A search over rows enough for a first lap, with a bandwidth that sees no neighbours."""
    grid = {"gamma": [0.3, 300.0], "lam": [1e-4, 1e-3, 1e-2]}
    return fitted("smoothed_hinge", X, y, method, grid, refit=False, **options)


def test_candidates_that_lose_on_a_sample_are_left_out():
    X, _, y = data(3, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = long_race(X, y, cv=3)
    table, honest = found.cv_results_, long_race(X, y, "exact", cv=3)
    gone = table["method"] == "left out"
    assert gone[table["param_gamma"] == 300.0].all()
    assert np.isnan(table["mean_test_score"][gone]).all()
    assert all("on a sample of 500 rows it has" in reason for reason in table["reason"][gone])
    assert np.isfinite(table["mean_test_score"][~gone]).all()
    assert found.best_params_ == honest.best_params_
    assert found.best_score_ == honest.best_score_
    assert (long_race(X[:999], y[:999], cv=3).cv_results_["method"] != "left out").all()


def test_a_sample_has_the_weights_and_splits_of_its_rows():
    """Every other row is noise that hardly counts, and would halve the score if it did."""
    X, _, y = data(4, 1200)
    groups, random = np.repeat(np.arange(6), 200), np.random.default_rng(0)
    weight = np.where(np.arange(1200) % 2, 1.0, 1e-12)
    y = np.where(weight == 1.0, y, random.permutation(y))
    options = {"cv": GroupKFold(3), "scoring": "accuracy"}
    grid = {"gamma": [0.3, 300.0], "lam": [1e-4, 1e-3]}
    search = KernelSearchCV(KernelClassifier(), grid, method="race", refit=False, **options)
    table = search.fit(X, y, groups=groups, sample_weight=weight).cv_results_
    gone = table["method"] == "left out"
    np.testing.assert_array_equal(gone, table["param_gamma"] == 300.0)
    best_of_sample = float(table["reason"][gone][0].split()[-1])
    assert best_of_sample == pytest.approx(table["mean_test_score"][~gone].max(), abs=0.05)


def test_a_first_lap_over_a_kernel_matrix():
    X, _, y = data(3, 1000)
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    table = KernelSearchCV(
        KernelClassifier(kernel="precomputed"), {"lam": [1e-4, 1e-3, 1e4]}, cv=3, method="race",
        refit=False,
    ).fit(np.exp(-0.3 * squares), y).cv_results_  # fmt: skip
    np.testing.assert_array_equal(table["method"] == "left out", [False, False, True])


def test_regressions_have_a_first_lap():
    X, u, _ = data(5, 1000)
    grid = {"gamma": [0.3, 300.0], "lam": [1e-4, 1e-3]}
    found = fitted("huber", X, u, "race", grid, cv=3, refit=False)
    gone = found.cv_results_["method"] == "left out"
    np.testing.assert_array_equal(gone, found.cv_results_["param_gamma"] == 300.0)


def test_splits_too_small_for_a_sample_leave_nothing_out():
    """Half of four rows may be one, for which R^2 is undefined."""
    X, u, _ = data(5, 1000)
    grid = {"gamma": [0.3, 300.0], "lam": [1e-3]}
    found = fitted("huber", X, u, "race", grid, cv=KFold(250), refit=False)
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()


def test_a_race_needs_one_score():
    X, u, _ = data(5, 60)
    with pytest.raises(ValueError, match="by one score; name the metric in refit"):
        fitted("huber", X, u, "race", scoring=["r2", "neg_max_error"], refit=False)


def test_a_kernel_without_gamma_races_too():
    """Candidates are evaluated one by one on the sample, where a gamma may do nothing."""
    rows = np.random.default_rng(0).normal(size=(1000, 2))
    labels = (rows[:, 0] * rows[:, 1] > 0.0).astype(int)
    grid = {"kernel": ["rbf", "linear"], "gamma": [0.01, 1.0], "lam": [1e-2]}
    search = KernelSearchCV(KernelClassifier(), grid, cv=3, method="race").fit(rows, labels)
    left = search.cv_results_["method"] == "left out"
    linear = search.cv_results_["param_kernel"] == "linear"
    assert left[linear].all()
    assert search.best_params_["kernel"] == "rbf"
