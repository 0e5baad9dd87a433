"""C_IF^k against the paper's matrix recursion, the package's series, and leave-one-out itself."""

from __future__ import annotations

from math import factorial

import numpy as np
import pytest

from onefit.columns.fit import fit
from onefit.criteria import InfluenceLoo, LeaveOneOut
from onefit.criteria.evidence import Evidence
from onefit.folds import leave_one_out
from onefit.heldout import Influence
from onefit.losses import EpsilonQuadratic, Huber, Log, Logistic, SmoothedHinge, Squared
from onefit.problem import Problem

LOSSES = [Squared(), Huber(0.4), EpsilonQuadratic(0.3), SmoothedHinge(0.3)]


def paper_criterion(problem, lam, order, V=np.abs):
    """Definition 8 with equations 8, 10 and 14 as they stand (no intercept, mean scaling)."""
    n, K, y = problem.n, problem.K.matrix, problem.Y[:, 0]
    u = fit(problem, lam).u[:, 0]
    first = -problem.loss.gradient(y, u)  # L'(r)
    B = np.tile(problem.loss.curvature(y, u), (n, 1))  # L'' in every entry of its column
    S = 2 * lam * np.eye(n) + K * B / n
    H = np.linalg.solve(S, K * B / n)
    # column i is the influence of z_i: S^-1 (L'(r_i) K_i - 2 lam f)
    IFM = np.linalg.solve(S, K * first - 2 * lam * u[:, None])
    M = np.full((n, n), 1 / (1 - n))
    np.fill_diagonal(M, 1.0)
    held = u.copy()
    for j in range(1, order + 1):
        term = np.diag(IFM) / ((1 - n) ** j * factorial(j))
        held += term / (1 - np.diag(H)) if j == order else term
        IFM = (j + 1) * H @ (IFM * M * (1 - n))
    return np.mean(V(y - held))


@pytest.mark.parametrize("order", [1, 2, 3, 5, 6])
@pytest.mark.parametrize(
    "loss", [Squared(), Huber(0.4), Huber(0.1), EpsilonQuadratic(0.3)], ids=repr
)
def test_definition_8(make_problem, loss, order):
    problem = make_problem(loss, intercept=False)
    for lam in (1e-3, 1e-1):
        expected = paper_criterion(problem, lam, order)
        assert InfluenceLoo(order=order).at(problem, lam) == pytest.approx(expected, rel=1e-8)
    squared = paper_criterion(problem, 0.1, order, np.square)
    assert InfluenceLoo(order=order, loss="squared").at(problem, 0.1) == pytest.approx(
        squared, rel=1e-8
    )


@pytest.mark.parametrize("scaling", ["mean", "total"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_same_as_the_series(make_problem, loss, weighted, intercept, scaling):
    problem = make_problem(loss, intercept=intercept, scaling=scaling, weighted=weighted)
    for lam in (1e-3, 1e-1):
        for order in (1, 5):
            method = Influence(order, tail=True).prepare(problem, leave_one_out(24))
            expected = method.predict([lam])[0].values
            found = InfluenceLoo(order=order).left_out(Evidence(problem, None, (lam,), []))(0)
            np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("intercept", [True, False])
def test_near_leave_one_out(make_problem, intercept):
    """The paper's figure 2: indistinguishable from leave-one-out, where the bare series is not."""
    problem = make_problem(intercept=intercept, n=50)
    for lam in (1e-4, 1e-3):
        exact = LeaveOneOut(loss="absolute").at(problem, lam)
        assert InfluenceLoo().at(problem, lam) == pytest.approx(exact, rel=2e-3)
        bare = Influence(5).prepare(problem, leave_one_out(50)).predict([lam])
        assert abs(np.abs(problem.Y - bare[0].values).mean() / exact - 1) > 1e-2


def test_several_targets_and_a_shared_spectrum(make_problem):
    problem = make_problem(weighted=True)
    other = np.cos(problem.Y)
    both = Problem(problem.K.matrix, np.column_stack([problem.Y, other]), problem.s, Squared())
    single = Problem(problem.K.matrix, other, problem.s, Squared())
    expected = 0.5 * (InfluenceLoo().at(problem, 0.01) + InfluenceLoo().at(single, 0.01))
    assert InfluenceLoo().at(both, 0.01) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loss", [Log(), Logistic()], ids=repr)
def test_smooth_losses_have_two_orders(make_problem, loss):
    problem = make_problem(loss)
    found = InfluenceLoo(order=2).at(problem, 0.1)
    own = None if loss.task == "classification" else "absolute"
    assert found == pytest.approx(LeaveOneOut(loss=own).at(problem, 0.1), rel=2e-2)
    with pytest.raises(ValueError, match=r"InfluenceLoo\(order=2\) or 'loo' would fit"):
        InfluenceLoo().at(problem, 0.1)
    with pytest.raises(ValueError, match=r"would fit"):
        InfluenceLoo().check(problem)
    with pytest.raises(ValueError, match=r"whole number"):
        InfluenceLoo(order=0).at(problem, 0.1)


def test_no_curvature_at_all(make_problem):
    problem = make_problem(Huber(1e-9))
    with pytest.raises(np.linalg.LinAlgError, match="no point has curvature"):
        InfluenceLoo().at(problem, 100.0)
