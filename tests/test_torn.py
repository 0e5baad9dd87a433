"""Inverses at many shifts from a torn tridiagonal form, against the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefit import _linalg as linalg
from onefit import torn
from onefit.torn import Torn

EPS = np.finfo(np.float64).eps


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(torn, "SMALLEST", 5)


def matrix(n, rank, seed, dtype=np.float64):
    """Positive semidefinite, with eigenvalues that fall over many powers of ten."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    values = np.where(np.arange(n) < rank, 10.0 ** -rng.uniform(0, 9, size=n), 0.0)
    A = (Q * values) @ Q.T
    return np.asfortranarray((A + A.T) / 2, dtype=dtype)


def rebuilt(parts):
    return parts.vectors @ (np.diag(parts.values) - parts.tears @ parts.tears.T) @ parts.vectors.T


@given(n=st.integers(1, 60), rank=st.integers(0, 60), seed=st.integers(0, 10**6))
def test_the_parts_give_the_matrix(n, rank, seed):
    A = matrix(n, rank, seed)
    parts = Torn.decompose(A.copy(order="F"))
    assert parts.tears.shape[1] <= max(0, min(n // 5, torn.MOST) - 1)
    assert (np.diff(parts.values) >= 0).all()
    assert parts.values[0] >= -32 * EPS * np.abs(A).sum(axis=0).max()
    np.testing.assert_allclose(rebuilt(parts), A, rtol=0, atol=64 * EPS * np.abs(A).max(initial=1))
    np.testing.assert_allclose(parts.vectors.T @ parts.vectors, np.eye(n), atol=64 * n * EPS)


@given(
    n=st.integers(10, 60),
    rank=st.integers(0, 60),
    seed=st.integers(0, 10**6),
    power=st.floats(-8.0, 3.0),
)
def test_the_inverse_at_any_shift(n, rank, seed, power):
    A, c = matrix(n, rank, seed), 10.0**power
    parts = Torn.decompose(A.copy(order="F"))
    W = parts.correction(c)
    inside = np.diag(1.0 / (np.maximum(parts.values, 0.0) + c)) + W @ W.T
    residual = (A + c * np.eye(n)) @ (parts.vectors @ inside @ parts.vectors.T) - np.eye(n)
    assert np.abs(residual).max() <= 64 * n * EPS * (1.0 + 1.0 / c)


def test_there_are_tears_and_they_matter():
    A = matrix(60, 60, seed=0)
    parts = Torn.decompose(A.copy(order="F"))
    assert parts.tears.shape == (60, torn.MOST - 1)
    assert np.abs(rebuilt(parts) - A).max() < 1e-14
    without = parts.vectors @ np.diag(parts.values) @ parts.vectors.T
    assert np.abs(without - A).max() > 1e-4


def test_a_shift_below_rounding_stays_finite():
    A = matrix(60, 20, seed=1)
    W = Torn.decompose(A.copy(order="F")).correction(1e-25)
    assert np.isfinite(W).all()


def test_a_diagonal_matrix_needs_no_tears():
    A = np.asfortranarray(np.diag(np.arange(40.0)))
    parts = Torn.decompose(A.copy(order="F"))
    assert parts.tears.shape == (40, 0)
    assert parts.correction(0.1).shape == (40, 0)
    np.testing.assert_allclose(parts.values, np.arange(40.0))


def test_few_rows_are_decomposed_whole(monkeypatch):
    monkeypatch.setattr(torn, "SMALLEST", 125)
    A = matrix(60, 60, seed=2)
    parts = Torn.decompose(A.copy(order="F"))
    assert parts.tears.shape == (60, 0)
    np.testing.assert_allclose(rebuilt(parts), A, atol=1e-14)


def test_single_precision():
    A = matrix(50, 50, seed=3, dtype=np.float32)
    parts = Torn.decompose(A.copy(order="F"))
    assert {parts.values.dtype, parts.vectors.dtype, parts.tears.dtype} == {np.dtype(np.float32)}
    assert parts.correction(0.1).dtype == np.float32
    np.testing.assert_allclose(rebuilt(parts), A, atol=1e-5)


def test_the_matrix_lends_its_memory():
    A = matrix(50, 50, seed=4)
    assert np.shares_memory(Torn.decompose(A).vectors, A)


@given(n=st.integers(1, 80), seed=st.integers(0, 10**6))
def test_tridiagonal(n, seed):
    A = matrix(n, n, seed)
    diagonal, beside, reflections = linalg.tridiagonal(A.copy(order="F"))
    H = reflections.times(np.eye(n), 0)
    T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    np.testing.assert_allclose(H @ T @ H.T, A, atol=1e-14)
    np.testing.assert_allclose(H.T @ H, np.eye(n), atol=1e-13)
