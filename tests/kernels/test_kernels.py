from __future__ import annotations

import pickle
import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics import pairwise

from onefit import KernelRegressor, KernelSearchCV, heldout_predict
from onefit.kernels import (
    CallableKernel,
    Gaussian,
    Geometry,
    Laplace,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Polynomial,
    PowerExponential,
    Precomputed,
    WeightedSum,
)


def name(kernel):
    """A test id: the representation, without the addresses of functions."""
    return re.sub(r" at 0x\w+", "", repr(kernel))


def product(X, Y, power=1.0):
    values = X @ Y.T
    return (values.toarray() if sp.issparse(values) else values) ** power


def power_exponential(X, Y, p, gamma, q):
    return np.exp(-((gamma * cdist(X, Y, "minkowski", p=p)) ** q))


PAIRS = [
    (Gaussian(0.7), lambda X, Y: pairwise.rbf_kernel(X, Y, gamma=0.7)),
    (Laplace(0.3), lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=0.3)),
    (Matern12(0.5), lambda X, Y: Matern(2.0, nu=0.5)(X, Y)),
    (Matern32(0.5), lambda X, Y: Matern(2.0, nu=1.5)(X, Y)),
    (Matern52(0.5), lambda X, Y: Matern(2.0, nu=2.5)(X, Y)),
    (PowerExponential(0.3, 1, 0.7), lambda X, Y: power_exponential(X, Y, 1, 0.3, 0.7)),
    (PowerExponential(0.5, 2, 1.6), lambda X, Y: power_exponential(X, Y, 2, 0.5, 1.6)),
    (Linear(), pairwise.linear_kernel),
    (Polynomial(0.2, 1.5, 2), lambda X, Y: pairwise.polynomial_kernel(X, Y, 2, 0.2, 1.5)),
    (Polynomial(0.2, 0.0, 3), lambda X, Y: pairwise.polynomial_kernel(X, Y, 3, 0.2, 0.0)),
    (CallableKernel(product, {"power": 2}), lambda X, Y: pairwise.linear_kernel(X, Y) ** 2),
    (
        WeightedSum([Gaussian(0.7), WeightedSum([Laplace(0.3), Linear()], [3.0, 0.0])], [2.0, 0.5]),
        lambda X, Y: (
            2.0 * pairwise.rbf_kernel(X, Y, 0.7) + 1.5 * pairwise.laplacian_kernel(X, Y, 0.3)
        ),
    ),
]
KERNELS = [kernel for kernel, _ in PAIRS]
each_pair = pytest.mark.parametrize(("kernel", "reference"), PAIRS, ids=map(name, KERNELS))
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=name)


@st.composite
def points(draw):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    d = draw(st.integers(1, 4))
    elements = st.floats(-3, 3, width=32)
    X = draw(hnp.arrays(dtype, (draw(st.integers(2, 8)), d), elements=elements))
    Y = draw(hnp.arrays(dtype, (draw(st.integers(1, 8)), d), elements=elements))
    X[-1] = X[0]
    return X, Y


@each_pair
@given(sets=points())
def test_matrix_equals_the_reference(kernel, reference, sets):
    X, Y = sets
    wide_x, wide_y = X.astype(np.float64), Y.astype(np.float64)
    tolerance = 3e-6 if X.dtype == np.float32 else 1e-10
    for other, wide in ((Y, wide_y), (None, wide_x)):
        expected = reference(wide_x, wide)
        atol = tolerance * np.abs(expected).max(initial=1.0)
        out = np.full(expected.shape, np.nan, X.dtype)
        geometry = Geometry(X, other)
        assert kernel.matrix(geometry, out) is out
        for got in (out, kernel.matrix(geometry), kernel(X, other)):
            assert got.dtype == X.dtype
            np.testing.assert_allclose(got, expected, rtol=tolerance, atol=atol)


