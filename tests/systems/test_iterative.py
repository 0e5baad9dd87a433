"""Conjugate gradients where rounding is all that is left."""

from __future__ import annotations

import numpy as np
from systems._twins import dense_minimiser, random_models, small_problem

from onefit.losses import Huber
from onefit.systems.iterative import KrylovSystem

RIDGE = 1e-3


def test_rounding_along_the_border_does_not_grow():
    """Asked for more than single precision has, with an intercept and a small ridge.

    Where residuals are not projected again, some of these twenty problems are off by their own size
    or more, others by a few percent; which ones depends on the order in which BLAS adds up.
    """
    for seed in range(20):
        problem, d = small_problem(Huber(0.3), weight="random", dtype=np.float32, seed=seed)
        model = random_models(problem, d, np.random.default_rng(seed), 6, 0.1)
        a, _ = KrylovSystem(problem, np.full(6, RIDGE), tolerance=0.0).solve(model)
        for c in range(6):
            expected, _ = dense_minimiser(problem, RIDGE, model, c)
            assert np.abs(a[:, c] - expected).max() < 1e-3 * np.abs(expected).max(), (seed, c)
