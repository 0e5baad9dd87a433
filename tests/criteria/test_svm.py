"""GACV by hand, the span by a small quadratic programme and by refits, the support-vector count."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC

from onefit.columns.fit import fit
from onefit.criteria import Gacv, LeaveOneOut, Span, SvCount
from onefit.criteria.span import squared_spans
from onefit.losses import Huber, SmoothedHinge, Squared, SquaredHinge
from onefit.problem import Problem

HINGES = [SmoothedHinge(0.3), SmoothedHinge(0.01), SquaredHinge()]


def gacv_by_hand(problem, lam):
    solution = fit(problem, lam)
    total = 0.0
    for i in range(problem.n):
        t = problem.Y[i, 0] * solution.u[i, 0]
        total += max(1 - t, 0.0)
        if t < -1:
            total += 2 * abs(solution.a[i, 0]) * problem.K.matrix[i, i]
        elif t <= 1 + problem.loss.delta:
            total += abs(solution.a[i, 0]) * problem.K.matrix[i, i]
    return total / problem.n


@pytest.mark.parametrize("lam", [1e-3, 1e-2, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_gacv(make_problem, intercept, lam):
    problem = make_problem(SmoothedHinge(0.1), intercept=intercept)
    assert Gacv().at(problem, lam) == pytest.approx(gacv_by_hand(problem, lam), rel=1e-10)


def test_gacv_in_dual_variables_of_libsvm(make_problem):
    """|a_i| = alpha_i / (2 n lam), alpha from the SVM itself."""
    problem = make_problem(SmoothedHinge(1e-4))
    lam, y = 0.02, problem.Y[:, 0]
    svm = SVC(C=1 / (2 * 24 * lam), kernel="precomputed", tol=1e-10).fit(problem.K.matrix, y)
    alpha = np.zeros(24)
    alpha[svm.support_] = np.abs(svm.dual_coef_[0])
    t = y * svm.decision_function(problem.K.matrix)
    on = alpha * np.select([t < -1, t <= 1 + 1e-3], [2.0, 1.0], 0.0)
    expected = np.mean(np.maximum(1 - t, 0) + on)
    assert Gacv().at(problem, lam) == pytest.approx(expected, rel=2e-3)


def curvature(problem, solution):
    """That of the loss at the solution; points that have some are free."""
    return problem.loss.curvature(problem.Y, solution.u)[:, 0]


def span_by_programme(problem, lam, d, p):
    """min over x of |Phi(p) - sum x Phi|^2 + sum c x^2 over the free points but p."""
    free = np.setdiff1d(np.flatnonzero(d), [p])
    c = 2 * problem.ridge(lam) / (problem.s[free] * d[free])
    Q = problem.K.matrix[np.ix_(free, free)] + np.diag(c)
    k = problem.K.matrix[free, p]

    def height(x):
        return problem.K.matrix[p, p] - 2 * x @ k + x @ Q @ x

    sums = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones_like(x)}
    best = minimize(
        height,
        np.full(free.size, 1 / free.size),
        jac=lambda x: 2 * (Q @ x - k),
        constraints=[sums] if problem.fit_intercept else [],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert best.success
    return best.fun


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loss", HINGES, ids=repr)
def test_span_by_a_quadratic_programme(make_problem, loss, weighted, intercept):
    problem = make_problem(loss, intercept=intercept, weighted=weighted)
    lam = 0.01
    solution = fit(problem, lam)
    d = curvature(problem, solution)
    assert np.count_nonzero(d) >= 3
    spans = squared_spans(problem, lam, 0, solution)
    support = np.flatnonzero(solution.a)
    assert isinstance(loss, SquaredHinge) or support.size > np.count_nonzero(d)  # some are bound
    expected = [span_by_programme(problem, lam, d, p) for p in support]
    np.testing.assert_allclose(spans[support], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", [SmoothedHinge(0.5), SquaredHinge()], ids=repr)
def test_span_is_leave_one_out_where_no_point_moves(make_problem, loss, intercept):
    """The theorem behind the rule: exact if the other points stay on their pieces."""
    problem = make_problem(loss, intercept=intercept, scaling="total", n=40)
    kept = sum(count_exact_spans(problem, lam) for lam in (0.1, 0.5, 2.0))
    assert kept >= 6


def count_exact_spans(problem, lam):
    """The number of support vectors whose removal moves nobody; their spans are checked."""
    full = fit(problem, lam)
    spans, kept = squared_spans(problem, lam, 0, full), 0
    for p in np.flatnonzero(full.a):
        rest = np.delete(np.arange(problem.n), p)
        part = problem.take(rest)
        without = fit(part, lam)
        before = problem.loss.piece(part.Y, full.u[rest])
        if np.array_equal(before, problem.loss.piece(part.Y, without.u)):
            u = problem.K.matrix[p, rest] @ without.a[:, 0] + without.b[0]
            found = full.u[p, 0] - full.a[p, 0] * spans[p]
            assert found == pytest.approx(u, rel=1e-7, abs=1e-9)
            kept += 1
    return kept


def test_span_counts_errors(make_problem):
    problem = make_problem(SmoothedHinge(0.1), n=60, scaling="total")
    for lam in (0.1, 1.0, 10.0):
        exact = LeaveOneOut(loss="zero_one").at(problem, lam)
        assert abs(Span().at(problem, lam) - exact) <= 4 / 60
        assert Span().at(problem, lam) <= SvCount().at(problem, lam)
        assert exact <= SvCount().at(problem, lam)  # the bound itself
    assert Span(loss="hinge").at(problem, 1.0) == pytest.approx(
        LeaveOneOut(loss="hinge").at(problem, 1.0), rel=0.1
    )


def test_span_of_the_only_free_point():
    """Two points, one of each class and one free: nothing is left to span it."""
    K = np.eye(2)
    y = np.array([[1.0], [-1.0]])
    problem = Problem(K, y, np.ones(2), SmoothedHinge(0.1), True, "total")
    if not curvature(problem, fit(problem, 1.0)).any():
        with pytest.raises(np.linalg.LinAlgError, match="no support vector is free"):
            Span().at(problem, 1.0)
    else:
        assert Span().at(problem, 1.0) == 1.0


def test_sv_count(make_problem):
    for loss in HINGES:
        problem = make_problem(loss)
        edge = 1 + getattr(loss, "delta", 0.0)
        margin = problem.Y * fit(problem, 0.01).u
        assert SvCount().at(problem, 0.01) == pytest.approx(np.mean(margin < edge))
    weighted = make_problem(SquaredHinge(), weighted=True)
    margin = weighted.Y[:, 0] * fit(weighted, 0.01).u[:, 0]
    expected = weighted.s[margin < 1].sum() / weighted.s.sum()
    assert SvCount().at(weighted, 0.01) == pytest.approx(expected)


def test_other_losses_are_refused(make_problem):
    with pytest.raises(ValueError, match=r"'gacv' fits .* 'smoothed_hinge' only.*'span'"):
        Gacv().at(make_problem(SquaredHinge()), 0.1)
    for criterion in (Gacv(), Span(), SvCount()):
        with pytest.raises(ValueError, match=r"only, not Squared.*'gcv'"):
            criterion.at(make_problem(Squared()), 0.1)
        with pytest.raises(ValueError, match=r"only, not Huber.*'loo'"):
            criterion.at(make_problem(Huber(1.0)), 0.1)
