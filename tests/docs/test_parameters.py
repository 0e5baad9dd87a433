"""The conversions of docs/coming_from.md, row by row, against the libraries that they name."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.kernels import Polynomial
from onefit.losses import EpsilonInsensitive, EpsilonQuadratic, Huber, SmoothedHinge

rng = np.random.default_rng(0)
n = 50
X, new = rng.normal(size=(n, 3)), rng.normal(size=(20, 3))
y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=n) + 2.0
labels = np.where(y + 0.5 * rng.normal(size=n) > 2.0, 1, -1)
d2 = ((new[:, None] - X) ** 2).sum(axis=2)
scalings = pytest.mark.parametrize(("scaling", "size"), [("mean", n), ("total", 1)])


def regressor(**parameters):
    return KernelRegressor(**parameters).fit(X, y).predict(new)


def classifier(**parameters):
    return KernelClassifier(**parameters).fit(X, labels).decision_function(new)


@scalings
def test_kernel_ridge_and_ridge_and_lssvm(scaling, size):
    """alpha = Lambda; Suykens's gamma = 1 / Lambda."""
    alpha = 0.7
    common = {"lam": alpha / size, "scaling": scaling}
    theirs = KernelRidge(alpha=alpha, kernel="rbf", gamma=0.5).fit(X, y).predict(new)
    assert regressor(gamma=0.5, fit_intercept=False, **common) == pytest.approx(theirs, rel=1e-9)
    theirs = Ridge(alpha=alpha).fit(X, y).predict(new)
    assert regressor(kernel="linear", **common) == pytest.approx(theirs, rel=1e-9)
    K = rbf_kernel(X, gamma=0.5)
    bordered = np.block([[np.zeros((1, 1)), labels], [labels[:, None], np.eye(n) * alpha]])
    bordered[1:, 1:] += np.outer(labels, labels) * K  # gamma = 1 / alpha
    solution = np.linalg.solve(bordered, np.r_[0.0, np.ones(n)])
    theirs = rbf_kernel(new, X, gamma=0.5) @ (labels * solution[1:]) + solution[0]
    assert classifier(gamma=0.5, **common) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize(
    ("kernel", "theirs", "gamma"),
    [
        ("rbf", RBF(1.3, "fixed"), 1 / (2 * 1.3**2)),
        ("matern12", Matern(1.3, "fixed", nu=0.5), 1 / 1.3),
        ("matern32", Matern(1.3, "fixed", nu=1.5), 1 / 1.3),
        ("matern52", Matern(1.3, "fixed", nu=2.5), 1 / 1.3),
    ],
)
def test_gaussian_process(kernel, theirs, gamma):
    """alpha / A = Lambda; gamma from the length scale."""
    process = GaussianProcessRegressor(ConstantKernel(4.0, "fixed") * theirs, alpha=0.5).fit(X, y)
    ours = regressor(
        kernel=kernel, gamma=gamma, lam=0.5 / 4.0, scaling="total", fit_intercept=False
    )
    assert ours == pytest.approx(process.predict(new), rel=1e-9)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_himalaya(fit_intercept):
    himalaya = pytest.importorskip("himalaya.kernel_ridge")
    model = himalaya.KernelRidge(
        alpha=0.7, kernel="rbf", kernel_params={"gamma": 0.5}, fit_intercept=fit_intercept
    )
    ours = regressor(gamma=0.5, lam=0.7, scaling="total", fit_intercept=fit_intercept)
    assert ours == pytest.approx(np.ravel(model.fit(X, y).predict(new)), rel=1e-6)


