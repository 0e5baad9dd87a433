"""Every form of a kernel matrix against the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from registries import KERNELS
from threadpoolctl import threadpool_limits

from onefit.features.feature_gram import FeatureGram
from onefit.features.maps import nystrom_map
from onefit.gram import DenseGram, TiledGram, as_gram, dense, tiled
from onefit.kernels import CallableKernel, Precomputed, WeightedSum
from onefit.linalg.threads import blas_threads

#: rows of more than one tile
N = tiled.TILE_ROWS + 37


def points(dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(N, 3)).astype(dtype)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("threads", [1, 2])
def test_tiles_are_the_matrix(kernel, dtype, threads):
    X, random = points(dtype)[:150], np.random.default_rng(1)
    K, found = kernel(X), kernel.tiles(X)
    found.tile_rows = 40
    tolerance = 100 * float(np.finfo(dtype).eps)
    V, rows = random.normal(size=(150, 4)), random.permutation(150)[:11]
    with threadpool_limits(threads):
        assert found.shape == K.shape
        assert found.dtype == K.dtype == found.hold().dtype
        whole = found.hold().matrix
        np.testing.assert_array_equal(whole, whole.T)
        np.testing.assert_allclose(whole, K, rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(found.diagonal, np.diag(K), rtol=tolerance)
        np.testing.assert_allclose(found.columns(rows), K[:, rows], rtol=tolerance, atol=tolerance)
        assert found.matmul(V).dtype == np.float64
        size = tolerance * np.abs(K).max()
        np.testing.assert_allclose(
            found.matmul(V), K.astype(float) @ V, rtol=tolerance, atol=9 * size
        )
        assert found.matmul(V.astype(dtype)).dtype == dtype


def test_products_are_the_same_in_any_number_of_threads():
    K, V = KERNELS[0].tiles(points()), np.random.default_rng(1).normal(size=(N, 3))
    K.tile_rows = 40
    found = []
    for threads in (1, 2, 2, 2):
        with threadpool_limits(threads):
            found.append(K.matmul(V))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_sparse_points():
    X = sp.random_array((N, 20), density=0.2, rng=0, format="csr")
    kernel = KERNELS[0]
    np.testing.assert_allclose(kernel.tiles(X).hold(), kernel(X), rtol=1e-12)


def test_a_wider_type():
    wide = KERNELS[0].tiles(points(np.float32)).astype(np.float64)
    assert wide.dtype == wide.hold().dtype == np.float64
    narrow = KERNELS[0].tiles(points(np.float32)).hold()
    np.testing.assert_array_equal(wide.hold(), narrow)


def forms(X, dtype):
    """One matrix as every form on the host."""
    kernel = KERNELS[0]
    return [as_gram(kernel(X)), as_gram(np.asfortranarray(kernel(X))), kernel.tiles(X)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_forms_agree(dtype):
    X, random = points(dtype), np.random.default_rng(1)
    K, V, rows = KERNELS[0](X), random.normal(size=(N, 3)), random.permutation(N)[:11]
    few = np.zeros_like(V)
    few[rows[:4]] = 1.0
    close = {"rtol": 100 * float(np.finfo(dtype).eps), "atol": 100 * float(np.finfo(dtype).eps)}
    for gram in forms(X, dtype):
        assert gram.shape == K.shape
        assert gram.dtype == K.dtype
        for columns in (V, few, 0.0 * V):
            for precise in (False, True):
                found = gram.matmul(columns, precise)
                assert found.dtype == np.float64
                np.testing.assert_allclose(found, K.astype(float) @ columns, **close)
            same = gram.matmul(np.asfortranarray(columns, dtype=dtype))
            assert same.dtype == dtype
            np.testing.assert_allclose(same, K @ columns.astype(dtype), rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(gram.diagonal, np.diag(K), **close)
        np.testing.assert_allclose(gram.block(rows), K[np.ix_(rows, rows)], **close)
        np.testing.assert_allclose(gram.block(rows, rows[:2]), K[np.ix_(rows, rows[:2])], **close)
        np.testing.assert_allclose(gram.columns(rows), K[:, rows], **close)
        np.testing.assert_allclose(gram.take(rows).matrix, K[np.ix_(rows, rows)], **close)
        np.testing.assert_allclose(gram.row_sums(), np.abs(K).sum(axis=1), rtol=1e-5)
        np.testing.assert_allclose(gram.row_sums(squared=True), (K**2).sum(axis=1), rtol=1e-5)
        np.testing.assert_allclose(np.asarray(gram), K, **close)
        assert gram.astype(np.float64).dtype == np.float64


def test_a_matrix_of_more_than_one_panel():
    n = int(1.01 * dense.PANEL_ELEMENTS**0.5)
    x = np.random.default_rng(0).normal(size=n).astype(np.float32)
    V = np.random.default_rng(1).normal(size=(n, 2)).astype(np.float32)
    found = DenseGram(np.multiply.outer(x, x)).matmul(V)
    np.testing.assert_allclose(found, np.multiply.outer(x, x @ V), rtol=1e-3, atol=1e-2)


def test_rows_that_meet_zeros_are_not_read():
    K = KERNELS[0](points())
    V = np.zeros((N, 2), order="F")
    V[[3, 50]] = 1.0
    expected = K @ V
    poisoned = K.copy()
    unread = np.setdiff1d(np.arange(N), [3, 50])
    poisoned[np.ix_(unread, unread)] = np.nan
    np.testing.assert_allclose(DenseGram(poisoned).matmul(V), expected, rtol=1e-12)


def test_features_are_the_matrix_of_their_products():
    X, random = points(), np.random.default_rng(1)
    features = nystrom_map(KERNELS[0], X[:20])
    gram, Phi = FeatureGram(X, features), features.apply(X)
    V, rows = random.normal(size=(N, 3)), random.permutation(N)[:11]
    np.testing.assert_allclose(gram.matmul(V), Phi @ (Phi.T @ V), atol=1e-12)
    np.testing.assert_allclose(gram.block(rows), Phi[rows] @ Phi[rows].T, atol=1e-12)
    np.testing.assert_allclose(np.asarray(gram), Phi @ Phi.T, atol=1e-12)
    np.testing.assert_allclose(gram.take(rows).block(np.arange(11)), gram.block(rows), atol=1e-12)


def test_the_entries_of_a_matrix_that_is_not_held():
    with pytest.raises(RuntimeError, match="hold"):
        KERNELS[0].tiles(points()).matrix  # noqa: B018


def test_an_error_in_a_tile_comes_out():
    def broken(rows, columns):
        raise ValueError("no such tile")

    for threads in (1, 2):
        with threadpool_limits(threads), pytest.raises(ValueError, match="no such tile"):
            TiledGram(broken, np.ones(N)).hold()


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
