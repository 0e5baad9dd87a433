"""Honest refits in feature space: the same machine from the kernel matrix of the features."""

from __future__ import annotations

import numpy as np

from onefit.features.feature_gram import FeatureGram
from onefit.features.maps import nystrom_map
from onefit.folds import Folds
from onefit.heldout import Refit
from onefit.kernels import Gaussian
from onefit.problem import Problem

KERNEL = Gaussian(0.3)


def rows_and_landmarks(n=90, m=30, seed=0):
    """Rows, some of them twice, and landmarks, some of which are the doubles of others."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    X[n // 2 : n // 2 + 8] = X[:8]
    drawn = random.permutation(n)[: m - 6]
    return X, np.unique(np.concatenate([drawn, np.arange(3), n // 2 + np.arange(3)]))


def feature_problem(X, landmarks, Y, s, loss, fit_intercept, scaling, keep=False):
    """A problem whose kernel matrix is that of features."""
    landmarks = landmarks[s[landmarks] > 0]
    rows = FeatureGram(X, nystrom_map(KERNEL, X[landmarks]), landmarks, keep)
    return Problem(rows, Y, s, loss, fit_intercept, scaling)


def honest(problem, folds, lams):
    """Values (L, N, q) and bounds (L, k): for each split, Nystrom from what it may see alone."""
    rows = problem.K
    values, bounds = [], []
    for k in range(len(folds)):
        one = Folds(folds.n, [folds.train[k]], [folds.test[k]])
        seen = rows.landmarks
        if not rows.keep_landmarks:
            seen = np.setdiff1d(seen, one.removed[0])
        Phi = nystrom_map(KERNEL, rows.X[seen]).apply(rows.X)
        whole = Problem(
            Phi @ Phi.T, problem.Y, problem.s, problem.loss, problem.fit_intercept, problem.scaling
        )
        path = Refit().prepare(whole, one).predict(lams)
        values.append(path.values)
        bounds.append(path.error[:, 0])
    return np.concatenate(values, axis=1), np.stack(bounds, axis=1)


def assert_equal_to_refits(path, problem, folds, tolerance=1e-8):
    """Within the bounds of both, and within a tolerance where both are exact."""
    values, bounds = honest(problem, folds, path.lams)
    for i in range(len(path.lams)):
        for k in range(len(folds)):
            gap = np.abs(path.values[i] - values[i])[folds.place(k)].max()
            assert gap <= path.error[i, k] + bounds[i, k], (i, k, gap, path.error[i, k])
            assert gap <= tolerance * problem.scale.max(), (i, k, gap)