@each_pair
def test_sparse_points_equal_the_reference(kernel, reference):
    X = sp.random_array((9, 20), density=0.3, rng=np.random.default_rng(0)).tocsr()
    Y = sp.random_array((4, 20), density=0.3, rng=np.random.default_rng(1)).tocsr()
    expected = reference(X.toarray(), Y.toarray())
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(kernel(X, Y.toarray()), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@each_kernel
def test_diag_is_the_diagonal_of_the_matrix(kernel, make, dtype):
    X = make(np.random.default_rng(2).normal(size=(7, 3)).astype(dtype))
    diag = kernel.diag(X)
    assert diag.dtype == dtype
    np.testing.assert_allclose(
        diag, np.diag(kernel(X)), rtol=1e-5 if dtype == np.float32 else 1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@each_kernel
def test_matrix_is_symmetric_and_positive_semidefinite(kernel, dtype):
    X = np.random.default_rng(3).normal(size=(60, 2)).astype(dtype)
    X[30:] = X[:30]  # every row twice
    K = kernel(X)
    np.testing.assert_array_equal(K, K.T)
    eigenvalues = np.linalg.eigvalsh(K.astype(np.float64))
    assert eigenvalues[0] > -(1e-5 if dtype == np.float32 else 1e-13) * eigenvalues[-1]


@pytest.mark.parametrize("kernel", KERNELS[:7], ids=name)
def test_duplicate_rows_have_kernel_one(kernel):
    X = np.random.default_rng(4).normal(size=(20, 6)) + 1e4
    X[10:] = X[:10]
    K = kernel(X)
    assert np.all(np.diag(K) == 1)
    assert np.all(K[np.arange(10), np.arange(10, 20)] == 1)


@each_kernel
def test_many_rows_are_mapped_alike(kernel):
    """Maps run over blocks of rows: none may be missed or mapped twice."""
    X = np.random.default_rng(5).normal(size=(300, 2))
    K = kernel(X)
    for rows in (slice(0, 2), slice(255, 258), slice(298, 300)):
        np.testing.assert_allclose(K[rows], kernel(X[rows], X), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "kernel_class",
    [
        Gaussian,
        Laplace,
        Matern12,
        Matern32,
        Matern52,
        lambda gamma: PowerExponential(gamma, 1, 0.9),
        lambda gamma: PowerExponential(gamma, 2, 1.9),
    ],
)
@pytest.mark.parametrize("gamma", [1e-300, 1e-30, 1e20, 1e39, 1e300])
def test_extreme_gamma_ends_in_the_limit(kernel_class, gamma, dtype):
    X = np.array([[0.0, 0.0], [1.0, 0.5], [-3.0, 100.0]], dtype)
    with np.errstate(all="raise", under="ignore"):
        K = kernel_class(gamma)(X)
    np.testing.assert_array_equal(K, np.eye(3) if gamma > 1 else np.ones((3, 3)))


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (PowerExponential(0.4, 1, 1.0), Laplace(0.4)),
        (PowerExponential(0.4, 2, 1.0), Matern12(0.4)),
        (PowerExponential(0.4, 2, 2.0), Gaussian(0.16)),
    ],
)
def test_the_power_exponential_kernel_has_the_others_as_cases(one, same):
    X = np.random.default_rng(0).normal(size=(12, 3))
    np.testing.assert_allclose(one(X), same(X), rtol=1e-12)


