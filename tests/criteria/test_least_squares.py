"""cv_hat, gcv and bayes_loo against dense matrices and honest refits."""

from __future__ import annotations

import numpy as np
import pytest
from naive.machines import least_squares

from onefit.criteria import BayesLoo, CvHat, Gcv, HatSpectrum, LeaveOneOut
from onefit.kernels import Gaussian
from onefit.kernels.per_feature import PerFeature
from onefit.losses import Huber

LAMS = (1e-4, 1e-2, 1.0)
OPTIONS = [
    {"intercept": intercept, "scaling": scaling, "weighted": weighted}
    for intercept in (True, False)
    for scaling in ("mean", "total")
    for weighted in (True, False)
]


def hat_matrix(problem, lam):
    """H, column by column: the predictions for unit targets."""
    n = problem.n
    a, b = least_squares(
        problem.K.matrix, np.eye(n), problem.s, lam, problem.fit_intercept, problem.scaling
    )
    return problem.K.matrix @ a + b


def refits(problem, lam):
    """Leave-one-out predictions, each from a fit of its own."""
    u = np.empty(problem.n)
    for i in range(problem.n):
        rest = np.delete(np.arange(problem.n), i)
        a, b = least_squares(
            problem.K.matrix[np.ix_(rest, rest)],
            problem.Y[rest, 0],
            problem.s[rest],
            lam,
            problem.fit_intercept,
            problem.scaling,
        )
        u[i] = problem.K.matrix[i, rest] @ a + b
    return u


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("options", OPTIONS)
def test_spectrum(make_problem, options, lam):
    problem = make_problem(**options)
    H, spectrum = hat_matrix(problem, lam), HatSpectrum(problem)
    hat = spectrum.at(lam)
    residual = problem.Y - H @ problem.Y
    np.testing.assert_allclose(hat.residual, residual, atol=1e-9)
    np.testing.assert_allclose(hat.slack, 1 - np.diag(H), atol=1e-9)
    for power in (1, 2, 4):
        found = spectrum.power_diagonal(lam, power)
        np.testing.assert_allclose(
            found, np.diag(np.linalg.matrix_power(H, power)), rtol=1e-7, atol=1e-9
        )
        expected = np.linalg.matrix_power(H, power) @ residual
        np.testing.assert_allclose(spectrum.power_residual(lam, power), expected, atol=1e-8)


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("options", OPTIONS)
def test_cv_hat_is_equation_22(make_problem, options, lam):
    problem = make_problem(**options)
    H = hat_matrix(problem, lam)
    r = (problem.Y[:, 0] - H @ problem.Y[:, 0]) / (1 - np.diag(H))
    w = problem.s / problem.s.sum()
    assert CvHat().at(problem, lam) == pytest.approx(w @ r**2, rel=1e-7)
    assert CvHat(loss="absolute").at(problem, lam) == pytest.approx(w @ np.abs(r), rel=1e-7)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [True, False])
def test_cv_hat_is_leave_one_out_under_total_scaling(make_problem, intercept, weighted):
    problem = make_problem(intercept=intercept, scaling="total", weighted=weighted)
    u, w = refits(problem, 0.03), problem.s / problem.s.sum()
    assert CvHat().at(problem, 0.03) == pytest.approx(w @ (problem.Y[:, 0] - u) ** 2, rel=1e-9)
    problem = make_problem(intercept=intercept, scaling="mean", weighted=weighted)
    exact = w @ (problem.Y[:, 0] - refits(problem, 0.03)) ** 2
    assert LeaveOneOut().at(problem, 0.03) == pytest.approx(exact, rel=1e-9)
    assert abs(CvHat().at(problem, 0.03) / exact - 1) > 1e-4  # an approximation, not the same


def test_cv_hat_does_not_cancel(make_problem):
    problem = make_problem(scaling="total", gamma=3.0)
    expected = np.mean((problem.Y[:, 0] - refits(problem, 1e-13)) ** 2)
    assert CvHat().at(problem, 1e-13) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("lam", LAMS)
@pytest.mark.parametrize("options", OPTIONS)
def test_gcv_by_the_trace(make_problem, options, lam):
    problem = make_problem(**options)
    H = hat_matrix(problem, lam)
    r = (problem.Y[:, 0] - H @ problem.Y[:, 0]) / (1 - np.trace(H) / problem.n)
    w = problem.s / problem.s.sum()
    assert Gcv().at(problem, lam) == pytest.approx(w @ r**2, rel=1e-7)
    assert Gcv(loss="absolute").at(problem, lam) == pytest.approx(w @ np.abs(r), rel=1e-7)


def test_rows_of_weight_zero_do_not_count(make_problem):
    problem = make_problem(weighted=True)
    problem.s[[3, 7]] = 0.0
    rest = problem.take(np.flatnonzero(problem.s))
    for criterion in (CvHat(), Gcv(), LeaveOneOut()):
        assert criterion.at(problem, 0.01) == pytest.approx(criterion.at(rest, 0.01), rel=1e-10)


@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_bayes_loo_by_its_formula(make_problem, scaling):
    problem = make_problem(scaling=scaling)
    Q = 0.5 * np.sum((problem.Y[:, 0] - refits(problem, 0.01)) ** 2)
    one = 12 * np.log(Q) + 0.5 * np.log(0.5 * 0.7**2)
    assert BayesLoo().at(problem, 0.01, kernel=Gaussian(0.7)) == pytest.approx(one, rel=1e-10)
    several = 12 * np.log(Q) + 1.5 * np.log(0.5 * (1 + 4 + 9))
    assert BayesLoo().at(
        problem, 0.01, kernel=PerFeature(Gaussian, [1.0, 2.0, 3.0])
    ) == pytest.approx(several, rel=1e-10)


@pytest.mark.parametrize("criterion", [CvHat(), Gcv(), BayesLoo()])
def test_other_losses_are_refused(make_problem, criterion):
    with pytest.raises(ValueError, match=r"'squared' only, not Huber.*'influence_loo'"):
        criterion.at(make_problem(Huber(1.0)), 0.1)
