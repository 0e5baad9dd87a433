"""Full-sample solutions along lambda, and decompositions that stretches of a path share."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import gaussian, make_problem, splits

from onefit import torn
from onefit.heldout import Exact, Limit, Refit, path
from onefit.heldout.follow import CHANGED, follow
from onefit.heldout.full import Target
from onefit.heldout.path import FullPath
from onefit.heldout.stretch import Stretch
from onefit.losses import EpsilonQuadratic, Huber, Log, SmoothedHinge, SquaredHinge
from onefit.problem import Problem
from onefit.solvers import solve

N = 60
SPLITS = splits(N)
LAMS = np.logspace(-1, -6, 12)
PIECEWISE = [
    (Huber(0.3), "regression"),
    (EpsilonQuadratic(0.1), "regression"),
    (SquaredHinge(), "classification"),
    (SmoothedHinge(0.5), "classification"),
]


@pytest.fixture(autouse=True)
def small_samples_share(monkeypatch):
    monkeypatch.setattr(path, "FEWEST", 10)
    monkeypatch.setattr(path, "STEADY", 0.1)
    monkeypatch.setattr(path, "SERVED", 0.2)
    monkeypatch.setattr(torn, "SMALLEST", 8)


def narrow(loss, task, **options):
    """A problem whose points nearly all have curvature once lam is small."""
    return make_problem(loss, task, N, kernel=lambda X: gaussian(X, 4.0), **options)


@pytest.mark.parametrize(("loss", "task"), PIECEWISE)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", ["none", "random"])
def test_a_path_of_small_steps_is_that_of_the_solver(loss, task, fit_intercept, weight):
    problem = narrow(loss, task, fit_intercept=fit_intercept, weight=weight)
    shared = FullPath(problem, SPLITS["kfold"], LAMS, share=True)
    for lam in LAMS:
        expected = solve(problem, lam)
        found = shared.solution(float(lam))
        assert found.converged
        scale = 1.0 + np.abs(expected.decision).max()
        np.testing.assert_allclose(found.decision, expected.decision, rtol=0, atol=1e-8 * scale)
        np.testing.assert_allclose(found.intercept, expected.intercept, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize(("loss", "task"), PIECEWISE)
@pytest.mark.parametrize("method", [Limit, Exact])
@pytest.mark.parametrize("split", ["kfold", "loo", "repeated", "unequal"])
@pytest.mark.parametrize("weight", ["none", "random"])
def test_held_out_values_with_a_shared_decomposition(
    monkeypatch, loss, task, method, split, weight
):
    problem, folds = narrow(loss, task, weight=weight), SPLITS[split]
    monkeypatch.setattr(FullPath, "_worthwhile", lambda *_: True)
    shared = method().prepare(problem, folds, LAMS)
    assert shared.path.stretches[0]
    monkeypatch.setattr(FullPath, "_worthwhile", lambda *_: False)
    alone = method().prepare(problem, folds, LAMS)
    assert not alone.path.stretches[0]
    served = 0
    for lam in LAMS:
        target = shared.path.target(lam, 0)
        stretch = shared.path.stretch(target, 0)
        served += stretch is not None
        one, other = shared.predict(lam), alone.predict(lam)
        scale = 1.0 + np.abs(other.values).max()
        np.testing.assert_allclose(one.values, other.values, rtol=0, atol=1e-7 * scale)
        if method is Exact:
            assert one.exact.all()
    assert served >= 3


def test_points_that_differ_from_the_stretch_leave_and_enter(monkeypatch):
    monkeypatch.setattr(FullPath, "_worthwhile", lambda *_: True)
    problem = narrow(*PIECEWISE[1])
    shared = Exact().prepare(problem, SPLITS["kfold"], LAMS)
    changes = []
    for lam in LAMS:
        target = shared.path.target(lam, 0)
        stretch = shared.path.stretch(target, 0)
        if stretch is not None:
            changes.append(stretch.changes(target))
            expected = Refit().prepare(problem, SPLITS["kfold"], LAMS).predict(lam).values
            np.testing.assert_allclose(shared.predict(lam).values, expected, rtol=0, atol=1e-7)
    assert max(changes) > 0
    assert min(changes) == 0


def test_a_new_factor_is_taken_where_many_points_change():
    problem = make_problem(*PIECEWISE[3], N)
    start = solve(problem, 1e-1)
    target = Target.at(problem, 1e-1, start, 0)
    front = follow(target, 1e-4, None)
    assert front.settled[0]
    assert np.count_nonzero(front.factor.each[0].d != target.d) > 0.1 * N
    expected = solve(problem, 1e-4).decision[:, 0]
    np.testing.assert_allclose(front.u[:, 0], expected, rtol=0, atol=1e-9)


def test_every_target_has_factors_of_its_own():
    problem = make_problem(*PIECEWISE[3], N, q=2)
    start = solve(problem, 1e-1)
    for j in range(2):
        target = Target.at(problem, 1e-1, start, j)
        front = follow(target, 1e-4, None)
        factor = front.factor.each[0]
        curvature = problem.loss.curvature(target.y, front.u[:, 0])
        assert np.count_nonzero(factor.d != target.d) > 0
        assert np.count_nonzero(factor.d != curvature) <= CHANGED * factor.p


def test_sharing_is_for_pieces_and_positive_weights(monkeypatch):
    monkeypatch.setattr(FullPath, "_worthwhile", lambda *_: True)
    for problem in (narrow(Log(), "classification"), narrow(*PIECEWISE[0], weight="zeros")):
        assert not FullPath(problem, SPLITS["kfold"], LAMS, share=True).stretches[0]


def test_decompositions_keep_to_their_room(monkeypatch):
    monkeypatch.setattr(FullPath, "_worthwhile", lambda *_: True)
    problem = narrow(*PIECEWISE[1], q=4)
    full = FullPath(problem, SPLITS["kfold"], LAMS, share=True)
    full.finish()
    held = sum(one.active.size**2 for several in full.stretches for one in several)
    assert 0 < held <= path.ROOM * N**2
    monkeypatch.setattr(path, "ROOM", 0.0)
    none = FullPath(problem, SPLITS["kfold"], LAMS, share=True)
    none.finish()
    assert not any(none.stretches)


def test_a_decomposition_must_pay():
    problem = narrow(*PIECEWISE[1])
    full = FullPath(problem, SPLITS["kfold"], LAMS[:1])
    assert not full._worthwhile(N, 2)
    assert full._worthwhile(N, 100)
    # large folds are better off with factors of their own
    halves = FullPath(problem, splits(N)["groups"], LAMS[:1])
    assert not halves._worthwhile(N, 100)


def test_a_stretch_in_single_precision():
    problem = narrow(*PIECEWISE[1], dtype=np.float32)
    target = Target.at(problem, 1e-3, solve(problem, 1e-3), 0)
    inverse = Stretch(target).at(0.1)
    B = np.ones((target.active.size, 2), dtype=np.float32)
    assert inverse.apply(B).dtype == np.float32
    assert inverse.block(np.arange(3)).dtype == np.float32


def test_a_stretch_is_the_inverse_at_any_lambda():
    problem = narrow(*PIECEWISE[0], weight="random")
    target = Target.at(problem, 1e-3, solve(problem, 1e-3), 0)
    A = target.active
    root = np.sqrt(problem.s[A] * target.d[A])
    for ridge in (1e-4, 1.0, 1e4):
        M = np.eye(A.size) + root[:, None] * problem.K[np.ix_(A, A)] * root / (2 * ridge)
        inverse = Stretch(target).at(ridge)
        expected = np.linalg.inv(M)
        np.testing.assert_allclose(inverse.apply(np.eye(A.size)), expected, atol=1e-9)
        np.testing.assert_allclose(inverse.apply(root), expected @ root, atol=1e-8)
        rows = np.array([4, 1, 7])
        np.testing.assert_allclose(
            np.tril(inverse.block(rows)), np.tril(expected[np.ix_(rows, rows)]), atol=1e-9
        )


@pytest.mark.parametrize("split", ["kfold", "loo", "unequal"])
@pytest.mark.parametrize("weight", ["none", "random"])
def test_fronts_take_every_split_once_and_few_inverses(monkeypatch, split, weight):
    monkeypatch.setattr(path, "WIDTH", 7)
    problem = narrow(*PIECEWISE[0], weight=weight)
    full = FullPath(problem, SPLITS[split], LAMS[:1])
    target = full.target(LAMS[0], 0)
    taken = []
    for factors, members in full.fronts(target, 0):
        assert members.size <= 7
        np.testing.assert_allclose(factors.ridge, LAMS[0] * full.weight[members], rtol=1e-12)
        sizes = [np.isclose(full.weight * LAMS[0], one.ridge).sum() for one in factors.each]
        assert sum(size > path.FEW for size in sizes) <= 2
        taken.extend(members.tolist())
    assert sorted(taken) == list(range(len(full.near)))


@pytest.mark.parametrize("loss", [Huber(0.3), SquaredHinge(), SmoothedHinge(0.1), Log()])
@pytest.mark.parametrize("lam", [3e-4, 1e-4, 1e-9])
def test_a_path_starts_where_the_last_two_solutions_lead(loss, lam):
    """On the line in log lam through the last two, where the objective is lower there."""
    task = "regression" if isinstance(loss, Huber) else "classification"
    problem = make_problem(loss, task, N)
    past = [(at, solve(problem, at)) for at in (3e-3, 1e-3)]
    (_, older), (_, newer) = past
    theta = min(1.0, np.log(1e-3 / lam) / np.log(3.0))
    ahead = newer.decision + theta * (newer.decision - older.decision)
    start = path._start(problem, lam, past)
    value, stay = problem.objective(lam, start), problem.objective(lam, newer)
    assert (value <= stay).all()
    np.testing.assert_allclose(problem.K @ start.coef + start.intercept, start.decision, atol=1e-9)
    if value[0] < stay[0]:
        np.testing.assert_allclose(start.decision, ahead)
    else:
        np.testing.assert_array_equal(start.decision, newer.decision)
    assert path._start(problem, lam, past[:1]) is past[0][1]
    assert path._start(problem, lam, []) is None


def test_every_target_starts_where_it_is_lower():
    two = make_problem(Huber(0.3), "regression", N)
    Y = np.column_stack([two.Y[:, 0], np.roll(two.Y[:, 0], 7)])
    two = Problem(two.K, np.asfortranarray(Y), two.s, two.loss, two.fit_intercept, two.scaling)
    past = [(at, solve(two, at)) for at in (3e-3, 1e-3)]
    start = path._start(two, 4e-4, past)
    for j in range(2):
        one = Problem(two.K, two.Y[:, [j]], two.s, two.loss, two.fit_intercept, two.scaling)
        alone = path._start(one, 4e-4, [(at, solve(one, at)) for at in (3e-3, 1e-3)])
        np.testing.assert_allclose(start.decision[:, [j]], alone.decision, atol=1e-9)


def test_the_problem_is_not_touched():
    problem = narrow(*PIECEWISE[0])
    before = problem.K.copy()
    Exact().prepare(problem, SPLITS["kfold"], LAMS).predict(float(LAMS[-1]))
    np.testing.assert_array_equal(problem.K, before)
    assert isinstance(problem, Problem)
