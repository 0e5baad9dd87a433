"""Every linear-algebra routine against NumPy, in both precisions and memory orders."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from onefit import linalg
from onefit.linalg import blas

DTYPES = [np.float32, np.float64]
ORDERS = ["C", "F"]
forms = pytest.mark.parametrize(
    ("dtype", "order"), [(dtype, order) for dtype in DTYPES for order in ORDERS]
)
each_dtype = pytest.mark.parametrize("dtype", DTYPES)


def positive(n, dtype, order="C", seed=0):
    A = np.random.default_rng(seed).normal(size=(n, n + 3))
    return np.asarray((A @ A.T / n + np.eye(n)), dtype=dtype, order=order)


def general(n, m, dtype, order="C", seed=1):
    return np.asarray(np.random.default_rng(seed).normal(size=(n, m)), dtype=dtype, order=order)


def close(result, expected, dtype):
    assert result.dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    return np.allclose(result, expected, rtol=tolerance, atol=tolerance)


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
    assert close(linalg.solve_lower(L, B.copy(order=order)), np.linalg.solve(L, B), dtype)


@forms
@pytest.mark.parametrize("n", [1, 9, 300])
def test_the_inverse_has_both_triangles(dtype, order, n):
    A = positive(n, dtype, order)
    expected = np.linalg.inv(A)
    assert close(linalg.inverse_spd(A), expected, dtype)


@forms
def test_small_systems(dtype, order):
    A, b = positive(5, dtype, order), general(5, 2, dtype, order)
    assert close(linalg.solve_spd(A, b), np.linalg.solve(A, b), dtype)
    A = A - 2.5 * np.eye(5, dtype=dtype)
    assert np.linalg.eigvalsh(A)[0] < 0 < np.linalg.eigvalsh(A)[-1]
    expected = np.linalg.solve(A, b)
    assert close(linalg.solve_symmetric(A, b), expected, dtype)


@pytest.mark.parametrize(
    ("dtype", "order", "n"),
    [
        *((dtype, order, 8) for dtype in DTYPES for order in ORDERS),
        (np.float32, "F", blas.MAX_DIVIDE_AND_CONQUER_ROWS + 1),
        (np.float64, "C", blas.MAX_DIVIDE_AND_CONQUER_ROWS + 1),
    ],
)
def test_eigh(dtype, order, n):
    """Small and large matrices have solvers of their own."""
    A = positive(n, dtype, order) - 2 * np.eye(n, dtype=dtype)
    kept = A.copy()
    values, vectors = linalg.eigh(A)
    assert np.array_equal(A, kept)
    tolerance = 20 * n * float(np.finfo(dtype).eps)
    size = tolerance * np.abs(values).max()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A.astype(float)), rtol=0, atol=size)
    np.testing.assert_allclose((vectors * values) @ vectors.T, A, rtol=0, atol=size)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n), rtol=0, atol=tolerance)


@each_dtype
@pytest.mark.parametrize("n", [2, 3, 64, 65, 130])
def test_tridiagonal_form(dtype, n):
    A = positive(n, dtype, "F")
    diagonal, beside, reflections = linalg.tridiagonal(A)
    H = reflections.times(np.eye(n, dtype=dtype), 0)
    T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    assert close(H @ T @ H.T, A, dtype)
    assert close(H.T @ H, np.eye(n), dtype)
    values, vectors = linalg.eigh_tridiagonal(diagonal, beside)
    assert close((vectors * values) @ vectors.T, T, dtype)
    assert linalg.smallest_tridiagonal(diagonal, beside) == pytest.approx(values[0], rel=1e-4)


def test_reflections_of_a_block_of_rows():
    A = positive(40, np.float64, "F")
    _, _, reflections = linalg.tridiagonal(A)
    H = reflections.times(np.eye(40), 0)
    block = general(12, 12, np.float64)
    assert close(reflections.times(block, 9), H[:, 9:21] @ block, np.float64)


@forms
@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 1), (1, 5), (5, 5)])
def test_gram_fills_the_lower_triangle(dtype, order, shape):
    A = general(*shape, dtype, order)
    assert close(linalg.gram(A), np.tril(A.T @ A), dtype)
    assert close(linalg.gram(A, rows=True), np.tril(A @ A.T), dtype)
    wide = general(2 * shape[0], 2 * shape[1], dtype, order)[::2, ::2]
    assert close(linalg.gram(wide), np.tril(wide.T @ wide), dtype)


@forms
def test_gram_into_memory_at_hand(dtype, order):
    A, out = general(5, 7, dtype, order), np.full((5, 5), 3.0, dtype, order="F")
    linalg.gram(A, rows=True, out=out)
    assert close(np.tril(out), np.tril(A @ A.T), dtype)
    assert (out[np.triu_indices(5, 1)] == 3.0).all()


@forms
def test_updates_in_place(dtype, order):
    A, B = general(5, 3, dtype, order), general(3, 4, dtype, order, seed=2)
    total = general(5, 4, dtype, "F", seed=3)
    expected = total + A @ B
    linalg.accumulate(total, np.asfortranarray(A), B)
    assert close(total, expected, dtype)
    linalg.accumulate(total, np.asfortranarray(A), B, fresh=True)
    assert close(total, A @ B, dtype)
    square = np.asfortranarray(positive(5, dtype))
    expected = square + A @ A.T
    linalg.add_gram(square, A)
    assert close(np.tril(square), np.tril(expected), dtype)
    linalg.add_gram(square, A[:, :0])
    assert close(np.tril(square), np.tril(expected), dtype)
    expected = total + np.outer(A[:, 0], B[0])
    linalg.rank_one(total, A[:, 0].copy(), B[0].copy())
    assert close(total, expected, dtype)


@each_dtype
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_matmul(dtype, orders):
    A, B = general(4, 6, dtype, orders[0]), general(6, 3, dtype, orders[1], seed=2)
    assert close(linalg.matmul(A, B), A @ B, dtype)
    assert close(linalg.matmul(A, B[:, 1]), A @ B[:, 1], dtype)
    assert close(linalg.matmul(A.T, A), A.T @ A, dtype)
    assert close(linalg.matmul(A[::2, ::2], B[::2]), A[::2, ::2] @ B[::2], dtype)
    assert close(linalg.matmul(A, B[:, :1]), A @ B[:, :1], dtype)


@forms
@pytest.mark.parametrize("n", [9, 150])
def test_products_read_only_the_rows_they_need(dtype, order, n):
    A, B = positive(n, dtype, order), general(n, 3, dtype, order)
    B[::2] = 0.0
    poisoned = A.copy(order=order)
    stored = poisoned if order == "C" else poisoned.T  # a symmetric matrix is read as it lies
    stored[::2] = np.nan
    assert close(linalg.row_product(poisoned, B), A @ B, dtype)
    assert not linalg.row_product(A, np.zeros_like(B)).any()


@forms
@pytest.mark.parametrize("m", [0, 1, 64, 65, 150])
def test_submatrices(dtype, order, m):
    A, random = general(200, 90, dtype, order), np.random.default_rng(0)
    rows, columns = random.permutation(200)[:m], random.permutation(90)[:7]
    assert np.array_equal(linalg.submatrix(A, rows, columns), A[np.ix_(rows, columns)])


@each_dtype
@pytest.mark.parametrize("n", [3, 130])
def test_unit_ridge(dtype, n):
    A, root = positive(n, dtype), np.abs(general(n, 1, dtype))[:, 0]
    found = linalg.unit_ridge(A, root)
    assert found.flags.f_contiguous
    assert close(found, np.eye(n) + root[:, None] * A * root, dtype)


@forms
def test_fortran_copies_a_symmetric_matrix(dtype, order):
    A = positive(5, dtype, order)
    copy = linalg.fortran(A)
    assert copy.flags.f_contiguous
    assert np.array_equal(copy, A)
    copy[0, 0] = -1.0
    assert A[0, 0] != -1.0


@each_dtype
def test_the_norm_of_a_gram_matrix_is_bounded_and_nearly_met(dtype):
    for seed in range(5):
        A = general(30, 20, dtype, seed=seed)
        largest = np.linalg.eigvalsh(A.T @ A)[-1]
        assert largest <= linalg.HOST.norm_of_gram(A) <= 2.01 * largest


@each_dtype
def test_errors_name_the_pivot(dtype):
    A = np.diag(np.array([1, 2, -3, 4], dtype=dtype))
    with pytest.raises(linalg.LinAlgError, match="minor of order 3 is not positive definite"):
        linalg.cholesky(A)
    with pytest.raises(linalg.LinAlgError, match="minor of order 3 is not positive definite"):
        linalg.solve_spd(A, np.ones((4, 1), dtype))
    A[2, 2] = 0.0
    right = np.ones((4, 1), dtype)
    with pytest.raises(linalg.LinAlgError, match="element 3 of a triangular factor is zero"):
        linalg.solve_lower(A, right)
    with pytest.raises(linalg.LinAlgError, match="element 3 of a triangular factor is zero"):
        linalg.triangular_inverse(A)
    with pytest.raises(linalg.LinAlgError, match="pivot 3 of a symmetric system is zero"):
        linalg.solve_symmetric(A, np.ones((4, 1), dtype))


@each_dtype
def test_in_place_factorisation_uses_the_memory_given(dtype):
    A = positive(6, dtype, "F")
    expected = linalg.cholesky(A)
    assert np.array_equal(linalg.cholesky(A, overwrite=True), expected)
    assert np.array_equal(A, expected)


@each_dtype
def test_eigenvalues_below_zero_are_rounding_or_an_error(dtype):
    tiny = -0.1 * np.finfo(dtype).eps ** 0.5
    values = np.array([tiny, 0.5, 1.0], dtype=dtype)
    assert linalg.without_rounding(values).tolist() == [0.0, 0.5, 1.0]
    values[0] *= 100.0
    with pytest.raises(ValueError, match=r"kernel matrix is indefinite: .* is -"):
        linalg.without_rounding(values)
    # beside a part that was set aside it may still be rounding
    assert linalg.without_rounding(values, size=100.0)[0] == 0.0


def test_overflow_is_quiet_only_where_it_is_looked_at():
    def overflow():
        return np.float64(1e300) * np.float64(1e300)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert linalg.overflowing(overflow)() == np.inf
        with pytest.raises(RuntimeWarning):
            overflow()
