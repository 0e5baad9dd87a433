"""The influence series against finite differences and against the formulas of the papers."""

from __future__ import annotations

from itertools import pairwise
from math import factorial

import numpy as np
import pytest
from heldout._twins import (
    FORMS,
    Expectile,
    loss_weights,
    make_problem,
    predict,
    splits,
    taylor_terms,
)

from onefit.columns.fit import fit
from onefit.folds import Folds, leave_one_out
from onefit.heldout import Influence, Limit, Refit
from onefit.losses import (
    EpsilonQuadratic,
    Huber,
    Log,
    Logistic,
    MissingDerivativeError,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from onefit.problem import Problem

N = 20
SEVEN = [
    (Squared(), "regression"),
    (Huber(0.5), "regression"),
    (EpsilonQuadratic(0.2), "regression"),
    (Logistic(), "regression"),
    (SmoothedHinge(0.5), "classification"),
    (SquaredHinge(), "classification"),
    (Log(), "classification"),
]
IDS = [loss.name for loss, _ in SEVEN]
PIECEWISE = [pair for pair in SEVEN if pair[0].piecewise_quadratic]


def leave_out(n, *sets):
    rows = np.arange(n)
    return Folds.from_pairs(n, [(np.delete(rows, part), part) for part in sets])


def series(problem, folds, lam, order, **options):
    return predict(Influence(order, **options), problem, folds, lam).by_fold


@pytest.mark.parametrize(("loss", "task"), SEVEN, ids=IDS)
@pytest.mark.parametrize(("fit_intercept", "scaling", "weight"), FORMS)
def test_terms_are_the_derivatives_of_the_weighted_solution(
    loss, task, fit_intercept, scaling, weight
):
    problem = make_problem(
        loss, task, N, seed=3, weight=weight, fit_intercept=fit_intercept, scaling=scaling
    )
    lam = 0.02 if scaling == "mean" else 0.3
    folds = leave_out(N, [4], [1, 5, 9, 13])
    orders = 3 if loss.piecewise_quadratic else 2
    # the twin lets weightless rows go
    kept = np.flatnonzero(problem.s)
    for k, (train, test) in enumerate(folds):
        change = loss_weights(problem, train) - loss_weights(problem)
        terms = weightless_terms(problem, kept, lam, change, orders)
        u = terms[0]
        scale = np.abs(u).max()
        for order in range(1, orders + 1):
            u = u + terms[order]
            found = series(problem, folds, lam, order)[k]
            np.testing.assert_allclose(found, u[test], atol=1e-6 * scale, err_msg=f"order {order}")


def weightless_terms(problem, kept, lam, change, orders):
    """Terms on all rows; those of weight zero follow from the others by interpolation in f."""
    part = problem.take(kept)
    terms = taylor_terms(part, lam, change[kept], orders)
    if kept.size == problem.n:
        return terms
    # u = K a + b on the rows kept determines f's term on the rest up to the null space of K
    K = part.K.matrix
    out = []
    for term in terms:
        if problem.fit_intercept:
            ones = np.ones((kept.size, 1))
            system = np.block([[K, ones], [ones.T, np.zeros((1, 1))]])
            x = np.linalg.lstsq(system, np.append(term, 0.0), rcond=1e-13)[0]
            a, b = x[:-1], x[-1]
        else:
            a, b = np.linalg.lstsq(K, term, rcond=1e-13)[0], 0.0
        out.append(problem.K.matrix[:, kept] @ a + b)
    return out


@pytest.mark.parametrize(("loss", "task"), PIECEWISE, ids=[loss.name for loss, _ in PIECEWISE])
@pytest.mark.parametrize(
    ("fit_intercept", "name"),
    [(True, "kfold"), (False, "loo"), (True, "shuffle"), (False, "kfold")],
)
def test_the_series_converges_to_the_limit(loss, task, fit_intercept, name):
    problem = make_problem(loss, task, 30, weight="random", q=2, fit_intercept=fit_intercept)
    folds, lam = splits(30)[name], 0.03
    limit = predict(Limit(), problem, folds, lam).values
    gaps = [
        np.abs(predict(Influence(order), problem, folds, lam).values - limit).max()
        for order in (1, 2, 3, 6, 12, 200)
    ]
    assert gaps[0] > 1e-4
    assert all(after < before for before, after in pairwise(gaps))
    assert gaps[-1] < 1e-10


def test_a_fixed_order_fails_for_small_lambda():
    problem = make_problem(Squared(), "regression", 40)
    folds = splits(40)["kfold"]
    errors = []
    for lam in (1e-1, 1e-2, 1e-3, 1e-4):
        refit = predict(Refit(), problem, folds, lam).values
        gap = np.abs(predict(Influence(3), problem, folds, lam).values - refit).max()
        errors.append(gap / np.abs(refit).max())
    assert errors == sorted(errors)
    assert errors[0] < 0.05
    assert errors[-1] > 0.3


@pytest.mark.parametrize("order", [1, 2, 5])
@pytest.mark.parametrize("tail", [False, True])
def test_jmlr_closed_forms_of_the_squared_loss(order, tail):
    """Equations 8, 10, 11 and 12 of Debruyne, Hubert and Suykens, as printed."""
    problem = make_problem(Squared(), "regression", N, fit_intercept=False)
    K, y, n, lam = problem.K.matrix, problem.Y[:, 0], N, 0.01
    S = lam * np.eye(n) + K / n
    H = np.linalg.solve(S, K / n)
    f = H @ y
    IFM = np.linalg.solve(S, (y - f)[None, :] * K - lam * f[:, None])
    M = np.where(np.eye(n, dtype=bool), 1.0, 1.0 / (1.0 - n))
    expected = f.copy()
    for j in range(1, order + 1):
        term = np.diagonal(IFM) / ((1.0 - n) ** j * factorial(j))
        expected += term / (1.0 - np.diagonal(H)) if tail and j == order else term
        IFM = (j + 1) * (H @ (IFM * (M * (1.0 - n))))
    found = np.concatenate(series(problem, splits(n)["loo"], lam, order, tail=tail))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", [1, 3])
def test_jmlr_tail_of_the_huber_loss(order):
    """Equation 14, with -2 lam f in the first order (section 4.2 prints -lam f)."""
    problem = make_problem(Huber(0.4), "regression", N, fit_intercept=False)
    K, y, n, lam = problem.K.matrix, problem.Y[:, 0], N, 0.01
    f = fit(problem, lam).u[:, 0]
    B = np.repeat(problem.loss.curvature(y, f)[None, :], n, axis=0)
    assert 0 < (B[0] == 0).sum() < n
    S = 2.0 * lam * np.eye(n) + K * B / n
    H = np.linalg.solve(S, K * B / n)
    slope = -problem.loss.gradient(y, f)
    IFM = np.linalg.solve(S, slope[None, :] * K - 2.0 * lam * f[:, None])
    M = np.where(np.eye(n, dtype=bool), 1.0, 1.0 / (1.0 - n))
    expected = f.copy()
    for j in range(1, order + 1):
        term = np.diagonal(IFM) / ((1.0 - n) ** j * factorial(j))
        expected += term / (1.0 - np.diagonal(H)) if j == order else term
        IFM = (j + 1) * (H @ (IFM * (M * (1.0 - n))))
    found = np.concatenate(series(problem, splits(n)["loo"], lam, order, tail=True))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [Squared(), EpsilonQuadratic(0.3)])
