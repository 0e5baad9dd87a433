"""Every linear-algebra routine against NumPy, in both precisions and memory orders."""

from __future__ import annotations

import numpy as np
import pytest

from onefit import _linalg as linalg

DTYPES = [np.float32, np.float64]
ORDERS = ["C", "F"]
forms = pytest.mark.parametrize(
    ("dtype", "order"), [(dtype, order) for dtype in DTYPES for order in ORDERS]
)


def positive(n, dtype, order="C", seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n + 3))
    return np.asarray((A @ A.T / n + np.eye(n)), dtype=dtype, order=order)


def general(n, m, dtype, order="C", seed=1):
    return np.asarray(np.random.default_rng(seed).normal(size=(n, m)), dtype=dtype, order=order)


def close(result, expected, dtype):
    assert result.dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    return result == pytest.approx(np.asarray(expected), rel=tolerance, abs=tolerance)


@forms
def test_cholesky_and_what_is_solved_with_it(dtype, order):
    A, B = positive(9, dtype, order), general(9, 4, dtype, order)
    kept = A.copy()
    L = linalg.cholesky(A)
    assert np.array_equal(A, kept)
    assert not np.triu(L, 1).any()
    assert close(L @ L.T, A, dtype)
    assert close(linalg.solve_cholesky(L, B), np.linalg.solve(A, B), dtype)
    assert close(linalg.triangular_inverse(L), np.linalg.inv(L), dtype)
    assert close(linalg.solve_cholesky(L, B[:, 0].copy()), np.linalg.solve(A, B[:, 0]), dtype)


@forms
def test_small_systems(dtype, order):
    A, b = positive(5, dtype, order), general(5, 2, dtype, order)
    assert close(linalg.solve_spd(A, b), np.linalg.solve(A, b), dtype)
    A = A - 2.5 * np.eye(5, dtype=dtype)
    assert np.linalg.eigvalsh(A)[0] < 0 < np.linalg.eigvalsh(A)[-1]
    expected = np.linalg.solve(A, b)
    assert close(linalg.solve_symmetric(A, b), expected, dtype)


@forms
def test_eigh(dtype, order):
    A = positive(8, dtype, order) - 2 * np.eye(8, dtype=dtype)
    kept = A.copy()
    values, vectors = linalg.eigh(A)
    assert np.array_equal(A, kept)
    assert close(values, np.linalg.eigvalsh(A), dtype)
    assert close((vectors * values) @ vectors.T, A, dtype)
    assert close(vectors.T @ vectors, np.eye(8), dtype)


@forms
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 1), (1, 5), (5, 5)])
def test_gram_fills_the_lower_triangle(dtype, order, shape):
    A = general(*shape, dtype, order)
    assert close(linalg.gram(A), np.tril(A.T @ A), dtype)
    assert close(linalg.gram(A, rows=True), np.tril(A @ A.T), dtype)
    wide = general(2 * shape[0], 2 * shape[1], dtype, order)[::2, ::2]
    assert close(linalg.gram(wide), np.tril(wide.T @ wide), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_matmul(dtype, orders):
    A, B = general(4, 6, dtype, orders[0]), general(6, 3, dtype, orders[1], seed=2)
    assert close(linalg.matmul(A, B), A @ B, dtype)
    assert close(linalg.matmul(A, B[:, 1]), A @ B[:, 1], dtype)
    assert close(linalg.matmul(A.T, A), A.T @ A, dtype)
    assert close(linalg.matmul(A[::2, ::2], B[::2]), A[::2, ::2] @ B[::2], dtype)
    assert close(linalg.matmul(A, B[:, :1]), A @ B[:, :1], dtype)


@forms
def test_fortran_copies_a_symmetric_matrix(dtype, order):
    A = positive(5, dtype, order)
    copy = linalg.fortran(A)
    assert copy.flags.f_contiguous
    assert np.array_equal(copy, A)
    copy[0, 0] = -1.0
    assert A[0, 0] != -1.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_errors_name_the_pivot(dtype):
    A = np.diag(np.array([1, 2, -3, 4], dtype=dtype))
    with pytest.raises(linalg.LinAlgError, match="minor of order 3 is not positive definite"):
        linalg.cholesky(A)
    with pytest.raises(linalg.LinAlgError, match="minor of order 3 is not positive definite"):
        linalg.solve_spd(A, np.ones((4, 1), dtype))
    A[2, 2] = 0.0
    with pytest.raises(linalg.LinAlgError, match="element 3 of a triangular factor is zero"):
        linalg.triangular_inverse(A)
    with pytest.raises(linalg.LinAlgError, match="pivot 3 of a symmetric system is zero"):
        linalg.solve_symmetric(A, np.ones((4, 1), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_in_place_factorisation_uses_the_memory_given(dtype):
    A = positive(6, dtype, "F")
    expected = linalg.cholesky(A)
    assert np.array_equal(linalg.cholesky(A, overwrite=True), expected)
    assert np.array_equal(A, expected)
