"""The norms that a kernel matrix with a ridge defines, and the matrices that have none."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import gaussian

from onefit.gram import as_gram
from onefit.proof.norms import Norms
from onefit.proof.ridge_norm import RidgeNorm

N = 18
TRAIN, TEST = np.arange(13), np.arange(13, 18)


@pytest.mark.parametrize("centred", [True, False])
def test_the_metric_is_that_of_its_matrix(centred):
    random = np.random.default_rng(0)
    K = gaussian(random.normal(size=(N, 2))) + (5.0 if centred else 0.0)
    c = random.uniform(0.1, 1.0, TRAIN.size)
    metric = RidgeNorm.of(Norms.of(as_gram(K)), TRAIN, c, centred)
    part = K[np.ix_(TRAIN, TRAIN)]
    mean = part.mean(axis=1) - 0.5 * part.mean() if centred else np.zeros(TRAIN.size)
    part = part - mean - mean[:, None]
    inverse = np.linalg.inv(part + np.diag(c))
    q = random.normal(size=(TRAIN.size, 2))
    np.testing.assert_allclose(metric.dual(q) ** 2, np.einsum("ij,ik,kj->j", q, inverse, q))
    np.testing.assert_allclose(metric.unit**2, np.diagonal(inverse))
    np.testing.assert_allclose(metric.pull**2, np.diagonal(part @ inverse @ part), atol=1e-12)
    ones = np.ones(TRAIN.size)
    best = q - np.outer(ones, (ones @ inverse @ q) / (ones @ inverse @ ones))
    expected = np.einsum("ij,ik,kj->j", best, inverse, best)
    np.testing.assert_allclose(metric.dual(q, np.ones_like(q, dtype=bool)) ** 2, expected)
    rows, there = metric.at(TEST)
    expected = K[np.ix_(TEST, TRAIN)]
    if centred:
        expected = expected - there[:, None] - mean
    np.testing.assert_allclose(rows, expected)


def test_a_matrix_that_rounding_makes_doubtful_has_no_metric():
    K = np.ones((N, N))
    assert RidgeNorm.of(Norms.of(as_gram(K)), TRAIN, np.full(13, 1e-18)) is None
    assert RidgeNorm.of(Norms.of(as_gram(K)), TRAIN, np.full(13, 1e-3)) is not None
