"""Error bounds of batches, against solutions in ball arithmetic, and the digits they ask for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from adversarial.reference import reference
from heldout._twins import make_problem
from registries import LOSS_IDS, LOSSES, SYSTEMS

from onefit.columns.certify import bound, certify, refine
from onefit.columns.fit import fit
from onefit.columns.newton import Batch, minimise
from onefit.heldout.path import curvature
from onefit.losses import EpsilonQuadratic, Huber, Log, SmoothedHinge, Squared, SquaredHinge
from onefit.problem import Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE

N = 20
ROWS = np.arange(N)
TESTED = [np.array([0, 7]), np.array([3, 4, 12])]
TINY = [
    (Squared(), "regression"),
    (Huber(0.3), "regression"),
    (EpsilonQuadratic(0.1), "regression"),
    (SquaredHinge(), "classification"),
]


def batch_of(loss, task, lam, make=SYSTEMS["update"], solved=True, **options):
    """Two folds left out of a problem, at their minimisers or at the full solution."""
    problem = make_problem(loss, task, N, **options)
    full = fit(problem, lam)
    train = np.ones((N, 2), dtype=bool)
    for c, rows in enumerate(TESTED):
        train[rows, c] = False
    ridge = np.array([problem.ridge(lam, np.flatnonzero(one)) for one in train.T])
    columns = problem.columns(0, train, ridge)
    system = make(problem, curvature(problem, 0, full.u[:, 0]), ridge)
    batch = Batch.start(columns, system, full.take(np.zeros(2, dtype=np.intp)))
    if solved:
        minimise(batch)
    return problem, batch


def gaps(problem, lam, batch):
    """True errors of the tested rows, and how well these are known; None where they are not."""
    found = []
    for c, test in enumerate(TESTED):
        truth = reference(problem, lam, np.setdiff1d(ROWS, test), test)
        assert truth.decided
        found.append(np.abs(batch.at.u[test, c] - truth.values).max() - truth.error)
    return np.array(found)


@pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
@pytest.mark.parametrize("solved", [True, False])
def test_bounds_hold_at_the_minimiser_and_elsewhere(loss, task, solved):
    for make, fit_intercept in ((SYSTEMS["update"], True), (SYSTEMS["cholesky"], False)):
        problem, batch = batch_of(
            loss, task, 1e-2, make, solved, weight="random", fit_intercept=fit_intercept
        )
        certify(batch, ~batch.columns.train)
        assert (gaps(problem, 1e-2, batch) <= batch.error).all()
        assert (batch.error[batch.settled] <= EXACT_TOLERANCE * problem.scale[0]).all()


@pytest.mark.parametrize(("loss", "task"), TINY)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_more_digits_make_the_bound_small_enough(loss, task, fit_intercept):
    lam = 1e-11
    problem, batch = batch_of(loss, task, lam, weight="random", fit_intercept=fit_intercept)
    bound(batch, ~batch.columns.train)
    before = batch.error.copy()
    certify(batch, ~batch.columns.train)
    assert (before > EXACT_TOLERANCE * problem.scale[0]).any()
    assert (batch.error <= EXACT_TOLERANCE * problem.scale[0]).all()
    assert (gaps(problem, lam, batch) <= batch.error).all()
    np.testing.assert_array_equal(batch.pieces, loss.piece(problem.Y, batch.at.u))
    # what was refined is still a model of the rows it was trained on
    assert not (batch.at.a * ~batch.columns.train).any()
    rest = np.abs(problem.K.matrix @ batch.at.a + batch.at.b - batch.at.u).max(axis=0)
    assert (rest <= batch.at.drift * problem.norms.root).all()


@pytest.mark.parametrize("loss", [Squared(), Huber(0.3)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_only_the_sharper_bound_knows_of_a_lambda_of_nothing(loss, fit_intercept):
    """Below what rounding may have made negative of an eigenvalue."""
    lam = 1e-14
    problem, batch = batch_of(loss, "regression", lam, weight="random", fit_intercept=fit_intercept)
    bound(batch, ~batch.columns.train)
    assert np.isinf(batch.error).all()
    certify(batch, ~batch.columns.train)
    assert (batch.error <= EXACT_TOLERANCE * problem.scale[0]).all()
    assert (gaps(problem, lam, batch) <= batch.error).all()


def test_a_smaller_bound_may_be_wanted():
    problem, batch = batch_of(Huber(0.3), "regression", 1e-7)
    certify(batch, ~batch.columns.train)
    before = batch.error.copy()
    assert (before <= EXACT_TOLERANCE * problem.scale[0]).all()
    certify(batch, ~batch.columns.train, wanted=1e-13)
    assert (batch.error < 0.1 * before).all()
    assert (gaps(problem, 1e-7, batch) <= batch.error).all()


def test_columns_short_of_the_minimiser_are_sharpened_only_on_request():
    """The sharper bound is taken, and no step."""
    problem, batch = batch_of(Log(), "classification", 1e-3, solved=False)
    batch.step(full=True)
    assert not batch.settled.any()
    u = batch.at.u.copy()
    certify(batch, ~batch.columns.train)
    plain = batch.error.copy()
    assert (plain > EXACT_TOLERANCE * problem.scale[0]).any()
    certify(batch, ~batch.columns.train, sharpen=True)
    assert (batch.error <= plain).all()
    assert (batch.error < plain).any()
    np.testing.assert_allclose(batch.at.u, u, atol=1e-10)
    assert (gaps(problem, 1e-3, batch) <= batch.error).all()


def test_predictions_that_have_drifted_are_computed_anew():
    problem, batch = batch_of(Huber(0.3), "regression", 1e-2)
    noise = 1e-4 * np.sin(np.arange(2.0 * N)).reshape(N, 2)
    batch.at = replace(batch.at, u=batch.at.u + noise, drift=np.full(2, 1e-4))
    bound(batch, ~batch.columns.train)
    np.testing.assert_allclose(batch.at.u, problem.K.matrix @ batch.at.a + batch.at.b, atol=1e-12)
    assert (batch.error <= EXACT_TOLERANCE).all()


def test_predictions_that_have_not_are_kept():
    _, batch = batch_of(Huber(0.3), "regression", 1e-2)
    u = batch.at.u
    bound(batch, ~batch.columns.train)
    assert batch.at.u is u


def test_the_bound_is_about_the_tested_rows():
    """One that no training row reaches is predicted by the intercept alone."""
    problem, _ = batch_of(Huber(0.3), "regression", 1e-2)
    K = problem.K.matrix.copy()
    K[0, 1:] = K[1:, 0] = 0.0
    K[0, 0] = 1e-8
    far = replace(problem, K=K)
    train = np.ones((N, 1), dtype=bool)
    train[:2] = False
    columns = far.columns(0, train, np.array([1.0]))
    start = Solution.zero(N, 1, np.float64)
    batch = Batch.start(columns, SYSTEMS["cholesky"](far, None, columns.ridge), start)
    batch.step()
    errors = []
    for row in (0, 1):
        tested = np.zeros((N, 1), dtype=bool)
        tested[row] = True
        bound(batch, tested)
        errors.append(batch.error[0])
    assert errors[0] < errors[1]


def test_no_intercept_no_bound():
    """The log loss of one class has no minimiser, whatever the steps say."""
    problem = Problem(np.eye(4), np.ones((4, 1)), np.ones(4), Log())
    columns = problem.targets(np.arange(4), 1.0)
    zero = np.zeros((4, 1))
    at = Solution(zero, np.array([400.0]), zero + 400.0, np.zeros(1))
    batch = Batch.start(columns, SYSTEMS["cholesky"](problem, None, columns.ridge), at)
    batch.settled[:] = True
    certify(batch, columns.train)
    assert np.isinf(batch.error[0]) or batch.error[0] > 1.0


def test_single_precision_is_bounded_in_double_and_not_refined():
    problem, batch = batch_of(Huber(0.3), "regression", 1e-2, dtype=np.float32)
    certify(batch, ~batch.columns.train)
    assert batch.at.u.dtype == np.float64
    assert batch.at.a.dtype == np.float32
    assert (gaps(problem, 1e-2, batch) <= batch.error).all()
    error = batch.error.copy()
    refine(batch, ~batch.columns.train, np.arange(2), 0.0)
    np.testing.assert_array_equal(batch.error, error)


def test_refining_touches_no_other_column():
    _, batch = batch_of(SmoothedHinge(0.5), "classification", 1e-10)
    bound(batch, ~batch.columns.train)
    a, error = batch.at.a[:, 0].copy(), batch.error[0]
    refine(batch, ~batch.columns.train, np.array([1]), 0.0)
    np.testing.assert_array_equal(batch.at.a[:, 0], a)
    assert batch.error[0] == error


def test_refining_never_makes_a_bound_larger():
    for loss, task in LOSSES:
        _, batch = batch_of(loss, task, 1e-8)
        bound(batch, ~batch.columns.train)
        before = batch.error.copy()
        refine(batch, ~batch.columns.train, np.arange(2), 0.0)
        assert (batch.error <= before).all(), loss
