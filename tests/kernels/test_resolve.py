from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from onefit.kernels import (
    KERNELS,
    CallableKernel,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PerFeature,
    Polynomial,
    PowerExponential,
    Precomputed,
    Stationary,
    resolve_kernel,
    takes_gamma,
)

X = np.random.default_rng(0).normal(2.0, 3.0, size=(20, 4))
V = float(X.var())


@pytest.mark.parametrize(
    ("name", "scaled", "auto"),
    [
        ("rbf", Gaussian(1 / (4 * V)), Gaussian(0.25)),
        ("gaussian", Gaussian(1 / (4 * V)), Gaussian(0.25)),
        ("laplacian", Laplace(1 / (4 * V**0.5)), Laplace(0.25)),
        ("laplace", Laplace(1 / (4 * V**0.5)), Laplace(0.25)),
        ("matern12", Matern12(1 / (4 * V) ** 0.5), Matern12(0.25)),
        ("matern32", Matern32(1 / (4 * V) ** 0.5), Matern32(0.25)),
        ("matern52", Matern52(1 / (4 * V) ** 0.5), Matern52(0.25)),
        ("poly", Polynomial(1 / (4 * V), 1.0, 3), Polynomial(0.25, 1.0, 3)),
        ("polynomial", Polynomial(1 / (4 * V), 1.0, 3), Polynomial(0.25, 1.0, 3)),
        ("linear", Linear(), Linear()),
        ("precomputed", Precomputed(), Precomputed()),
    ],
)
def test_names_and_gamma_rules(name, scaled, auto):
    for points in (X, sp.csr_matrix(X), sp.csr_array(X)):
        got = resolve_kernel(name, points)
        assert type(got) is type(scaled) is KERNELS[name]
        if takes_gamma(name):
            assert got.gamma == pytest.approx(scaled.gamma, rel=1e-12)
            assert type(got.gamma) is float
        assert resolve_kernel(name, points, gamma="auto") == auto


def test_every_registered_name_is_tested():
    (mark,) = test_names_and_gamma_rules.pytestmark
    assert {case[0] for case in mark.args[1]} == set(KERNELS)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_scale_is_that_of_svc(make):
    points = make(sp.random_array((20, 4), density=0.4, rng=np.random.default_rng(1)).toarray())
    svc = SVC().fit(points, np.arange(20) % 2)
    assert resolve_kernel("rbf", points).gamma == pytest.approx(svc._gamma, rel=1e-12)


