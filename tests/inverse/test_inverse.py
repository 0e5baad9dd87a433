"""Every form of the ridge inverse against NumPy's inverse of the whole bordered system."""

from __future__ import annotations

import numpy as np
import pytest

from onefit import linalg
from onefit.inverse import (
    DenseInverse,
    EigenInverse,
    FactorInverse,
    TriangularInverse,
    solve_block,
)

RIDGE = 0.3


def scaled_kernel(n=40, dtype=np.float64, seed=0):
    """R K R and the diagonal of R."""
    random = np.random.default_rng(seed)
    X, root = random.normal(size=(n, 2)), random.uniform(0.2, 2.0, n)
    K = np.exp(-0.5 * np.square(X[:, None] - X).sum(axis=2))
    return (root[:, None] * K * root).astype(dtype), root.astype(dtype)


def ridged(A):
    return np.asfortranarray(A + RIDGE * np.eye(len(A), dtype=A.dtype))


FORMS = {
    "factor": lambda A, root, b: FactorInverse(ridged(A), root, b),
    "triangular": lambda A, root, b: TriangularInverse(ridged(A), root, b),
    "dense": lambda A, root, b: DenseInverse(ridged(A), root, b),
    "eigen": lambda A, root, b: EigenInverse.of(np.asfortranarray(A), RIDGE, root, b),
}


def projected(A, root, fit_intercept):
    """P as the leading block of the inverse of the bordered matrix."""
    n = len(A)
    if not fit_intercept:
        return np.linalg.inv(ridged(A))
    border = np.block([[ridged(A), root[:, None]], [root[None, :], np.zeros((1, 1))]])
    return np.linalg.inv(border)[:n, :n]


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_it_is_the_inverse(form, fit_intercept):
    A, root = scaled_kernel(40)
    n, random = len(A), np.random.default_rng(1)
    inverse, M = FORMS[form](A.copy(), root, fit_intercept), np.linalg.inv(ridged(A))
    P, B = projected(A, root, fit_intercept), random.normal(size=(n, 3))
    rows = np.sort(random.permutation(n)[:7])
    close = {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(inverse.apply(np.asfortranarray(B)), M @ B, **close)
    np.testing.assert_allclose(inverse.apply(root), M @ root, **close)
    np.testing.assert_allclose(
        np.tril(inverse.block(rows)), np.tril(M[np.ix_(rows, rows)]), **close
    )
    np.testing.assert_allclose(
        np.tril(inverse.block(rows[2:4])), np.tril(M[np.ix_(rows[2:4], rows[2:4])]), **close
    )
    np.testing.assert_allclose(inverse.diagonal(), np.diagonal(M), **close)
    np.testing.assert_allclose(inverse.columns(rows), M[:, rows], **close)
    assert np.linalg.eigvalsh(M)[-1] <= inverse.norm * (1.0 + 1e-9)
    np.testing.assert_allclose(inverse.solve(np.asfortranarray(B)), P @ B, **close)
    np.testing.assert_allclose(inverse.projected_diagonal(), np.diagonal(P), **close)
    np.testing.assert_allclose(inverse.projected_columns(rows), P[:, rows], **close)
    expected = np.linalg.solve(P[np.ix_(rows, rows)], (P @ B)[rows])
    found = inverse.solve_left_out(rows, P @ B, RIDGE)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_single_precision_stays_single(form):
    A, root = scaled_kernel(dtype=np.float32)
    inverse = FORMS[form](A, root, True)
    assert inverse.apply(root).dtype == np.float32
    assert inverse.block(np.arange(3)).dtype == np.float32
    assert inverse.solve(np.ones((len(A), 2), dtype=np.float32, order="F")).dtype == np.float32


def test_negative_eigenvalues_that_were_dropped_are_part_of_the_norm():
    _, root = scaled_kernel()
    inverse = EigenInverse(np.ones(40), np.eye(40), RIDGE, root, negative=0.1)
    assert inverse.norm == pytest.approx(1.0 / 0.2)
    assert EigenInverse(np.ones(40), np.eye(40), RIDGE, root, negative=0.5).norm == np.inf


def test_a_singular_block_says_what_to_do():
    with pytest.raises(linalg.LinAlgError, match=r"singular to working precision.*raise lam"):
        solve_block(np.zeros((2, 2), order="F"), np.ones((2, 1)), 1e-12)
