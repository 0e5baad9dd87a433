"""The estimators against scikit-learn's, libsvm's and brute force's answers."""

from __future__ import annotations

import naive.losses
import naive.machines
import numpy as np
import pytest
from registries import CLASSIFIERS, REGRESSORS, sample
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, QuantileRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.svm import SVC, SVR

from onefit import KernelClassifier, KernelRegressor
from onefit.losses import EpsilonInsensitive, Expectile, Quantile, SmoothedHinge, get_loss
from onefit.quantiles import neg_pinball_loss

SHARED_KERNELS = [
    ("rbf", {"gamma": 0.7}),
    ("laplacian", {"gamma": 0.3}),
    ("linear", {}),
    ("poly", {"gamma": 0.4, "degree": 2, "coef0": 1.5}),
    ("precomputed", {}),
]
NAMES = {"poly": "polynomial"}


@pytest.mark.parametrize(("kernel", "parameters"), SHARED_KERNELS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("lam", [1e-3, 1.0, 50.0])
def test_kernel_ridge(kernel, parameters, weighted, targets, lam):
    X, y = sample("regression", n=40, d=3)
    new, _ = sample("regression", n=15, d=3, seed=9)
    if targets > 1:
        y = np.column_stack([y * (j + 1) + j for j in range(targets)])
    s = np.random.default_rng(2).uniform(0.1, 3.0, 40) if weighted else None
    if kernel == "precomputed":
        X, new = rbf_kernel(X), rbf_kernel(new, X)
    own = {"gamma": parameters["gamma"]} if "gamma" in parameters else {}
    shape = {f"kernel__{name}": one for name, one in parameters.items() if name != "gamma"}
    ours = KernelRegressor(kernel=kernel, lam=lam, fit_intercept=False, scaling="total", **own)
    ours.set_params(**shape).fit(X, y, s)
    theirs = KernelRidge(alpha=lam, kernel=NAMES.get(kernel, kernel), **parameters).fit(X, y, s)
    size = np.abs(theirs.dual_coef_).max()
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert ours.dual_coef_ == pytest.approx(theirs.dual_coef_, rel=1e-8, abs=1e-8 * size)
    assert ours.predict(new) == pytest.approx(theirs.predict(new), rel=1e-8, abs=1e-8)


def test_mean_scaling_is_total_scaling_with_lam_times_the_weight():
    X, y = sample("regression")
    s = np.random.default_rng(2).uniform(0.1, 3.0, 30)
    for loss in REGRESSORS:
        mean = KernelRegressor(lam=0.01, **loss).fit(X, y, s)
        total = KernelRegressor(lam=0.01 * s.sum(), scaling="total", **loss).fit(X, y, s)
        assert mean.predict(X) == pytest.approx(total.predict(X), abs=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_ls_svm_is_its_bordered_system(weighted, scaling):
    X, y = sample("regression", n=25)
    _, labels = sample("classification", n=25)
    s = np.random.default_rng(2).uniform(0.1, 3.0, 25) if weighted else np.ones(25)
    K = rbf_kernel(X, gamma=0.5)
    for make, target in [(KernelRegressor, y), (KernelClassifier, labels)]:
        model = make(lam=0.02, gamma=0.5, scaling=scaling).fit(X, target, s)
        a, b = naive.machines.least_squares(K, target, s, 0.02, True, scaling)
        assert model.dual_coef_.ravel() == pytest.approx(a, rel=1e-8, abs=1e-9)
        assert model.intercept_ == pytest.approx(b, rel=1e-8, abs=1e-9)


def svm_risk(K, y, lam, a, b):
    """R(f) of the 2016 paper: mean hinge + lam ||f||^2."""
    u = K @ a + b
    return naive.machines.objective(
        naive.losses.hinge, y, np.ones(len(y)), "mean", lam, u, a @ K @ a
    )


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("lam", [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0])
def test_the_smoothed_hinge_is_within_half_delta_of_libsvm(lam, seed):
    """Liu and Liao 2016, Theorem 1: R(f_svm) <= R(f_delta) <= R(f_svm) + delta/2."""
    X, y = sample("classification", n=60, seed=seed)
    K, n = rbf_kernel(X, gamma=0.5), 60
    svc = SVC(kernel="precomputed", C=1.0 / (2.0 * n * lam), tol=1e-8).fit(K, y)
    a = np.zeros(n)
    a[svc.support_] = svc.dual_coef_[0]
    lowest = svm_risk(K, y, lam, a, svc.intercept_[0])
    for delta in (0.1, 1e-2, 1e-3):
        model = KernelClassifier(SmoothedHinge(delta), "precomputed", lam=lam).fit(K, y)
        reached = svm_risk(K, y, lam, model.dual_coef_[:, 0], model.intercept_[0])
        assert lowest - 1e-7 <= reached <= lowest + delta / 2
    assert (model.predict(K) == svc.predict(K)).mean() >= 0.98


def test_log_loss_is_logistic_regression_on_a_linear_kernel():
    """||f||^2 = |w|^2 for the linear kernel; scikit-learn minimises C sum V + |w|^2 / 2."""
    X, y = sample("classification", n=80, d=3)
    new, _ = sample("classification", n=20, d=3, seed=4)
    for lam in (1e-2, 1.0, 30.0):
        ours = KernelClassifier("log", "linear", lam=lam, scaling="total").fit(X, y)
        theirs = LogisticRegression(C=1.0 / (2.0 * lam), tol=1e-12, max_iter=10000).fit(X, y)
        assert (X.T @ ours.dual_coef_).ravel() == pytest.approx(theirs.coef_[0], rel=1e-5, abs=1e-6)
        assert ours.intercept_ == pytest.approx(theirs.intercept_, rel=1e-5, abs=1e-6)
        assert ours.predict_proba(new) == pytest.approx(theirs.predict_proba(new), abs=1e-6)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("parameters", [*REGRESSORS, *CLASSIFIERS], ids=lambda p: str(p["loss"]))
def test_brute_force_finds_nothing_lower(parameters, fit_intercept):
    task = "regression" if parameters in REGRESSORS else "classification"
    make = KernelRegressor if task == "regression" else KernelClassifier
    X, y = sample(task, n=9)
    loss = get_loss(parameters["loss"], task)
    model = make(**parameters, kernel="rbf", gamma=0.5, lam=0.05, fit_intercept=fit_intercept)
    a = model.fit(X, y).dual_coef_.ravel()
    K, s = rbf_kernel(X, gamma=0.5), np.ones(9)

    def value(target, u):
        return naive.losses.value(loss, target, u)

    u = K @ a + np.ravel(model.intercept_)[0]
    ours = naive.machines.objective(value, y, s, "mean", 0.05, u, a @ K @ a)
    lowest, _ = naive.machines.brute_force(K, y, s, value, 0.05, fit_intercept)
    assert ours <= lowest + 1e-12
    assert ours == pytest.approx(lowest, rel=1e-6)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly"])
def test_named_kernels_are_scikit_learns(kernel):
    X, y = sample("regression", n=20)
    name = NAMES.get(kernel, kernel)
    K = pairwise_kernels(X, metric=name, filter_params=True, gamma=0.4, degree=3, coef0=1)
    gamma = {} if kernel == "linear" else {"gamma": 0.4}
    direct = KernelRegressor("huber", kernel, **gamma, lam=0.01).fit(X, y)
    given = KernelRegressor("huber", "precomputed", lam=0.01).fit(K, y)
    assert direct.predict(X) == pytest.approx(given.predict(K), abs=1e-8)


def svr_risk(K, y, lam, epsilon, a, b):
    """Mean epsilon-insensitive loss + lam ||f||^2."""
    u = K @ a + b
    return naive.machines.objective(
        lambda target, v: naive.losses.tube(target, v, epsilon),
        y, np.ones(len(y)), "mean", lam, u, a @ K @ a,
    )  # fmt: skip


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("lam", [1e-4, 1e-2, 1.0])
def test_the_rounded_tube_is_within_half_delta_of_libsvm(lam, epsilon):
    X, y = sample("regression", n=60)
    K, n = rbf_kernel(X, gamma=0.5), 60
    svr = SVR(kernel="precomputed", C=1.0 / (2.0 * n * lam), epsilon=epsilon, tol=1e-8).fit(K, y)
    a = np.zeros(n)
    a[svr.support_] = svr.dual_coef_[0]
    lowest = svr_risk(K, y, lam, epsilon, a, svr.intercept_[0])
    for delta in (0.1, 1e-2, 1e-4):
        model = KernelRegressor(
            EpsilonInsensitive(epsilon=epsilon, delta=delta), "precomputed", lam=lam
        ).fit(K, y)
        reached = svr_risk(K, y, lam, epsilon, model.dual_coef_, model.intercept_)
        assert lowest - 1e-7 <= reached <= lowest + delta / 2
    assert model.predict(K) == pytest.approx(svr.predict(K), abs=0.02)
    assert np.isin(svr.support_, model.support_).mean() > 0.95


def test_an_expectile_of_one_half_is_kernel_ridge():
    X, y = sample("regression")
    half = KernelRegressor(Expectile(0.5), lam=0.01).fit(X, y)
    assert half.predict(X) == pytest.approx(KernelRegressor(lam=0.01).fit(X, y).predict(X))


def test_quantiles_of_a_linear_kernel_are_scikit_learns():
    """With a negligible penalty, the hyperplane of QuantileRegressor."""
    X, y = sample("regression", n=80, d=2)
    for level in (0.2, 0.5, 0.9):
        theirs = QuantileRegressor(quantile=level, alpha=0.0).fit(X, y)
        ours = KernelRegressor(Quantile(level, delta=1e-5), "linear", lam=1e-7).fit(X, y)
        best, found = (mean_pinball_loss(y, m.predict(X), alpha=level) for m in (theirs, ours))
        assert best - 1e-9 <= found <= best + 1e-5


@pytest.mark.parametrize(
    "loss", ["squared", "huber", Quantile([0.2, 0.7]), Expectile([0.2, 0.7])], ids=str
)
def test_a_weight_in_a_score_is_a_number_of_equal_rows(loss):
    X, y = sample("regression", n=40)
    times = np.arange(40) % 4
    model = KernelRegressor(loss, gamma=0.5, lam=0.1).fit(X, y)
    found = model.score(X, y, sample_weight=times)
    assert found == pytest.approx(model.score(np.repeat(X, times, axis=0), np.repeat(y, times)))
    assert found != pytest.approx(model.score(X, y))
    if isinstance(loss, Quantile):
        assert neg_pinball_loss(model, X, y, sample_weight=times) == pytest.approx(found)