@pytest.mark.parametrize("kernel", [PowerExponential(0.5, 1, 0.6), PowerExponential(0.5, 2, 1.6)])
def test_the_gradient_of_the_power_exponential_kernel_is_that_of_differences(kernel):
    random = np.random.default_rng(0)
    X, left, right = (random.normal(size=(15, k)) for k in (3, 2, 2))
    X[3] = X[0]
    found = kernel.pullback(X, left, right)
    for name, value in found.items():
        h = 1e-5
        ends = [
            np.sum(left * (replace(kernel, **{name: getattr(kernel, name) * f})(X) @ right))
            for f in (np.exp(h), np.exp(-h))
        ]
        np.testing.assert_allclose(value, (ends[0] - ends[1]) / (2 * h), rtol=1e-6)


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplace(0.3), Linear()], ids=name)
def test_one_evaluation_needs_one_array(kernel):
    """Without a shared geometry the distances themselves become the kernel matrix."""
    X = np.random.default_rng(0).normal(size=(1500, 3))
    kernel(X[:600])  # of these sizes compiled on first use
    tracemalloc.start()
    try:
        K = kernel(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.9 * K.nbytes


def test_kernels_are_values():
    assert Gaussian(1) == Gaussian(1.0) != Gaussian(2.0)
    assert Gaussian(1.0) != Laplace(1.0)
    assert Matern12(1.0) != Matern32(1.0)
    assert WeightedSum([Gaussian(1.0)], [1]) == WeightedSum((Gaussian(1.0),), (1.0,))
    assert CallableKernel(product, {"power": 2}) == CallableKernel(product, {"power": 2})
    assert CallableKernel(product, {"power": 2}) != CallableKernel(product)
    assert repr(Polynomial(2, 0, 4)) == "Polynomial(gamma=2.0, coef0=0.0, degree=4)"
    assert len({Gaussian(1.0), Gaussian(1.0), Linear(), CallableKernel(product, {"power": 2})}) == 3
    for kernel in KERNELS:
        assert pickle.loads(pickle.dumps(kernel)) == kernel
    with pytest.raises(AttributeError):
        Gaussian(1.0).gamma = 2.0


def test_metrics_list_what_a_kernel_needs():
    nested = WeightedSum([Linear(), WeightedSum([Matern32(1.0), Polynomial(1.0)], [1, 1])], [1, 1])
    assert nested.metrics == ("dot", "euclidean")
    assert Gaussian(1.0).metrics == ("sqeuclidean",)
    assert Precomputed().metrics == CallableKernel(product).metrics == ()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: Gaussian(0.0), ValueError, "gamma must be a positive finite number, got 0.0"),
        (lambda: Laplace(-1.0), ValueError, "gamma must be .* got -1.0"),
        (lambda: Matern52(np.nan), ValueError, "gamma must be .* got nan"),
        (lambda: Matern12(np.inf), ValueError, "gamma must be .* got inf"),
        (lambda: Gaussian("scale"), TypeError, "gamma must be .* got 'scale'"),
        (lambda: PowerExponential(1.0, 3), ValueError, "p must be 1 or 2.* got 3"),
        (lambda: PowerExponential(1.0, 1, 1.2), ValueError, "q must be at most 1 .*Use p=2"),
        (lambda: PowerExponential(1.0, 2, 2.1), ValueError, "q must be at most 2 .*Lower q"),
        (lambda: PowerExponential(1.0, 2, 0.0), ValueError, "q must be a positive"),
        (lambda: Polynomial(1.0, -0.5), ValueError, "coef0 must be a non-negative .* got -0.5"),
        (lambda: Polynomial(1.0, 1.0, 2.5), ValueError, "degree must be a positive whole .* 2.5"),
        (lambda: Polynomial(1.0, 1.0, 0), ValueError, "degree must be .* got 0"),
        (lambda: WeightedSum([Linear()], [-1.0]), ValueError, r"weights\[0\] must be .* got -1.0"),
        (lambda: WeightedSum([Linear()], [1, 2]), ValueError, "1 kernels and 2 weights"),
        (lambda: WeightedSum([], []), ValueError, "0 kernels and 0 weights"),
        (lambda: WeightedSum(["rbf"], [1]), TypeError, r"kernels\[0\] must be a Kernel .*'rbf'"),
        (
            lambda: Polynomial(1.0, 1.0, 200)(np.array([[100.0]])),
            ValueError,
            "Polynomial.*overflows",
        ),
    ],
)
def test_errors_name_the_parameter(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("n", "m", "d"), [(7, 4, 3), (5, 5, 5), (3, 3, 3), (2, 2, 2), (4, 3, 1)])
@pytest.mark.parametrize(
    "of_rows",
    [
        lambda x, y: np.exp(-np.sum((x - y) ** 2)),
        lambda x, y: x @ y,  # which is a matrix for d rows, too
        lambda x, y: float(np.ravel(x) @ np.ravel(y)),
        lambda x, y: np.minimum(np.abs(x), np.abs(y)).sum(),
    ],
)
def test_callable_of_two_rows_as_in_kernel_ridge(of_rows, n, m, d):
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(n, d)), random.normal(size=(m, d))
    kernel = CallableKernel(of_rows)
    expected = pairwise.pairwise_kernels(X, Y, metric=of_rows)
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-13)
    expected = pairwise.pairwise_kernels(X, metric=of_rows)
    np.testing.assert_allclose(kernel(X), expected, rtol=1e-13)
    np.testing.assert_allclose(kernel.diag(X), np.diag(expected), rtol=1e-13)


