from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

from onefit.kernels import Gaussian, Geometry, Linear, Precomputed, check_precomputed


def test_matrix_is_the_given_matrix_itself():
    K = np.array([[2.0, 1.0], [1.0, 3.0]])
    kernel = Precomputed()
    assert kernel.matrix(Geometry(K)) is K
    assert kernel(K) is K
    out = np.zeros((2, 2))
    assert kernel.matrix(Geometry(K), out) is out
    np.testing.assert_array_equal(out, K)
    np.testing.assert_array_equal(kernel(sp.csr_array(K)), K)
    np.testing.assert_array_equal(kernel.diag(K), [2.0, 3.0])
    assert kernel.diag(K).flags.owndata


def test_new_points_bring_rows_of_kernel_values():
    new = np.arange(6.0).reshape(3, 2)
    assert Precomputed()(new, np.eye(2)) is new
    with pytest.raises(ValueError, match=r"shape \(3, 2\).*each of the 3 points"):
        Precomputed()(new)
    with pytest.raises(ValueError, match=r"shape \(3, 2\)"):
        Precomputed().diag(new)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", [Gaussian(1e-3), Gaussian(10.0), Linear()], ids=repr)
def test_semidefinite_matrices_pass_even_if_singular(kernel, dtype):
    X = np.random.default_rng(0).normal(size=(80, 3)).astype(dtype)
    X[40:] = X[:40]
    K = kernel(X)
    before = K.copy()
    assert check_precomputed(K) is K
    np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e100])
def test_the_check_does_not_depend_on_the_unit(scale):
    check_precomputed(scale * np.ones((5, 5)))
    with pytest.raises(ValueError, match="indefinite"):
        check_precomputed(scale * (np.ones((5, 5)) - 1e-3 * np.eye(5)))
    with pytest.raises(ValueError, match="not symmetric"):
        check_precomputed(scale * (np.ones((5, 5)) + 1e-3 * np.eye(5, k=1)))


def test_zero_one_by_one_integer_and_sparse_matrices_pass():
    check_precomputed(np.zeros((3, 3)))
    check_precomputed([[2]])
    assert check_precomputed(np.eye(3, dtype=int)).dtype == np.float64
    np.testing.assert_array_equal(check_precomputed(sp.eye_array(3).tocsr()), np.eye(3))


def with_spectrum(eigenvalues, dtype):
    Q, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(len(eigenvalues),) * 2))
    K = (Q * eigenvalues) @ Q.T
    return ((K + K.T) / 2).astype(dtype)


@pytest.mark.parametrize(("dtype", "tol"), [(np.float32, 1e-4), (np.float64, 1e-8)])
def test_tolerance_is_relative_to_the_largest_eigenvalue(dtype, tol):
    """Most of the spectrum is zero, so that the Cholesky shortcut alone would not decide."""
    eigenvalues = np.zeros(50)
    eigenvalues[-1] = 5.0
    eigenvalues[0] = -0.5 * 5.0 * tol
    check_precomputed(with_spectrum(eigenvalues, dtype))
    eigenvalues[0] = -2.0 * 5.0 * tol
    K = with_spectrum(eigenvalues, dtype)
    with pytest.raises(ValueError, match="indefinite"):
        check_precomputed(K)


def test_indefinite_error_tells_both_ends_of_the_spectrum():
    K = with_spectrum(np.array([-0.25, 0.0, 1.0, 4.0]), np.float64)
    with pytest.raises(
        ValueError, match=r"smallest eigenvalue is -0\.25, its largest 4\..*[Cc]lip"
    ):
        check_precomputed(K)
    with pytest.raises(ValueError, match=r"smallest eigenvalue is -1, its largest -1\."):
        check_precomputed(-np.eye(2))


def test_asymmetry_error_tells_how_much_and_where():
    K = np.eye(300)
    K[280, 270] = 0.25
    K[3, 4] = 0.125
    message = "max |K - K'| = 0.25 at [270, 280], where K[270, 280] = 0 and K[280, 270] = 0.25"
    with pytest.raises(ValueError, match=re.escape(message)):
        check_precomputed(K)
    K = np.eye(3)
    K[0, 1] = 1e-12  # rounding
    check_precomputed(K)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_named(value):
    K = np.eye(300)
    K[280, 7] = value
    with pytest.raises(ValueError, match=rf"value {value} at \[280, 7\]"):
        check_precomputed(K)


@pytest.mark.parametrize("shape", [(2, 3), (0, 0)])
def test_matrices_that_are_not_square_are_errors(shape):
    with pytest.raises(ValueError, match=re.escape("square") + ".*" + re.escape(str(shape))):
        check_precomputed(np.zeros(shape))
