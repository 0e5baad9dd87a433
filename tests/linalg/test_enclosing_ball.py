"""The smallest enclosing ball: by all small sets of points, by a general solver, by its own gap."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from onefit.linalg import LinAlgError
from onefit.linalg.enclosing_ball import enclosing_ball


def circumscribed(points):
    """Centre and squared radius of the smallest sphere through all of some points, or None."""
    edges = points[1:] - points[0]
    if np.linalg.matrix_rank(edges) < len(edges):
        return None
    x = np.linalg.lstsq(edges, 0.5 * (edges**2).sum(axis=1), rcond=None)[0]
    return points[0] + x, x @ x


def by_all_subsets(X):
    """The smallest ball is that of at most d + 1 points: try them all."""
    best = np.inf if len(X) > 1 else 0.0
    for size in range(2, X.shape[1] + 2):
        for rows in combinations(range(len(X)), size):
            ball = circumscribed(X[list(rows)])
            if ball and (((X - ball[0]) ** 2).sum(axis=1) <= ball[1] * (1 + 1e-9) + 1e-12).all():
                best = min(best, ball[1])
    return best if np.isfinite(best) else 0.0


@given(
    st.integers(1, 9),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1.0, 1e3]),
    st.booleans(),
)
def test_by_all_subsets(n, d, seed, away, whole):
    """Whole coordinates make duplicates, and points on one line or one sphere."""
    random = np.random.default_rng(seed)
    X = random.integers(-2, 3, (n, d)).astype(float) if whole else random.normal(size=(n, d))
    expected = by_all_subsets(X)
    found = enclosing_ball((X + away) @ (X + away).T)
    assert found.squared_radius == pytest.approx(expected, rel=1e-7, abs=1e-8 * (1 + away))
    assert found.weights.sum() == pytest.approx(1.0)
    assert (found.weights >= 0).all()


@pytest.mark.parametrize("gamma", [0.05, 0.5, 5.0])
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_by_a_general_solver(gamma, ridge):
    X = np.random.default_rng(3).normal(size=(25, 3))
    K = np.exp(-gamma * cdist(X, X, "sqeuclidean")) * np.outer(1 + X[:, 0] ** 2, 1 + X[:, 0] ** 2)
    K += ridge * np.eye(25)
    p = np.diag(K)
    best = minimize(
        lambda b: b @ K @ b - p @ b,
        np.full(25, 1 / 25),
        jac=lambda b: 2 * K @ b - p,
        bounds=[(0, 1)] * 25,
        constraints=[{"type": "eq", "fun": lambda b: b.sum() - 1, "jac": np.ones_like}],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    found = enclosing_ball(K)
    assert found.squared_radius == pytest.approx(-best.fun, rel=1e-7)
    assert found.gap <= 1e-9 * found.squared_radius


@pytest.mark.parametrize("n", [60, 300])
@pytest.mark.parametrize("kind", ["line", "cloud", "cube", "ring", "narrow", "poly"])
def test_primal_and_dual_meet(n, kind):
    """No other computation is needed: both bounds, written out from the points."""
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 4))
    ring = X * (1.0 + 1e-4 * random.normal(size=(n, 1))) / np.linalg.norm(X, axis=1)[:, None]
    K = {
        "line": np.outer(X[:, 0], X[:, 0]),
        "cloud": (X + 300.0) @ (X + 300.0).T,
        "cube": np.sign(X) @ np.sign(X).T,
        "ring": ring @ ring.T,
        "narrow": np.exp(-30.0 * cdist(X, X, "sqeuclidean")),
        "poly": (X @ X.T + 1.0) ** 4,
    }[kind]
    found = enclosing_ball(K)
    beta = found.weights
    farthest = max(K[j, j] - 2 * K[j] @ beta + beta @ K @ beta for j in range(n))
    lower = np.diag(K) @ beta - beta @ K @ beta
    assert found.squared_radius == pytest.approx(farthest, rel=1e-7)
    assert found.squared_radius - found.gap == pytest.approx(lower, rel=1e-7)
    assert found.gap <= 1e-8 * found.squared_radius
    assert farthest >= lower * (1 - 1e-7)


def test_small_and_single_precision():
    assert enclosing_ball(np.array([[5.0]])).squared_radius == 0.0
    assert enclosing_ball(np.full((4, 4), 2.0)).squared_radius == pytest.approx(0.0, abs=1e-12)
    X = np.random.default_rng(0).normal(size=(50, 3))
    K = np.exp(-cdist(X, X, "sqeuclidean"))
    single = enclosing_ball(K.astype(np.float32))
    assert single.squared_radius == pytest.approx(enclosing_ball(K).squared_radius, rel=1e-4)


def test_the_matrix_is_left_alone():
    K = np.asfortranarray(np.diag([1.0, 2.0, 3.0]))
    enclosing_ball(K)
    np.testing.assert_array_equal(K, np.diag([1.0, 2.0, 3.0]))


def test_what_is_no_matrix_of_inner_products():
    with pytest.raises(ValueError, match=r"got shape \(2, 3\)"):
        enclosing_ball(np.zeros((2, 3)))
    with pytest.raises(LinAlgError, match="not semidefinite"):
        enclosing_ball(np.array([[1.0, 3.0, -3.0], [3.0, 1.0, 3.0], [-3.0, 3.0, 1.0]]))
