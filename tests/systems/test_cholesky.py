"""A factor per column: what it solves, and where eigenvalues take its place."""

from __future__ import annotations

import numpy as np
import pytest
from systems._twins import random_models, small_problem

from onefit.gram import as_gram
from onefit.inverse import EigenInverse
from onefit.losses import Squared
from onefit.systems import Cholesky, NewtonModel
from onefit.systems.cholesky import CurvedFactor

ROWS = np.array([7, 2, 9, 4, 11])


def kernel(rank=14, n=14, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, rank))
    return X @ X.T


def bordered(K, root, z, total, fit_intercept):
    m = root.size
    system = np.zeros((m + 1, m + 1))
    system[:m, :m] = K + np.diag(root**-2.0)
    system[m, m] = float(not fit_intercept)
    right = np.append(z, -total if fit_intercept else 0.0)
    if fit_intercept:
        system[:m, m] = system[m, :m] = 1.0
    x = np.linalg.solve(system, right)
    return x[:m], x[m]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("rows", [ROWS, np.arange(14)], ids=["some", "all"])
def test_a_factor_solves_its_bordered_system(fit_intercept, rows):
    random, K = np.random.default_rng(1), kernel()
    root, z = random.uniform(0.1, 3.0, rows.size), random.normal(size=rows.size)
    part = K[np.ix_(rows, rows)]
    factor = CurvedFactor(as_gram(K), rows, root)
    a, b = factor.solve(z, 0.7, fit_intercept)
    expected = bordered(part, root, z, 0.7, fit_intercept)
    np.testing.assert_allclose(a, expected[0], rtol=1e-10)
    assert b == pytest.approx(expected[1], rel=1e-10)
    inverse = np.linalg.inv(np.eye(rows.size) + root[:, None] * part * root)
    np.testing.assert_allclose(factor.inverse.diagonal(), np.diagonal(inverse), rtol=1e-10)
    np.testing.assert_allclose(factor.inverse.apply(z), inverse @ z, rtol=1e-8, atol=1e-12)
    both = np.asfortranarray(np.column_stack([z, root]))
    np.testing.assert_allclose(factor.inverse.apply(both), inverse @ both, rtol=1e-8, atol=1e-12)


def test_eigenvalues_take_the_place_of_a_factor_that_rounding_denies():
    """K of rank three, and a Lambda below the rounding of its norm."""
    K, rows = kernel(rank=3), np.arange(14)
    root = np.full(14, 1e9)
    factor = CurvedFactor(as_gram(K), rows, root)
    assert isinstance(factor.inverse, EigenInverse)
    inverse = factor.inverse.apply(np.asfortranarray(np.eye(14)))
    values = np.linalg.eigvalsh((inverse + inverse.T) / 2)
    assert (values > -1e-12).all()
    assert (values < 1.0 + 1e-12).all()
    np.testing.assert_allclose(factor.inverse.diagonal(), np.diagonal(inverse), atol=1e-12)
    # targets that K can reach are met
    z = K @ np.sin(np.arange(14.0))
    a, b = factor.solve(z, 0.0, False)
    np.testing.assert_allclose(K @ a + b, z, atol=1e-9 * np.abs(z).max())


def test_an_indefinite_matrix_is_refused_not_mended():
    K = kernel() - 30.0 * np.eye(14)
    with pytest.raises(ValueError, match="kernel matrix is indefinite"):
        CurvedFactor(as_gram(K), np.arange(14), np.ones(14))


@pytest.mark.parametrize("ridge", [1e-6, 1e-9, 1e-12])
def test_digits_lost_between_two_large_vectors_are_won_back(ridge):
    """K is singular where its border is not: a is what is left of two vectors of size 1/ridge."""
    random = np.random.default_rng(0)
    X, z = random.normal(size=(4, 3)), random.normal(size=4)
    root = np.full(4, ridge**-0.5)
    a, b = CurvedFactor(as_gram(X @ X.T), np.arange(4), root).solve(z, 0.0, True)
    expected, shift = bordered(X @ X.T, root, z, 0.0, True)
    np.testing.assert_allclose(a, expected, rtol=1e-12)
    assert b == pytest.approx(shift, rel=1e-12)
    assert abs(a.sum()) < 1e-13


def test_neighbours_with_one_matrix_are_as_alone():
    problem, d = small_problem(Squared(), q=3)
    random = np.random.default_rng(0)
    missing = random.normal(size=(problem.n, 3))
    shared = NewtonModel(
        np.repeat(d[:, None], 3, axis=1), missing, np.zeros_like(missing), np.zeros(3)
    )
    other = random_models(problem, d, random, 3, 0.0)
    for model, ridge in ((shared, [0.2, 0.2, 0.2]), (shared, [0.2, 0.2, 0.3]), (other, [0.2] * 3)):
        a, b = Cholesky(problem, np.array(ridge)).solve(model)
        for k in range(3):
            mine = Cholesky(problem, np.array(ridge)[[k]]).solve(model.take([k]))
            np.testing.assert_allclose(a[:, [k]], mine[0], rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(b[[k]], mine[1], rtol=1e-10, atol=1e-12)