def test_an_error_of_the_function_is_its_own():
    def broken(X, Y):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        CallableKernel(broken)(np.eye(3))


def test_callable_of_the_wrong_shape_is_an_error_that_tells_it():
    with pytest.raises(ValueError, match=r"shape \(3,\) .*expected \(3, 3\).* or two rows"):
        CallableKernel(lambda X, Y: np.zeros(3))(np.eye(3))
    with pytest.raises(ValueError, match=r"returned .* \(2, 3\) for 3 and 2 .*expected \(3, 2\)"):
        CallableKernel(lambda X, Y: np.einsum("id,jd->ji", X, Y))(np.eye(3), np.eye(3)[:2])
    with pytest.raises(ValueError, match="NaN or infinite"):
        CallableKernel(lambda X, Y: np.full((len(X), len(Y)), np.nan))(np.eye(2))


def test_weighted_sum_of_a_callable_leaves_its_array_alone():
    own = np.eye(3)
    kernel = WeightedSum([CallableKernel(lambda X, Y: own), Linear()], [2.0, 1.0])
    np.testing.assert_array_equal(kernel(np.eye(3)), 3 * np.eye(3))
    np.testing.assert_array_equal(own, np.eye(3))


def test_weighted_sum_of_zero_weights_is_zero():
    kernel = WeightedSum([Gaussian(1.0), Linear()], [0.0, 0.0])
    np.testing.assert_array_equal(kernel(np.eye(2)), np.zeros((2, 2)))
    np.testing.assert_array_equal(kernel.diag(np.eye(2)), np.zeros(2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("coef0", [1.0, 1e-3, 1e3])
def test_a_polynomial_whose_constant_is_lost_is_refused(dtype, coef0):
    """Beyond, the matrix would be that of (gamma <x, y>)^degree, and singular."""
    kernel = Polynomial(2.0, coef0, 2)
    edge = np.sqrt(0.1 * coef0 / np.finfo(dtype).eps / 2.0)
    within, beyond = (np.array([[0.0], [share * edge]], dtype=dtype) for share in (0.99, 1.01))
    K = kernel(within)
    assert K[0, 0] == pytest.approx(coef0**2)
    words = rf"Polynomial.*gamma <x, x> is up to .*coef0 is lost .*{np.dtype(dtype).name}.*scale X"
    with pytest.raises(ValueError, match=words):
        kernel(beyond)
    # new points may be anywhere, and without a constant there is none to lose
    assert np.isfinite(kernel(beyond, within)).all()
    assert np.isfinite(Polynomial(2.0, 0.0, 2)(beyond)).all()


@pytest.mark.parametrize("offset", [0.0, 3e7])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_polynomial_machines_say_what_is_wrong_with_large_points(offset, loss):
    """They gave "the leading minor of order 2 is not positive definite", or no answer at all."""
    random = np.random.default_rng(0)
    X = random.normal(scale=1.0 if offset else 3e7, size=(60, 3)) + offset
    y = random.normal(size=60)
    machine = KernelRegressor(kernel="poly", gamma="scale" if offset else 1.0, loss=loss)
    search = KernelSearchCV(machine, {"lam": [1e-3, 1e-2]}, cv=3)
    for work in (machine.fit, search.fit, lambda X, y: heldout_predict(machine, X, y)):
        with pytest.raises(ValueError, match="Centre and scale X, or lower gamma"):
            work(X, y)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert np.isfinite(search.fit(scaled, y).predict(scaled)).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [Gaussian, Laplace, Matern12, Matern32, Matern52])
def test_entries_that_a_factor_would_underflow_with_are_zero(kind, dtype):
    """Those below the square of rounding beside the diagonal of 1, and no others."""
    X = np.linspace(0.0, 40.0, 81, dtype=dtype)[:, None]
    K, lost = kind(5.0).matrix(Geometry(X)), np.finfo(dtype).eps ** 2
    least = K[K > 0.0].min()
    assert (K == 0.0).any()
    assert lost <= least < 1e12 * lost
