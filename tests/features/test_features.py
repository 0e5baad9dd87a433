"""Feature maps: whitened, cut at the rank, and what dropping landmarks takes away."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from features._twins import KERNEL, rows_and_landmarks
from onefit.features import Fourier, Nystrom
from onefit.features.approximation import get_approximation
from onefit.features.fourier import fourier_map
from onefit.features.maps import HeldMap, nystrom_map
from onefit.kernels import (
    Gaussian,
    Laplace,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    PerFeature,
)
from onefit.linalg import Complement


def test_features_reproduce_the_kernel_on_landmarks():
    X, landmarks = rows_and_landmarks()
    found = nystrom_map(KERNEL, X[landmarks])
    assert found.size < landmarks.size  # doubles give no feature of their own
    Phi = found.apply(X[landmarks])
    np.testing.assert_allclose(Phi @ Phi.T, KERNEL(X[landmarks]), atol=1e-9)
    assert (np.square(found.apply(X)).sum(axis=1) <= 1.0 + 1e-9).all()


def test_products_need_no_features():
    X, landmarks = rows_and_landmarks()
    found = nystrom_map(KERNEL, X[landmarks])
    W = np.random.default_rng(0).normal(size=(found.size, 3))
    expected = found.apply(X) @ W
    values = found.evaluate(X, found.coefficients(W))
    np.testing.assert_allclose(values, expected, atol=1e-7)
    gap = np.abs(values - expected)
    assert (gap <= 4.0 * found.drift(W) * found.lengths(X)[:, None]).all()
    np.testing.assert_allclose(HeldMap(found).evaluate(found.apply(X), W), expected, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 5, 15])
def test_what_is_left_are_the_functions_of_the_other_landmarks(count):
    X, landmarks = rows_and_landmarks()
    found = nystrom_map(KERNEL, X[landmarks])
    dropped = np.random.default_rng(count).permutation(landmarks.size)[:count]
    lost = found.lost(dropped)
    kept = nystrom_map(KERNEL, X[np.delete(landmarks, dropped)])
    assert found.size - lost.shape[1] == kept.size
    Phi = found.apply(X)
    if lost.shape[1]:
        Q = Complement.of(lost).vectors(np.eye(kept.size))
        np.testing.assert_allclose(Q.T @ Q, np.eye(kept.size), atol=1e-12)
        Phi = Phi @ Q
    expected = kept.apply(X)
    np.testing.assert_allclose(Phi @ Phi.T, expected @ expected.T, atol=1e-8)


def test_a_double_stands_in_for_a_dropped_landmark():
    X = np.random.default_rng(0).normal(size=(6, 2))
    points = np.concatenate([X, X[:2]])
    found = nystrom_map(KERNEL, points)
    first = found.order[: found.size]
    pivot = int(first[np.isin(first, [0, 6])][0])
    assert found.lost(np.array([pivot])).shape[1] == 0
    assert found.lost(np.array([0, 6])).shape[1] == 1


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(0.3),
        Laplace(0.2),
        Matern12(0.5),
        Matern32(0.5),
        Matern52(0.5),
        PerFeature(Gaussian, (0.3, 0.0, 1.0)),
        PerFeature(Laplace, (0.3, 0.1, 0.2)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("orthogonal", [True, False])
def test_fourier_features_tend_to_the_kernel(kernel, orthogonal):
    X = np.random.default_rng(0).normal(size=(60, 3))
    K = kernel(X)
    gaps = []
    for size in (200, 20_000):
        Phi = fourier_map(kernel, 3, size, 0, orthogonal).apply(X)
        assert Phi.shape == (60, size)
        np.testing.assert_allclose(np.square(Phi).sum(axis=1), 1.0)
        gaps.append(np.sqrt(np.square(Phi @ Phi.T - K).mean()))
    assert gaps[1] < 0.012
    assert gaps[1] < 0.3 * gaps[0]


def test_orthogonal_frequencies_are_the_nearer_ones():
    X = np.random.default_rng(0).normal(size=(80, 8))
    K = Gaussian(0.1)(X)

    def gap(orthogonal):
        maps = [fourier_map(Gaussian(0.1), 8, 64, seed, orthogonal) for seed in range(20)]
        return np.mean([np.square(f.apply(X) @ f.apply(X).T - K).mean() for f in maps])

    assert gap(True) < 0.8 * gap(False)


def test_fourier_refuses_other_kernels():
    with pytest.raises(ValueError, match="use approximation='nystrom'"):
        fourier_map(Linear(), 3, 10, 0, True)


@pytest.mark.parametrize("landmarks", ["uniform", "pivoted"])
def test_kinds_of_landmarks(landmarks):
    X = np.random.default_rng(0).normal(size=(400, 2))
    s = np.ones(400)
    s[::2] = 0.0
    kind = Nystrom(25, landmarks, keep_landmarks=True)
    rows = get_approximation(kind).expand(Gaussian(1.0), X, s)
    assert rows.features.size == 25
    assert (s[rows.landmarks] > 0).all()
    used = rows.landmarks[rows.features.order]
    np.testing.assert_array_equal(rows.features.points, X[used[:25]])


def test_rows_of_rows_know_their_landmarks():
    """A landmark that is gone is no other row, whichever rows are taken after that."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    rows = get_approximation(Nystrom(20)).expand(Gaussian(1.0), X, np.ones(40))
    once, twice = np.arange(5, 35), np.arange(2, 30)
    taken, expected = rows.take(once).take(twice), rows.take(once[twice])
    np.testing.assert_array_equal(taken.landmarks, expected.landmarks)
    there = taken.landmarks >= 0
    np.testing.assert_array_equal(taken.X[taken.landmarks[there]], X[rows.landmarks[there]])
    assert not there.all()


