"""Full-sample solutions along lambda, and the systems of leave-out problems around them."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import FailsNear, gaussian, make_problem, splits
from sklearn.model_selection import KFold

from onefit.columns.fit import fit
from onefit.folds import Folds
from onefit.heldout import path
from onefit.heldout.path import FullPath, curvature
from onefit.heldout.splits import Splits
from onefit.losses import EpsilonQuadratic, Huber, Log, SmoothedHinge, Squared, SquaredHinge

#: enough rows for solutions to follow one factor
N = 300
LAMS = np.logspace(-1, -6, 16)
FIVE = Folds.draw(KFold(5), np.zeros((N, 1)))
PIECEWISE = [
    (Huber(0.3), "regression"),
    (EpsilonQuadratic(0.02), "regression"),
    (SquaredHinge(), "classification"),
    (SmoothedHinge(0.5), "classification"),
]
each_piecewise = pytest.mark.parametrize(("loss", "task"), PIECEWISE)


def narrow(loss, task, n=N, **options):
    """A problem whose points nearly all have curvature once lam is small."""
    return make_problem(loss, task, n, kernel=lambda X: gaussian(X, 30.0), **options)


def full_path(problem, folds=FIVE, follow=True):
    return FullPath(Splits.sort(problem, folds), follow=follow)


# solutions


@each_piecewise
@pytest.mark.parametrize(("fit_intercept", "weight"), [(True, "none"), (False, "random")])
def test_solutions_that_follow_one_factor_are_fits(loss, task, fit_intercept, weight):
    problem = narrow(loss, task, fit_intercept=fit_intercept, weight=weight, scaling="total")
    for lam, one in zip(LAMS, full_path(problem).solutions(LAMS), strict=True):
        assert one.converged
        expected = fit(problem, lam)
        scale = 1.0 + np.abs(expected.u).max()
        np.testing.assert_allclose(one.u, expected.u, rtol=0, atol=1e-7 * scale)
        np.testing.assert_allclose(one.b, expected.b, rtol=0, atol=1e-7 * scale)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.3), Log()])
@pytest.mark.parametrize("follow", [True, False])
def test_solutions_come_in_the_order_of_the_lambdas(loss, follow):
    task = "classification" if isinstance(loss, Log) else "regression"
    problem = make_problem(loss, task, 30, q=2, weight="zeros")
    lams = np.array([1e-3, 1.0, 1e-2, 1e-3, 10.0])
    found = full_path(problem, splits(30)["kfold"], follow).solutions(lams)
    for lam, one in zip(lams, found, strict=True):
        np.testing.assert_allclose(one.u, fit(problem, lam).u, rtol=0, atol=1e-7)


def test_solutions_along_a_path_take_fewer_steps_than_fits_from_zero():
    problem = make_problem(Log(), "classification", 30)
    lams = np.logspace(-3, 0, 10)
    found = full_path(problem, splits(30)["kfold"]).solutions(lams)
    along = np.array([one.steps for one in found])
    alone = np.array([fit(problem, lam).steps for lam in lams])
    assert along[-1] == alone[-1], "the largest lambda comes first"
    assert (along <= alone).all()
    assert along.sum() < alone.sum()
    assert all(one.converged for one in found)


def test_a_lambda_without_a_solution_has_a_reason_and_the_next_one_a_solution():
    """The predictions of the largest lambda are nearly flat, which this loss does not stand."""
    problem = make_problem(FailsNear(0.3, spread=(1e-6, 1e-3)), "regression", 30)
    lams = np.array([1e-2, 1e3, 1e-1])
    found = full_path(problem, splits(30)["kfold"]).solutions(lams)
    assert found[1] == FailsNear.reason
    for i in (0, 2):
        expected = fit(make_problem(Huber(0.3), "regression", 30), lams[i])
        np.testing.assert_allclose(found[i].u, expected.u, atol=1e-8)


def test_curvature_is_that_of_the_rows_with_weight():
    problem = make_problem(Huber(0.3), "regression", 30, q=2, weight="zeros")
    u = fit(problem, 1e-2).u
    for j in range(2):
        d = problem.loss.curvature(problem.Y[:, j], u[:, j])
        np.testing.assert_array_equal(curvature(problem, j, u[:, j]), d * (problem.s > 0))


def test_a_width_from_the_targets_is_that_of_all_rows():
    problem = make_problem(Huber(), "regression", 30, q=2)
    full, lams = full_path(problem, splits(30)["kfold"]), np.array([1e-3, 1.0])
    for lam, one in zip(lams, full.solutions(lams), strict=True):
        np.testing.assert_allclose(one.u, fit(problem, lam).u, atol=1e-9)
        np.testing.assert_allclose(one.u, fit(full.whole, lam).u, atol=1e-9)
    assert len(full.whole.loss.threshold) == 2
    assert problem.loss.relative


# batches


@pytest.mark.parametrize(("split", "n"), [("kfold", 60), ("loo", N), ("unequal", 60)])
@pytest.mark.parametrize("weight", ["none", "random"])
def test_batches_take_every_split_once_and_few_inverses(split, n, weight):
    """Leave-one-out of N rows takes more than one batch."""
    problem, folds = make_problem(Huber(0.3), "regression", n, weight=weight), splits(n)[split]
    full = full_path(problem, folds)
    d = curvature(problem, 0, fit(problem, 1e-2).u[:, 0])
    taken = []
    for system, members in full.systems(1e-2, d):
        assert members.size <= path.MAX_BATCH_COLUMNS < N
        ridges = np.array([base.ridge for base in system.bases])
        weights = full.splits.weight
        np.testing.assert_allclose(ridges[system.which], 1e-2 * weights[members], rtol=1e-12)
        sizes = [np.isclose(weights * 1e-2, ridge, rtol=1e-12).sum() for ridge in ridges]
        assert sum(size > 1 for size in sizes) <= 2
        np.testing.assert_array_equal(system.curvature[:, 0], d)
        taken.extend(members.tolist())
    assert sorted(taken) == list(range(full.splits.by_formula.size))


def test_folds_are_iterated_where_rows_have_just_got_curvature():
    """Without an intercept all rows of a narrow kernel get it at once, from one lambda to the next;
    iterating with it pays at that lambda already, though it did not at the last one.
    """
    problem = make_problem(
        SmoothedHinge(0.1), "classification", 500, fit_intercept=False,
        kernel=lambda X: gaussian(X, 3000.0),
    )  # fmt: skip
    folds = Folds.draw(KFold(5), np.zeros((500, 1)))
    some = FullPath(Splits.sort(problem, folds), follow=True, one_step=True)
    lams = np.logspace(-1, -5, 5)
    found = some.solutions(lams)
    curved = [np.count_nonzero(curvature(problem, 0, one.u[:, 0])) for one in found]
    first = int(np.argmax(np.array(curved) > 450))
    assert curved[first - 1] == 0
    assert some.iterated[first]
