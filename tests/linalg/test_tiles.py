"""Products with a matrix that is not held, against the matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from registries import KERNELS
from threadpoolctl import threadpool_limits

from onefit.kernels import CallableKernel, Precomputed, WeightedSum
from onefit.linalg import tiles
from onefit.linalg.tiles import Tiles, blas_threads, product, take_columns

N = 97


@pytest.fixture(autouse=True)
def small_tiles(monkeypatch):
    monkeypatch.setattr(tiles, "SIDE", 30)
    monkeypatch.setattr(tiles, "PANEL", 20 * N)


def points(dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(N, 3)).astype(dtype)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_are_the_matrix(kernel, dtype, threads):
    X, random = points(dtype), np.random.default_rng(1)
    K, found = kernel(X), kernel.tiles(X)
    tolerance = 100 * float(np.finfo(dtype).eps)
    V, rows = random.normal(size=(N, 4)), random.permutation(N)[:11]
    with threadpool_limits(threads):
        assert found.shape == K.shape
        assert found.dtype == K.dtype == found.whole().dtype
        np.testing.assert_array_equal(found.whole(), found.whole().T)
        np.testing.assert_allclose(found.whole(), K, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(found.diagonal(), np.diag(K), rtol=tolerance)
        np.testing.assert_allclose(found.columns(rows), K[:, rows], rtol=tolerance, atol=tolerance)
        assert (found @ V).dtype == np.float64
        size = tolerance * np.abs(K).max()
        np.testing.assert_allclose(found @ V, K.astype(float) @ V, rtol=tolerance, atol=9 * size)
        assert (found @ V.astype(dtype)).dtype == dtype


def test_sparse_points():
    X = sp.random_array((N, 20), density=0.2, rng=0, format="csr")
    kernel = KERNELS[0]
    np.testing.assert_allclose(kernel.tiles(X).whole(), kernel(X), rtol=1e-12)


def test_a_wider_type():
    wide = KERNELS[0].tiles(points(np.float32)).astype(np.float64)
    assert wide.dtype == wide.whole().dtype == np.float64
    np.testing.assert_array_equal(wide.whole(), KERNELS[0].tiles(points(np.float32)).whole())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_a_matrix_that_is_held(dtype):
    K, V = KERNELS[0](points(dtype)), np.random.default_rng(1).normal(size=(N, 3))
    assert product(K, V).dtype == np.float64
    np.testing.assert_allclose(product(K, V), K.astype(float) @ V, rtol=1e-12)
    assert product(K, V.astype(dtype)).dtype == dtype
    rows = np.array([5, 0, 96])
    np.testing.assert_array_equal(take_columns(K, rows), K[:, rows])


def test_an_error_in_a_tile_comes_out():
    def broken(rows, columns):
        raise ValueError("no such tile")

    for threads in (1, 2):
        with threadpool_limits(threads), pytest.raises(ValueError, match="no such tile"):
            Tiles(broken, np.ones(N)).whole()


def test_threads_follow_the_limit():
    for threads in (1, 2):
        with threadpool_limits(threads):
            assert blas_threads() == threads


def test_which_kernels_are_known_to_be_definite():
    unknown = CallableKernel(lambda X, Y: X @ Y.T)
    assert all(kernel.definite for kernel in KERNELS)
    assert not unknown.definite
    assert not Precomputed().definite
    assert not WeightedSum([KERNELS[0], unknown], [1.0, 1.0]).definite
