"""Metrics from gradients, against gradients by differences."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.utils.estimator_checks import parametrize_with_checks

from onefit import KernelRegressor
from onefit.gradient_metric import LAMS, GradientMetric


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 4))
    return X, np.sin(X[:, 0] + 0.5 * X[:, 1]) + 0.05 * random.normal(size=80)


def test_one_step_is_the_mean_outer_product_of_differences(data):
    X, y = data
    R = GradientMetric(steps=1).fit(X, y).metric_
    Z = X / np.sqrt(2 * X.var(axis=0).sum())
    best = (np.inf,)
    for gamma in (0.2, 0.5, 1.4):  # refit without each row
        for lam in LAMS:
            K = np.pad(np.exp(-gamma * cdist(Z, Z)), (0, 1), constant_values=1.0)
            K[-1, -1] = 0.0  # with the intercept
            errors = []
            for i in range(80):
                rows = np.delete(np.arange(81), i)
                M = K[np.ix_(rows, rows)] + np.diag([79 * lam] * 79 + [0.0])
                fit = np.linalg.solve(M, np.append(np.delete(y, i), 0.0))
                errors.append(K[i, rows] @ fit - y[i])
            best = min(best, (np.mean(np.square(errors)), gamma, lam))
    model = KernelRegressor(kernel="matern12", gamma=best[1], lam=best[2]).fit(Z, y)
    a, step = model.dual_coef_, 1e-6
    M = np.zeros((4, 4))
    for i, z in enumerate(Z):
        others = np.arange(80) != i  # the row itself has no direction

        def value(x, others=others):
            return np.exp(-model.gamma * cdist(x[None], Z[others]))[0] @ a[others]

        shifts = step * np.eye(4)
        gradient = np.array([(value(z + s) - value(z - s)) / (2 * step) for s in shifts])
        M += np.outer(gradient, gradient)
    e, V = np.linalg.eigh(M)
    root = (V * np.sqrt(e)) @ V.T
    wanted = root / np.sqrt(2 * (X @ root).var(axis=0).sum())
    assert pytest.approx(wanted, rel=1e-4, abs=1e-4) == R


def test_finds_the_direction_that_matters(data):
    X, y = data
    e, V = np.linalg.eigh(GradientMetric().fit(X, y).metric_)
    assert e[-1] > 5 * e[-2]
    assert abs(V[:, -1] @ [1.0, 0.5, 0.0, 0.0]) / np.sqrt(1.25) > 0.98


def test_labels_and_constant_columns(data):
    X, y = data
    X = np.column_stack([X, np.ones(len(X))])
    labels = np.array(["a", "b", "c"])[np.digitize(y, [-0.4, 0.4])]
    R = GradientMetric().fit(X, labels).metric_
    assert np.isfinite(R).all()
    assert R[:2, :2].max() > 3 * np.abs(R[2:]).max()
    flat = GradientMetric().fit(np.ones((20, 2)), np.arange(20.0)).transform(np.ones((3, 2)))
    assert np.isfinite(flat).all()


def test_refuses_no_steps(data):
    with pytest.raises(ValueError, match="steps"):
        GradientMetric(steps=0).fit(*data)


@parametrize_with_checks([GradientMetric(steps=1)])
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)
