"""Error bounds of candidates that are solutions, nearly so, or not at all."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from adversarial.reference import reference
from heldout._twins import Expectile, gaussian, make_problem
from hypothesis import given
from hypothesis import strategies as st
from registries import LOSSES
from scipy.optimize import brentq

from onefit.gram import as_gram
from onefit.heldout.refit import refit_fold
from onefit.losses import EpsilonInsensitive, Huber, Logistic, SmoothedHinge, Squared
from onefit.problem import Problem
from onefit.proof.certificate import ApproximateModels
from onefit.proof.norms import Norms

N = 18
TRAIN, TEST = np.arange(13), np.arange(13, 18)


def candidate(problem, lam, a, b, precise=False):
    """A model of the training rows with some coefficients, as a column."""
    K = problem.K.matrix[np.ix_(TRAIN, TRAIN)]
    u = K @ a + b
    drift = 1e-15 * float(np.sqrt(np.diagonal(problem.K.matrix)[TRAIN]) @ np.abs(a))
    return ApproximateModels(
        problem.norms, TRAIN, problem.loss, problem.fit_intercept, problem.Y[TRAIN],
        problem.s[TRAIN][:, None], np.array([problem.ridge(lam, TRAIN)]), a[:, None], u[:, None],
        np.array([drift]), np.zeros_like(a)[:, None] if precise else 0.0,
    )  # fmt: skip


def both_bounds(problem, lam, a, b):
    one = candidate(problem, lam, a, b, precise=True)
    values = problem.K.matrix[np.ix_(TEST, TRAIN)] @ a + b
    largest = np.array([np.abs(values).max()])
    kappa = np.sqrt(np.diagonal(problem.K.matrix)[TEST].max())
    return values, one.bound().at(kappa, largest)[0], one.sharp([TEST], largest)[0]


@st.composite
def near_misses(draw, kernel=gaussian):
    """A problem, and a candidate somewhere between its solution and far away."""
    loss, task = draw(st.sampled_from(LOSSES))
    seed = draw(st.integers(0, 10**6))
    options = {
        "fit_intercept": draw(st.booleans()),
        "scaling": draw(st.sampled_from(["mean", "total"])),
    }
    weight = draw(st.sampled_from(["none", "random"]))
    problem = make_problem(loss, task, N, seed, kernel, weight, **options)
    lam = 10.0 ** draw(st.floats(-6.0, 2.0))
    random = np.random.default_rng(seed)
    found = refit_fold(problem, lam, TRAIN, TEST).solution
    far = 10.0 ** draw(st.floats(-12.0, 1.0))
    size = np.abs(found.a[TRAIN, 0]).max() + 1e-300
    a = found.a[TRAIN, 0] + far * size * random.normal(size=TRAIN.size)
    if not problem.fit_intercept:
        return problem, lam, a, 0.0
    if draw(st.booleans()):
        a -= a.mean()
    b = found.b[0] + far * random.normal()
    return problem, lam, a, centred(problem, a, b) if draw(st.booleans()) else b


def centred(problem, a, b):
    """The intercept that is best for some coefficients, as they are."""
    y, s, u = problem.Y[TRAIN, 0], problem.s[TRAIN], problem.K.matrix[np.ix_(TRAIN, TRAIN)] @ a

    def slope(shift):
        return float((s * problem.loss.gradient(y, u + shift)).sum())

    reach = 1.0 + np.abs(y - u).max() + abs(b)
    return brentq(slope, -2.0 * reach, 2.0 * reach, xtol=1e-15)


def remote(X):
    """Test rows that no training row reaches: only the intercept predicts them."""
    K = gaussian(X)
    K[TEST] *= 1e-6
    K[:, TEST] *= 1e-6
    K[np.ix_(TEST, TRAIN)] = K[np.ix_(TRAIN, TEST)] = 0.0
    return K


@given(near_misses())
def test_bounds_hold_wherever_the_candidate_is(case):
    assert_bounds_hold(*case)


@given(near_misses(remote))
def test_bounds_hold_for_the_intercept_alone(case):
    assert_bounds_hold(*case)


def assert_bounds_hold(problem, lam, a, b):
    truth = reference(problem, lam, TRAIN, TEST)
    if not truth.decided:
        return
    values, plain, sharp = both_bounds(problem, lam, a, b)
    gap = np.abs(values - truth.values).max()
    assert gap <= plain + truth.error
    assert gap <= sharp + truth.error


@pytest.mark.parametrize(("loss", "task"), [*LOSSES, (Expectile(0.8), "regression")])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_bounds_are_of_some_use(loss, task, fit_intercept):
    """A small error is found to be small; the sharper bound is within a few times of it."""
    problem = make_problem(loss, task, N, fit_intercept=fit_intercept, scaling="total")
    lam, random = 1e-2, np.random.default_rng(0)
    solution = refit_fold(problem, lam, TRAIN, TEST).solution
    best_a, best_b = solution.a[TRAIN, 0], solution.b[0]
    best = problem.K.matrix[np.ix_(TEST, TRAIN)] @ best_a + best_b
    ratios = []
    for _ in range(20):
        # what a perturbation of the targets would do: all of it is seen by the residual
        push = random.normal(size=TRAIN.size)
        change = 1e-9 * np.linalg.solve(
            problem.K.matrix[np.ix_(TRAIN, TRAIN)] + lam * np.eye(13), push
        )
        change -= change.mean() if fit_intercept else 0.0
        a = best_a + change * (np.abs(best_a) > 0)
        if fit_intercept:
            a -= a.mean()
        values, _, sharp = both_bounds(problem, lam, a, best_b)
        ratios.append(sharp / max(np.abs(values - best).max(), 1e-12))
    assert np.median(ratios) < 200.0


def test_the_bound_of_the_squared_loss_is_attained():
    """||f - f*|| = ||rho|| / (2 sqrt(c)) where the residual is an eigenvector, and its e = c."""
    K = np.diag([1.0, 4.0, 0.25])
    y = np.array([[1.0], [2.0], [3.0]])
    problem = Problem(K, y, np.ones(3), Squared(), False, "total")
    for i, e in enumerate([1.0, 4.0, 0.25]):
        a = y[:, 0] / (np.diagonal(K) + e)
        a[i] += 0.01
        columns = ApproximateModels(
            problem.norms, np.arange(3), problem.loss, False, y, np.ones((3, 1)), np.array([e]),
            a[:, None], (K @ a)[:, None], np.zeros(1),
        )  # fmt: skip
        expected = 0.01 * np.sqrt(e)
        assert columns.bound().function[0] == pytest.approx(expected, rel=1e-6)


def test_an_indefinite_matrix_is_part_of_the_bound():
    random = np.random.default_rng(1)
    X = random.normal(size=(N, 2))
    v = random.normal(size=N)
    K = gaussian(X, 0.01) - 3e-9 * np.outer(v, v)
    eigenvalue = np.linalg.eigvalsh(K)[0]
    norms = Norms.of(as_gram(K))
    assert eigenvalue < -1e-9
    assert -eigenvalue <= norms.negative <= -1.01 * eigenvalue
    assert Norms.of(as_gram(gaussian(X, 0.01))).negative < 1e-13
    problem = Problem(K, random.normal(size=(N, 1)), np.ones(N), Squared(), False, "total")
    for lam in (1e-7, 1e-5):
        found = refit_fold(problem, lam, TRAIN, TEST)
        truth = reference(problem, lam, TRAIN, TEST)
        assert truth.decided
        assert np.abs(found.values[:, 0] - truth.values).max() <= found.error[0] + truth.error
        assert found.error[0] < 1e-6
    # below the eigenvalue the first bound knows nothing
    a = np.zeros(TRAIN.size)
    assert np.isinf(candidate(problem, 1e-10, a, 0.0).bound().function[0])


@pytest.mark.parametrize("loss", [Huber(0.1), SmoothedHinge(0.1)])
@pytest.mark.parametrize("shift", [0.0, 0.05, -0.3])
def test_the_middle_of_a_flat_stretch(loss, shift):
    """Two groups far apart and almost no f: b is anywhere between, by convention in the middle."""
    labels = np.array([1.0] * 6 + [-1.0] * 6 + [1.0] * 6)
    K = 1e-3 * np.eye(N)
    problem = Problem(K, labels[:, None], np.ones(N), loss, True, "total")
    train = np.arange(12)
    b = shift
    u = np.full((12, 1), b)
    a = -problem.loss.gradient(labels[:12], u[:, 0]) / (2.0 * 50.0)
    u = u + (K[:12, :12] @ a)[:, None]
    one = ApproximateModels(
        problem.norms, train, loss, True, labels[:12, None], np.ones((12, 1)), np.array([50.0]),
        a[:, None], u, np.zeros(1),
    )  # fmt: skip
    bound = one.bound()
    assert bound.function[0] < 1e-7
    assert abs(shift) <= bound.intercept[0] <= abs(shift) + 1e-8


@pytest.mark.parametrize("unit", [1.0, 1e-25])
def test_a_flat_interval_with_ends_far_from_the_targets(unit):
    """Its ends are rounded more than targets and predictions are, and so is its middle."""
    y = unit * np.array([0.338588878, -0.131964139, -0.348322106, -0.113316273])[:, None]
    loss = EpsilonInsensitive(4331.8879420755175 * unit, 81.0 * unit)
    middle = (Fraction(y[0, 0]) + Fraction(y[2, 0])) / 2
    b = float(middle) + unit * np.linspace(-1e-12, 1e-12, 101)
    u, s, ridge = np.tile(b, (4, 1)), np.ones((4, 1)), np.full(101, 1.0 / unit)
    norms = Norms.of(as_gram(np.eye(4)))
    models = ApproximateModels(
        norms, np.arange(4), loss, True, y, s, ridge, np.zeros((4, 101)), u, np.zeros(101)
    )
    off = np.array([abs(float(Fraction(one) - middle)) for one in b])
    assert (off <= models.bound().intercept).all()
    assert (models.bound().intercept <= 1e-9 * unit).all()


def test_a_nearly_flat_middle_is_no_certificate():
    """Curvature that underflows leaves the intercept open, however small the steps have become."""
    y = np.array([-767.0, -292, -268, -198, -192, 105, 183, 428, 538])[:, None]
    problem = Problem(np.eye(9), y, np.ones(9), Logistic(), True, "mean")
    assert problem.loss.name == "logistic"
    found = refit_fold(problem, 1e-3, np.arange(1, 9), np.array([0]))
    truth = reference(problem, 1e-3, np.arange(1, 9), np.array([0]))
    assert truth.decided
    assert np.abs(found.values[:, 0] - truth.values).max() <= found.error[0]
    assert found.error[0] > 1e-6 * problem.scale[0] or abs(found.values[0, 0] - truth.values) < 1e-4
