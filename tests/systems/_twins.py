"""Models of Newton steps drawn at random, and their minimisers by dense systems."""

from __future__ import annotations

import numpy as np
from heldout._twins import make_problem

from onefit.columns.fit import fit
from onefit.heldout.path import curvature
from onefit.systems import NewtonModel


def small_problem(loss, task="regression", n=26, lam=1e-2, **options):
    """A problem, and the curvatures of its solution."""
    problem = make_problem(loss, task, n, **options)
    return problem, curvature(problem, 0, fit(problem, lam).u[:, 0])


def random_models(problem, d, random, k, change):
    """Models with rows left out, curvature lost, gained and changed."""
    n = problem.n
    use = (random.random((n, k)) < 0.8) & (problem.s > 0)[:, None]
    d = np.repeat(d[:, None], k, axis=1)
    flip = random.random((n, k)) < change
    d = np.where(flip, np.where(d > 0, 0.0, 2.0), d)
    new = random.random((n, k)) < change
    d = (np.where(new, random.uniform(0.5, 3.0, (n, k)), d) * use).astype(problem.K.dtype)
    fixed = np.where((d == 0) & use, random.normal(size=(n, k)), 0.0).astype(problem.K.dtype)
    missing = np.where(d > 0, random.normal(size=(n, k)) - problem.K.matrix @ fixed, 0.0)
    return NewtonModel(d, missing.astype(problem.K.dtype), fixed, fixed.sum(axis=0))


def dense_minimiser(problem, ridge, model, c):
    """Changes of coefficients and intercept in one model, by its bordered system."""
    rows = np.flatnonzero(model.d[:, c])
    m = rows.size
    system = np.zeros((m + 1, m + 1))
    system[:m, :m] = problem.K.matrix[np.ix_(rows, rows)]
    system[:m, :m] += np.diag(2.0 * ridge / (problem.s[rows] * model.d[rows, c]))
    right = np.append(model.missing[rows, c], -model.total[c])
    if problem.fit_intercept:
        system[:m, m] = system[m, :m] = 1.0
    else:
        system[m, m], right[m] = 1.0, 0.0
    x = np.linalg.solve(system, right)
    a = np.zeros(problem.n)
    a[rows] = x[:m]
    return a, x[m]


def assert_minimises(problem, ridge, model, found, tolerance=1e-8):
    """Every column against its dense system; ridge is one for all, or one for each."""
    a, b = found
    ridge = np.broadcast_to(ridge, b.shape)
    for c in range(b.size):
        if not (model.d[:, c] > 0).any():
            assert not a[:, c].any()
            assert b[c] == 0.0
            continue
        expected, intercept = dense_minimiser(problem, ridge[c], model, c)
        size = 1.0 + np.abs(expected).max()
        np.testing.assert_allclose(a[:, c], expected, rtol=tolerance, atol=tolerance * size)
        np.testing.assert_allclose(b[c], intercept, rtol=tolerance, atol=tolerance)
        assert not a[model.d[:, c] == 0, c].any()
