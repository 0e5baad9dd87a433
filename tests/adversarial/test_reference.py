"""The reference itself: against rational arithmetic, an honest refit, and more of its own bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb, arb_mat, ctx
from registries import LOSS_IDS, LOSSES, SCALINGS, sample
from scipy.spatial.distance import cdist

from adversarial.balls import positive_definite
from adversarial.generator import hostile, named_cases
from adversarial.newton import Point, approach
from adversarial.reference import FIRST_BITS, Task, UnclearError, reference
from onefit.heldout.refit import refit_fold
from onefit.losses import (
    EpsilonQuadratic,
    Huber,
    Log,
    Logistic,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from onefit.problem import Problem


def _problem(loss, task, weights, n=20, dtype=np.float64, **options):
    X, y = sample(task, n=n)
    s = np.ones(n) if weights == "none" else np.random.default_rng(0).uniform(0.1, 3.0, n)
    if weights == "zeros":
        s[::6] = 0.0
    K = np.exp(-0.7 * cdist(X, X, "sqeuclidean"))
    arrays = [x.astype(dtype) for x in (K, y[:, None], s)]
    return Problem(*arrays, loss, **options)


def _rational_ridge(problem, lam, train, test):
    """Values of the squared loss, by elimination with fractions."""
    K, s = problem.K.matrix, [Fraction(float(problem.s[i])) for i in train]
    ridge = Fraction(lam) * (sum(s) if problem.scaling == "mean" else 1)
    system = [[_mean(K, p, q) for q in train] for p in train]
    for i, w in enumerate(s):
        system[i][i] += ridge / w
    right = [Fraction(float(y)) for y in problem.Y[train, 0]]
    if problem.fit_intercept:
        system = [[*row, Fraction(1)] for row in system] + [[Fraction(1)] * len(s) + [Fraction(0)]]
        right.append(Fraction(0))
    a = _eliminate(system, right)
    b = a[-1] if problem.fit_intercept else Fraction(0)
    return [sum(_mean(K, t, i) * x for i, x in zip(train, a, strict=False)) + b for t in test]


def _mean(K, p, q):
    return (Fraction(float(K[p, q])) + Fraction(float(K[q, p]))) / 2


def _eliminate(system, right):
    rows, m = [[*row, value] for row, value in zip(system, right, strict=True)], len(right)
    for p in range(m):
        pivot = next(i for i in range(p, m) if rows[i][p] != 0)
        rows[p], rows[pivot] = rows[pivot], rows[p]
        rows[p] = [x / rows[p][p] for x in rows[p]]
        for i in range(m):
            if i != p and rows[i][p]:
                factor = rows[i][p]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[p], strict=True)]
    return [row[-1] for row in rows]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scaling", SCALINGS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_squared_loss_is_rational(fit_intercept, scaling, dtype):
    options = {"fit_intercept": fit_intercept, "scaling": scaling}
    problem = _problem(Squared(), "regression", "random", n=9, dtype=dtype, **options)
    K = problem.K.matrix.copy()
    K[0, 1] *= dtype(1.0 + 1e-6)
    problem = Problem(K, problem.Y, problem.s, problem.loss, **options)
    train, test = np.arange(6), np.arange(5, 9)
    truth = reference(problem, 1e-7, train, test)
    wanted = _rational_ridge(problem, 1e-7, train, test)
    assert truth.decided
    np.testing.assert_array_equal(truth.values, [float(value) for value in wanted])
    gaps = [abs(Fraction(v) - w) for v, w in zip(truth.values.tolist(), wanted, strict=True)]
    assert max(gaps) <= Fraction(truth.error)


@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
@pytest.mark.parametrize("weights", ["none", "random", "zeros"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_is_an_honest_refit_of_benign_problems(loss, task, weights, fit_intercept):
    for scaling, lam in [("mean", 1e-6), ("mean", 1e-2), ("total", 1e-3), ("total", 30.0)]:
        problem = _problem(loss, task, weights, fit_intercept=fit_intercept, scaling=scaling)
        train, test = np.arange(15), np.arange(13, 20)
        truth = reference(problem, lam, train, test)
        found = refit_fold(problem, lam, train[problem.s[train] > 0], test)
        assert truth.decided
        assert found.error[0] <= 1e-6 * problem.scale[0]
        assert truth.error <= 1e-15 * (1.0 + np.abs(truth.values).max())
        np.testing.assert_allclose(found.values[:, 0], truth.values, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("seed", range(40))
def test_twice_the_precision_agrees(seed):
    case = hostile(seed)
    for train, test in case.folds:
        first = reference(case.problem, case.lam, train, test)
        second = reference(case.problem, case.lam, train, test, bits=2 * FIRST_BITS)
        assert first.decided == second.decided
        np.testing.assert_array_equal(first.values, second.values)


@pytest.mark.parametrize("seed", range(100, 160))
def test_bound_holds_around_the_solution_on_pieces(seed):
    case = hostile(seed)
    problem = case.problem
    train, test = case.folds.train[0], case.folds.test[0]
    train = train[problem.s[train] > 0]
    with ctx.workprec(2 * FIRST_BITS):
        task = Task.of(problem, case.lam, train, test, 0)
        if not task.piecewise or positive_definite(task.convex()) is not True:
            pytest.skip("nothing to compare")
        point = approach(task.machine, Point.at(task.machine, [arb(0)] * train.size, arb(0)))
        found = task.on_pieces(point)
        shaken = Point.at(task.machine, [a * (1 + arb(2) ** -250) for a in point.a], point.b)
        try:
            balls = task.around(shaken)
        except UnclearError:
            pytest.skip("the intercept is not unique, or too nearly so")
        for wide, narrow in zip(balls, task.predictions(*found), strict=True):
            assert wide.overlaps(narrow)
            assert wide.rad() >= narrow.rad()


def test_named_cases_are_decided():
    open_ended = {"float32 squared hinge"}
    for name, case in named_cases().items():
        found = [reference(case.problem, case.lam, a, b).decided for a, b in case.folds]
        assert all(found) or name in open_ended, name


def _line(y, K=None, s=None, loss=None, **options):
    y = np.asarray(y, dtype=float)
    K = np.eye(y.size) if K is None else K
    s = np.ones(y.size) if s is None else np.asarray(s, dtype=float)
    return Problem(K, y[:, None], s, loss, **({"scaling": "total"} | options))


def test_huber_beyond_its_threshold():
    # a row alone on its line, far beyond b: 2 Lambda a = 2 b, and u = a
    problem = _line([100.0, -100.0, 5.0], loss=Huber(0.5), fit_intercept=False)
    truth = reference(problem, 0.25, np.array([0, 1]), np.array([0, 1, 2]))
    np.testing.assert_array_equal(truth.values, [2.0, -2.0, 0.0])


def test_flat_intercept_is_the_middle():
    # straight pieces on both sides: a = +-b/Lambda, and u in [-10 + 0.5, 20 - 0.5] leaves b free
    problem = _line([-10.0, 20.0, 0.0], loss=Huber(0.5))
    truth = reference(problem, 1.0, np.array([0, 1]), np.array([0, 1, 2]))
    # u_0 = b - 1/2 >= -9.5 and u_1 = b + 1/2 <= 19.5: b in [-9, 19]
    np.testing.assert_array_equal(truth.values, [4.5, 5.5, 5.0])


def test_flat_intercept_of_the_tube():
    problem = _line([1.0, 1.5, 1.25], loss=EpsilonQuadratic(1.0))
    truth = reference(problem, 1.0, np.array([0, 1]), np.array([0, 2]))
    np.testing.assert_array_equal(truth.values, [1.25, 1.25])


def test_interval_open_to_one_side_gives_its_end():
    problem = _line([1.0, 1.0, -1.0], loss=SquaredHinge())
    truth = reference(problem, 1.0, np.array([0, 1]), np.array([0, 2]))
    np.testing.assert_array_equal(truth.values, [1.0, 1.0])


def test_no_minimiser_is_undecided():
    problem = _line([1.0, 1.0, -1.0], loss=Log())
    assert not reference(problem, 1.0, np.array([0, 1]), np.array([2])).decided


def test_balanced_smoothed_hinge():
    # both labels on the straight side: a = +-s / (2 Lambda), b in the middle by symmetry
    problem = _line([1.0, -1.0, 1.0], loss=SmoothedHinge(0.25))
    truth = reference(problem, 4.0, np.array([0, 1]), np.array([0, 1, 2]))
    np.testing.assert_array_equal(truth.values, [0.125, -0.125, 0.0])


def test_a_row_exactly_on_a_kink():
    # 2 Lambda a = 2 b at |r| = b exactly: u = a = 1, y = 2, b = 1, Lambda = 1
    problem = _line([2.0, -3.0, 0.0], loss=Huber(1.0), fit_intercept=False)
    truth = reference(problem, 1.0, np.array([0, 1]), np.array([0, 1, 2]))
    assert truth.decided
    np.testing.assert_array_equal(truth.values, [1.0, -1.0, 0.0])


def test_a_tie_that_only_the_bound_can_decide():
    # thirds are not floats: the enclosure of u always holds the kink
    K = np.array([[3.0, 1.0], [1.0, 3.0]])
    problem = _line([1.0, 1.0], K=K, loss=SquaredHinge(), fit_intercept=True)
    near = _line([1.0, -1.0], K=K, loss=SquaredHinge(), fit_intercept=True)
    for one in (problem, near):
        truth = reference(one, 1.0 / 3.0, np.arange(2), np.arange(2))
        assert truth.decided


@pytest.mark.parametrize(
    ("loss", "edge"),
    [(Squared(), 1.0), (Huber(1.0), 1.0), (SquaredHinge(), 1.0), (SmoothedHinge(0.5), 0.5),
     (Log(), 0.125), (Logistic(), 0.25)],
)  # fmt: skip
def test_decided_if_and_only_if_the_solution_is_unique(loss, edge):
    # K + diag(2 Lambda / (s d)) is positive definite from Lambda = d / 2 on
    problem = _line([1.0, -1.0], K=np.diag([1.0, -1.0]), loss=loss, fit_intercept=False)
    rows = np.arange(2)
    assert not reference(problem, 0.99 * edge, rows, rows).decided
    assert reference(problem, 1.01 * edge, rows, rows).decided


def test_slightly_indefinite_squared_loss_is_the_linear_system():
    case = named_cases()["slightly indefinite"]
    train, test = case.folds.train[0][:7], case.folds.test[0]
    truth = reference(case.problem, case.lam, train, test)
    wanted = _rational_ridge(case.problem, case.lam, train, test)
    assert truth.decided
    np.testing.assert_array_equal(truth.values, [float(value) for value in wanted])


def test_positive_definite():
    assert positive_definite(arb_mat([[2, 1], [1, 2]])) is True
    assert positive_definite(arb_mat([[1, 2], [2, 1]])) is False
    assert positive_definite(arb_mat([[1, 1], [1, 1]])) is False


def test_no_weight_means_not_there():
    problem = _problem(Huber(0.3), "regression", "zeros")
    train, test = np.arange(15), np.arange(15, 20)
    kept = train[problem.s[train] > 0]
    all_rows, some = (reference(problem, 1e-2, rows, test) for rows in (train, kept))
    np.testing.assert_array_equal(all_rows.values, some.values)
