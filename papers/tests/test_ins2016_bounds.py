"""Theorem 2 of the 2016 paper: as printed, where it fails, what refits never break; Table 1."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from onefit.folds import Folds
from onefit.heldout import Influence, Refit
from onefit.losses import SmoothedHinge
from onefit.problem import Problem
from onefit_papers.ins2016_bounds import bifcv_discrepancy, bifcv_lipschitz_bound, granularity

N = 40
DRAWN = np.random.default_rng(0)
X = DRAWN.normal(size=(N, 2))
Y = np.where(X[:, 0] + 0.7 * DRAWN.normal(size=N) > 0, 1.0, -1.0)
ORDER = np.random.default_rng(1).permutation(N)


def kernel(gamma):
    return np.exp(-gamma * cdist(X, X, "sqeuclidean"))


def splits(t):
    return Folds.draw([(np.setdiff1d(ORDER, part), part) for part in np.array_split(ORDER, t)], X)


def svm(K, y, lam):
    """Coefficients of the SVM itself, without intercept: the dual in its box."""
    Q, C = K * np.outer(y, y), 0.5 / (len(y) * lam)
    found = minimize(
        lambda a: (0.5 * a @ Q @ a - a.sum(), Q @ a - 1.0),
        np.zeros(len(y)),
        jac=True,
        bounds=[(0.0, C)] * len(y),
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000},
    )
    return found.x * y


@cache
def refitted(gamma, lam, t):
    """Held-out values of the SVM by refits, and their labels."""
    K = kernel(gamma)
    u = [K[np.ix_(b, a)] @ svm(K[np.ix_(a, a)], Y[a], lam) for a, b in splits(t)]
    return np.concatenate(u), np.concatenate([Y[b] for _, b in splits(t)])


def problem_of(gamma, delta):
    return Problem(kernel(gamma), Y[:, None], np.ones(N), SmoothedHinge(delta), False, "mean")


def series(gamma, lam, delta, t, r):
    method = Influence(r).prepare(problem_of(gamma, delta), splits(t))
    return method.predict(np.array([lam]))[0].values[:, 0]


def hinge(y, u):
    return np.maximum(1.0 - y * u, 0.0).mean()


def gap(gamma, lam, delta, t, r):
    """|t-CV - BIFCV| of the hinge, and the largest difference of two held-out values."""
    truth, y = refitted(gamma, lam, t)
    u = series(gamma, lam, delta, t, r)
    return abs(hinge(y, truth) - hinge(y, u)), np.abs(truth - u).max()


def test_as_printed():
    for t, r, lam, delta, kappa in [(5, 3, 1.0, 0.01, 1.0), (4, 2, 0.2, 0.1, 3.0)]:
        expected = delta / 2 + kappa / (lam * (r + 1) * (t - 1))
        assert bifcv_discrepancy(t, r, lam, delta, kappa) == pytest.approx(expected)


@given(
    st.integers(2, 500), st.integers(1, 60), st.floats(-6, 2), st.floats(-4, 0), st.floats(-1, 2)
)
def test_the_bound_by_its_sums(t, r, lam, delta, kappa):
    """Against the geometric series, summed term by term."""
    lam, delta, kappa = 10.0**lam, 10.0**delta, 10.0**kappa
    a = kappa / (2 * delta * t)
    q = a / (2 * lam + a)
    first = kappa / (lam * t)
    rounded = np.sqrt(kappa * delta / (8 * lam))
    moved = first + first * sum(q**j for j in range(r))
    assert bifcv_lipschitz_bound(t, r, lam, delta, kappa) == pytest.approx(rounded + moved)
    still = bifcv_lipschitz_bound(t, r, lam, delta, kappa, rows_move=False)
    assert still == pytest.approx(rounded + first * q**r / (1 - q), rel=1e-6)
    if 2 * lam * delta * t >= kappa:  # then the printed second term is one, too
        assert still - rounded <= bifcv_discrepancy(t, r, lam, delta, kappa) * (1 + 1e-12)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("lam", [1e-3, 0.0126, 0.2])
def test_refits_never_break_the_bound(gamma, lam):
    """Any row, any order, rows that move included."""
    for t, r, delta in [(4, 2, 0.01), (4, 14, 0.1), (8, 1, 0.5), (40, 14, 0.01), (40, 3, 0.5)]:
        of_hinge, of_values = gap(gamma, lam, delta, t, r)
        bound = bifcv_lipschitz_bound(t, r, lam, delta)
        assert of_hinge <= of_values + 1e-12
        assert of_values <= bound + 1e-7, (t, r, delta)


def test_the_bound_where_no_row_moves():
    """Against refits of the smoothed hinge; folds whose rows stay are picked by their pieces."""
    still = 0
    for gamma, lam, delta, t in [(1.0, 0.05, 0.5, 40), (0.1, 0.2, 0.5, 8), (1.0, 0.02, 0.3, 40)]:
        problem, folds = problem_of(gamma, delta), splits(t)
        truth = Refit().prepare(problem, folds).predict(np.array([lam]))[0]
        for r in (1, 3):
            u = series(gamma, lam, delta, t, r)
            bound = bifcv_lipschitz_bound(t, r, lam, delta, rows_move=False)
            bound -= np.sqrt(delta / (8 * lam))  # both are of the smoothed hinge
            for k in staying(problem, folds, lam):
                here = slice(folds.offsets[k], folds.offsets[k + 1])
                assert np.abs(truth.values[here, 0] - u[here]).max() <= bound + 1e-9
                still += 1
    assert still >= 40


def staying(problem, folds, lam):
    """The folds without which every other row keeps its piece."""
    from onefit.columns.fit import fit

    full = problem.loss.piece(problem.Y, fit(problem, lam).u)
    for k, (train, _) in enumerate(folds):
        part = problem.take(train)
        if np.array_equal(problem.loss.piece(part.Y, fit(part, lam).u), full[train]):
            yield k


@pytest.mark.parametrize("gamma", [0.1, 10.0])
@pytest.mark.parametrize("delta", [0.01, 0.3])
def test_printed_is_a_fact_where_every_row_is_on_the_straight_part(gamma, delta):
    """lam > kappa / (2 (1 - delta)): nothing is approximated, error rates included."""
    lam = 0.51 / (1 - delta)
    for t, r in [(4, 2), (40, 1)]:
        of_hinge, of_values = gap(gamma, lam, delta, t, r)
        assert of_values <= 1e-6
        assert of_hinge <= bifcv_discrepancy(t, r, lam, delta)


@pytest.mark.parametrize(("gamma", "lam"), [(0.1, 0.05), (10.0, 1 / (2 * N * 0.99))])
def test_printed_is_broken_below_by_the_hinge(gamma, lam):
    """A loss that is Lipschitz does not save it."""
    of_hinge, _ = gap(gamma, lam, 0.01, 40, 14)
    assert of_hinge > 1.05 * bifcv_discrepancy(40, 14, lam, 0.01)


@pytest.mark.parametrize("bound", [bifcv_discrepancy, bifcv_lipschitz_bound])
@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"folds": 1}, "folds must be a whole number of at least 2, got 1"),
        ({"order": 0}, "order must be a whole number of at least 1, got 0"),
        ({"order": 2.0}, "order must be a whole number"),
        ({"lam": 0.0}, "lam must be a positive"),
        ({"delta": -1.0}, "delta must be a positive"),
        ({"kappa": float("inf")}, "kappa must be a positive"),
    ],
)
def test_bad_input(bound, bad, words):
    with pytest.raises(ValueError, match=words):
        bound(**{"folds": 5, "order": 3, "lam": 1.0} | bad)


TABLE_1 = {0.2: (4, 2), 0.1: (5, 3), 0.05: (6, 4), 0.01: (16, 14)}


@pytest.mark.parametrize("accuracy", TABLE_1)
def test_table_1(accuracy):
    assert granularity(accuracy, lam=1.0) == TABLE_1[accuracy]


@pytest.mark.parametrize("accuracy", [0.02, 0.1, 0.4, 3.0])
@pytest.mark.parametrize("lam", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("kappa", [0.5, 1.0, 4.0])
def test_smallest_that_meets_the_bound(accuracy, lam, kappa):
    folds, order = granularity(accuracy, lam, delta=0.01, kappa=kappa)
    assert folds - 1 == order + 1
    assert kappa / (lam * (order + 1) * (folds - 1)) <= (accuracy - 0.005) * (1 + 1e-9)
    smaller = order
    assert smaller < 2 or kappa / (lam * smaller**2) > accuracy - 0.005


def test_whole_roots_stay_whole():
    # 1 / (lam (accuracy - delta/2)) = 400, but 400.0000000000003 in floating point
    assert granularity(0.055, lam=0.5, delta=0.1) == (21, 19)


@pytest.mark.parametrize(("accuracy", "delta"), [(0.005, 0.01), (0.004, 0.01), (0.1, 0.5)])
def test_accuracy_that_rounding_has_spent(accuracy, delta):
    with pytest.raises(ValueError, match=rf"larger accuracy, or delta below {2 * accuracy:g}"):
        granularity(accuracy, 1.0, delta)


@pytest.mark.parametrize("bad", [{"lam": 0.0}, {"accuracy": -1}, {"kappa": "1"}, {"delta": 0}])
def test_bad_numbers(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be a positive"):
        granularity(**{"accuracy": 0.1, "lam": 1.0} | bad)


def test_the_granularity_of_the_last_misprint():
    """(5) allows t = 4, r = 1 at accuracy 0.2, one less in all than (6)."""
    assert granularity(0.2, lam=1.0) == (4, 2)
    assert 1.0 / (1.0 * (1 + 1) * (4 - 1)) <= 0.2 - 0.01 / 2
