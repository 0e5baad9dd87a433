"""Theorems 1 to 3 of the 2014 ECML paper: their constants, and steps of the proofs that fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from onefit.columns.fit import fit
from onefit.criteria import CrossValidation, kernel_stability
from onefit.folds import Folds
from onefit.losses import Huber, SmoothedHinge, Squared
from onefit.problem import Problem
from onefit_papers.ecml2014_bounds import cv_variance_bound


def make_problem(loss=None, n=24, intercept=True, scaling="mean", seed=0):
    loss = loss or Squared()
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 2))
    if loss.task == "classification":
        y = np.where(X[:, 0] + 0.8 * random.normal(size=n) > 0, 1.0, -1.0)
    else:
        y = np.sin(2 * X[:, 0]) + 0.2 * random.normal(size=n) + 3.0 * (np.arange(n) % 8 == 0)
    K = np.exp(-0.5 * cdist(X, X, "sqeuclidean"))
    return Problem(K, y[:, None], np.ones(n), loss, intercept, scaling)


def test_constants_of_the_theorems():
    problem = make_problem(intercept=False)
    M, lam, m = np.abs(problem.Y).max(), 0.3, 18
    beta = kernel_stability(problem.K)
    per_point = beta * M / (lam**2 * m) * (2 * M / lam + 2 * M)  # proof of theorem 1, kappa = 1
    assert cv_variance_bound(problem, lam, 4) == pytest.approx((2 * per_point) ** 2)
    problem = make_problem()
    per_point = 2 * beta * M / (lam**2 * m) * (2 * 2 * M / lam + 2 * M)  # kappa + 1 = 2
    assert cv_variance_bound(problem, lam, 4) == pytest.approx((2 * per_point) ** 2)
    problem = make_problem(SmoothedHinge(0.1))
    beta = kernel_stability(problem.K)
    per_point = np.sqrt(2) / (2 * lam) * beta**0.25 * (1 + (beta / 4) ** 0.25)
    assert cv_variance_bound(problem, lam, 4) == pytest.approx((2 * per_point) ** 2)
    assert cv_variance_bound(problem, lam, 4, 1.0) < cv_variance_bound(problem, lam, 4)


def test_total_scaling_is_converted():
    mean = cv_variance_bound(make_problem(scaling="mean"), 0.3, 4)
    assert cv_variance_bound(make_problem(scaling="total"), 0.3 * 24, 4) == pytest.approx(mean)


def test_bound_is_one():
    """It bounds the variance of CV over samples (by far)."""
    values = [
        CrossValidation().at(p, 1.0, Folds.draw(4, p.K.matrix))
        for p in (make_problem(intercept=False, seed=seed) for seed in range(20))
    ]
    problem = make_problem(intercept=False)
    assert np.var(values) < cv_variance_bound(problem, 1.0, 4)


def test_bad_input_of_the_bound():
    with pytest.raises(ValueError, match="'squared' and 'smoothed_hinge' only"):
        cv_variance_bound(make_problem(Huber(1.0)), 0.1, 4)
    with pytest.raises(ValueError, match="at least 2"):
        cv_variance_bound(make_problem(), 0.1, 1)


def test_bordered_inverse_exceeds_what_theorem_2_claims():
    """The docstring says that the step fails; here is where."""
    K, m, lam = np.ones((10, 10)), 10, 0.5
    B = np.block([[K + m * lam * np.eye(m), np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    assert np.linalg.norm(np.linalg.inv(B), 2) > 1 / (m * lam)


def test_lemma_behind_theorem_3():
    """K^i instead of K: the printed lam fails, 1 / (2 lam) holds."""
    problem, lam = make_problem(SmoothedHinge(1e-3), intercept=False), 1e-3
    full = fit(problem, lam).u
    for i in (0, 5, 11):
        removed = problem.K.matrix.copy()
        removed[i] = removed[:, i] = 0.0
        norm = np.linalg.norm(problem.K.matrix - removed, 2)
        moved = np.abs(fit(replace(problem, K=removed), lam).u - full).max()
        bound = np.sqrt(2) * norm**0.25 * (1 + (norm / 4) ** 0.25)
        assert lam * bound < moved <= bound / (2 * lam)
