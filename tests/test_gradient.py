"""Gradients of cross-validation against differences of honest refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from heldout._twins import FORMS, predict, splits, weights
from registries import SCALINGS, sample
from sklearn.model_selection import KFold

from onefit import KernelRegressor
from onefit.folds import Folds, leave_one_out
from onefit.gradient import SmoothedError, cv_gradient
from onefit.heldout import Refit
from onefit.kernels import (
    Gaussian,
    Laplace,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Normalized,
    PerFeature,
    Polynomial,
    WeightedSum,
)
from onefit.losses import (
    EpsilonQuadratic,
    Huber,
    Log,
    Logistic,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from onefit.problem import Problem

N, STEP = 36, 1e-5
X, _ = sample("regression", N, d=3)
LAM = 0.03
FOLDS = Folds.draw(KFold(4, shuffle=True, random_state=0), X)
LOSSES = [Squared(), Huber(0.4), Huber(), EpsilonQuadratic(0.2), Logistic()]
CLASSES = [Squared(), SmoothedHinge(0.3), SquaredHinge(), Log()]


def make(loss, kernel, task="regression", weight="none", q=1, **options):
    _, y = sample(task, N, d=3)
    Y = np.column_stack([np.roll(y, 5 * j) for j in range(q)]).astype(float)
    return Problem(kernel(X), Y, weights(weight, N), loss, **options)


def value(problem, lam, folds, criterion, weights=None):
    """By its definition."""
    held = predict(Refit(), problem, folds, lam)
    weights = np.ones(folds.rows.size) if weights is None else weights
    means = [
        np.average(criterion.value(problem.Y[test], u.reshape(test.size, -1)), axis=0, weights=w)
        for test, u, w in zip(
            folds.test, held.by_fold, np.split(weights, folds.offsets[1:-1]), strict=True
        )
    ]
    return np.mean(means)


def by_lam(problem, folds, criterion, weights=None):
    up, down = (value(problem, LAM * np.exp(h), folds, criterion, weights) for h in (STEP, -STEP))
    return (up - down) / (2 * STEP)


def by_kernel(problem, folds, criterion, kernels):
    """The difference of two kernels, that is, parameters moved by STEP up and down."""
    up, down = (value(replace(problem, K=one(X)), LAM, folds, criterion) for one in kernels)
    return (up - down) / (2 * STEP)


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-8)


@pytest.mark.parametrize(("fit_intercept", "scaling", "weight"), FORMS[:4])
@pytest.mark.parametrize(
    ("loss", "task"),
    [*((loss, "regression") for loss in LOSSES), *((loss, "classification") for loss in CLASSES)],
    ids=repr,
)
def test_lam_and_gamma_of_every_loss(loss, task, fit_intercept, scaling, weight):
    gamma = 0.3
    problem = make(
        loss, Gaussian(gamma), task, weight, fit_intercept=fit_intercept, scaling=scaling
    )
    criterion = Squared() if task == "regression" else Log()
    found = cv_gradient(problem, LAM, FOLDS, criterion)
    assert found.value == pytest.approx(value(problem, LAM, FOLDS, criterion), rel=1e-9)
    assert_close(found.lam, by_lam(problem, FOLDS, criterion))
    pair = [Gaussian(gamma * np.exp(h)) for h in (STEP, -STEP)]
    expected = by_kernel(problem, FOLDS, criterion, pair)
    assert_close(found.kernel(Gaussian(gamma), X)["gamma"], expected)


@pytest.mark.parametrize(
    "kind", [Gaussian, Laplace, Matern12, Matern32, Matern52], ids=lambda kind: kind.__name__
)
def test_one_gamma_and_one_per_feature(kind):
    gammas = np.array([0.2, 0.5, 0.1])
    kernel = PerFeature(kind, gammas)
    found = cv_gradient(make(Squared(), kernel), LAM, FOLDS, Squared()).kernel(kernel, X)["gamma"]
    assert found.shape == (3,)
    for f in range(3):
        moved = [gammas * np.exp(h * (np.arange(3) == f)) for h in (STEP, -STEP)]
        pair = [PerFeature(kind, one) for one in moved]
        assert_close(found[f], by_kernel(make(Squared(), kernel), FOLDS, Squared(), pair))
    alone = kind(0.3)
    found = cv_gradient(make(Squared(), alone), LAM, FOLDS, Squared()).kernel(alone, X)["gamma"]
    pair = [kind(0.3 * np.exp(h)) for h in (STEP, -STEP)]
    assert_close(found, by_kernel(make(Squared(), alone), FOLDS, Squared(), pair))


def test_a_polynomial():
    kernel = Polynomial(0.2, 1.5, 3)
    problem = make(Squared(), kernel)
    found = cv_gradient(problem, LAM, FOLDS, Squared()).kernel(kernel, X)
    for name in ("gamma", "coef0"):
        value_ = getattr(kernel, name)
        pair = [replace(kernel, **{name: value_ * np.exp(h)}) for h in (STEP, -STEP)]
        assert_close(found[name], by_kernel(problem, FOLDS, Squared(), pair))
    assert Linear().pullback(X, X, X) == {}


def test_a_normalised_kernel():
    kernel = Normalized(Polynomial(0.2, 1.5, 3))
    problem = make(Squared(), kernel)
    found = cv_gradient(problem, LAM, FOLDS, Squared()).kernel(kernel, X)
    for name in ("gamma", "coef0"):
        value_ = getattr(kernel.kernel, name)
        moved = [replace(kernel.kernel, **{name: value_ * np.exp(h)}) for h in (STEP, -STEP)]
        pair = [Normalized(one) for one in moved]
        assert_close(found[name], by_kernel(problem, FOLDS, Squared(), pair))


def test_a_sum_of_kernels():
    parts, mu = [Gaussian(0.3), Linear(), Matern32(0.5)], np.array([0.5, 0.2, 1.0])
    kernel = WeightedSum(parts, mu)
    problem = make(Huber(0.4), kernel)
    found = cv_gradient(problem, LAM, FOLDS, Squared()).kernel(kernel, X)
    for m in range(3):
        moved = [mu * np.exp(h * (np.arange(3) == m)) for h in (STEP, -STEP)]
        pair = [WeightedSum(parts, one) for one in moved]
        assert_close(found["weights"][m], by_kernel(problem, FOLDS, Squared(), pair))
    pair = [WeightedSum([Gaussian(0.3 * np.exp(h)), *parts[1:]], mu) for h in (STEP, -STEP)]
    assert_close(found["0.gamma"], by_kernel(problem, FOLDS, Squared(), pair))


@pytest.mark.parametrize("split", ["repeated", "shuffle", "unequal", "time"])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_any_splitter(split, scaling):
    folds = splits(N)[split]
    for loss in (Squared(), Huber(0.4)):
        problem = make(loss, Gaussian(0.3), q=2, scaling=scaling)
        found = cv_gradient(problem, LAM, folds, Squared())
        assert found.value == pytest.approx(value(problem, LAM, folds, Squared()), rel=1e-9)
        assert_close(found.lam, by_lam(problem, folds, Squared()))
        pair = [Gaussian(0.3 * np.exp(h)) for h in (STEP, -STEP)]
        expected = by_kernel(problem, folds, Squared(), pair)
        assert_close(found.kernel(Gaussian(0.3), X)["gamma"], expected)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.4)], ids=repr)
def test_weights_of_the_test_rows(loss):
    folds = splits(N)["shuffle"]
    problem = make(loss, Gaussian(0.3), q=2)
    w = np.random.default_rng(0).uniform(0.1, 3.0, folds.rows.size)
    found = cv_gradient(problem, LAM, folds, Squared(), weights=w)
    assert found.value == pytest.approx(value(problem, LAM, folds, Squared(), w), rel=1e-9)
    assert_close(found.lam, by_lam(problem, folds, Squared(), w))


@pytest.mark.parametrize("split", ["kfold", "time"])
@pytest.mark.parametrize("loss", [Squared(), Huber(0.4)], ids=repr)
def test_rows_of_weight_zero(loss, split):
    folds = splits(N)[split]
    problem = make(loss, Gaussian(0.3), weight="zeros")
    found = cv_gradient(problem, LAM, folds, Squared())
    assert_close(found.lam, by_lam(problem, folds, Squared()))
    pair = [Gaussian(0.3 * np.exp(h)) for h in (STEP, -STEP)]
    expected = by_kernel(problem, folds, Squared(), pair)
    assert_close(found.kernel(Gaussian(0.3), X)["gamma"], expected)


@pytest.mark.parametrize("criterion", [Squared(), Huber(0.2)], ids=repr)
def test_leave_one_out(criterion):
    folds = leave_one_out(N)
    problem = make(Squared(), Gaussian(0.3))
    found = cv_gradient(problem, LAM, folds, criterion)
    assert_close(found.lam, by_lam(problem, folds, criterion))
    pair = [Gaussian(0.3 * np.exp(h)) for h in (STEP, -STEP)]
    assert_close(
        found.kernel(Gaussian(0.3), X)["gamma"], by_kernel(problem, folds, criterion, pair)
    )


def test_a_smoothed_error_rate():
    problem = make(SmoothedHinge(0.3), Gaussian(0.3), "classification")
    criterion = SmoothedError(0.5)
    found = cv_gradient(problem, LAM, FOLDS, criterion)
    assert_close(found.lam, by_lam(problem, FOLDS, criterion))
    u = np.linspace(-2, 2, 9)
    ends = [criterion.value(1.0, u + h) for h in (STEP, -STEP)]
    assert_close(criterion.gradient(1.0, u), (ends[0] - ends[1]) / (2 * STEP))


def test_the_usual_criterion():
    for task, loss, usual in (
        ("regression", Huber(0.4), Squared()),
        ("classification", SmoothedHinge(0.3), Log()),
    ):
        problem = make(loss, Gaussian(0.3), task)
        assert (
            cv_gradient(problem, LAM, FOLDS).value == cv_gradient(problem, LAM, FOLDS, usual).value
        )


def test_a_gamma_per_column_in_an_estimator():
    gamma = np.array([0.4, 0.0, 2.0])
    y = np.sin(X[:, 0])
    found = KernelRegressor(gamma=gamma).fit(X, y).predict(X)
    expected = KernelRegressor(gamma=1.0).fit(X * np.sqrt(gamma), y).predict(X * np.sqrt(gamma))
    np.testing.assert_allclose(found, expected, atol=1e-10)
    with pytest.raises(ValueError, match="gamma has 2 values, one for each column, but X has 3"):
        KernelRegressor(gamma=[1.0, 2.0]).fit(X, y)
    with pytest.raises(ValueError, match="gamma is zero for every column"):
        KernelRegressor(gamma=[0.0, 0.0, 0.0]).fit(X, y)
    with pytest.raises(ValueError, match="takes a single gamma"):
        KernelRegressor(kernel="poly", gamma=[1.0, 2.0, 3.0]).fit(X, y)
