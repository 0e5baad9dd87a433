"""From split scores to a winner."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import explained_variance_score, mean_absolute_error, r2_score
from sklearn.model_selection import KFold, LeaveOneOut, RepeatedKFold

from onefit import KernelRegressor, KernelSearchCV
from onefit.scoring import one_standard_error
from onefit.scoring.aggregate import aggregate, rank, standard_error

X, y = make_friedman1(31, random_state=0)
GRID = {"gamma": [0.1, 1.0], "lam": [1e-4, 1e-2, 1.0]}
SCORES = np.array([[1.0, 2.0, 6.0], [3.0, 3.0, 3.0]])
SIZES = np.array([1, 2, 1])


@pytest.mark.parametrize(
    ("how", "expected"), [("mean", [3.0, 3.0]), ("weighted", [2.75, 3.0]), ("median", [2.0, 3.0])]
)
def test_aggregates(how, expected):
    np.testing.assert_allclose(aggregate(how, SCORES, SIZES), expected)


def test_rank_shares_ties_and_puts_nan_last():
    np.testing.assert_array_equal(rank(np.array([1.0, 3.0, np.nan, 3.0])), [3, 1, 4, 1])
    np.testing.assert_array_equal(rank(np.full(2, np.nan)), [1, 1])


def test_standard_error():
    np.testing.assert_allclose(standard_error(SCORES), [np.sqrt(7.0 / 3.0), 0.0])


def test_one_standard_error_takes_the_largest_lam_then_the_smallest_gamma():
    table = {
        "mean_test_score": np.array([5.0, 4.5, 4.4, 4.4, 4.4, 4.4, 3.0, np.nan]),
        "se_test_score": np.full(8, 0.7),
        "params": [
            {"lam": 1.0, "gamma": 1.0}, {"lam": 2.0, "gamma": 1.0}, {"lam": 3.0, "gamma": 2.0},
            {"lam": 3.0, "gamma": np.array([0.5, 1.5])}, {"lam": 3.0, "gamma": "scale"},
            {"lam": 3.0, "gamma": 1.0}, {"lam": 9.0, "gamma": 1.0}, {"lam": 9.0},
        ],
    }  # fmt: skip
    assert one_standard_error(table) == 3
    assert one_standard_error(table | {"se_test_score": np.zeros(8)}) == 0
    table["params"] = [{"svr__lam": one["lam"], "pca__n": 9} for one in table["params"]]
    assert one_standard_error(table) == 2
    table["median_test_score"] = np.arange(8.0)
    assert one_standard_error(table) == 7
    with pytest.raises(ValueError, match=r"no scores of metric='r2'.*partial"):
        one_standard_error(table, metric="r2")


@pytest.mark.parametrize("cv", [KFold(4), RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)])
def test_weighted_and_median_of_a_search(cv):
    for how in ("weighted", "median"):
        search = KernelSearchCV(KernelRegressor(), GRID, cv=cv, aggregate=how).fit(X, y)
        table, k = search.cv_results_, search.n_splits_
        splits = np.array([table[f"split{i}_test_score"] for i in range(k)])
        sizes = [test.size for _, test in cv.split(X)]
        expected = np.median(splits, 0) if how == "median" else np.average(splits, 0, weights=sizes)
        np.testing.assert_allclose(table[f"{how}_test_score"], expected)
        np.testing.assert_allclose(table["mean_test_score"], splits.mean(axis=0))
        assert search.best_index_ == expected.argmax()
        assert search.best_score_ == pytest.approx(expected.max())
        assert table["rank_test_score"][search.best_index_] == 1


POOLED = {
    "r2": r2_score,
    "neg_mean_absolute_error": lambda a, b: -mean_absolute_error(a, b),
    "explained_variance": explained_variance_score,
}


@pytest.mark.parametrize(
    ("cv", "scoring"),
    [
        (KFold(4, shuffle=True, random_state=1), "r2"),
        (KFold(4, shuffle=True, random_state=1), "neg_mean_absolute_error"),
        (KFold(4, shuffle=True, random_state=1), "explained_variance"),
        (LeaveOneOut(), "r2"),
        (LeaveOneOut(), "neg_mean_absolute_error"),
    ],
)
def test_pooled_is_the_metric_of_all_rows(cv, scoring):
    search = KernelSearchCV(
        KernelRegressor(), GRID, cv=cv, aggregate="pooled", scoring=scoring
    ).fit(X, y)
    expected = [POOLED[scoring](y, held.predictions) for held in map(search.heldout, range(6))]
    np.testing.assert_allclose(search.cv_results_["pooled_test_score"], expected, rtol=1e-10)
    assert search.best_index_ == int(np.argmax(expected))


def test_one_se_of_a_search():
    make = {"cv": KFold(5), "scoring": "neg_mean_squared_error"}
    best = KernelSearchCV(KernelRegressor(), GRID, **make).fit(X, y)
    careful = KernelSearchCV(KernelRegressor(), GRID, refit=one_standard_error, **make).fit(X, y)
    table = best.cv_results_
    splits = np.array([table[f"split{i}_test_score"] for i in range(5)])
    mean, error = splits.mean(axis=0), splits.std(axis=0, ddof=1) / np.sqrt(5)
    near = mean >= mean.max() - error[mean.argmax()]
    lams = np.array([p["lam"] for p in table["params"]])
    assert careful.best_params_["lam"] == lams[near].max()
    assert careful.best_index_ in np.flatnonzero(near)
    assert careful.best_score_ <= best.best_score_


def test_one_se_needs_two_splits():
    search = KernelSearchCV(
        KernelRegressor(), GRID, cv=[(np.arange(20), np.arange(20, 31))], refit=one_standard_error
    )
    with pytest.raises(ValueError, match=r"refit=one_standard_error.*two splits"):
        search.fit(X, y)


def test_one_standard_error_of_one_of_several_metrics():
    make = {"cv": KFold(5), "scoring": ["r2", "neg_mean_absolute_error"]}
    refit = partial(one_standard_error, metric="neg_mean_absolute_error")
    several = KernelSearchCV(KernelRegressor(), GRID, refit=refit, **make).fit(X, y)
    make["scoring"] = "neg_mean_absolute_error"
    alone = KernelSearchCV(KernelRegressor(), GRID, refit=one_standard_error, **make).fit(X, y)
    assert several.best_params_ == alone.best_params_


def test_one_standard_error_is_of_scores_alone():
    search = KernelSearchCV(KernelRegressor(), GRID, refit=one_standard_error, criterion="gcv")
    with pytest.raises(ValueError, match="needs criterion='cv'"):
        search.fit(X, y)


def test_r2_of_leave_one_out_is_refused_with_advice():
    with pytest.raises(ValueError, match=r"undefined on a test set of one row.*pooled"):
        KernelSearchCV(KernelRegressor(), GRID, cv=LeaveOneOut()).fit(X, y)


def test_one_standard_error_reads_gammas_of_the_kernel_alone():
    table = {"mean_test_score": np.zeros(3), "se_test_score": np.ones(3)}
    steps = [
        {"rbf__gamma": g, "svm__gamma": h, "svm__lam": 1.0} for g, h in ((1, 3), (3, 1), (2, 2))
    ]
    assert one_standard_error(table | {"params": steps}) == 1
    kernels = [{"kernel__gamma": gamma} for gamma in (None, 2.0, 1.0)]
    assert one_standard_error(table | {"params": kernels}) == 2
