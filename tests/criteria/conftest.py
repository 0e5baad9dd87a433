"""Small problems for every criterion."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from onefit.folds import Folds
from onefit.losses import Squared
from onefit.problem import Problem


@pytest.fixture
def make_problem():
    """A function that makes a problem of any loss."""

    def make(loss=None, n=24, intercept=True, scaling="mean", weighted=False, gamma=0.5, seed=0):
        loss = loss or Squared()
        random = np.random.default_rng(seed)
        X = random.normal(size=(n, 2))
        if loss.task == "classification":
            y = np.where(X[:, 0] + 0.8 * random.normal(size=n) > 0, 1.0, -1.0)
        else:
            y = np.sin(2 * X[:, 0]) + 0.2 * random.normal(size=n) + 3.0 * (np.arange(n) % 8 == 0)
        s = random.uniform(0.2, 2.0, n) if weighted else np.ones(n)
        K = np.exp(-gamma * cdist(X, X, "sqeuclidean"))
        return Problem(K, y[:, None], s, loss, intercept, scaling)

    return make


@pytest.fixture
def folds():
    """Four folds of 24 rows."""
    return Folds.draw(4, np.zeros((24, 1)))
