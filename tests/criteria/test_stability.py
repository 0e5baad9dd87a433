"""Kernel stability, k-KS, and the guard."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_classification

from onefit import KernelClassifier, KernelRegressor
from onefit.criteria import (
    CrossValidation,
    KernelStability,
    kernel_stability,
    near_identity,
)
from onefit.criteria.stability import smoothed_stability
from onefit.folds import Folds
from onefit.heldout import Influence
from onefit.kernels import Gaussian, Linear, Polynomial
from onefit.losses import Huber, Squared
from onefit.problem import Problem

random = np.random.default_rng(0)


def naive_stability(K):
    """max_i ||K - K^i||_2 by singular values."""
    norms = []
    for i in range(len(K)):
        removed = K.copy()
        removed[i] = removed[:, i] = 0.0
        norms.append(np.linalg.norm(K - removed, 2))
    return max(norms)


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.1), Gaussian(10.0), Linear(), Polynomial(1.0, 1.0, 3)]
)
def test_closed_form(kernel):
    for n, d in ((2, 1), (17, 3), (40, 2)):
        K = kernel(random.normal(size=(n, d)))
        assert kernel_stability(K) == pytest.approx(naive_stability(K), rel=1e-10)


@pytest.mark.parametrize("kernel", [Gaussian(0.1), Gaussian(50.0), Linear(), Polynomial(1.0, 1.0)])
def test_the_smoothed_maximum_and_its_derivative(kernel):
    X, n = random.normal(size=(15, 2)), 15
    K = kernel(X)
    value, left, right = smoothed_stability(K)
    assert kernel_stability(K) <= value <= n ** (1 / 64) * kernel_stability(K)
    change, step = random.normal(size=(n, n)), 1e-6
    change += change.T
    ends = [smoothed_stability(K + h * change)[0] for h in (step, -step)]
    slope = (left * (change @ right)).sum()
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_the_smoothed_maximum_of_nothing():
    value, left, right = smoothed_stability(np.zeros((3, 3)))
    assert value == 0.0
    assert not left.any()
    assert not right.any()


def test_not_square():
    with pytest.raises(ValueError, match=r"shape \(2, 3\)"):
        kernel_stability(np.zeros((2, 3)))


def honest_parts(machine, X, y, folds):
    """CV by refits, and the spectral norm over n, from the paper's definition."""
    codes = np.where(y == 1, 1.0, -1.0)
    means = []
    for train, test in folds:
        u = clone(machine).fit(X[train], y[train]).decision_function(X[test])
        means.append(np.mean((codes[test] - u) ** 2))
    K = Gaussian(machine.gamma)(X)
    return np.mean(means), naive_stability(K) / len(y)


def test_ordering_of_candidates():
    X, y = make_classification(45, n_features=6, n_informative=4, random_state=1)
    folds = Folds.draw(5, X, y, classifier=True)
    etas, naive, fast = np.array([0.25, 1.0, 32.0]), [], []
    for gamma in 2.0 ** np.arange(-7, 4):
        for lam in (1e-3, 1e-1):
            machine = KernelClassifier(gamma=gamma, lam=lam)
            error, stability = honest_parts(machine, X, y, folds)
            naive.append(error + etas * stability)
            problem = clone(machine)._prepare(X, y, None)
            fast.append([KernelStability(eta).at(problem, lam, folds) for eta in etas])
    np.testing.assert_allclose(fast, naive, rtol=1e-8)
    orders = (np.argsort(one, axis=0, kind="stable") for one in (fast, naive))
    np.testing.assert_array_equal(*orders)


def test_approximate_cross_validation_inside(make_problem, folds):
    problem = make_problem(Huber(0.4))
    method = Influence(2)
    second = kernel_stability(problem.K.matrix) / 24
    expected = CrossValidation().at(problem, 0.1, folds, method) + second
    assert KernelStability().at(problem, 0.1, folds, method) == pytest.approx(expected)
    assert abs(KernelStability().at(problem, 0.1, folds) - expected) > 1e-8


def test_rows_of_weight_zero_do_not_enter():
    """Neither the stability nor the guard: 20 far rows would make the kernel near the identity."""
    X = np.linspace(0.0, 1.0, 15)[:, None]
    far = np.concatenate([X, 100.0 * np.arange(1.0, 21.0)[:, None]])
    y = np.append(np.sin(5 * X[:, 0]), np.zeros(20))
    weight = np.repeat([1.0, 0.0], [15, 20])
    splits = [
        (np.setdiff1d(np.arange(15), np.arange(k, 15, 3)), np.arange(k, 15, 3)) for k in range(3)
    ]
    model = KernelRegressor(gamma=3.0, lam=1e-2)
    expected = KernelStability()(model, X, y[:15], cv=splits)
    assert np.isfinite(expected)
    assert KernelStability()(model, far, y, sample_weight=weight, cv=splits) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("eta", [-1.0, np.nan, np.inf, "1", True])
def test_bad_eta(eta):
    with pytest.raises(ValueError, match=r"eta must be .* not negative, got .* 1/4 to 32"):
        KernelStability(eta)


def test_near_identity():
    X = random.normal(size=(60, 4))
    reasons = [near_identity(np.exp(-gamma * cdist(X, X, "sqeuclidean"))) for gamma in (0.1, 1e3)]
    assert reasons[0] == ""
    assert "near the identity" in reasons[1]
    assert "lower gamma" in reasons[1]
    twins = np.concatenate([X, X[:15]])  # a few duplicates do not hide the rest
    assert near_identity(np.exp(-1e3 * cdist(twins, twins, "sqeuclidean")))
    assert near_identity(np.zeros((3, 3))) == ""
    assert near_identity(7.0 * np.eye(3))


def test_squared_is_the_default_loss(make_problem, folds):
    problem = make_problem()
    assert isinstance(problem, Problem)
    assert isinstance(problem.loss, Squared)
    assert KernelStability().at(problem, 0.1, folds) == KernelStability(loss="squared").at(
        problem, 0.1, folds
    )
