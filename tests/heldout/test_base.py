"""Behaviour that all held-out methods share, and the values that they return."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import Expectile, FailsNear, make_problem, predict, splits

from onefit import KernelRegressor, KernelSearchCV, linalg
from onefit.columns.fit import fit
from onefit.folds import Folds
from onefit.heldout import (
    METHODS,
    Block,
    Eigen,
    Exact,
    HeldOut,
    HeldOutPath,
    Influence,
    Refit,
)
from onefit.heldout.refit import refit_fold
from onefit.losses import Huber, Log, SmoothedHinge, Squared
from onefit.problem import Problem

N = 24
SPLITS = splits(N)
LAMS = np.array([1e-1, 1e-4, 3.0, 1e-2, 1e-3])
LOSSES = [(Squared(), "regression"), (Huber(0.3), "regression"), (Log(), "classification")]
EVERY = [
    (name, loss, task)
    for name, method in METHODS.items()
    for loss, task in LOSSES
    if loss.quadratic or not method.quadratic_only
]
each = pytest.mark.parametrize(
    ("name", "loss", "task"), EVERY, ids=[f"{name}-{loss.name}" for name, loss, _ in EVERY]
)


def make(name):
    return Influence(order=2) if name == "influence" else METHODS[name]()


# every method


@each
@pytest.mark.parametrize("split", ["kfold", "loo", "unequal"])
def test_lambdas_in_any_order_are_as_one_at_a_time(name, loss, task, split):
    problem = make_problem(loss, task, N, weight="random", q=2 if split == "kfold" else 1)
    folds, lams = SPLITS[split], LAMS[:2] if split == "loo" else LAMS[:4]
    prepared = make(name).prepare(problem, folds)
    path = prepared.predict(lams)
    for i in np.random.default_rng(0).permutation(lams.size):
        held, alone = path[i], prepared.predict(lams[[i]])[0]
        bound = np.nan_to_num(held.error + alone.error, nan=1e-8)
        gap = folds.largest(held.values - alone.values).max(axis=1)
        assert (gap <= np.maximum(bound, 1e-9)).all(), (lams[i], gap)
        np.testing.assert_array_equal(held.moved, alone.moved)


@pytest.mark.parametrize(
    ("name", "loss", "task"), [one for one in EVERY if one[0] not in ("refit", "influence")]
)
def test_a_lambda_that_was_never_asked_for_before_is_a_refit(name, loss, task):
    problem = make_problem(loss, task, N, weight="random")
    for split in ("kfold", "loo"):
        prepared = make(name).prepare(problem, SPLITS[split])
        prepared.predict(np.array([1.0, 1e-3]))
        held = prepared.predict(np.array([0.0123]))[0]
        expected = predict(Refit(), problem, SPLITS[split], 0.0123)
        gap = SPLITS[split].largest(held.values - expected.values)[:, 0]
        assert (gap <= held.error + expected.error).all()
        assert held.exact.all() or name == "limit"


@each
def test_the_problem_is_not_touched(name, loss, task):
    problem = make_problem(loss, task, N, weight="random")
    before = [x.copy() for x in (problem.K.matrix, problem.Y, problem.s)]
    make(name).prepare(problem, SPLITS["kfold"]).predict(LAMS)
    for old, new in zip(before, (problem.K.matrix, problem.Y, problem.s), strict=True):
        np.testing.assert_array_equal(new, old)


@each
def test_the_shapes_of_a_path(name, loss, task):
    problem = make_problem(loss, task, N, q=2)
    path = make(name).prepare(problem, SPLITS["unequal"]).predict(LAMS)
    L, rows, k = LAMS.size, SPLITS["unequal"].rows.size, len(SPLITS["unequal"])
    assert path.method == name
    assert path.values.shape == (L, rows, 2)
    assert path.bounds.shape == (L, k, 2)
    for part in (path.exact, path.error, path.moved, path.steps):
        assert part.shape == (L, k)
    assert path.reasons == [""] * L
    assert len(path) == L
    assert path.done.all()
    np.testing.assert_array_equal(path.lams, LAMS)
    assert path.order == (2 if name == "influence" else None)
    assert path[1].folds is SPLITS["unequal"]


@each
def test_values_have_the_precision_of_the_data_and_bounds_are_of_what_is_given(name, loss, task):
    problem = make_problem(loss, task, N, dtype=np.float32)
    double = make_problem(loss, task, N)
    held = predict(make(name), problem, SPLITS["kfold"], 1e-2)
    truth = predict(Refit(), problem.double, SPLITS["kfold"], 1e-2)
    assert held.values.dtype == np.float32
    close = predict(make(name), double, SPLITS["kfold"], 1e-2).values
    np.testing.assert_allclose(held.values, close, atol=1e-3)
    gap = SPLITS["kfold"].largest(held.values - truth.values)[:, 0]
    known = np.isfinite(held.error)
    assert (gap <= held.error + truth.error)[known].all()
    assert known.all() or name == "influence"


@pytest.mark.parametrize("name", [name for name in METHODS if name != "influence"])
def test_values_that_overflow_have_a_reason_and_other_lambdas_values(name):
    """A straight line, as far as single precision goes and further."""
    x = np.array([[1.0, 2.0, 3.0, 2.5, 1.5, 10.0]], dtype=np.float32).T
    y, rows = np.float32(0.5e38) * np.minimum(x, 3.0), np.arange(6)
    problem = Problem(x @ x.T, y, np.ones(6, np.float32), Squared(), False, "total")
    folds = Folds.from_pairs(6, [(rows[:5], [5]), (rows[1:], [0])])
    path = make(name).prepare(problem, folds).predict(np.array([1e-3, 1e5]))
    assert path.done.tolist() == [False, True]
    assert "values of split 0 that are not finite" in path.reasons[0]
    assert np.isnan(path.values[0]).all()
    assert path.each()[0] is None
    with pytest.raises(linalg.LinAlgError, match=r"not finite.*raise lam"):
        _ = path[0]
    expected = predict(Refit(), problem.double, folds, 1e5).values
    np.testing.assert_allclose(path[1].values, expected, rtol=1e-3)


def test_an_influence_that_is_not_defined_has_a_reason_and_other_lambdas_values():
    """A ridge so large that every point lies on the slope of the hinge, in equal numbers."""
    y = np.tile([1.0, -1.0], N // 2)[:, None]
    K = make_problem(Squared(), "regression", N).K
    problem = Problem(K, y, np.ones(N), SmoothedHinge(0.1))
    path = Influence(1).prepare(problem, SPLITS["kfold"]).predict(np.array([1e4, 1e-2]))
    assert path.done.tolist() == [False, True]
    assert "no point has curvature" in path.reasons[0]


@pytest.mark.parametrize("name", ["refit", "limit", "exact", "influence", "iterative"])
def test_numerics_that_fail_at_one_lambda_spare_the_others(name):
    """No matrix is known whose factors fail in all of them: a loss fails where u is nearly flat."""
    lams = np.array([1e-1, 1e3, 1e-2, 1e-4])
    expected = make(name).prepare(make_problem(Huber(0.3), "regression", N), SPLITS["kfold"])
    expected = expected.predict(lams)
    problem = make_problem(FailsNear(0.3, spread=(1e-6, 1e-3)), "regression", N)
    prepared = make(name).prepare(problem, SPLITS["kfold"])
    path = prepared.predict(lams)
    assert path.reasons == ["", FailsNear.reason, "", ""]
    assert np.isnan(path.values[1]).all()
    assert expected.done.all()
    for i in (0, 2, 3):
        np.testing.assert_allclose(path[i].values, expected[i].values, atol=1e-6)
    if name == "exact":
        with pytest.raises(linalg.LinAlgError, match=FailsNear.reason):
            prepared.models(1e3)


@pytest.mark.parametrize("name", ["limit", "exact", "influence"])
def test_folds_that_fail_at_one_lambda_spare_the_others(name):
    """A split by refit fails beside those by formula, whose predictions have another spread."""
    lams, folds = np.array([1e-1, 1e3, 1e-2]), SPLITS["time"]
    problem = make_problem(Huber(0.3), "regression", N)
    train = folds.train[0]
    alone = fit(problem.take(train), 1e3)
    spread = float(np.ptp(problem.K.matrix[:, train] @ alone.a))
    near = FailsNear(0.3, spread=(0.99 * spread, 1.01 * spread))
    path = make(name).prepare(make_problem(near, "regression", N), folds).predict(lams)
    assert path.reasons == ["", FailsNear.reason, ""]
    assert np.isnan(path.values[1]).all()
    assert np.isfinite(path.values[[0, 2]]).all()


@pytest.mark.parametrize("name", ["limit", "exact"])
def test_a_lambda_that_failed_for_one_target_spares_the_others_of_the_next(name):
    lams, folds = np.array([1e-1, 1e3, 1e-2]), SPLITS["kfold"]
    problem = make_problem(Huber(0.3), "regression", N, q=2)
    alone = fit(problem.take(folds.train[0]), 1e3).a[:, 0]
    spread = float(np.ptp(problem.K.matrix[:, folds.train[0]] @ alone))
    near = FailsNear(0.3, spread=(0.999 * spread, 1.001 * spread))
    path = make(name).prepare(make_problem(near, "regression", N, q=2), folds).predict(lams)
    honest = make(name).prepare(problem, folds).predict(lams)
    assert path.reasons == ["", FailsNear.reason, ""]
    np.testing.assert_allclose(path.values[[0, 2]], honest.values[[0, 2]], atol=1e-8)


@pytest.mark.parametrize("name", ["limit", "exact", "influence"])
def test_splits_by_refit_alone_need_no_full_solution(name):
    """Splits that keep less than they remove: a loss that fails for all rows does not matter."""
    rows = np.arange(N)
    folds = Folds.from_pairs(N, [(rows[::3], rows[1::3]), (rows[1::3], rows[2::3])])
    honest = make_problem(Huber(0.3), "regression", N)
    spread = float(np.ptp(fit(honest, 1e3).u))
    near = FailsNear(0.3, spread=(0.99 * spread, 1.01 * spread))
    problem, lams = make_problem(near, "regression", N), np.array([1e3, 1e-1])
    with pytest.raises(linalg.LinAlgError, match=FailsNear.reason):
        fit(problem, 1e3)
    found = make(name).prepare(problem, folds).predict(lams)
    expected = make("refit").prepare(honest, folds).predict(lams)
    np.testing.assert_array_equal(found.values, expected.values)
    assert found.exact.all()


def test_an_indefinite_matrix_fails_where_lam_does_not_make_it_definite():
    y = np.arange(12.0)[:, None]
    K = np.ones((12, 12)) - 0.1 * np.eye(12)
    problem = Problem(K, y, np.ones(12), Squared(), True, "total")
    path = Block().prepare(problem, splits(12)["kfold"]).predict(np.array([1e-18, 1.0, 1e-19]))
    assert path.done.tolist() == [False, True, False]
    assert [one is None for one in path.each()] == [True, False, True]
    assert np.isnan(path.values[0]).all()
    assert np.isnan(path.error[2]).all()
    assert not path.exact[0].any()
    assert path.exact[1].all()
    with pytest.raises(linalg.LinAlgError, match="raise lam"):
        _ = path[2]
    with pytest.raises(linalg.LinAlgError, match="the kernel matrix is indefinite"):
        Eigen().prepare(problem, splits(12)["kfold"])


@pytest.mark.parametrize("method", [Block, Eigen, Exact])
@pytest.mark.parametrize("split", ["kfold", "loo", "time", "trained rows", "unequal"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_machines_are_those_of_refits(method, split, fit_intercept):
    losses = [Huber(0.3), Expectile(0.8)] if method is Exact else [Squared()]
    for loss in losses:
        problem = make_problem(
            loss, "regression", N, q=2, fit_intercept=fit_intercept,
            weight="random" if fit_intercept else "none",
        )  # fmt: skip
        folds = SPLITS[split]
        prepared = method().prepare(problem, folds)
        for lam in (1e-1, 1e-3)[: 1 if split == "loo" else 2]:
            machines = prepared.models(lam)
            assert len(machines) == 2
            for k, (train, test) in enumerate(folds):
                refit = refit_fold(problem, lam, train, test).solution
                for j, one in enumerate(machines):
                    np.testing.assert_allclose(one.u[:, k], refit.u[:, j], rtol=1e-7, atol=1e-8)
                    np.testing.assert_allclose(one.a[:, k], refit.a[:, j], rtol=1e-5, atol=1e-6)
                    np.testing.assert_allclose(one.b[k], refit.b[j], rtol=1e-7, atol=1e-8)
                    outside = np.setdiff1d(np.arange(N), train)
                    assert not one.a[outside, k].any()


def test_a_users_quadratic_loss_is_served_by_any_name():
    class Mine(Squared):
        name = "mine"

    problem = make_problem(Mine(), "regression", N, weight="random")
    expected = predict(Refit(), problem, SPLITS["kfold"], 1e-2).values
    for method in (Block(), Eigen()):
        held = predict(method, problem, SPLITS["kfold"], 1e-2)
        np.testing.assert_allclose(held.values, expected, atol=1e-9)


class Thrice(Squared):
    """A user's loss: 3 (y - u)^2."""

    name = "thrice"
    max_curvature = 6.0

    def value(self, y, u):
        return 3.0 * super().value(y, u)

    def gradient(self, y, u):
        return 3.0 * super().gradient(y, u)

    def curvature(self, y, u):
        return 3.0 * super().curvature(y, u)