@pytest.mark.parametrize("order", [1, 2, 4])
def test_icml_formulas_with_bias(loss, order):
    """Sections 4.2.1 and 4.2.2 of Liu, Jiang and Liao; misprints of the second put right:

    the bias column of L_n over n, 2 lam f in the first order.
    """
    k, M = 5, 4
    n, lam = k * M, 0.02
    problem = make_problem(loss, "regression", n)
    K, y = problem.K.matrix, problem.Y[:, 0]
    solution = fit(problem, lam)
    u, b = solution.u[:, 0], solution.b[0]
    f = u - b
    slope, v = -loss.gradient(y, u), loss.curvature(y, u)
    B = np.repeat(v[None, :], n, axis=0)
    ones = np.ones(n)
    L = np.block([
        [2.0 * lam * np.eye(n) + K * B / n, ((K * B) @ ones / n)[:, None]],
        [v[None, :] / n, np.array([[v @ ones / n]])],
    ])  # fmt: skip
    folds = leave_out(n, *np.arange(n).reshape(k, M))
    found = series(problem, folds, lam, order)
    for i, test in enumerate(folds.test):
        inside = np.zeros(n)
        inside[test] = 1.0
        S = np.repeat(inside[None, :], n, axis=0)
        right = np.append((K * S) @ slope / M - 2.0 * lam * f, slope @ inside / M)
        expected = u.copy()
        for s in range(1, order + 1):
            x = np.linalg.solve(L, right)
            bif = x[:n] + x[n]
            expected += (-1.0 / (k - 1)) ** s / factorial(s) * bif
            right = (s + 1) * np.append(
                (K * B) @ bif / n - (K * B * S) @ bif / M, v @ bif / n - (v * inside) @ bif / M
            )
        np.testing.assert_allclose(found[i], expected[test], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_formulas_of_2016_for_the_smoothed_hinge(order):
    """B_1 and B_{k+1} of Liu and Liao, section 3.2, with 1/(2 delta n) in the latter."""
    t, size, delta, lam = 5, 6, 0.5, 0.02
    n = t * size
    problem = make_problem(SmoothedHinge(delta), "classification", n, fit_intercept=False)
    K, y = problem.K.matrix, problem.Y[:, 0]
    f = fit(problem, lam).u[:, 0]
    margin = y * f
    slope = np.where(
        margin > 1 + delta,
        0.0,
        np.where(margin < 1 - delta, -1.0, -(1 + delta - margin) / (2 * delta)),
    )
    support = np.diag((np.abs(1 - margin) <= delta).astype(float))
    assert 0 < support.sum() < n
    L = 2.0 * lam * np.eye(n) + K @ support / (2.0 * delta * n)
    folds = leave_out(n, *np.arange(n).reshape(t, size))
    found = series(problem, folds, lam, order)
    for i, test in enumerate(folds.test):
        S = np.zeros((n, n))
        S[:, test] = 1.0
        B = -np.linalg.solve(L, (K * S) @ (y * slope) / size + 2.0 * lam * f)
        expected = f.copy()
        for s in range(1, order + 1):
            expected += (-1.0 / (t - 1)) ** s / factorial(s) * B
            B = (s + 1) * np.linalg.solve(
                L,
                K @ support @ B / (2.0 * delta * n)
                - ((K @ support) * S) @ B / (2.0 * delta * size),
            )
        np.testing.assert_allclose(found[i], expected[test], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("loss", "task"), SEVEN, ids=IDS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_tail_divides_the_last_term_by_one_less_its_leverage(loss, task, fit_intercept):
    problem = make_problem(loss, task, N, seed=3, fit_intercept=fit_intercept)
    lam, loo = 0.02, splits(N)["loo"]
    solution = fit(problem, lam)
    u, y = solution.u[:, 0], problem.Y[:, 0]
    weight = loss.curvature(y, u) / (2.0 * problem.ridge(lam))
    # u = H z of the weighted least-squares problem at the solution, by its bordered system
    K = problem.K.matrix
    system = np.eye(N) + weight[:, None] * K
    if fit_intercept:
        system = np.block([[system, weight[:, None]], [np.ones((1, N)), np.zeros((1, 1))]])
    right = np.diag(weight)
    if fit_intercept:
        right = np.vstack([right, np.zeros((1, N))])
    x = np.linalg.solve(system, right)
    H = K @ x[:N] + (x[N] if fit_intercept else 0.0)
    first = np.concatenate(series(problem, loo, lam, 1))
    second = np.concatenate(series(problem, loo, lam, 2))
    expected = first + (second - first) / (1.0 - np.diagonal(H))
    found = np.concatenate(series(problem, loo, lam, 2, tail=True))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("loss", [Squared(), Huber(0.3)], ids=repr)
def test_the_tail_is_that_of_the_row_left_out_beside_rows_of_weight_zero(loss):
    whole = make_problem(loss, "regression", N, weight="zeros")
    rows = whole.positive
    found = predict(Influence(2, tail=True), whole, splits(N)["loo"], 0.02)
    expected = predict(Influence(2, tail=True), whole.take(rows), leave_one_out(rows.size), 0.02)
    np.testing.assert_allclose(found.predictions[rows], expected.predictions, atol=1e-12)


def test_the_tail_helps():
    problem = make_problem(Squared(), "regression", N)
    lam, loo = 1e-3, splits(N)["loo"]
    refit = predict(Refit(), problem, loo, lam).values
    plain, tail = (predict(Influence(3, tail=t), problem, loo, lam).values for t in (False, True))
    assert np.abs(tail - refit).max() < 0.1 * np.abs(plain - refit).max()


def test_splits_that_no_series_serves_are_refitted():
    problem = make_problem(Huber(0.5), "regression", 30)
    folds = splits(30)["trained rows"]
    held = predict(Influence(2), problem, folds, 1e-2)
    np.testing.assert_allclose(
        held.values, predict(Refit(), problem, folds, 1e-2).values, rtol=1e-9
    )
    assert held.exact.all()
    assert (held.error < 1e-10).all()


def test_a_cut_series_claims_nothing():
    held = predict(Influence(2), make_problem(Squared(), "regression", N), splits(N)["kfold"], 1e-2)
    assert not held.exact.any()
    assert np.isnan(held.error).all()
    assert held.order == 2
    assert held.method == "influence"


def test_more_folds_than_fit_side_by_side():
    n = 9
    problem = make_problem(Squared(), "regression", n, fit_intercept=False)
    rows = np.arange(n)
    sets = [[i] for i in rows] * 40
    held = predict(Influence(3), problem, leave_out(n, *sets), 0.1)
    one = predict(Influence(3), problem, leave_out(n, *[[i] for i in rows]), 0.1)
    np.testing.assert_allclose(held.values, np.tile(one.values, (40, 1)), rtol=1e-12)


@pytest.mark.parametrize("order", [0, -1, 1.5, 2.0, True, None, "3"])
def test_orders_that_are_none(order):
    problem = make_problem(Squared(), "regression", N)
    with pytest.raises(ValueError, match=r"order must be a whole number of at least 1, got"):
        predict(Influence(order), problem, splits(N)["kfold"], 1.0)


@pytest.mark.parametrize("loss", [Log(), Logistic()])
@pytest.mark.parametrize("order", [3, np.int64(7)])
def test_high_orders_of_smooth_losses_are_refused(loss, order):
    problem = make_problem(loss, "classification", N)
    with pytest.raises(ValueError, match=rf"order={order} .*{type(loss).__name__}.*method='limit'"):
        predict(Influence(order), problem, splits(N)["kfold"], 1.0)


def test_the_tail_of_a_fold_is_refused():
    problem = make_problem(Squared(), "regression", N)
    with pytest.raises(ValueError, match=r"tail=True .*leaves out \d+ rows.*LeaveOneOut.*'limit'"):
        predict(Influence(2, tail=True), problem, splits(N)["kfold"], 1.0)


def lacking(member, **changes):
    """A user's loss that is Logistic but for one member."""
    members = {
        name: getattr(Logistic, name)
        for name in ("value", "gradient", "curvature", "max_curvature", "piece", "third")
        if name != member
    }
    plain = {"name": "mine", "task": "regression", "piecewise_quadratic": False}
    return type("Mine", (), {**members, **plain, **changes, "__repr__": lambda _: "Mine()"})()


@pytest.mark.parametrize(
    ("member", "method", "name"),
    [
        ("third", Influence(2), "influence of order 2"),
        ("curvature", Influence(1), "influence"),
        ("gradient", Influence(1), "influence"),
        ("curvature", Limit(), "limit"),
        ("piece", Limit(), "limit"),
    ],
)
def test_missing_derivatives_are_named(member, method, name):
    problem = make_problem(lacking(member), "regression", N)
    message = rf"method '{name}' needs '{member}' of the loss, which Mine\(\) does not have"
    with pytest.raises(MissingDerivativeError, match=message):
        method.prepare(problem, splits(N)["kfold"])


def test_a_first_order_needs_no_third_derivative():
    ours = predict(Influence(1), make_problem(Logistic(), "regression", N), splits(N)["kfold"], 0.1)
    theirs = predict(
        Influence(1), make_problem(lacking("third"), "regression", N), splits(N)["kfold"], 0.1
    )
    np.testing.assert_allclose(theirs.values, ours.values, rtol=1e-12)


def test_a_users_piecewise_loss_has_every_order():
    problem = make_problem(Expectile(0.8), "regression", 30)
    folds = splits(30)["kfold"]
    limit = predict(Limit(), problem, folds, 0.1).values
    found = predict(Influence(60), problem, folds, 0.1).values
    np.testing.assert_allclose(found, limit, rtol=1e-8)


def test_an_intercept_that_nothing_determines():
    # a ridge so large that every point lies on the slope of the hinge, in equal numbers
    y = np.tile([1.0, -1.0], 10)[:, None]
    K = make_problem(Squared(), "regression", 20).K
    problem = Problem(K, y, np.ones(20), SmoothedHinge(0.1), True)
    with pytest.raises(ValueError, match=r"no point has curvature.*method='exact'"):
        predict(Influence(1), problem, splits(20)["kfold"], 1e4)
    free = Problem(K, y, np.ones(20), SmoothedHinge(0.1), False)
    folds = splits(20)["kfold"]
    held = predict(Influence(1), free, folds, 1e4)
    np.testing.assert_allclose(held.values, predict(Refit(), free, folds, 1e4).values, rtol=0.5)
