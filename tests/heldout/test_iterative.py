"""The iteration for all folds and lambdas, against honest refits."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import FORMS, gaussian, make_problem, predict, splits
from hypothesis import given
from hypothesis import strategies as st
from registries import CLASSIFICATION_LOSSES, REGRESSION_LOSSES, SCALINGS, cases, sample
from sklearn.model_selection import KFold

from onefit.folds import Folds, leave_one_out
from onefit.heldout import Block, Eigen, Iterative, Refit, iterative
from onefit.inverse.low_rank import LowRank
from onefit.kernels import Gaussian
from onefit.losses import Huber, Quantile, SmoothedHinge, Squared
from onefit.problem import Problem
from onefit.proof.certificate import EXACT_TOLERANCE

N = 90
SPLITS = {name: folds for name, folds in splits(N).items() if name != "pairs"}
LAMS = np.array([1e-1, 1e-3, 1e-5])
#: rows of which a low-rank factor has columns at the smaller lambdas
PRECONDITIONED = 330
each_size = pytest.mark.parametrize("n", [N, PRECONDITIONED], ids=["plain", "preconditioned"])


def test_a_preconditioner_saves_steps():
    """The larger sample has one: it needs fewer steps, although its condition number is larger."""
    steps = {}
    for n in (N, PRECONDITIONED):
        problem = make_problem(Squared(), "regression", n)
        factor = LowRank(problem.K, problem.s).factor(
            problem.ridge(1.0) * LAMS, np.zeros(3, dtype=int)
        )
        assert (factor.shape[1] > 0) == (n == PRECONDITIONED)
        steps[n] = predict(Iterative(), problem, splits(n)["kfold"], LAMS[-1]).steps.max()
    assert 4 * steps[PRECONDITIONED] < steps[N]


def assert_within_bounds(held, expected, problem, wanted=EXACT_TOLERANCE):
    """Values as far apart as both bounds allow, and these as small as was wanted."""
    for k, (mine, other) in enumerate(zip(held.by_fold, expected.by_fold, strict=True)):
        gap = np.abs(mine.astype(float) - other).max()
        assert gap <= held.error[k] + expected.error[k], (k, gap, held.error[k])
        assert held.error[k] <= wanted * problem.scale.max(), (k, held.error[k])


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize(("fit_intercept", "scaling", "weight"), FORMS)
def test_every_split(split, fit_intercept, scaling, weight):
    n = (N, PRECONDITIONED)[(list(SPLITS).index(split) + SCALINGS.index(scaling)) % 2]
    problem = make_problem(
        Squared(), "regression", n, weight=weight, q=2, fit_intercept=fit_intercept,
        scaling=scaling,
    )  # fmt: skip
    folds = splits(n)[split]
    if len(folds) > 12:
        folds = Folds.draw([(folds.train[k], folds.test[k]) for k in range(5)], np.empty((n, 1)))
    lams = LAMS if scaling == "mean" else n * LAMS
    path = Iterative().prepare(problem, folds).predict(lams)
    for i, lam in enumerate(lams):
        assert_within_bounds(path[i], predict(Refit(), problem, folds, lam), problem)
        assert path[i].exact.all()
        assert path[i].method == "iterative"
        assert (path[i].steps > 0).all()


@each_size
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_single_precision_is_certified_in_double(fit_intercept, n):
    problem = make_problem(
        Squared(), "regression", n, dtype=np.float32, weight="random", fit_intercept=fit_intercept
    )
    folds = splits(n)["kfold"]
    held = predict(Iterative(), problem, folds, 1e-3)
    assert held.values.dtype == np.float32
    assert_within_bounds(held, predict(Refit(), problem, folds, 1e-3), problem)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", [*REGRESSION_LOSSES[1:], *CLASSIFICATION_LOSSES[1:]], ids=repr)
def test_every_loss(loss, fit_intercept):
    """Problems with an intercept and enough rows for a preconditioner.

    For the hinge nearly sharp conjugate gradients end without a useful bound there.
    """
    n = PRECONDITIONED if fit_intercept and loss != SmoothedHinge(0.001) else N
    task = loss.task or "regression"
    problem = make_problem(loss, task, n, weight="random", fit_intercept=fit_intercept)
    folds = splits(n)["kfold"]
    path = Iterative().prepare(problem, folds).predict(np.array([1e-1, 1e-3]))
    for i, lam in enumerate(path.lams):
        assert_within_bounds(path[i], predict(Refit(), problem, folds, lam), problem)


@pytest.mark.parametrize("loss", [Huber(), Quantile(0.3)], ids=repr)
def test_every_split_has_a_width_of_its_own(loss):
    problem = make_problem(loss, "regression", N)
    held = predict(Iterative(), problem, SPLITS["kfold"], 1e-3)
    assert_within_bounds(held, predict(Refit(), problem, SPLITS["kfold"], 1e-3), problem)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.3), SmoothedHinge(0.1)], ids=repr)
def test_a_matrix_that_is_not_held(loss):
    random = np.random.default_rng(0)
    X, kernel = random.normal(size=(N, 2)), Gaussian(0.7)
    y = np.sign(X[:, 0]) if loss.task == "classification" else np.sin(X[:, 0])
    s, folds = np.ones(N), SPLITS["kfold"]
    whole = Problem(kernel(X), y[:, None], s, loss)
    tiled = Problem(kernel.tiles(X), y[:, None], s, loss)
    held = predict(Iterative(), tiled, folds, 1e-3)
    assert_within_bounds(held, predict(Refit(), whole, folds, 1e-3), whole)


def test_a_narrow_kernel_of_many_rows_that_is_not_held():
    """The rows and the kernel for which "exact" would copy the matrix in float32."""
    random = np.random.default_rng(0)
    X, kernel = random.normal(size=(400, 4)), Gaussian(30.0)
    y = np.where(X[:, [0]] + random.normal(size=(400, 1)) > 0.0, 1.0, -1.0)
    folds = Folds.draw(KFold(3), X)
    held, tiled = (
        predict(Iterative(), Problem(K, y, np.ones(400), SmoothedHinge(0.5)), folds, 1e-4)
        for K in (kernel(X), kernel.tiles(X))
    )
    np.testing.assert_allclose(tiled.values, held.values, atol=1e-6)
    assert tiled.exact.all()


def test_what_was_not_reached_is_said():
    """On more rows than are refitted for the sake of a certificate alone."""
    problem = make_problem(Squared(), "regression", 300)
    folds = splits(300)["kfold"]
    held = predict(Iterative(max_steps=2), problem, folds, 1e-6)
    expected = predict(Refit(), problem, folds, 1e-6)
    assert not held.exact.any()
    assert (held.error > EXACT_TOLERANCE * problem.scale).all()
    assert_within_bounds(held, expected, problem, np.inf)


def test_a_looser_tolerance_takes_fewer_steps():
    problem = make_problem(Squared(), "regression", N)
    folds = SPLITS["kfold"]
    loose, sharp = (predict(Iterative(tol=t), problem, folds, 1e-3) for t in (1e-3, 1e-9))
    assert (loose.steps < sharp.steps).all()
    assert not loose.exact.any()
    assert sharp.exact.all()
    for held, wanted in ((loose, 1e-3), (sharp, 1e-9)):
        assert_within_bounds(held, predict(Refit(), problem, folds, 1e-3), problem, wanted)


@pytest.mark.parametrize(("loss", "other"), [(Squared(), "eigen"), (Huber(0.3), "exact")])
def test_leave_one_out_is_left_to_other_methods(loss, other):
    problem = make_problem(loss, "regression", 250)
    with pytest.raises(ValueError, match=f"250 splits, one row each: use method='{other}'"):
        Iterative().prepare(problem, leave_one_out(250))


def test_an_indefinite_matrix():
    """Certified where the ridge compensates for it, with no claim where not."""
    for n in (N, 300):
        problem = make_problem(Squared(), "regression", n)
        K = problem.K.matrix - 0.5 * np.eye(n)
        problem = Problem(K, problem.Y, problem.s, Squared(), scaling="total")
        folds = splits(n)["kfold"]
        held = predict(Iterative(), problem, folds, 2.0)
        assert_within_bounds(held, predict(Refit(), problem, folds, 2.0), problem)
        assert not np.isfinite(predict(Iterative(), problem, folds, 0.1).error).any()


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_splits_go_in_batches(fit_intercept):
    problem = make_problem(Squared(), "regression", N, q=2, fit_intercept=fit_intercept)
    folds = leave_one_out(N)
    assert len(folds) > iterative.MAX_SMALL_MATRICES
    path = Iterative().prepare(problem, folds).predict(LAMS)
    expected = Eigen().prepare(problem, folds).predict(LAMS)
    for mine, other in zip(path, expected, strict=True):
        assert_within_bounds(mine, other, problem)


def test_watching():
    seen = []
    problem = make_problem(Squared(), "regression", N)
    predict(Iterative().watched(seen.append), problem, SPLITS["kfold"], 1e-3)
    assert len(seen) > 3
    assert seen[-1].max() <= 1.0 < seen[0].min()


@given(cases(losses=[(Squared(), "regression")]), st.booleans())
def test_bounds_hold_for_any_problem(case, tiled):
    problem = case.problem
    if problem.n < 4:
        return
    folds = Folds.draw(KFold(2, shuffle=True, random_state=0), np.empty((problem.n, 1)))
    held = predict(Iterative(), problem, folds, case.lam)
    assert_within_bounds(held, predict(Refit(), problem, folds, case.lam), problem, np.inf)


def test_the_same_as_eigen_on_more_rows():
    """Several kernels and lambdas; close wherever the condition number lets both be."""
    X = np.random.default_rng(0).normal(size=(400, 3))
    Y = np.sin(X[:, :1]) + 0.1 * X[:, 1:2]
    folds = Folds.draw(KFold(5), X)
    for gamma in (0.01, 1.0, 30.0):
        problem = Problem(gaussian(X, gamma), Y, np.ones(400), Squared())
        lams = np.logspace(-6, 1, 5)
        mine = Iterative(tol=1e-9).prepare(problem, folds).predict(lams)
        other = Eigen().prepare(problem, folds).predict(lams)
        assert np.abs(mine.values - other.values).max() <= 1e-8


def test_lambdas_that_a_factor_serves_better():
    """Tiny ones on a rough kernel; few by a factor each, many by a decomposition."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    problem = Problem(gaussian(X, 3.0), np.sin(X[:, :1]), np.ones(200), Squared())
    folds = Folds.draw(KFold(4), X)
    for lams in (np.array([1e-9, 1.0]), np.append(np.geomspace(1e-9, 1e-8, 8), 1.0)):
        path = Iterative(factor=True).prepare(problem, folds).predict(lams)
        assert (path.steps[-1] > 0).all()
        assert (path.steps[:-1] == 0).all()
        for i, lam in enumerate(lams):
            assert_within_bounds(path[i], predict(Refit(), problem, folds, lam), problem, np.inf)