@pytest.mark.parametrize("method", [Block, Eigen])
@pytest.mark.parametrize("split", ["kfold", "loo"])
def test_a_quadratic_loss_of_another_curvature_is_right_or_refused(method, split):
    problem = make_problem(Thrice(), "regression", N, weight="random")
    expected = predict(Refit(), problem, SPLITS[split], 1e-2).values
    try:
        held = predict(method(), problem, SPLITS[split], 1e-2)
    except ValueError:
        return
    np.testing.assert_allclose(held.values, expected, atol=1e-8)


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].quadratic_only])
def test_other_losses_are_refused(name):
    problem = make_problem(Huber(1.0), "regression", N)
    with pytest.raises(ValueError, match=rf"method '{name}' works for the squared loss only.*Hub"):
        METHODS[name]().prepare(problem, SPLITS["kfold"])


def test_methods_are_known_by_their_names():
    assert [method.name for method in METHODS.values()] == list(METHODS)
    assert repr(Exact()) == "Exact()"
    assert repr(Influence(order=2)) == "Influence(order=2, tail=False)"


# the values


def held_out(values, folds):
    k = len(folds)
    none = np.zeros(k, dtype=np.intp)
    return HeldOut(values, folds, "mine", none == 0, none * 1.0, none, none)


def test_values_by_fold_and_by_row():
    folds = Folds.from_pairs(5, [([0, 1], [3, 2]), ([3, 4], [2]), ([0, 2], [1, 3])])
    values = np.array([[1.0], [2.0], [4.0], [8.0], [16.0]])
    held = held_out(values, folds)
    assert [one.tolist() for one in held.by_fold] == [[1.0, 2.0], [4.0], [8.0, 16.0]]
    # rows 0 and 4 are tested by nobody, 2 and 3 by two splits
    np.testing.assert_array_equal(held.predictions, [np.nan, 8.0, 3.0, 8.5, np.nan])
    both = held_out(np.hstack([values, 2.0 * values]), folds)
    assert both.predictions.shape == (5, 2)
    assert [one.shape for one in both.by_fold] == [(2, 2), (1, 2), (2, 2)]
    np.testing.assert_array_equal(both.predictions[:, 1], 2.0 * held.predictions)


