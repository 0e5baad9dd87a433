"""A decomposition that stands for the inverse at any Lambda."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import gaussian
from systems._twins import small_problem

from onefit.linalg.partial_eigh import SMALLEST
from onefit.losses import EpsilonQuadratic, Huber
from onefit.systems import SharedSpectrum


def narrow(n, **options):
    return small_problem(
        EpsilonQuadratic(0.1), n=n, lam=1e-3, kernel=lambda X: gaussian(X, 4.0), **options
    )


@pytest.mark.parametrize("n", [60, 3 * SMALLEST], ids=["whole", "torn"])
@pytest.mark.parametrize("weight", ["none", "random"])
@pytest.mark.parametrize("ridge", [1e-4, 1.0, 1e4])
def test_it_is_the_inverse_at_any_lambda(n, weight, ridge):
    problem, d = narrow(n, weight=weight)
    A = np.flatnonzero(d)
    spectrum = SharedSpectrum(problem, d)
    assert (spectrum.partial.tears.shape[1] > 0) == (n > 60)
    root = np.sqrt(problem.s[A] * d[A])
    M = np.eye(A.size) + root[:, None] * problem.K.matrix[np.ix_(A, A)] * root / (2 * ridge)
    expected, inverse = np.linalg.inv(M), spectrum.at(ridge, root / np.sqrt(2 * ridge))
    np.testing.assert_allclose(inverse.apply(np.eye(A.size)), expected, atol=1e-9)
    np.testing.assert_allclose(inverse.apply(root), expected @ root, atol=1e-8)
    rows = np.array([4, 1, 7])
    block = expected[np.ix_(rows, rows)]
    np.testing.assert_allclose(np.tril(inverse.block(rows)), np.tril(block), atol=1e-9)


def test_changes_are_points_with_another_curvature():
    problem, d = small_problem(Huber(0.3))
    spectrum, other = SharedSpectrum(problem, d), d.copy()
    assert spectrum.size == np.count_nonzero(d)
    assert spectrum.changes(d) == 0
    other[np.argmax(d)] = 1.0
    other[np.argmin(d)] = 2.0
    assert spectrum.changes(other) == 2


def test_single_precision_stays_single():
    problem, d = narrow(60, dtype=np.float32)
    inverse = SharedSpectrum(problem, d).at(0.1, np.ones(np.count_nonzero(d), dtype=np.float32))
    B = np.ones((np.count_nonzero(d), 2), dtype=np.float32)
    assert inverse.apply(B).dtype == np.float32
    assert inverse.block(np.arange(3)).dtype == np.float32


def test_the_kernel_matrix_is_not_touched():
    problem, d = narrow(60)
    before = problem.K.matrix.copy()
    SharedSpectrum(problem, d).at(0.1, np.ones(np.count_nonzero(d)))
    np.testing.assert_array_equal(problem.K.matrix, before)
