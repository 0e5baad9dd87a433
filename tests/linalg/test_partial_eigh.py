"""Inverses at many shifts from a torn tridiagonal form, against the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefit.linalg.partial_eigh import MAX_BLOCKS, MIN_BLOCK_ROWS, PartialEigh

EPS = np.finfo(np.float64).eps
#: from one row to four blocks, the ends of these at all places
TWO = 2 * MIN_BLOCK_ROWS
SIZES = st.sampled_from([1, 2, 30, TWO - 1, TWO, TWO + 37, 2 * TWO])


def correction(parts, c):
    """W at one c, (n, p)."""
    return parts.corrections(np.array([c]))[0].T


def matrix(n, rank, seed, dtype=np.float64):
    """Positive semidefinite, with eigenvalues that fall over many powers of ten."""
    rng = np.random.default_rng(seed)
    values = np.where(np.arange(n) < rank * n, 10.0 ** -rng.uniform(0, 9, size=n), 0.0)
    root = np.diag(np.sqrt(values))
    for v in rng.normal(size=(3, n)):
        root -= np.outer(root @ v, 2.0 * v / (v @ v))
    return np.asfortranarray(root.T @ root, dtype=dtype)


def decompose(A, **options):
    return PartialEigh.decompose(A.copy(order="F"), **options)


def rebuilt(parts):
    Q, U = parts.vectors, parts.tears
    return (Q * parts.values) @ Q.T - (Q @ U) @ (Q @ U).T


@given(n=SIZES, rank=st.floats(0.0, 1.0), seed=st.integers(0, 10**6))
def test_the_parts_give_the_matrix(n, rank, seed):
    A = matrix(n, rank, seed)
    parts = decompose(A)
    assert parts.tears.shape[1] <= max(0, n // MIN_BLOCK_ROWS - 1)
    assert (np.diff(parts.values) >= 0).all()
    rounding = 64 * EPS * max(np.abs(A).sum(axis=0).max(), 1.0)
    assert parts.values[0] >= -rounding
    assert parts.smallest == pytest.approx(np.linalg.eigvalsh(A)[0], abs=rounding)
    np.testing.assert_allclose(rebuilt(parts), A, rtol=0, atol=rounding)
    np.testing.assert_allclose(parts.vectors.T @ parts.vectors, np.eye(n), atol=64 * n * EPS)


@given(n=SIZES, rank=st.floats(0.0, 1.0), seed=st.integers(0, 10**6), power=st.floats(-8.0, 3.0))
def test_the_inverse_at_any_shift(n, rank, seed, power):
    A, c = matrix(n, rank, seed), 10.0**power
    parts = decompose(A)
    W = correction(parts, c)
    inside = np.diag(1.0 / (np.maximum(parts.values, 0.0) + c)) + W @ W.T
    residual = (A + c * np.eye(n)) @ (parts.vectors @ inside @ parts.vectors.T) - np.eye(n)
    assert np.abs(residual).max() <= 64 * n * EPS * (1.0 + 1.0 / c)


def test_corrections_of_many_shifts_are_those_of_each():
    parts, shifts = decompose(matrix(3 * MIN_BLOCK_ROWS, 1.0, seed=5)), np.logspace(-6, 2, 5)
    found = parts.corrections(shifts)
    assert found.shape == (5, parts.tears.shape[1], 3 * MIN_BLOCK_ROWS)
    for one, c in zip(found, shifts, strict=True):
        # columns may be turned or have another sign, their products may not
        W = correction(parts, c)
        np.testing.assert_allclose(one.T @ one, W @ W.T, rtol=1e-9, atol=1e-9 * np.abs(W).max())


def test_there_are_tears_and_they_matter():
    A = matrix(4 * MIN_BLOCK_ROWS, 1.0, seed=0)
    parts = decompose(A)
    assert parts.tears.shape == (4 * MIN_BLOCK_ROWS, 3)
    assert np.abs(rebuilt(parts) - A).max() < 1e-13
    without = (parts.vectors * parts.values) @ parts.vectors.T
    assert np.abs(without - A).max() > 1e-6


def test_there_are_no_more_blocks_than_pay():
    n = (MAX_BLOCKS + 1) * MIN_BLOCK_ROWS
    A = np.asfortranarray(np.diag(np.ones(n)) + 0.1 * np.eye(n, k=1) + 0.1 * np.eye(n, k=-1))
    assert decompose(A).tears.shape == (n, MAX_BLOCKS - 1)


def test_the_whole_decomposition_has_no_tears():
    A = matrix(2 * MIN_BLOCK_ROWS, 1.0, seed=0)
    parts = decompose(A, whole=True)
    assert parts.tears.shape == (2 * MIN_BLOCK_ROWS, 0)
    np.testing.assert_allclose(rebuilt(parts), A, atol=1e-13)
    np.testing.assert_allclose(parts.values, np.linalg.eigvalsh(A), atol=1e-13)


def test_a_shift_below_rounding_stays_finite():
    W = correction(decompose(matrix(2 * MIN_BLOCK_ROWS, 0.3, seed=1)), 1e-25)
    assert np.isfinite(W).all()


def test_a_diagonal_matrix_needs_no_tears():
    n = 2 * MIN_BLOCK_ROWS
    parts = decompose(np.asfortranarray(np.diag(np.arange(float(n)))))
    assert parts.tears.shape == (n, 0)
    assert correction(parts, 0.1).shape == (n, 0)
    np.testing.assert_allclose(parts.values, np.arange(float(n)), atol=1e-10)


def test_single_precision():
    A = matrix(2 * MIN_BLOCK_ROWS, 1.0, seed=3, dtype=np.float32)
    parts = decompose(A)
    assert {parts.values.dtype, parts.vectors.dtype, parts.tears.dtype} == {np.dtype(np.float32)}
    assert parts.tears.shape[1] == 1
    assert correction(parts, 0.1).dtype == np.float32
    np.testing.assert_allclose(rebuilt(parts), A, atol=1e-5)


def test_the_matrix_lends_its_memory():
    for n in (50, 2 * MIN_BLOCK_ROWS):
        A = matrix(n, 1.0, seed=4)
        assert np.shares_memory(PartialEigh.decompose(A).vectors, A)
