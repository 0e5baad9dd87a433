"""Influence functions against finite differences of fits with sample weights."""

from __future__ import annotations

import numpy as np
import pytest
from registries import CLASSIFIERS, REGRESSORS, sample
from sklearn.base import clone

from onefit import KernelClassifier, KernelRegressor, influence
from onefit.losses import MissingDerivativeError

N = 16
LAM = 0.05


def machine(task, parameters, **options):
    cls = KernelRegressor if task == "regression" else KernelClassifier
    return cls(**parameters, gamma=0.5, lam=LAM, **options)


def decision(model, X):
    return model.predict(X) if isinstance(model, KernelRegressor) else model.decision_function(X)


def mixed(weight, i, eps):
    """Weights of (1 - eps) P + eps Delta_i; the mass stays what it was."""
    out = (1.0 - eps) * weight
    out[i] += eps * weight.sum()
    return out


def differences(model, X, y, i, at, order, weight=None, precomputed=None):
    """The order-th derivative in eps of predictions by a polynomial through several fits."""
    weight = np.ones(len(y)) if weight is None else weight
    K_train, K_at = (X, at) if precomputed is None else precomputed
    for radius in (0.004, 0.002, 0.001, 0.0004):
        nodes = radius * np.cos(np.pi * (np.arange(8) + 0.5) / 8)
        fits = [clone(model).fit(K_train, y, sample_weight=mixed(weight, i, eps)) for eps in nodes]
        if same_pieces(fits, K_train, y):
            break
    else:
        return None
    values = np.array([decision(fit, K_at) for fit in fits])
    powers = np.vander(nodes / radius, increasing=True)
    flat = np.linalg.solve(powers, values.reshape(8, -1))
    return {1: 1.0, 2: 2.0}[order] * flat[order].reshape(values.shape[1:]) / radius**order


def same_pieces(fits, X, y):
    """Whether no training point changes its piece from one fit to another."""
    loss = fits[0]._make_loss()
    labels = y if isinstance(fits[0], KernelRegressor) else np.where(y == y.max(), 1.0, -1.0)
    u = np.array([decision(fit, X) for fit in fits])
    pieces = loss.piece(np.broadcast_to(labels, u.shape), u)
    return (pieces == pieces[0]).all()


EVERY = [("regression", p) for p in REGRESSORS] + [("classification", p) for p in CLASSIFIERS]


@pytest.mark.parametrize(("task", "parameters"), EVERY, ids=[f"{t}-{p['loss']}" for t, p in EVERY])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False, "scaling": "total"}])
def test_against_finite_differences(task, parameters, order, options):
    X, y = sample(task, n=N, seed=1)
    at = sample(task, n=5, seed=2)[0]
    model = machine(task, parameters, **options)
    if options.get("scaling") == "total":
        model.set_params(lam=LAM * N)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    here = influence(model, X, y, order, sample_weight=weight)
    there = influence(model, X, y, order, at=at, sample_weight=weight)
    assert here.shape == (N, N)
    assert there.shape == (N, 5)
    compared = 0
    for i in (0, 3, 9, 15):
        expected = differences(model, X, y, i, X, order, weight)
        if expected is None:
            continue
        compared += 1
        scale = np.abs(here).max()
        np.testing.assert_allclose(here[i], expected, atol=1e-5 * scale)
        new = differences(model, X, y, i, at, order, weight)
        np.testing.assert_allclose(there[i], new, atol=1e-5 * scale)
    assert compared >= 2


def test_jmlr_equation_8():
    """S^-1 ((y_i - f(x_i)) K_i - lam f), without an intercept."""
    X, y = sample("regression", n=N)
    model = KernelRegressor(gamma=0.5, lam=LAM, fit_intercept=False)
    K = model.fit(X, y)._kernel(X)
    f = model.predict(X)
    S = LAM * np.eye(N) + K / N
    expected = np.linalg.solve(S, (y - f)[None, :] * K - LAM * f[:, None]).T
    np.testing.assert_allclose(influence(model, X, y), expected, rtol=1e-9, atol=1e-12)
    # and equation 9 for the second order
    second = 2.0 * (
        np.linalg.solve(S, K / N) @ expected.T
        - np.diagonal(expected)[None, :] * np.linalg.solve(S, K)
    )
    np.testing.assert_allclose(influence(model, X, y, 2), second.T, rtol=1e-8, atol=1e-11)


