"""The vectorised metrics against scikit-learn's, split by split."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics

from onefit.search.metrics import FAST, Truth

REGRESSION = [func for func, (_, task) in FAST.items() if task == "regression"]


def draw(seed, sizes, q, weighted):
    rng = np.random.default_rng(seed)
    N = sum(sizes)
    starts = np.cumsum([0, *sizes])[:-1]
    weights = rng.uniform(0.1, 2.0, N) if weighted else np.ones(N)
    return rng, N, starts, weights


@pytest.mark.parametrize("func", REGRESSION, ids=lambda func: func.__name__)
@given(
    st.integers(0, 10**6), st.lists(st.integers(2, 7), min_size=1, max_size=5),
    st.integers(1, 3), st.booleans(),
)  # fmt: skip
def test_regression_metrics(func, seed, sizes, q, weighted):
    rng, N, starts, weights = draw(seed, sizes, q, weighted)
    y, u = rng.normal(size=(N, q)), rng.normal(size=(4, N, q))
    y[: sizes[0]] = 0.1  # a constant split
    u[0, : sizes[0]] = 0.1  # which is met once
    scores = FAST[func][0](Truth(y, starts, weights), u)
    assert scores.shape == (4, len(sizes), q)
    for k, (a, m) in enumerate(zip(starts, sizes, strict=True)):
        if func is metrics.r2_score and k == 0:
            np.testing.assert_array_equal(scores[:, 0], np.eye(1, 4).T * np.ones(q))
            continue
        rows = slice(a, a + m)
        for i in range(4):
            expected = func(y[rows], u[i, rows], sample_weight=weights[rows])
            assert scores[i, k].mean() == pytest.approx(expected, rel=1e-12, abs=1e-14)


@given(
    st.integers(0, 10**6), st.lists(st.integers(1, 7), min_size=1, max_size=5),
    st.sampled_from([2, 3]), st.booleans(),
)  # fmt: skip
@pytest.mark.parametrize("func", [metrics.accuracy_score, metrics.balanced_accuracy_score])
def test_accuracy(func, seed, sizes, classes, weighted):
    rng, N, starts, weights = draw(seed, sizes, 1, weighted)
    codes = rng.integers(0, classes, N)
    u = rng.normal(size=(3, N, 1 if classes == 2 else classes))
    scores = FAST[func][0](Truth(codes[:, None], starts, weights), u)
    predicted = (u[..., 0] > 0).astype(int) if classes == 2 else u.argmax(axis=2)
    for k, (a, m) in enumerate(zip(starts, sizes, strict=True)):
        rows = slice(a, a + m)
        for i in range(3):
            with warnings.catch_warnings(action="ignore"):  # of classes that are predicted alone
                expected = func(codes[rows], predicted[i, rows], sample_weight=weights[rows])
            assert scores[i, k, 0] == pytest.approx(expected, rel=1e-12)


def test_r2_of_a_single_row_is_undefined():
    truth = Truth(np.ones((3, 1)), np.array([0, 2]), np.ones(3))
    scores = FAST[metrics.r2_score][0](truth, np.ones((1, 3, 1)))
    np.testing.assert_array_equal(scores[0, :, 0], [1.0, np.nan])
