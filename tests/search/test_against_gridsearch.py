"""The search against GridSearchCV, which refits every split: the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification, make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV

N = 24
GRID = [
    {"gamma": [0.3, 2.0], "lam": [1e-3, 1.0, 1e-1]},
    {
        "kernel": ["poly"],
        "kernel__degree": [2],
        "gamma": [0.5],
        "lam": [1e-2],
        "fit_intercept": [False],
    },
]
ERROR = "neg_mean_squared_error"

X, y = make_friedman1(N, random_state=0)
labels = make_classification(N, 10, n_informative=6, n_classes=3, random_state=1)
weights = np.random.default_rng(2).uniform(0.2, 3.0, N)
groups = np.random.default_rng(3).integers(0, 6, N)


def split_scores(search, metric="score"):
    table = search.cv_results_
    return np.array([table[f"split{k}_test_{metric}"] for k in range(search.n_splits_)])


def assert_same(ours, theirs, metrics=("score",), rtol=1e-8):
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for metric in metrics:
        np.testing.assert_allclose(
            split_scores(ours, metric), split_scores(theirs, metric), rtol=rtol, atol=1e-10
        )
        for column in ("mean", "std"):
            key = f"{column}_test_{metric}"
            np.testing.assert_allclose(
                ours.cv_results_[key], theirs.cv_results_[key], rtol=rtol, atol=1e-10
            )
    missing = set(theirs.cv_results_) - set(ours.cv_results_)
    assert not missing


GAMMAS, LAMS = [0.1, 1.0], [1e-3, 1e-1, 10.0]
RIDGE_SPLITTERS = [KFold(5), KFold(7, shuffle=True, random_state=0), LeaveOneOut()]


@pytest.fixture(scope="module", params=RIDGE_SPLITTERS, ids=str)
def of_kernel_ridge(request):
    """The search of scikit-learn's kernel ridge regression, by one of the splitters."""
    grid = {"gamma": GAMMAS, "alpha": LAMS}
    return GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=request.param, scoring=ERROR).fit(X, y)


@pytest.mark.parametrize("method", ["block", "eigen", "refit", "auto"])
def test_split_scores_equal_kernel_ridge(of_kernel_ridge, method):
    theirs = of_kernel_ridge
    ours = KernelSearchCV(
        KernelRegressor(scaling="total", fit_intercept=False),
        {"gamma": GAMMAS, "lam": LAMS},
        cv=theirs.cv,
        scoring=ERROR,
        method=method,
    ).fit(X, y)
    at = {(p["gamma"], p["alpha"]): i for i, p in enumerate(theirs.cv_results_["params"])}
    rows = [at[p["gamma"], p["lam"]] for p in ours.cv_results_["params"]]
    np.testing.assert_allclose(split_scores(ours), split_scores(theirs)[:, rows], rtol=1e-8)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7)
    assert ours.cv_results_["exact"].all()


SPLITTERS = [
    KFold(5),
    KFold(5, shuffle=True, random_state=1),
    RepeatedKFold(n_splits=4, n_repeats=2, random_state=0),
    ShuffleSplit(4, test_size=0.3, train_size=0.5, random_state=0),
    GroupKFold(3),
    StratifiedKFold(4),
    TimeSeriesSplit(4),
    TimeSeriesSplit(3, gap=2),
    LeaveOneOut(),
    PredefinedSplit(np.where(np.arange(N) < 5, -1, np.arange(N) % 4)),
    [(np.arange(0, 14), np.arange(10, N))],
    2,
]


#: splits of every kind, with and without weights where that makes a difference to the methods
CASES = [(cv, place % 2 == 0) for place, cv in enumerate(SPLITTERS)]
CASES += [(cv, place % 2 == 1) for place, cv in enumerate(SPLITTERS) if not place % 3]


@pytest.mark.parametrize(
    ("cv", "weighted"), CASES, ids=lambda one: one if isinstance(one, bool) else type(one).__name__
)
def test_every_splitter_equals_honest_refits(cv, weighted):
    target = labels[1] if isinstance(cv, StratifiedKFold) else y
    params = {"groups": groups} if isinstance(cv, GroupKFold) else {}
    params |= {"sample_weight": weights} if weighted else {}
    make = {"cv": cv, "scoring": ERROR}
    ours = KernelSearchCV(KernelRegressor(), GRID, **make).fit(X, target, **params)
    theirs = GridSearchCV(KernelRegressor(), GRID, **make).fit(X, target, **params)
    assert_same(ours, theirs)
    assert ours.best_params_ == theirs.best_params_
    assert ours.best_score_ == pytest.approx(theirs.best_score_, rel=1e-8)
    np.testing.assert_array_equal(
        ours.cv_results_["rank_test_score"], theirs.cv_results_["rank_test_score"]
    )


