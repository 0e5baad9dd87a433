from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onefit.kernels import Gaussian, Geometry, Laplace, Linear, Matern32, Polynomial, WeightedSum
from onefit.kernels import distances as module

METRICS = ["sqeuclidean", "euclidean", "manhattan", "dot"]
EPS = {np.float32: 1.2e-7, np.float64: 2.3e-16}


def naive(metric, X, Y):
    """Each pair by its definition, in extended precision."""
    X, Y = np.asarray(X, np.longdouble), np.asarray(Y, np.longdouble)
    pair = {
        "sqeuclidean": lambda x, y: ((x - y) ** 2).sum(),
        "euclidean": lambda x, y: np.sqrt(((x - y) ** 2).sum()),
        "manhattan": lambda x, y: np.abs(x - y).sum(),
        "dot": lambda x, y: (x * y).sum(),
    }[metric]
    values = [[pair(x, y) for y in Y] for x in X]
    return np.array(values, np.longdouble).reshape(len(X), len(Y))


@st.composite
def point_sets(draw):
    """Two sets of points with duplicates, a large offset, and either float type."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    d = draw(st.integers(1, 5))
    elements = st.floats(-10, 10, width=32)
    X = draw(hnp.arrays(dtype, (draw(st.integers(1, 9)), d), elements=elements))
    Y = draw(hnp.arrays(dtype, (draw(st.integers(1, 9)), d), elements=elements))
    X[-1], Y[-1] = X[0], X[0]
    offset = dtype(draw(st.sampled_from([0, 0, 1000])))
    return X + offset, Y + offset


@pytest.mark.parametrize("metric", METRICS)
@given(sets=point_sets(), with_y=st.booleans())
def test_pairs_equal_the_definition(metric, sets, with_y):
    X, Y = sets
    geometry = Geometry(X, Y if with_y else None)
    Y = Y if with_y else X
    got, expected = geometry.take(metric), naive(metric, X, Y)
    assert got.dtype == X.dtype
    assert got.shape == (len(X), len(Y))
    eps = EPS[X.dtype.type]
    if metric == "dot":
        bound = 8 * eps * np.outer(*(np.linalg.norm(Z.astype(float), axis=1) for Z in (X, Y)))
    else:  # relative to the distance itself, however close the points
        bound = (4 * EPS[np.float32] if X.dtype == np.float32 else 1e-9) * expected
    tiny = float(np.finfo(X.dtype).tiny)  # squares below it underflow
    underflow = np.sqrt(tiny) if metric == "euclidean" else tiny
    assert np.all(np.abs(got - expected) <= bound + underflow)
    if not with_y:
        np.testing.assert_array_equal(got, got.T)
        if metric != "dot":
            assert np.all(np.diag(got) == 0)


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array, sp.coo_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", METRICS)
def test_sparse_points_agree_with_the_definition(metric, dtype, container):
    rng = np.random.default_rng(0)
    X = sp.random_array((12, 30), density=0.2, rng=rng, dtype=dtype).toarray()
    Y = sp.random_array((7, 30), density=0.2, rng=rng, dtype=dtype).toarray()
    X[3], Y[2], X[5] = X[0], X[0], 0
    rtol = 4 * EPS[np.float32] if dtype == np.float32 else 1e-12
    for other in (None, Y):
        expected = naive(metric, X, X if other is None else other).astype(float)
        got = Geometry(container(X), None if other is None else container(other)).take(metric)
        assert got.dtype == dtype
        assert isinstance(got, np.ndarray)
        np.testing.assert_allclose(got, expected, rtol=rtol, atol=1e-300)
        if other is None:
            np.testing.assert_array_equal(got, got.T)
    mixed = Geometry(container(X), Y).take(metric)
    np.testing.assert_allclose(mixed, naive(metric, X, Y).astype(float), rtol=rtol, atol=1e-300)


def test_sparse_entries_given_twice_are_summed():
    X = sp.csr_matrix(([1.0, 2.0, 5.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    assert not X.has_canonical_format
    np.testing.assert_array_equal(Geometry(X).take("dot"), [[9, 0], [0, 25]])
    np.testing.assert_array_equal(Geometry(X).take("sqeuclidean"), [[0, 34], [34, 0]])
    np.testing.assert_array_equal(Geometry(X).take("manhattan"), [[0, 8], [8, 0]])
    assert X.nnz == 3  # the user's matrix is left alone


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("metric", METRICS)
def test_many_blocks_of_rows_agree_with_the_definition(metric, make):
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(600, 3)), 1)
    X[400:450], X[500:520] = X[:50], X[300:320]
    with np.errstate(all="raise"):
        got = Geometry(make(X)).take(metric)
        one_sided = Geometry(make(X), make(X.copy())).take(metric)
    np.testing.assert_array_equal(got, got.T)
    rows = [0, 255, 256, 310, 420, 510, 599]
    expected = naive(metric, X[rows], X).astype(float)
    np.testing.assert_allclose(got[rows], expected, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(one_sided[rows], expected, rtol=1e-9, atol=1e-14)
    if metric != "dot":
        assert np.all(got[np.arange(50), np.arange(400, 450)] == 0)
        assert np.all(got[np.arange(300, 320), np.arange(500, 520)] == 0)


def test_clusters_far_apart_keep_their_inner_distances():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    X[20:] += 1e7
    expected = naive("sqeuclidean", X, X).astype(float)
    np.testing.assert_allclose(Geometry(X).pairs("sqeuclidean"), expected, rtol=1e-9)
    X32 = X.astype(np.float32)
    expected = naive("sqeuclidean", X32, X32).astype(float)
    np.testing.assert_allclose(Geometry(X32).pairs("sqeuclidean"), expected, rtol=1e-6)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("gap", 10.0 ** -np.arange(1, 9))
def test_close_points_keep_the_digits_of_their_distance(gap, make):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(50, 8))
    Y = X + gap * rng.normal(size=X.shape)
    got = Geometry(make(X), make(Y)).pairs("sqeuclidean")
    np.testing.assert_allclose(got, naive("sqeuclidean", X, Y).astype(float), rtol=2e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 37, 300])
def test_matrices_of_one_set_of_points_are_exactly_symmetric(d, dtype):
    X = np.random.default_rng(7).normal(size=(391, d)).astype(dtype)
    for metric in METRICS:
        got = Geometry(X).take(metric)
        np.testing.assert_array_equal(got, got.T)


def test_symmetry_does_not_rest_on_the_rounding_of_a_product():
    rng, geometry = np.random.default_rng(8), Geometry(np.empty((600, 1)))
    got = module._distances(
        geometry,
        lambda rows, columns: rng.random((len(range(600)[rows]), len(range(600)[columns]))),
    )
    np.testing.assert_array_equal(got, got.T)
    assert np.all(np.diag(got) == 0)


def test_every_metric_is_kept_for_all_kernels():
    geometry = Geometry(np.random.default_rng(3).normal(size=(6, 2)))
    assert geometry.nbytes == 0
    for gamma in (0.1, 1.0, 10.0):
        parts = [Gaussian(gamma), Matern32(gamma), Laplace(gamma), Polynomial(gamma), Linear()]
        for kernel in parts:
            np.testing.assert_allclose(kernel.matrix(geometry), kernel(geometry.X), rtol=1e-12)
        WeightedSum(parts, [1.0] * 5).matrix(geometry)
    assert geometry.nbytes == 3 * 36 * 8, "squared distances, Manhattan distances, products"


def test_drop_frees_the_cache_and_nbytes_tells_its_size():
    geometry = Geometry(np.zeros((4, 2), np.float32), np.zeros((3, 2), np.float32))
    assert geometry.nbytes == 0
    geometry.take("euclidean")
    geometry.take("manhattan")
    assert geometry.nbytes == 2 * 12 * 4
    geometry.drop("euclidean")
    geometry.drop("dot")
    assert geometry.nbytes == 12 * 4
    geometry.take("sqeuclidean")
    geometry.take("manhattan")
    assert geometry.nbytes == 2 * 12 * 4


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("metric", METRICS)
def test_take_writes_scaled_values_into_out_and_spares_the_cache(metric, keep):
    X = np.random.default_rng(4).normal(size=(5, 2))
    geometry = Geometry(X, keep=keep)
    expected = naive(metric, X, X).astype(float)
    for out in (np.full((5, 5), np.nan), np.full((5, 5), np.nan, order="F"), None):
        got = geometry.take(metric, out, scale=-3.0)
        assert out is None or got is out
        np.testing.assert_allclose(got, -3.0 * expected, rtol=1e-12, atol=1e-300)
    got.fill(7.0)
    np.testing.assert_allclose(geometry.take(metric), expected, rtol=1e-12, atol=1e-300)
    assert (geometry.nbytes > 0) == keep


def test_the_cache_is_read_only():
    pairs = Geometry(np.eye(2)).pairs("dot")
    with pytest.raises(ValueError, match="read-only"):
        pairs[0, 0] = 1.0


def test_the_points_are_not_modified():
    for dtype in (np.float32, np.float64):
        X = np.arange(6, dtype=dtype).reshape(3, 2)
        X.setflags(write=False)
        for metric in METRICS:
            Geometry(X, X.copy()).take(metric)
            Geometry(X).take(metric)


def test_integers_become_float64_and_mixed_floats_too():
    X = np.arange(6).reshape(3, 2)
    assert Geometry(X).dtype == np.float64
    assert Geometry(X.astype(np.float32)).dtype == np.float32
    large = X.astype(np.float32) * np.float32(1e20)
    mixed = Geometry(large, X.astype(np.float64)).take("dot")
    assert mixed.dtype == np.float64
    np.testing.assert_allclose(mixed, large.astype(np.float64) @ X.T)
    assert np.isfinite(Geometry(large.astype(np.float64), large).take("sqeuclidean")).all()
    np.testing.assert_array_equal(Geometry(X).take("manhattan"), [[0, 4, 8], [4, 0, 4], [8, 4, 0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Geometry(np.zeros(3)), r"X must be two-dimensional.*\(3,\).*reshape"),
        (lambda: Geometry(np.zeros((2, 3)), np.zeros((2, 4))), "X has 3 columns but Y has 4"),
        (lambda: Geometry(np.eye(2)).pairs("cosine"), "metric must be one of .*'cosine'"),
        (lambda: Geometry(np.eye(2)).take("dot", np.empty((4, 2))), r"\(4, 2\).*\(2, 2\)"),
    ],
)
def test_errors_name_what_was_found(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, 1e308])
def test_overflow_and_nan_are_errors(value, metric, make):
    X = np.array([[1.0, 2.0], [value, -value], [-value, 4.0]])
    if metric == "manhattan" and value == 1e200:
        assert np.isfinite(Geometry(make(X)).take(metric)).all()
        return
    with np.errstate(all="raise", under="ignore"):
        with pytest.raises(ValueError, match=r"X has NaN or infinite entries, or .*rescale X"):
            Geometry(make(X)).take(metric)
        with pytest.raises(ValueError, match=r"Y has NaN or infinite entries, or .*rescale Y"):
            Geometry(make(np.ones((1, 2))), make(X)).take(metric)


def test_float32_distances_that_float32_cannot_hold_are_an_error():
    X = np.array([[0.0], [1e19], [-1e19]], np.float32)
    with pytest.raises(ValueError, match="overflow float32"):
        Geometry(X).take("sqeuclidean")


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("metric", METRICS)
def test_distances_that_vanish_are_an_error(metric, make):
    """With gamma="scale" all rows would be the same point, which is an error unless they are."""
    X = np.array([[0.0], [1.0], [-1.0]])
    for dtype, size in ((np.float32, 1e-20), (np.float64, 1e-155), (np.float64, 1e-170)):
        points, scale = Geometry(make((size * X).astype(dtype))), min(1.0 / size, 1e150)
        if metric == "manhattan":
            assert points.take(metric, scale=scale)[0, 1] > 0.0
            continue
        scale = scale if metric == "euclidean" else scale**2
        with pytest.raises(ValueError, match=f"vanish in {np.dtype(dtype).name}: rescale X"):
            points.take(metric, scale=scale)
        assert np.isfinite(points.take(metric, scale=1.0)).all()
    for same in (np.zeros((3, 2)), np.full((3, 2), 1e-170)):
        assert np.ptp(Geometry(make(same)).take(metric, scale=1e308)) == 0.0