def test_a_constant_target_of_an_indefinite_matrix_has_a_bound():
    """Its residual is zero, and what that is multiplied by is infinite: no product of the two."""
    X, y = sample("regression", 30, d=2)
    v = np.random.default_rng(0).normal(size=30)
    K = gaussian(X, 0.5) - 1e-5 * np.outer(v, v) / (v @ v)
    Y = np.column_stack([np.full(30, 3.0), y])
    problem = Problem(K, Y, np.ones(30), Squared(), True, "total")
    held = predict(Iterative(tol=1e-5), problem, Folds.draw(KFold(3), X), 1e-7)
    assert not np.isnan(held.error).any()


def test_a_lambda_whose_factor_fails_is_iterated():
    X, y = sample("regression", 300, d=2)
    K, Y = (1e4 * X @ X.T).astype(np.float32), y[:, None].astype(np.float32)
    problem = Problem(K, Y, np.ones(300, np.float32), Squared(), scaling="total")
    folds = Folds.draw(KFold(3), X)
    failed = Block().prepare(problem, folds).predict(np.array([1e-3]))
    assert "singular" in failed.reasons[0]
    found = predict(Iterative(factor=True), problem, folds, 1e-3)
    expected = predict(Refit(), problem, folds, 1e-3)
    assert (np.abs(found.values - expected.values).max() <= found.error + expected.error).all()