def test_precomputed_kernels():
    X, y = sample("regression", n=N)
    at = sample("regression", n=6, seed=5)[0]
    model = KernelRegressor(loss="huber", threshold=0.3, gamma=0.5, lam=LAM)
    kernel = clone(model).fit(X, y)._kernel
    plain = clone(model).set_params(kernel="precomputed")
    np.testing.assert_allclose(
        influence(plain, kernel(X), y), influence(model, X, y), rtol=1e-8, atol=1e-10
    )
    np.testing.assert_allclose(
        influence(plain, kernel(X), y, at=kernel(at, X)),
        influence(model, X, y, at=at), rtol=1e-8, atol=1e-10,
    )  # fmt: skip


def test_several_targets_are_each_their_own():
    X, y = sample("regression", n=N)
    Y = np.column_stack([y, np.roll(y, 4), X[:, 0]])
    model = KernelRegressor(loss="huber", threshold=0.3, gamma=0.5, lam=LAM)
    both = influence(model, X, Y, 2)
    assert both.shape == (N, N, 3)
    for j in range(3):
        alone = influence(model, X, Y[:, j], 2)
        np.testing.assert_allclose(both[:, :, j], alone, rtol=1e-8, atol=1e-9)


def test_several_classes():
    X, y = sample("classification", n=24, classes=3)
    pull = influence(KernelClassifier(loss="log", gamma=0.5, lam=LAM), X, y, at=X[:4])
    assert pull.shape == (24, 4, 3)
    assert np.isfinite(pull).all()


def test_one_more_copy_of_a_point():
    """To first order, eps of mass moved to a point moves predictions by eps times its influence."""
    X, y = sample("regression", n=N)
    model = KernelRegressor(loss="logistic", gamma=0.5, lam=LAM)
    pull = influence(model, X, y)
    eps = 1e-4
    before = clone(model).fit(X, y).predict(X)
    after = clone(model).fit(X, y, sample_weight=mixed(np.ones(N), 7, eps)).predict(X)
    np.testing.assert_allclose((after - before) / eps, pull[7], rtol=1e-2, atol=1e-3)


def test_an_outlier_stands_out_and_a_bounded_loss_holds_it_back():
    X = np.linspace(0, 5, 40)[:, None]
    y = np.sin(X).ravel()
    y[20] += 3.0
    squared = np.abs(influence(KernelRegressor(gamma=1.0, lam=1e-2), X, y)).max(axis=1)
    assert squared.argmax() == 20
    assert squared[20] > 3.0 * np.delete(squared, 20).max()
    huber = KernelRegressor(loss="huber", threshold=0.1, gamma=1.0, lam=1e-2)
    held = np.abs(influence(huber, X, y)).max(axis=1)
    y[20] += 1000.0
    further = np.abs(influence(huber, X, y)).max(axis=1)
    np.testing.assert_allclose(further[20], held[20], rtol=1e-6)
    assert held[20] < 0.2 * squared[20]


def test_the_estimator_is_left_alone():
    X, y = sample("regression", n=N)
    model = KernelRegressor(gamma=0.5)
    influence(model, X, y)
    assert not hasattr(model, "X_fit_")


def test_influences_of_a_sample_add_up_to_nothing():
    """The derivative in the direction of the sample itself is zero."""
    X, y = sample("regression", n=N)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, N)
    for parameters in REGRESSORS:
        pull = influence(machine("regression", parameters), X, y, sample_weight=weight)
        np.testing.assert_allclose(weight @ pull, 0.0, atol=1e-8 * np.abs(pull).max() * N)


@pytest.mark.parametrize("order", [0, -2, 1.0, None])
def test_orders_that_are_none(order):
    X, y = sample("regression", n=N)
    with pytest.raises(ValueError, match="order must be a whole number of at least 1"):
        influence(KernelRegressor(), X, y, order)


def test_bad_input():
    X, y = sample("regression", n=N)
    with pytest.raises(ValueError, match=r"order=3 .*method='limit'"):
        influence(KernelRegressor(loss="logistic"), X, y, 3)
    weight = np.ones(N)
    weight[3] = 0.0
    with pytest.raises(ValueError, match="sample_weight must be positive on every row"):
        influence(KernelRegressor(), X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="features"):
        influence(KernelRegressor(), X, y, at=np.ones((2, 7)))


def test_a_users_loss_without_a_third_derivative():
    from onefit.losses import Logistic

    members = {k: getattr(Logistic, k) for k in ("value", "gradient", "curvature", "piece")}
    plain = {"name": "mine", "task": "regression", "piecewise_quadratic": False}
    mine = type("Mine", (), {**members, **plain})()
    X, y = sample("regression", n=N)
    theirs = influence(KernelRegressor(loss=mine, gamma=0.5), X, y)
    ours = influence(KernelRegressor(loss="logistic", gamma=0.5), X, y)
    np.testing.assert_allclose(theirs, ours, rtol=1e-9)
    with pytest.raises(MissingDerivativeError, match="'third'"):
        influence(KernelRegressor(loss=mine), X, y, 2)