def empty(dtype=np.float64):
    problem = make_problem(Squared(), "regression", N, q=2, dtype=dtype)
    return problem, HeldOutPath.empty(problem, SPLITS["kfold"], "mine", LAMS)


def test_a_path_is_filled_split_by_split():
    _, path = empty(np.float32)
    test = SPLITS["kfold"].test[1]
    values = np.linspace(0.1, 0.7, test.size)
    path.fill(2, 1, 1, values, 1e-9)
    np.testing.assert_array_equal(path[2].by_fold[1][:, 1], values.astype(np.float32))
    # its rounding is part of the bound
    rounding = np.abs(values.astype(np.float32) - values).max()
    assert path.bounds[2, 1, 1] == pytest.approx(1e-9 + rounding)
    assert np.isnan(path.values[2]).sum() == path.values[2].size - test.size


def test_exact_is_what_every_target_is_proven_to_be():
    problem, path = empty()
    path.values[:] = 0.0
    path.bounds[:] = 0.0
    path.bounds[0, 1, 1] = 1.1e-6 * problem.scale[1]
    path.bounds[0, 2, 0] = 0.9e-6 * problem.scale[0]
    path.bounds[1, 0, 0] = np.nan
    exact = path.judged(problem).exact
    assert exact[0].tolist() == [True, False, True, True]
    assert exact[1].tolist() == [False, True, True, True]
    assert exact[2:].all()
    np.testing.assert_array_equal(path.error[0], path.bounds[0].max(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_that_are_not_finite_are_no_values(dtype):
    problem, path = empty(dtype)
    path.values[:] = 0.0
    path.values[3][SPLITS["kfold"].place(2)] = np.inf
    path.judged(problem)
    assert path.done.tolist() == [True, True, True, False, True]
    assert "values of split 2 that are not finite" in path.reasons[3]
    assert ("float64" in path.reasons[3].split("raise lam")[1]) == (dtype == np.float32)
    assert np.isnan(path.values[3]).all()


def test_what_failed_has_neither_values_nor_steps():
    _, path = empty()
    path.steps[:] = path.moved[:] = 3
    path.fail(1, "no reason")
    assert path.steps[1].tolist() == path.moved[1].tolist() == [0, 0, 0, 0]
    assert (path.steps[[0, 2, 3, 4]] == 3).all()
    with pytest.raises(linalg.LinAlgError, match="no reason"):
        _ = path[1]


def test_an_indefinite_kernel_costs_its_own_candidates_their_scores():
    X = np.random.default_rng(0).normal(size=(30, 2))

    def signed(A, B):
        return np.sin(A @ B.T) - 0.5 * (A[:, :1] == B[:, :1].T)

    grid = {"kernel": ["rbf", signed], "lam": np.logspace(-6, -4, 6)}
    with pytest.warns(UserWarning, match="6 of 12 candidates have no score"):
        search = KernelSearchCV(KernelRegressor(), grid, cv=3, method="eigen").fit(X, X[:, 0])
    done = np.isfinite(search.cv_results_["mean_test_score"])
    kernels = search.cv_results_["param_kernel"]
    assert (done == np.array([one == "rbf" for one in kernels])).all()
    assert "indefinite" in search.cv_results_["reason"][~done][0]