@scalings
def test_svc(scaling, size):
    """C = 1 / (2 Lambda), reached as delta falls."""
    lam = 0.5 / size
    theirs = SVC(gamma=0.5, C=1.0 / (2.0 * lam * size), tol=1e-10).fit(X, labels)
    common = {"gamma": 0.5, "lam": lam, "scaling": scaling}
    gaps = [
        np.abs(
            classifier(loss=SmoothedHinge(delta), **common) - theirs.decision_function(new)
        ).max()
        for delta in (1e-1, 1e-2, 1e-3, 1e-4)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3


@scalings
def test_linear_machines(scaling, size):
    """C = 1 / (2 Lambda) of LogisticRegression, LinearSVC and LinearSVR."""
    lam = 0.6 / size
    C = 1.0 / (2.0 * lam * size)
    common = {"kernel": "linear", "lam": lam, "scaling": scaling}
    theirs = LogisticRegression(C=C, tol=1e-12, max_iter=10000).fit(X, labels)
    assert classifier(loss="log", **common) == pytest.approx(
        theirs.decision_function(new), rel=1e-5, abs=1e-6
    )
    options = {"C": C, "fit_intercept": False, "tol": 1e-10, "max_iter": 20000, "dual": True}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc = LinearSVC(**options).fit(X, labels)
        svr = LinearSVR(epsilon=0.2, loss="squared_epsilon_insensitive", **options).fit(X, y)
    ours = classifier(loss="squared_hinge", fit_intercept=False, **common)
    assert ours == pytest.approx(svc.decision_function(new), rel=1e-6, abs=1e-6)
    ours = regressor(loss=EpsilonQuadratic(0.2), fit_intercept=False, **common)
    assert ours == pytest.approx(svr.predict(new), rel=1e-6, abs=1e-6)


def test_svr_without_a_tube():
    """C = threshold / Lambda, reached as the threshold falls."""
    theirs = SVR(gamma=0.5, C=1.5, epsilon=0.0, tol=1e-10).fit(X, y).predict(new)
    common = {"gamma": 0.5, "scaling": "total"}
    gaps = [
        np.abs(regressor(loss=Huber(t), lam=t / 1.5, **common) - theirs).max()
        for t in (1e-1, 1e-2, 1e-3, 1e-4)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3


@scalings
def test_svr(scaling, size):
    """C = 1 / (2 Lambda), reached as delta falls."""
    theirs = SVR(gamma=0.5, C=1.5, epsilon=0.1, tol=1e-10).fit(X, y).predict(new)
    common = {"gamma": 0.5, "lam": 1 / (3.0 * size), "scaling": scaling}
    gaps = [
        np.abs(regressor(loss=EpsilonInsensitive(0.1, delta), **common) - theirs).max()
        for delta in (1e-1, 1e-2, 1e-3, 1e-4)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-3


def by_hand(K_new, K, Lambda):
    return K_new @ np.linalg.solve(K + Lambda * np.eye(n), y)


@pytest.mark.parametrize(
    ("width", "gamma"),
    [
        (lambda value: value**2, lambda value: 1 / value**2),  # JMLR: sigma
        (lambda value: 2 * value, lambda value: 1 / (2 * value)),  # ICML, ECML: tau; 2016: sigma
    ],
)
def test_the_papers_gaussians_and_mean_scaling(width, gamma):
    value, lam = 1.7, 0.01
    between = ((X[:, None] - X) ** 2).sum(axis=2)
    theirs = by_hand(np.exp(-d2 / width(value)), np.exp(-between / width(value)), n * lam)
    ours = regressor(gamma=gamma(value), lam=lam, fit_intercept=False)
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_the_papers_polynomials_and_coefficients():
    tau, p, lam = 1.5, 2, 0.1
    ours = KernelRegressor(
        kernel=Polynomial(degree=p, coef0=tau), gamma=1, lam=lam, fit_intercept=False
    )
    ours.fit(X, y)
    K = (tau + X @ X.T) ** p
    alpha = np.linalg.solve(K / n + lam * np.eye(n), y)  # JMLR equation 6
    assert ours.dual_coef_ == pytest.approx(alpha / n, rel=1e-9)
    assert polynomial_kernel(X, gamma=1, coef0=tau, degree=p) == pytest.approx(K, rel=1e-12)


def test_total_scaling_gives_every_fold_the_same_alpha():
    grid = [0.1, 1.0]
    folds = KFold(3)
    theirs = GridSearchCV(KernelRidge(kernel="rbf", gamma=0.5), {"alpha": grid}, cv=folds).fit(X, y)
    machine = KernelRegressor(gamma=0.5, scaling="total", fit_intercept=False)
    ours = KernelSearchCV(machine, {"lam": grid}, cv=folds).fit(X, y)
    for k in range(3):
        name = f"split{k}_test_score"
        assert ours.cv_results_[name] == pytest.approx(theirs.cv_results_[name], rel=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "matern32"])
def test_scale_and_auto(kernel):
    v, d = X.var(), X.shape[1]
    others = {"laplacian": 1 / (d * np.sqrt(v)), "matern32": 1 / np.sqrt(d * v)}
    scale = others.get(kernel, 1 / (d * v))
    for word, number in [("scale", scale), ("auto", 1 / d)]:
        assert regressor(kernel=kernel, gamma=word) == pytest.approx(
            regressor(kernel=kernel, gamma=number), rel=1e-9
        )
