"""The radius-margin bound: by its definition, by a hard-margin SVM, and as a bound of refits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from registries import cases
from scipy.optimize import minimize
from sklearn.svm import SVC

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.columns.fit import fit
from onefit.criteria import CrossValidation, RadiusMargin
from onefit.criteria.radius_margin import squared_radius
from onefit.folds import leave_one_out
from onefit.heldout import Refit
from onefit.losses import Huber, SmoothedHinge, Squared, SquaredHinge


def with_slacks(problem, lam):
    """The kernel of the space in which the margin is hard."""
    return problem.K.matrix + np.diag(problem.ridge(lam) / problem.s)


def left_out_errors(problem, lam):
    """The error rate of refits, each without one row."""
    folds = leave_one_out(problem.n)
    return CrossValidation(loss="zero_one").at(problem, lam, folds, Refit())


def radius_by_programme(K):
    """R^2 by its dual, with a general solver."""
    n, p = len(K), np.diag(K)
    best = minimize(
        lambda b: b @ K @ b - p @ b,
        np.full(n, 1 / n),
        jac=lambda b: 2 * K @ b - p,
        bounds=[(0, 1)] * n,
        constraints=[{"type": "eq", "fun": lambda b: b.sum() - 1, "jac": np.ones_like}],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-13},
    )
    return -best.fun


@pytest.mark.parametrize("lam", [1e-3, 3e-2, 1.0])
@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_by_a_hard_margin_svm(make_problem, scaling, lam):
    """libsvm with a huge C on K + Lambda I, and the ball by a general solver."""
    problem = make_problem(SquaredHinge(), scaling=scaling)
    K, y = with_slacks(problem, lam), problem.Y[:, 0]
    svm = SVC(C=1e9, kernel="precomputed", tol=1e-10).fit(K, y)
    a, own = svm.dual_coef_[0], K[np.ix_(svm.support_, svm.support_)]
    norm = 2 * np.abs(a).sum() - a @ own @ a  # |w|^2 at the optimum, and stationary there
    expected = radius_by_programme(K) * norm / problem.n
    assert RadiusMargin().at(problem, lam) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("intercept", [True, False])
def test_by_its_definition(make_problem, intercept):
    """|w|^2 from its two parts, f and the slacks; rows alike in weight."""
    problem, lam = make_problem(SquaredHinge(), intercept=intercept), 0.02
    found = fit(problem, lam)
    a, slack = found.a[:, 0], np.maximum(1 - problem.Y * found.u, 0)[:, 0]
    norm = a @ problem.K.matrix @ a + (problem.s * slack**2).sum() / problem.ridge(lam)
    K = with_slacks(problem, lam)
    radius = radius_by_programme(K) if intercept else np.diag(K).max()
    assert RadiusMargin().at(problem, lam) == pytest.approx(radius * norm / problem.n, rel=1e-6)


@given(cases(losses=[(SquaredHinge(), "classification")], powers=(-4.0, 2.0), max_rows=14))
def test_it_bounds_leave_one_out(case):
    """By honest refits with the penalty held fixed; singular kernels, duplicates and weights."""
    problem = replace(case.problem, scaling="total")
    value = RadiusMargin().at(problem, case.lam)
    error = left_out_errors(problem, case.lam)
    assert error <= (4.0 if problem.fit_intercept else 1.0) * value + 1e-9


def test_the_bound_is_near_for_two_points():
    """One of each class, far apart in a linear kernel: 2 of 2 missed, and 4 R^2 |w|^2 = 4."""
    from onefit.problem import Problem

    x = np.array([[1.0], [-1.0]])
    problem = Problem(100.0 * x @ x.T, x, np.ones(2), SquaredHinge(), True, "total")
    assert RadiusMargin().at(problem, 1e-3) == pytest.approx(4 / 8, rel=1e-3)
    assert left_out_errors(problem, 1e-3) >= 0.5


def test_weights_count_in_the_mean(make_problem):
    problem, lam = make_problem(SquaredHinge(), weighted=True), 0.05
    alpha = np.abs(fit(problem, lam).a[:, 0])
    expected = radius_by_programme(with_slacks(problem, lam)) * np.average(alpha, weights=problem.s)
    assert RadiusMargin().at(problem, lam) == pytest.approx(expected, rel=1e-6)
    none = replace(problem, s=np.where(np.arange(24) < 20, problem.s, 0.0))
    rest = problem.take(np.arange(20))
    assert RadiusMargin().at(none, lam) == pytest.approx(RadiusMargin().at(rest, lam), rel=1e-8)


def test_the_centre_is_free_only_with_an_intercept(make_problem):
    """All points moved far away: nothing changes with an intercept, and much without one."""
    for intercept in (True, False):
        problem = make_problem(SquaredHinge(), intercept=intercept)
        moved = replace(problem, K=problem.K.matrix + 50.0)
        ratio = squared_radius(moved, 0.1) / squared_radius(problem, 0.1)
        assert ratio == pytest.approx(1.0) if intercept else ratio > 10.0


@pytest.mark.parametrize("gamma", [1e-3, 0.5, 5.0])
def test_single_precision(make_problem, gamma):
    problem = make_problem(SquaredHinge(), n=60, gamma=gamma)
    K, Y, s = (part.astype(np.float32) for part in (problem.K.matrix, problem.Y, problem.s))
    single = replace(problem, K=K, Y=Y, s=s)
    for lam in (1e-3, 0.1):
        assert squared_radius(single, lam) == pytest.approx(squared_radius(problem, lam), rel=1e-3)
        assert RadiusMargin().at(single, lam) == pytest.approx(
            RadiusMargin().at(problem, lam), rel=1e-2
        )


def test_rounding_that_spoils_the_ball_is_told(make_problem):
    """A kernel that hardly distinguishes points, in single precision, with a tiny penalty."""
    problem = make_problem(SquaredHinge(), n=60, gamma=1e-7)
    K, Y, s = (part.astype(np.float32) for part in (problem.K.matrix, problem.Y, problem.s))
    with pytest.raises(np.linalg.LinAlgError, match=r"at lam=1e-10 .*raise lam, or scale"):
        squared_radius(replace(problem, K=K, Y=Y, s=s), 1e-10)


def test_search_takes_it_by_name():
    random = np.random.default_rng(0)
    X = random.normal(size=(45, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    machine = KernelClassifier(loss="squared_hinge")
    grid = {"gamma": [0.1, 1.0], "lam": [1e-3, 1e-1]}
    search = KernelSearchCV(machine, grid, cv=3, criterion="radius_margin").fit(X, y)
    for value, params in zip(
        search.cv_results_["criterion"], search.cv_results_["params"], strict=True
    ):
        problem = machine.set_params(**params)._prepare(X, y, None)
        assert problem.Y.shape[1] == 3
        assert value == pytest.approx(RadiusMargin().at(problem, params["lam"]), rel=1e-7)
    assert search.best_index_ == search.cv_results_["criterion"].argmin()


def test_other_machines_are_refused(make_problem):
    with pytest.raises(ValueError, match=r"'squared_hinge' only, not SmoothedHinge.*'span'"):
        RadiusMargin().at(make_problem(SmoothedHinge(0.1)), 0.1)
    for loss in (Squared(), Huber(1.0)):
        with pytest.raises(ValueError, match=r"'squared_hinge' only, not .*'loo'"):
            RadiusMargin().at(make_problem(loss), 0.1)
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    with pytest.raises(ValueError, match="'radius_margin' fits models with loss 'squared_hinge'"):
        KernelSearchCV(KernelRegressor(), {"lam": [0.1]}, criterion="radius_margin").fit(X, y)


def test_squared_hinge_is_told_of_it(make_problem):
    from onefit.criteria import Gacv

    with pytest.raises(ValueError, match="'radius_margin'"):
        Gacv().at(make_problem(SquaredHinge()), 0.1)
