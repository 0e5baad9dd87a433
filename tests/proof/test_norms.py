"""Sizes of a kernel matrix, which error bounds are made of."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import gaussian

from onefit.gram import as_gram
from onefit.proof.norms import Norms


def test_norms_bound_the_matrix():
    K = gaussian(np.random.default_rng(0).normal(size=(700, 2))) * 3.0
    norms = Norms.of(as_gram(K))
    np.testing.assert_allclose(norms.roots**2, np.diagonal(K))
    assert norms.row_sum == pytest.approx(np.abs(K).sum(axis=1).max())
    assert norms.diagonal == pytest.approx(3.0)
    assert norms.root == pytest.approx(3.0**0.5)
    assert 0.0 < norms.negative <= 1e-12  # which rounding alone can make of none
    assert Norms.of(as_gram(np.zeros((3, 3)))).root == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_negative_eigenvalue_of_an_indefinite_matrix_is_found(dtype):
    v = np.random.default_rng(0).normal(size=30)
    K = gaussian(np.random.default_rng(1).normal(size=(30, 2)), 0.01) - 1e-3 * np.outer(v, v)
    K = K.astype(dtype)
    lowest = -np.linalg.eigvalsh(K.astype(np.float64))[0]
    assert lowest > 1e-3
    assert lowest <= Norms.of(as_gram(K)).negative <= 1.01 * lowest
