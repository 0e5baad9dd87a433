"""Sums and products in nearly twice the digits, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefit.gram import as_gram
from onefit.proof.norms import Norms
from onefit.proof.precise import (
    EPSILON,
    precise_summation,
    predictions,
    summation,
    two_product,
    two_sum,
)

NUMBERS = st.floats(-1e100, 1e100).filter(lambda x: x == 0.0 or abs(x) > 1e-100)


@given(NUMBERS, NUMBERS)
def test_the_error_of_a_sum_is_exact(a, b):
    total, error = two_sum(a, b)
    assert total == a + b
    assert Fraction(total) + Fraction(error) == Fraction(a) + Fraction(b)


@given(NUMBERS, NUMBERS)
def test_the_error_of_a_product_is_exact(a, b):
    product, error = two_product(a, b)
    assert product == a * b
    assert Fraction(product) + Fraction(error) == Fraction(a) * Fraction(b)


def exact(K, a, low, plus):
    """K (a + low) + plus without rounding."""
    sums = []
    for row, extra in zip(K, plus, strict=True):
        terms = (
            Fraction(k) * (Fraction(x) + Fraction(y)) for k, x, y in zip(row, a, low, strict=True)
        )
        sums.append(sum(terms, Fraction(extra)))
    return sums


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("spread", [0.0, 6.0])
def test_predictions_keep_their_digits(dtype, spread):
    """Terms cancel, so that a plain sum has few digits left, and a precise one nearly all."""
    random = np.random.default_rng(0)
    n = 300
    size = 10.0 ** random.uniform(-spread, spread, n)
    X = random.normal(size=(n, 2))
    K = np.exp(-0.01 * np.square(X[:, None] - X).sum(axis=2)) * size[:, None] * size
    K = ((K + K.T) / 2).astype(dtype)
    norms, rows, columns = Norms.of(as_gram(K)), np.arange(0, n, 7), np.arange(n)
    a = random.normal(size=(n, 1)) * 10.0 ** random.uniform(0, 8, (n, 1)) / norms.roots[:, None]
    low = a * EPSILON * random.uniform(-0.5, 0.5, (n, 1))
    plain = predictions(norms, rows, columns, a)
    plus = -plain
    found = predictions(norms, rows, columns, a, plus, low)
    terms = float((norms.roots * np.abs(a[:, 0])).sum())
    for i, row in enumerate(rows):
        true = exact([K[row].tolist()], a[:, 0].tolist(), low[:, 0].tolist(), [plus[i, 0]])[0]
        gap = abs(float(Fraction(float(found[i, 0])) - true))
        allowed = precise_summation(n) * norms.roots[row] * terms + EPSILON * abs(float(true))
        assert gap <= allowed
        # what the plain sum was off by
        assert abs(float(true)) <= summation(n) * norms.roots[row] * terms
    assert precise_summation(n) < 1e-9 * summation(n)