@pytest.mark.parametrize("name", ["rbf", "laplace", "matern32", "poly"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_scale_is_one_for_constant_points(name, make):
    assert resolve_kernel(name, make(np.full((7, 3), 5.0))).gamma == 1.0
    assert resolve_kernel(name, make(np.zeros((7, 3)))).gamma == 1.0


def test_scale_of_float32_is_computed_in_float64():
    shifted = (X + 1000).astype(np.float32)
    expected = 1 / (4 * shifted.astype(np.float64).var())
    for make in (np.asarray, sp.csr_array):
        assert resolve_kernel("rbf", make(shifted)).gamma == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_scale_with_weights_is_that_of_repeated_rows(make):
    points = sp.random_array((20, 4), density=0.4, rng=np.random.default_rng(2)).toarray()
    weights = np.arange(20) % 4
    expected = 1 / (4 * np.repeat(points, weights, axis=0).var())
    got = resolve_kernel("rbf", make(points), sample_weight=weights.astype(float))
    assert got.gamma == pytest.approx(expected, rel=1e-12)


def test_numbers_are_passed_on():
    assert resolve_kernel("rbf", X, gamma=2) == Gaussian(2.0)
    assert resolve_kernel("rbf", X, gamma=np.float32(0.5)) == Gaussian(0.5)
    assert resolve_kernel("poly", X, gamma=1.0) == Polynomial(1.0, 1.0, 3)
    assert resolve_kernel("linear", X, gamma=-1) == Linear()  # not used, not checked


def test_objects_and_callables():
    kernel = Gaussian(3.0)
    assert resolve_kernel(kernel, X, gamma=5.0) is kernel
    got = resolve_kernel(np.inner, X)
    assert got == CallableKernel(np.inner)
    np.testing.assert_allclose(got(X), X @ X.T)


def test_objects_without_a_gamma_take_that_of_the_estimator():
    kernel = Polynomial(coef0=0.5, degree=5)
    assert resolve_kernel(kernel, X, gamma=2) == Polynomial(2.0, 0.5, 5)
    assert resolve_kernel(kernel, X) == Polynomial(resolve_kernel("poly", X).gamma, 0.5, 5)
    assert resolve_kernel(Matern32(), X) == resolve_kernel("matern32", X)
    gammas = np.arange(1.0, X.shape[1] + 1)
    assert resolve_kernel(Gaussian(), X, gamma=gammas) == PerFeature(Gaussian, gammas.tolist())
    for one in (kernel, PowerExponential(p=1, q=0.5)):
        with pytest.raises(ValueError, match="takes a single gamma"):
            resolve_kernel(one, X, gamma=gammas)
        with pytest.raises(ValueError, match="has no gamma of its own; give it one"):
            one(X)


def test_kernels_that_take_the_gamma_of_the_estimator():
    assert all(takes_gamma(one) for one in ("rbf", "matern52", "poly", Gaussian(), Polynomial()))
    without = ("linear", "precomputed", "liner", Linear(), Gaussian(1.0), np.inner)
    assert not any(takes_gamma(one) for one in without)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"kernel": "gausian"},
            ValueError,
            "kernel='gausian' is not known; did you mean 'gaussian'",
        ),
        ({"kernel": "RBF"}, ValueError, "did you mean 'rbf'"),
        ({"kernel": "sigmoid"}, ValueError, "'sigmoid' is not known. Known: 'rbf', .*'linear'"),
        ({"kernel": 3}, TypeError, "kernel must be a name, a Kernel object or a callable, got 3"),
        ({"kernel": Gaussian}, TypeError, "kernel must be an object, got the class Gaussian"),
        ({"kernel": "rbf", "gamma": 0.0}, ValueError, "gamma must be a positive .* got 0.0"),
        ({"kernel": "rbf", "gamma": -2}, ValueError, "gamma must be .* got -2"),
        ({"kernel": "laplace", "gamma": np.nan}, ValueError, "gamma must be .* got nan"),
        ({"kernel": "rbf", "gamma": "Scale"}, ValueError, "'scale' or 'auto', got 'Scale'"),
        ({"kernel": "rbf", "gamma": None}, TypeError, "gamma must be .* got None"),
    ],
)
def test_errors_name_the_argument(arguments, error, message):
    with pytest.raises(error, match=message):
        resolve_kernel(X=X, **arguments)


@pytest.mark.parametrize("kind", [Gaussian(1.0), "rbf", Linear])
def test_the_kind_of_a_kernel_with_a_gamma_per_feature_is_a_stationary_class(kind):
    with pytest.raises(TypeError, match="kind must be a class, such as Gaussian, got"):
        PerFeature(kind, [0.5, 1.0])


@dataclass(frozen=True)
class Cauchy(Stationary):
    """A kernel of squared distances that users may write."""

    metric = "sqeuclidean"
    rate = 0.5

    def value(self, t, lib):
        return 1.0 / (1.0 - t)

    def slope(self, t, lib):
        return 1.0 / (1.0 - t) ** 2


@dataclass(frozen=True)
class CityBlockCauchy(Cauchy):
    """The same of another distance."""

    metric = "manhattan"


@pytest.mark.parametrize("kernel", [Cauchy(), CityBlockCauchy(), Gaussian(), Laplace(), Matern52()])
def test_one_gamma_and_the_same_for_each_column_are_the_same_kernel(kernel):
    one, each = (resolve_kernel(kernel, X, gamma=gamma) for gamma in (0.7, [0.7] * X.shape[1]))
    np.testing.assert_allclose(each(X), one(X), rtol=1e-12)
    left, right = np.random.default_rng(0).normal(size=(2, len(X), 3))
    total = each.pullback(X, left, right)["gamma"].sum()
    assert total == pytest.approx(float(one.pullback(X, left, right)["gamma"]), rel=1e-9)


@pytest.mark.parametrize(
    ("one", "same"),
    [(PowerExponential(p=1), Laplace()), (PowerExponential(), Matern12()), (Cauchy(), Gaussian())],
)
def test_the_scale_of_gamma_is_that_of_the_distance(one, same):
    assert resolve_kernel(one, X).gamma == resolve_kernel(same, X).gamma


@dataclass(frozen=True)
class WithoutDistance(Kernel):
    """A kernel of vectors with a gamma, but none of the distances."""

    gamma: Any = None

    def matrix(self, geometry, out=None):
        raise NotImplementedError

    def diag(self, X):
        raise NotImplementedError


def test_no_scale_without_a_distance():
    with pytest.raises(ValueError, match="has no distance that gamma='scale' could be taken from"):
        resolve_kernel(WithoutDistance(), X)
