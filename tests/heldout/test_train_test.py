"""Predictions of given test rows at many lambdas, against a dense solve for each."""

import numpy as np
import pytest

from onefit.folds import Folds
from onefit.gram import DenseGram
from onefit.heldout import Refit
from onefit.heldout.train_test import TrainTest
from onefit.losses.regression import Squared
from onefit.problem import Problem

rng = np.random.default_rng(0)
N, TRAIN = 70, 50
LAMS = np.logspace(-9, 1, 9)


def kernel(gamma, shift=0.0):
    X = rng.normal(size=(N, 3))
    return np.exp(-gamma * np.square(X[:, None] - X).sum(axis=2)) + shift


def problem_of(K, s, intercept, dtype=np.float64, q=2):
    Y = rng.normal(size=(N, q)) + 3.0
    return Problem(
        K=DenseGram(K.astype(dtype)),
        Y=np.asfortranarray(Y.astype(dtype)),
        s=s.astype(dtype),
        loss=Squared(),
        fit_intercept=intercept,
        scaling="mean",
    )


def predict_test(problem, lams):
    """Held-out values of the rows of weight zero."""
    folds = Folds(N, [np.flatnonzero(problem.s)], [np.flatnonzero(problem.s == 0)])
    return TrainTest().prepare(problem, folds).predict(lams)


def honest(K, Y, s, lam, intercept):
    """[K + c / s, 1; 1', 0] refined by residuals with more digits."""
    train = np.flatnonzero(s)
    c = lam * s.sum()
    A = np.zeros((train.size + 1, train.size + 1), dtype=np.longdouble)
    A[:-1, :-1] = K[np.ix_(train, train)]
    A[:-1, :-1] += np.diag(c / s[train])
    A[:-1, -1] = A[-1, :-1] = float(intercept)
    A[-1, -1] = 0.0 if intercept else 1.0
    right = np.vstack([Y[train], np.zeros((1, Y.shape[1]))])
    x = np.zeros(right.shape, dtype=np.longdouble)
    for _ in range(12):
        x += np.linalg.solve(A.astype(float), (right - A @ x).astype(float))
    across = K[np.ix_(s == 0, train)].astype(np.longdouble)
    return (across @ x[:-1] + x[-1] * intercept).astype(float)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weights", ["equal", "uneven"])
@pytest.mark.parametrize(("gamma", "shift"), [(0.5, 0.0), (0.001, 0.0), (0.5, 1e4)])
def test_values_lie_within_their_bounds(intercept, weights, gamma, shift):
    K = kernel(gamma, shift)
    s = np.where(rng.permutation(N) < TRAIN, 1.0, 0.0)
    if weights == "uneven":
        s *= rng.uniform(0.1, 2.0, N)
    problem = problem_of(K, s, intercept)
    found = predict_test(problem, LAMS)
    assert found.exact[LAMS > 1e-4].all()
    for i, lam in enumerate(LAMS):
        expected = honest(K, problem.Y, s, lam, intercept)
        error = np.abs(found.values[i] - expected).max()
        assert error <= found.error[i, 0] + 1e-10 * np.abs(expected).max()
        if found.exact[i, 0]:
            assert error <= 1e-8 * np.abs(problem.Y).max()


def test_single_precision_and_few_lams():
    K = kernel(0.5)
    s = np.where(np.arange(N) < TRAIN, 1.0, 0.0)
    problem = problem_of(K, s, True, np.float32, q=1)
    found = predict_test(problem, LAMS)
    few = predict_test(problem, LAMS[6:8])
    rounded = K.astype(np.float32).astype(float)
    for i in (6, 7):
        expected = honest(rounded, problem.Y.astype(float), s, LAMS[i], 1)
        np.testing.assert_allclose(found.values[i], expected, atol=1e-4)
        np.testing.assert_allclose(few.values[i - 6], expected, atol=1e-4)


@pytest.mark.parametrize("intercept", [True, False])
def test_two_training_rows(intercept):
    s = np.zeros(N)
    s[:2] = 1.0, 2.0
    problem = problem_of(kernel(0.5), s, intercept)
    found = predict_test(problem, LAMS)
    for i, lam in enumerate(LAMS):
        expected = honest(problem.K.matrix, problem.Y, s, lam, intercept)
        assert (np.abs(found.values[i] - expected) <= found.bounds[i, 0] + 1e-14).all()


@pytest.mark.parametrize("lams", [LAMS, LAMS[-2:]], ids=["form", "path"])
def test_training_rows_of_weight_zero_are_not_trained_on(lams):
    s = np.ones(N)
    s[3:9] = 0.0
    problem = problem_of(kernel(0.5), s, True)
    folds = Folds.from_pairs(N, [(np.arange(TRAIN), np.arange(TRAIN, N))])
    found = TrainTest().prepare(problem, folds).predict(lams)
    expected = Refit().prepare(problem, folds).predict(lams)
    gap = np.abs(found.values - expected.values).max(axis=(1, 2))
    assert (gap <= (found.error + expected.error)[:, 0]).all()


def test_an_indefinite_kernel_is_refused():
    K = kernel(0.5)
    K -= 2.0 * np.eye(N)
    problem = problem_of(K, np.where(np.arange(N) < TRAIN, 1.0, 0.0), True)
    with pytest.raises(ValueError, match="indefinite"):
        predict_test(problem, LAMS)
