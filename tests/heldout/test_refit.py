"""Refits against the definition: another problem, of the training rows alone."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import FORMS, Expectile, make_problem, predict, splits
from naive.machines import least_squares
from registries import LOSS_IDS, LOSSES

from onefit.columns.fit import fit
from onefit.heldout import Refit
from onefit.heldout.refit import cheap_to_refit, refit_columns, refit_fold
from onefit.losses import Huber, Log, SmoothedHinge, Squared
from onefit.problem import Problem, Solution
from onefit.proof.certificate import EXACT_TOLERANCE

N = 26
SPLITS = splits(N)
TRAIN, TEST = np.arange(18), np.arange(16, N)


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize(("fit_intercept", "scaling", "weight"), FORMS)
def test_the_squared_loss_by_its_bordered_systems(name, fit_intercept, scaling, weight):
    problem = make_problem(
        Squared(), "regression", N, weight=weight, q=2, fit_intercept=fit_intercept,
        scaling=scaling,
    )  # fmt: skip
    held = predict(Refit(), problem, SPLITS[name], 1e-2)
    for k, (train, test) in enumerate(SPLITS[name]):
        train = train[problem.s[train] > 0]
        a, b = least_squares(
            problem.K.matrix[np.ix_(train, train)], problem.Y[train], problem.s[train], 1e-2,
            fit_intercept, scaling,
        )  # fmt: skip
        expected = problem.K.matrix[np.ix_(test, train)] @ a + b
        np.testing.assert_allclose(held.by_fold[k], expected, rtol=1e-8, atol=1e-9)
    assert held.exact.all()
    assert (held.steps == 1).all()
    assert (held.moved == 0).all()


@pytest.mark.parametrize(
    ("loss", "task"), [*LOSSES, (Expectile(0.8), "regression")], ids=[*LOSS_IDS, "Expectile"]
)
def test_every_loss_by_a_fit_to_the_training_rows(loss, task):
    problem = make_problem(loss, task, N, weight="zeros")
    for lam in (1e-1, 1e-3):
        held = predict(Refit(), problem, SPLITS["kfold"], lam)
        for k, (train, test) in enumerate(SPLITS["kfold"]):
            train = train[problem.s[train] > 0]
            part = fit(problem.take(train), lam)
            expected = problem.K.matrix[np.ix_(test, train)] @ part.a + part.b
            np.testing.assert_allclose(held.by_fold[k], expected[:, 0], rtol=1e-7, atol=1e-8)
        assert held.exact.all()
        assert (held.steps >= 1).all()


def test_a_refit_has_its_machine_on_all_rows():
    problem = make_problem(Huber(0.3), "regression", N, q=2)
    found = refit_fold(problem, 1e-2, TRAIN, TEST)
    machine = found.solution
    assert machine.a.shape == (N, 2)
    assert not machine.a[18:].any()
    np.testing.assert_allclose(machine.u, problem.K.matrix @ machine.a + machine.b, atol=1e-10)
    np.testing.assert_array_equal(found.values, machine.u[TEST])
    assert found.error.shape == (2,)


def test_refits_are_in_double_precision_whatever_the_data_are_in():
    problem = make_problem(Huber(0.3), "regression", N, dtype=np.float32)
    found = refit_fold(problem, 1e-6, TRAIN, TEST)
    double = refit_fold(problem.double, 1e-6, TRAIN, TEST)
    assert found.values.dtype == np.float64
    np.testing.assert_array_equal(found.values, double.values)
    np.testing.assert_array_equal(found.error, double.error)
    assert found.error[0] <= EXACT_TOLERANCE * problem.scale[0]


@pytest.mark.parametrize("loss", [Huber(0.3), SmoothedHinge(0.1), Log()])
def test_a_start_spares_steps_and_changes_nothing(loss):
    task = "regression" if isinstance(loss, Huber) else "classification"
    problem = make_problem(loss, task, N)
    cold = refit_fold(problem, 1e-3, TRAIN, TEST)
    near = fit(problem, 1e-3)
    for start in (cold.solution, near):
        warm = refit_fold(problem, 1e-3, TRAIN, TEST, start)
        np.testing.assert_allclose(warm.values, cold.values, rtol=1e-8, atol=1e-9)
        assert warm.error[0] <= EXACT_TOLERANCE
    assert refit_fold(problem, 1e-3, TRAIN, TEST, cold.solution).solution.steps <= 2


def test_a_start_that_is_not_finite_is_none():
    problem = make_problem(Log(), "classification", N)
    bad = Solution(np.full((N, 1), np.nan), np.zeros(1), np.full((N, 1), np.nan), np.zeros(1))
    found = refit_fold(problem, 1e-2, TRAIN, TEST, bad)
    expected = refit_fold(problem, 1e-2, TRAIN, TEST)
    np.testing.assert_array_equal(found.values, expected.values)


def test_a_start_that_leads_nowhere_is_given_up():
    """Far beyond the reach of its own loss, and with coefficients that are all wrong."""
    problem = make_problem(Log(), "classification", N)
    far = np.full((N, 1), 1e200)
    found = refit_fold(problem, 1e-2, TRAIN, TEST, Solution(far, np.zeros(1), far, np.zeros(1)))
    expected = refit_fold(problem, 1e-2, TRAIN, TEST)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-8)
    assert found.error[0] <= EXACT_TOLERANCE


def test_columns_of_any_kind_are_refitted():
    problem = make_problem(Huber(0.3), "regression", N)
    train = np.ones((N, 3), dtype=bool)
    train[:4, 1] = train[20:, 2] = False
    columns = problem.columns(0, train, np.array([0.1, 0.2, 0.3]))
    batch = refit_columns(columns, ~train)
    for c, ridge in enumerate((0.1, 0.2, 0.3)):
        part = Problem(
            problem.K.matrix, problem.Y, train[:, c] * 1.0, problem.loss, scaling="total"
        )
        np.testing.assert_allclose(batch.at.u[:, c], fit(part, ridge).u[:, 0], atol=1e-9)
    assert (batch.error[1:] <= EXACT_TOLERANCE).all()


def test_few_small_folds_are_cheap_and_none_is_not():
    assert cheap_to_refit(100, 10)
    assert not cheap_to_refit(1000, 1)
    assert not cheap_to_refit(10, 0)
