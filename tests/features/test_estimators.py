"""Machines and searches with features instead of the kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest
from registries import CLASSIFIERS, REGRESSORS, sample
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV, heldout_predict
from onefit.diagnostics import influence
from onefit.features import Fourier, Nystrom
from onefit.search.continuous import Interval
from onefit.uncertainty import predict_interval

MACHINES = [(KernelRegressor, "regression", one) for one in REGRESSORS] + [
    (KernelClassifier, "classification", one) for one in CLASSIFIERS
]


@parametrize_with_checks([KernelClassifier(approximation=Nystrom(30))])
def test_sklearn_compatible(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        KernelRegressor(approximation="nystrom"),
        KernelClassifier(approximation="nystrom", loss="log"),
        KernelRegressor(approximation=Fourier(50), loss="huber"),
    ]
)
def test_others_are_sklearn_compatible(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("kind", "task", "params"), MACHINES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_all_rows_as_landmarks_are_the_whole_machine(kind, task, params, fit_intercept):
    X, y = sample(task, n=60)
    s = np.random.default_rng(0).uniform(0.5, 2.0, 60)
    machine = kind(**params, gamma=0.8, lam=1e-3, fit_intercept=fit_intercept)
    whole = clone(machine).fit(X, y, s)
    small = machine.set_params(approximation="nystrom").fit(X, y, s)
    output = "predict" if task == "regression" else "decision_function"
    found, expected = (getattr(one, output)(X) for one in (small, whole))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not hasattr(small, "X_fit_")
    K = whole.kernel_(X, small.landmarks_)
    np.testing.assert_allclose(
        K @ small.dual_coef_.reshape(K.shape[1], -1) + small.intercept_,
        found.reshape(60, -1),
        atol=1e-6,
    )
    np.testing.assert_array_equal(X[small.landmark_indices_], small.landmarks_)


def test_several_targets_and_classes():
    X, y = sample("classification", n=80, classes=3)
    machine = KernelClassifier(loss="log", approximation=Nystrom(30)).fit(X, y)
    assert machine.decision_function(X).shape == (80, 3)
    np.testing.assert_allclose(machine.predict_proba(X).sum(axis=1), 1.0)
    Y = np.column_stack([X[:, 0], X[:, 1] ** 2])
    found = KernelRegressor(approximation=Nystrom(30)).fit(X, Y)
    assert found.predict(X).shape == (80, 2)
    one = KernelRegressor(approximation=Nystrom(30)).fit(X, Y[:, 1])
    np.testing.assert_allclose(found.predict(X)[:, 1], one.predict(X), atol=1e-10)


def test_the_order_of_chunks_and_the_precision_of_rows():
    X, y = sample("regression", n=100)
    machine = KernelRegressor(approximation=Nystrom(20), gamma=1.0)
    double, single = (
        machine.fit(X, y).predict(X),
        machine.fit(X.astype("f4"), y).predict(X.astype("f4")),
    )
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, double, atol=1e-4)
    sparse = machine.fit(csr_array(X), y).predict(csr_array(X))
    np.testing.assert_allclose(sparse, double, atol=1e-8)


@pytest.fixture(scope="module")
def data():
    X, y = sample("regression", n=150, d=3)
    return X, y


@pytest.fixture(scope="module")
def search(data):
    machine = KernelRegressor(approximation="nystrom", gamma=0.4)
    grid = {"approximation__n_components": [10, 40], "gamma": [0.1, 0.5], "lam": [1e-4, 1e-2, 1.0]}
    cv = KFold(5, shuffle=True, random_state=0)
    return KernelSearchCV(machine, grid, cv=cv).fit(*data)


def test_a_search_over_features(search, data):
    X, y = data
    assert search.cv_results_["exact"].all()
    assert set(search.cv_results_["method"]) == {"gram"}
    size = search.best_estimator_.landmarks_.shape[0]
    assert size == search.best_params_["approximation__n_components"]
    for i in (0, 7, 11):
        machine = clone(search.estimator).set_params(**search.cv_results_["params"][i])
        held = heldout_predict(machine, X, y, cv=search.cv)
        np.testing.assert_allclose(held.predictions, search.heldout(i).predictions, atol=1e-10)
    assert "40 features" in search.explain(X, y)


@pytest.mark.parametrize("keep", [False, True])
def test_held_out_values_are_those_of_refits(data, keep):
    """Of an estimator that is fitted to the training rows, with the landmarks that it may keep."""
    X, y = data
    machine = KernelRegressor(approximation=Nystrom(30, keep_landmarks=keep), gamma=0.4, lam=1e-3)
    whole = clone(machine).fit(X, y)
    cv = KFold(4, shuffle=True, random_state=1)
    held = heldout_predict(machine, X, y, cv=cv).predictions
    kernel = whole.kernel_
    for train, test in cv.split(X):
        seen = whole.landmark_indices_ if keep else np.intersect1d(whole.landmark_indices_, train)
        K_nz, K_zz = kernel(X, X[seen]), kernel(X[seen])
        K = K_nz @ np.linalg.solve(K_zz, K_nz.T)
        fitted = KernelRegressor(kernel="precomputed", lam=1e-3).fit(
            K[np.ix_(train, train)], y[train]
        )
        np.testing.assert_allclose(held[test], fitted.predict(K[np.ix_(test, train)]), atol=1e-6)


@pytest.mark.parametrize("params", CLASSIFIERS[1:], ids=lambda p: str(p["loss"]))
def test_searches_of_other_losses(params):
    X, y = sample("classification", n=90, d=3)
    machine = KernelClassifier(**params, approximation=Fourier(20), gamma=0.3)
    grid = {"lam": [1e-3, 1e-2]}
    exact = KernelSearchCV(machine, grid, cv=3, scoring="accuracy").fit(X, y)
    assert exact.cv_results_["exact"].all()
    assert set(exact.cv_results_["method"]) == {"exact"}
    limit = KernelSearchCV(machine, grid, cv=3, method="limit").fit(X, y)
    assert set(limit.cv_results_["method"]) == {"limit"}
    assert (limit.cv_results_["error"] >= exact.cv_results_["error"]).all()


def test_lam_by_an_interval(data):
    machine = KernelRegressor(approximation=Nystrom(20), gamma=0.4)
    found = KernelSearchCV(machine, {"lam": Interval(1e-6, 1.0)}, cv=3).fit(*data)
    coarse = KernelSearchCV(machine, {"lam": np.logspace(-6, 0, 4)}, cv=3).fit(*data)
    assert found.best_score_ >= coarse.best_score_


@pytest.mark.slow
def test_processes(data):
    machine = KernelRegressor(approximation=Nystrom(20), gamma=0.4)
    grid = {"gamma": [0.1, 0.4], "lam": [1e-3, 1e-2]}
    one, two = (KernelSearchCV(machine, grid, cv=3, n_jobs=j).fit(*data) for j in (1, 2))
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"], atol=1e-12
    )


@pytest.mark.parametrize("criterion", ["gcv", "cv_hat", "loo", "influence_loo"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_criteria_are_those_of_the_kernel_matrix_of_the_features(data, criterion, fit_intercept):
    X, y = data
    s = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    grid = {"lam": [1e-4, 1e-2]}
    machine = KernelRegressor(
        approximation=Nystrom(20, keep_landmarks=True), gamma=0.4, fit_intercept=fit_intercept,
    )  # fmt: skip
    found = KernelSearchCV(machine, grid, criterion=criterion, cv=3)
    found.fit(X, y, sample_weight=s)
    Phi = clone(machine).fit(X, y).feature_map_.apply(X)
    whole = KernelRegressor(kernel="precomputed", fit_intercept=fit_intercept)
    expected = KernelSearchCV(whole, grid, criterion=criterion, cv=3)
    expected.fit(Phi @ Phi.T, y, sample_weight=s)
    np.testing.assert_allclose(
        found.cv_results_["criterion"], expected.cv_results_["criterion"], rtol=1e-7
    )


def test_leave_one_out_without_peeking(data):
    X, y = data[0][:60], data[1][:60]
    machine = KernelRegressor(approximation=Nystrom(25), gamma=0.4, lam=1e-3)
    scoring = "neg_mean_squared_error"
    found = KernelSearchCV(machine, {"lam": [1e-3]}, cv=LeaveOneOut(), scoring=scoring).fit(X, y)
    by_one = [(np.delete(np.arange(60), i), np.array([i])) for i in range(15)]
    some = heldout_predict(machine, X, y, cv=by_one)
    np.testing.assert_allclose(found.heldout_.predictions[:15], some.predictions[:15], atol=1e-9)
    loo = KernelSearchCV(machine, {"lam": [1e-3]}, criterion="loo", scoring=scoring).fit(X, y)
    np.testing.assert_allclose(loo.cv_results_["criterion"][0], -found.best_score_, rtol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_intervals(data, loss):
    X, y = data
    machine = KernelRegressor(loss=loss, approximation=Nystrom(500), gamma=0.4, lam=1e-3)
    whole = clone(machine).set_params(approximation=None)
    cv = KFold(5)
    found, expected = (
        predict_interval(one, X, y, X[:7] + 0.1, cv=cv)
        for one in (machine.set_params(approximation__keep_landmarks=True), whole)
    )
    for name in ("prediction", "lower", "upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5)
    with pytest.raises(ValueError, match="use method='cv\\+'"):
        predict_interval(machine, X, y, X[:3], method="jackknife+")


def test_splits_that_overlap(data):
    machine = KernelRegressor(approximation=Nystrom(20), gamma=0.4)
    cv = ShuffleSplit(3, random_state=0)
    found = KernelSearchCV(machine, {"lam": [1e-3, 1e-1]}, cv=cv).fit(*data)
    assert found.cv_results_["exact"].all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "kernel_stability"}, "'kernel_stability' needs the whole kernel matrix"),
        ({"criterion": "bayes_loo"}, "'bayes_loo' needs the whole kernel matrix"),
        ({"method": "eigen"}, "method 'eigen' works on the whole kernel matrix"),
        ({"method": "iterative"}, "method 'iterative' works on the whole kernel matrix"),
        ({"method": "race"}, "method='race' works on the whole kernel matrix"),
    ],
)
def test_what_needs_the_whole_matrix_is_refused_by_name(data, options, message):
    machine = KernelRegressor(approximation=Nystrom(20))
    with pytest.raises(ValueError, match=message):
        KernelSearchCV(machine, {"lam": [1e-3]}, **options).fit(*data)


def test_other_refusals(data):
    X, y = data
    machine = KernelRegressor(approximation=Nystrom(20))
    with pytest.raises(ValueError, match="influence needs the whole kernel matrix"):
        influence(machine, X, y)
    with pytest.raises(ValueError, match="needs a system for every row"):
        KernelSearchCV(
            clone(machine).set_params(loss="huber"), {"lam": [1e-3]}, criterion="loo"
        ).fit(X, y)
    with pytest.raises(ValueError, match="X is the kernel matrix"):
        clone(machine).set_params(kernel="precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="use solver='auto'"):
        clone(machine).set_params(solver="iterative").fit(X, y)
    with pytest.raises(ValueError, match="landmarks='kmeans' is not known"):
        clone(machine).set_params(approximation__landmarks="kmeans")
