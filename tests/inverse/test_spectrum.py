"""One decomposition for every c, against inverses of the matrices themselves."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import gaussian

from onefit.inverse.spectrum import Spectrum
from onefit.linalg.partial_eigh import MIN_BLOCK_ROWS

RIDGES = np.array([1e-4, 1e-1, 3.0])
#: whole, and torn in three
SIZES = [30, 3 * MIN_BLOCK_ROWS]


def sample_of(n, q=2, weighted=True, gamma=0.7, seed=0):
    """K, root and Y."""
    random = np.random.default_rng(seed)
    root = np.sqrt(random.uniform(0.2, 2.0, n)) if weighted else np.ones(n)
    return gaussian(random.normal(size=(n, 2)), gamma), root, random.normal(size=(n, q))


def spectrum_of(K, root, Y, fit_intercept, **options):
    M = np.asfortranarray(root[:, None] * K * root)
    return Spectrum(M, root, np.asfortranarray(root[:, None] * Y), fit_intercept, **options)


def projected(K, root, ridge, fit_intercept):
    """P: the inverse of R K R + c, less what its border takes away."""
    inverse = np.linalg.inv(root[:, None] * K * root + ridge * np.eye(root.size))
    if not fit_intercept:
        return inverse
    v = inverse @ root
    return inverse - np.outer(v, v) / (root @ v)


def close(found, expected, tolerance=1e-8):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


each_form = pytest.mark.parametrize(
    ("n", "weighted", "fit_intercept", "whole"),
    [
        (n, weighted, fit_intercept, whole)
        for n in SIZES
        for weighted, fit_intercept, whole in [
            (True, True, False), (False, False, False), (True, False, False), (True, True, True),
            (True, False, True),
        ]
    ],
)  # fmt: skip


@each_form
def test_everything_is_made_of_the_projected_inverse(n, weighted, fit_intercept, whole):
    K, root, Y = sample_of(n, weighted=weighted)
    spectrum = spectrum_of(K, root, Y, fit_intercept, whole=whole)
    assert (spectrum.partial.tears.shape[1] > 0) == (n > 30 and not whole)
    shifts, rows = spectrum.at(RIDGES), np.array([4, 11, 2, 27])
    blocks, alpha_rows = shifts.blocks(spectrum.rows(rows), rows)
    alpha, _ = shifts.solved(np.arange(n))
    alone = shifts.leave_one_out(rows)
    for i, ridge in enumerate(RIDGES):
        P = projected(K, root, ridge, fit_intercept)
        right = P @ (root[:, None] * Y)
        close(alpha[i], right)
        close(alpha_rows[i], right[rows])
        close(np.tril(blocks[i]), np.tril(P[np.ix_(rows, rows)]))
        close(alone[i], right[rows] / np.diagonal(P)[rows, None], 1e-7)
        close(spectrum.at(RIDGES[[i]]).columns(rows), P[:, rows])


def test_the_norm_is_that_of_the_inverse():
    K, root, Y = sample_of(30)
    for fit_intercept in (True, False):
        shifts = spectrum_of(K, root, Y, fit_intercept).at(RIDGES)
        for norm, ridge in zip(shifts.norm, RIDGES, strict=True):
            inverse = np.linalg.norm(projected(K, root, ridge, fit_intercept), 2)
            assert inverse <= norm * (1 + 1e-9)
            assert norm <= 1.001 / ridge


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_negative_eigenvalues_are_counted_as_a_change(fit_intercept):
    K, root, Y = sample_of(30, weighted=False, gamma=0.01)
    v = np.sin(np.arange(30.0))
    K = K - 2e-9 * np.outer(v - v.mean(), v - v.mean())
    lowest = -np.linalg.eigvalsh(K)[0]
    assert lowest > 1e-9
    shifts = spectrum_of(K, root, Y, fit_intercept).at(np.array([1e-3, 0.5 * lowest]))
    assert 0.5 * lowest <= shifts.changed <= 2.0 * lowest
    assert np.isfinite(shifts.norm[0])
    assert np.isinf(shifts.norm[1])


def test_a_kernel_that_is_not_one_is_refused():
    K, root, Y = sample_of(30)
    with pytest.raises(ValueError, match="kernel matrix is indefinite"):
        spectrum_of(K - 0.5 * np.eye(30), root, Y, True)


def test_a_large_constant_costs_no_digits():
    """It is set aside before anything is decomposed."""
    K, root, Y = sample_of(30, weighted=False, gamma=20.0)
    rows, ridges = np.array([1, 5, 9]), np.array([1e-3])
    shifts = spectrum_of(K + 1e7, root, Y, True).at(ridges)
    P = projected(K, root, 1e-3, True)  # the constant is what the border takes away
    close(shifts.columns(rows), P[:, rows], 1e-6)
    free = spectrum_of(K + 1e7, root, Y, False).at(ridges)
    close(free.columns(rows), P[:, rows], 1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_c_from_the_sums_at_a_few(fit_intercept):
    """So many values and c that sums are shared, over several pieces of a group."""
    n, ridges = 2 * MIN_BLOCK_ROWS, np.logspace(-5, 2, 40)
    K, root, Y = sample_of(n, gamma=0.05)
    spectrum = spectrum_of(K, root, Y, fit_intercept)
    shifts, rows = spectrum.at(ridges), np.arange(7, 47)
    assert shifts._sums[0].combine is not None
    blocks, _ = shifts.blocks(spectrum.rows(rows), rows)
    few, _ = spectrum.at(ridges[:1]).blocks(spectrum.rows(rows), rows)
    close(np.tril(blocks[0]), np.tril(few[0]), 1e-9)
    for i in (0, 13, 39):
        P = projected(K, root, ridges[i], fit_intercept)
        close(np.tril(blocks[i]), np.tril(P[np.ix_(rows, rows)]), 1e-7)


def test_pieces_leave_room_and_miss_nothing():
    n, ridges = 30, np.logspace(-4, 0, 37)
    K, root, Y = sample_of(n)
    shifts = spectrum_of(K, root, Y, True).at(ridges)
    rows = np.arange(11)
    whole, _ = shifts.blocks(shifts.spectrum.rows(rows), rows)
    found = []
    for some, part in shifts.pieces(rows.size):
        np.testing.assert_array_equal(part.ridges, ridges[some])
        assert part.ridges.size * rows.size**2 <= 1.2 * n**2
        found += [one.copy() for one in part.blocks(shifts.spectrum.rows(rows), rows)[0]]
    assert len(found) == ridges.size
    for one, other in zip(found, whole, strict=True):
        close(np.tril(one), np.tril(other), 1e-9)
    assert len(list(shifts.pieces(2))) == 1


def test_sums_of_squares():
    K, root, Y = sample_of(3 * MIN_BLOCK_ROWS)
    spectrum = spectrum_of(K, root, Y, True)
    weights = np.random.default_rng(0).uniform(size=(3 * MIN_BLOCK_ROWS, 4))
    expected = np.square(spectrum.vectors) @ weights
    close(spectrum.square_sums(weights), expected, 1e-12)
    rows = np.arange(0, 300, 7)
    close(spectrum.square_sums(weights, rows), expected[rows], 1e-12)


def test_single_precision_stays_single():
    K, root, Y = (x.astype(np.float32) for x in sample_of(30))
    shifts = spectrum_of(K, root, Y, False).at(RIDGES[1:])
    rows = np.array([1, 2, 3])
    blocks, alpha = shifts.blocks(shifts.spectrum.rows(rows), rows)
    assert blocks[0].dtype == alpha.dtype == shifts.leave_one_out(rows).dtype == np.float32
    P = projected(*(x.astype(np.float64) for x in (K, root)), RIDGES[1], False)
    close(np.tril(blocks[0]), np.tril(P[np.ix_(rows, rows)]), 1e-4)


def test_the_matrix_lends_its_memory():
    K, root, Y = sample_of(30, weighted=False)
    M = np.asfortranarray(K)
    assert np.shares_memory(Spectrum(M, root, np.asfortranarray(Y), True).vectors, M)