@pytest.fixture(scope="module")
def of_many_machines():
    """A grid of machines that share kernels, by refits."""
    grid = {
        "kernel": ["rbf", "linear", "laplacian", "poly"],
        "gamma": [0.4],
        "fit_intercept": [True, False],
        "scaling": ["mean", "total"],
        "lam": [1e-2, 1.0],
    }
    cv = KFold(4, shuffle=True, random_state=0)
    return GridSearchCV(KernelRegressor(), grid, cv=cv).fit(X, y)


@pytest.mark.parametrize(("method", "n_jobs"), [("block", None), ("eigen", None), ("auto", 2)])
def test_machines_that_share_a_kernel_do_not_disturb_each_other(of_many_machines, method, n_jobs):
    theirs = of_many_machines
    ours = KernelSearchCV(
        KernelRegressor(), theirs.param_grid, cv=theirs.cv, method=method, n_jobs=n_jobs
    )
    assert_same(ours.fit(X, y), theirs)


def test_leave_two_out():
    few = slice(0, 7)
    make = {"cv": LeavePOut(2), "scoring": ERROR}
    ours = KernelSearchCV(KernelRegressor(), GRID, **make).fit(X[few], y[few])
    theirs = GridSearchCV(KernelRegressor(), GRID, **make).fit(X[few], y[few])
    assert_same(ours, theirs)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared", "log"])
def test_classifiers(classes, loss):
    Z, code = labels
    names = np.array(["ash", "birch", "cedar"])[np.where(code < classes, code, 0)]
    scoring = ["accuracy", "f1_macro", "balanced_accuracy"]
    scoring += ["neg_log_loss"] if loss == "log" else []
    scoring += ["roc_auc"] if classes == 2 else []
    make = {"cv": StratifiedKFold(3), "scoring": scoring, "refit": "accuracy"}
    grid = {"gamma": [0.05, 0.3], "lam": [1e-3, 1e-1]}
    method = "refit" if loss == "log" else "auto"
    ours = KernelSearchCV(KernelClassifier(loss=loss), grid, method=method, **make).fit(Z, names)
    theirs = GridSearchCV(KernelClassifier(loss=loss), grid, **make).fit(Z, names)
    assert_same(ours, theirs, scoring, rtol=1e-6)
    np.testing.assert_array_equal(ours.predict(Z), theirs.predict(Z))
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)


def test_precomputed_kernel():
    K = rbf_kernel(X, gamma=0.5)
    cv = KFold(4, shuffle=True, random_state=0)
    machine = KernelRegressor(kernel="precomputed")
    ours = KernelSearchCV(machine, {"lam": [1e-3, 1e-1]}, cv=cv).fit(K, y)
    theirs = GridSearchCV(machine, {"lam": [1e-3, 1e-1]}, cv=cv).fit(K, y)
    assert_same(ours, theirs)
    np.testing.assert_allclose(ours.predict(K), theirs.predict(K))


def test_sparse_rows():
    cv = KFold(4, shuffle=True, random_state=0)
    ours = KernelSearchCV(KernelRegressor(), GRID, cv=cv).fit(sp.csr_matrix(X), y)
    assert_same(ours, KernelSearchCV(KernelRegressor(), GRID, cv=cv).fit(X, y))


@pytest.mark.parametrize("scoring", [None, "neg_root_mean_squared_error", "explained_variance"])
def test_several_targets(scoring):
    Y = np.column_stack([y, np.sin(y), X[:, 0]])
    make = {"cv": KFold(4, shuffle=True, random_state=5), "scoring": scoring}
    ours = KernelSearchCV(KernelRegressor(), GRID, **make).fit(X, Y)
    theirs = GridSearchCV(KernelRegressor(), GRID, **make).fit(X, Y)
    assert_same(ours, theirs)
    assert ours.heldout_.predictions.shape == Y.shape


def test_heldout_predictions_are_in_the_callers_order():
    cv = KFold(4, shuffle=True, random_state=5)
    search = KernelSearchCV(KernelRegressor(), {"gamma": [0.5], "lam": [1e-2]}, cv=cv).fit(X, y)
    honest = np.empty(N)
    for train, test in cv.split(X):
        honest[test] = KernelRegressor(gamma=0.5, lam=1e-2).fit(X[train], y[train]).predict(X[test])
    np.testing.assert_allclose(search.heldout_.predictions, honest, rtol=1e-9)
    for (_, test), values in zip(cv.split(X), search.heldout_.by_fold, strict=True):
        np.testing.assert_allclose(values, honest[test], rtol=1e-9)


def test_weights_of_zero_leave_rows_out_of_training():
    zero = weights.copy()
    zero[::5] = 0.0
    make = {"cv": KFold(4), "scoring": ERROR}
    ours = KernelSearchCV(KernelRegressor(), GRID, **make).fit(X, y, sample_weight=zero)
    theirs = GridSearchCV(KernelRegressor(), GRID, **make).fit(X, y, sample_weight=zero)
    assert_same(ours, theirs)