def test_pivots_leave_no_row_as_far_out_as_uniform_landmarks_do():
    X = np.random.default_rng(0).normal(size=(600, 2))

    def left(landmarks):
        rows = get_approximation(Nystrom(40, landmarks)).expand(Gaussian(1.0), X, np.ones(600))
        return 1.0 - np.square(rows.kept[0]).sum(axis=1).min()

    assert left("pivoted") < 0.5 * left("uniform")


@pytest.mark.parametrize("tolerance", [1e-1, 1e-3])
def test_auto_reaches_the_tolerance(tolerance):
    X = np.random.default_rng(0).normal(size=(500, 2))
    kind = get_approximation(Nystrom("auto", tolerance=tolerance))
    rows = kind.expand(Gaussian(1.0), X, np.ones(500))
    left = 500 - np.square(rows.kept[0]).sum()
    assert left <= tolerance * 500
    kind = get_approximation(Nystrom(rows.features.size - 1, "pivoted"))
    fewer = kind.expand(Gaussian(1.0), X, np.ones(500))
    assert 500 - np.square(fewer.kept[0]).sum() > tolerance * 500


def test_sparse_rows_have_the_same_features():
    X = np.random.default_rng(0).normal(size=(50, 4)) * (np.arange(4) != 2)
    for kind in (Nystrom(20), Fourier(20)):
        approximation = get_approximation(kind)
        dense = approximation.expand(Gaussian(0.3), X, np.ones(50))
        sparse = approximation.expand(Gaussian(0.3), csr_array(X), np.ones(50))
        np.testing.assert_allclose(dense.kept[0], sparse.kept[0], atol=1e-10)


@pytest.mark.parametrize(
    ("approximation", "message"),
    [("nistrom", "did you mean 'nystrom'"), (3, "approximation must be None")],
)
def test_bad_approximations(approximation, message):
    with pytest.raises(ValueError, match=message):
        get_approximation(approximation)


@pytest.mark.parametrize("size", [0, 2.5, True, "all", None])
@pytest.mark.parametrize("kind", [Nystrom, Fourier])
def test_bad_sizes(kind, size):
    with pytest.raises(ValueError, match="n_components must be a whole number"):
        kind(size)


def test_a_size_is_a_plain_integer():
    assert type(Nystrom(np.int64(5)).n_components) is int
    assert Nystrom(np.int64(5)) == Nystrom(5)


def test_bad_parameters_of_landmarks():
    with pytest.raises(ValueError, match="landmarks='pivots' is not known"):
        Nystrom(landmarks="pivots")
    with pytest.raises(ValueError, match="tolerance must be a positive"):
        Nystrom(tolerance=0)
    with pytest.raises(ValueError, match="Fourier features have none"):
        Fourier("auto")
    with pytest.raises(ValueError, match="must be even, got 7"):
        Fourier(7)
