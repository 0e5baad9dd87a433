"""The full problem beside its folds, and steps on the rows near a kink."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import (
    WEIGHTS,
    Expectile,
    dense_minimiser,
    gaussian,
    make_problem,
    random_models,
    small_target,
    splits,
)
from registries import SCALINGS

from onefit import _linalg as linalg
from onefit.heldout import Exact, Refit, abreast, shrink
from onefit.heldout.abreast import Abreast
from onefit.heldout.apart import Apart
from onefit.heldout.front import Front
from onefit.heldout.full import Norms, Target
from onefit.heldout.path import FullPath
from onefit.heldout.point import Point
from onefit.heldout.repair import repair
from onefit.losses import EpsilonQuadratic, Huber, SmoothedHinge, SquaredHinge
from onefit.problem import Problem
from onefit.solvers import solve

N = 60
SPLITS = splits(N)
LAMS = np.logspace(0, -5, 14)
PIECEWISE = [
    (Huber(0.1), "regression"),
    (EpsilonQuadratic(0.6), "regression"),
    (SquaredHinge(), "classification"),
    (SmoothedHinge(0.1), "classification"),
    (SmoothedHinge(0.01), "classification"),
    (Expectile(0.8), "regression"),
]
#: losses with a piece that has no curvature
FLAT = PIECEWISE[:5]


@pytest.fixture
def used(monkeypatch):
    """How often all problems were solved side by side, and on how many rows, if not on all."""
    monkeypatch.setattr(abreast, "MANY", 0.97)
    monkeypatch.setattr(abreast, "ANY_ROW", 0.05)
    seen = {"abreast": 0, "rows": []}
    solve_abreast, approach = Abreast.solve, shrink.approach_near

    def watched_solve(self, lam):
        seen["abreast"] += 1
        return solve_abreast(self, lam)

    def watched_approach(front, rows):
        seen["rows"].append(rows.size)
        return approach(front, rows)

    monkeypatch.setattr(Abreast, "solve", watched_solve)
    monkeypatch.setattr(abreast, "approach_near", watched_approach)
    return seen


def assert_path_of_refits(problem, folds, lams=LAMS, tolerance=1e-7):
    prepared = Exact().prepare(problem, folds, lams)
    refit = Refit().prepare(problem, folds, lams)
    kept = np.flatnonzero(problem.s)
    for lam in lams:
        held, expected = prepared.predict(lam), refit.predict(lam)
        scale = 1.0 + np.abs(expected.values).max()
        np.testing.assert_allclose(held.values, expected.values, rtol=0, atol=tolerance * scale)
        assert held.exact.all()
        assert (held.steps >= 1).all()
        full = prepared.path.solution(float(lam))
        alone = solve(problem.take(kept), lam)
        np.testing.assert_allclose(
            full.decision[kept], alone.decision, rtol=0, atol=tolerance * scale
        )
        np.testing.assert_allclose(full.intercept, alone.intercept, rtol=0, atol=tolerance * scale)
        assert not full.coef[problem.s == 0].any()
    return prepared


@pytest.mark.parametrize(("loss", "task"), PIECEWISE)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("scaling", SCALINGS)
def test_paths_side_by_side_are_those_of_refits(used, loss, task, fit_intercept, weight, scaling):
    problem = make_problem(
        loss, task, N, weight=weight, fit_intercept=fit_intercept, scaling=scaling
    )
    lams = LAMS if scaling == "mean" else N * LAMS
    assert_path_of_refits(problem, SPLITS["kfold"], lams)
    assert used["abreast"] == LAMS.size - 2
    assert used["rows"] or (loss, task) not in FLAT
    assert all(0 < rows < N for rows in used["rows"])


@pytest.mark.parametrize("split", sorted(set(SPLITS) - {"loo", "trained rows"}))
@pytest.mark.parametrize(("loss", "task"), [PIECEWISE[1], PIECEWISE[3]])
def test_every_split(used, split, loss, task):
    assert_path_of_refits(make_problem(loss, task, N, weight="zeros"), SPLITS[split])
    assert used["abreast"] == LAMS.size - 2


def test_several_targets(used):
    assert_path_of_refits(make_problem(*PIECEWISE[1], N, q=3), SPLITS["kfold"])
    assert used["abreast"] == 3 * (LAMS.size - 2)


def test_single_precision(used):
    problem = make_problem(*PIECEWISE[3], N, dtype=np.float32)
    prepared = Exact().prepare(problem, SPLITS["kfold"], LAMS[:8])
    for lam in LAMS[:8]:
        held = prepared.predict(lam)
        expected = Refit().prepare(problem, SPLITS["kfold"], LAMS[:8]).predict(lam)
        assert held.values.dtype == np.float32
        np.testing.assert_allclose(held.values, expected.values, rtol=0, atol=2e-4)
    assert used["abreast"]
    assert used["rows"]


@pytest.mark.parametrize(("loss", "task"), [PIECEWISE[0], PIECEWISE[1], PIECEWISE[3]])
def test_a_wrong_guess_of_the_rows_costs_steps_only(monkeypatch, used, loss, task):
    monkeypatch.setattr(abreast, "SAME_ROW", 0.0)
    monkeypatch.setattr(abreast, "ANY_ROW", 0.0)
    went_on = []

    def watched(front):
        went_on.append(int(np.count_nonzero(~front.settled)))
        home, steps = front.settled.copy(), front.steps.copy()
        repair(front)
        assert (front.steps == steps)[home].all()

    monkeypatch.setattr(abreast, "repair", watched)
    assert_path_of_refits(make_problem(loss, task, N), SPLITS["kfold"])
    assert len(used["rows"]) > 2
    assert any(0 < count < 5 for count in went_on)


def test_lambdas_in_any_order_and_far_apart(used):
    problem = make_problem(*PIECEWISE[3], N)
    lams = np.array([1.0, 0.5, 1e-4, 0.9e-4, 0.8e-4, 1e-5])
    assert_path_of_refits(problem, SPLITS["kfold"], lams)
    # not where a lambda is a small part of the last
    assert used["abreast"] == 2
    used["abreast"] = 0
    assert_path_of_refits(problem, SPLITS["kfold"], lams[::-1])
    assert used["abreast"] == 0
    assert_path_of_refits(problem, SPLITS["kfold"], lams[[0, 1, 4, 2, 3, 5]])


def test_the_full_solution_comes_first_where_that_costs_less(monkeypatch, used):
    problem = make_problem(*PIECEWISE[3], N)
    assert_path_of_refits(problem, SPLITS["loo"])
    assert used["abreast"] == 0
    # from the lambda on at which there are more points with curvature than that
    sizes = [np.count_nonzero(Target.at(problem, lam, solve(problem, lam), 0).d) for lam in LAMS]
    monkeypatch.setattr(abreast, "SMALL", int(np.median(sizes)))
    assert_path_of_refits(problem, SPLITS["kfold"])
    assert 0 < used["abreast"] < LAMS.size - 2


def test_a_path_takes_solutions_in_order():
    problem = make_problem(*PIECEWISE[3], N)
    path = FullPath(problem, SPLITS["kfold"], LAMS)
    with pytest.raises(ValueError, match="not the next"):
        path.record(float(LAMS[3]), solve(problem, float(LAMS[3])))
    with pytest.raises(linalg.LinAlgError, match="lam=7 was not prepared"):
        path.solution(7.0)
    assert not path.solutions


def test_a_solution_that_fails_is_no_other_lambdas_fault(monkeypatch):
    problem = make_problem(*PIECEWISE[3], N)
    expected = Exact().prepare(problem, SPLITS["kfold"], LAMS)

    def failing(problem, lam, start=None):
        if lam == LAMS[4]:
            raise linalg.LinAlgError("a system is singular")
        return solve(problem, lam, start=start)

    monkeypatch.setattr("onefit.heldout.path.solve", failing)
    monkeypatch.setattr(abreast, "MOST", 0)
    prepared = Exact().prepare(problem, SPLITS["kfold"], LAMS)
    for lam in LAMS:
        if lam == LAMS[4]:
            with pytest.raises(linalg.LinAlgError, match="a system is singular"):
                prepared.predict(lam)
        else:
            held = prepared.predict(lam)
            assert held.exact.all()
            np.testing.assert_allclose(held.values, expected.predict(lam).values, atol=1e-7)


# the parts


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("fails", [True, False])
def test_factors_of_their_own_against_dense_systems(monkeypatch, fit_intercept, weight, fails):
    if fails:

        def singular(*_, **__):
            raise linalg.LinAlgError("not positive definite")

        monkeypatch.setattr(linalg, "solve_spd", singular)
    random = np.random.default_rng(0)
    ridge = np.array([0.2, 0.1, 0.2, 0.4])
    for loss in (Huber(0.3), EpsilonQuadratic(0.3), Expectile(0.8)):
        target = small_target(loss, "regression", N, fit_intercept=fit_intercept, weight=weight)
        factor = Apart.of(target, Norms.of(target.problem.K), ridge)
        model = random_models(target, random, 4, 0.2)
        model.d[:, 3] = 0.0
        a, b, determined = factor.solve(model)
        assert determined.tolist() == [True, True, True, not fit_intercept]
        assert not a[:, 3].any()
        for c in range(3):
            expected, intercept = dense_minimiser(target, ridge[c], model, c)
            np.testing.assert_allclose(a[:, c], expected, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(b[c], intercept, rtol=1e-8, atol=1e-8)
        one = Apart.take(factor, [1]).solve(random_models(target, random, 1, 0.2))
        assert one[0].shape == (N, 1)


def some_rows(loss, task, **options):
    """A front at a lambda, seen from the solutions at a larger one, and rows to look at."""
    K = gaussian(np.random.default_rng(1).normal(size=(N, 3)))
    problem = make_problem(loss, task, N, kernel=lambda _: K, **options)
    last, lam = 2e-3, 1e-3
    train = np.repeat(problem.s[:, None] > 0, 3, axis=1)
    train[:6, 1] = train[6:20, 2] = False
    found = []
    for rows in (np.flatnonzero(use) for use in train.T):
        solution = solve(problem.take(rows), last * problem.n / problem.s[rows].sum())
        a = np.zeros(N)
        a[rows] = solution.coef[:, 0]
        found.append((a, float(solution.intercept[0]), K @ a + solution.intercept[0]))
    a, b, u = (np.asfortranarray(np.array(x).T) for x in zip(*found, strict=True))
    at, ridge = Point(a, b, u), np.full(3, lam * problem.n)
    target = Target.of(problem, lam, 0, a[:, 0], float(b[0]), u[:, 0])
    factor = Apart.of(target, Norms.of(K), ridge)
    pieces = loss.piece(target.y[:, None], u)
    front = Front.at(target, factor, train, at.copy(), at.scaled(np.full(3, last / lam)), pieces)
    rows = shrink.near(front, u, np.full((N, 1), 0.02))
    assert 0 < rows.size < N
    return front, rows


@pytest.mark.parametrize(("loss", "task"), FLAT)
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_steps_on_some_rows_fall_as_the_whole_objective_does(loss, task, weight, fit_intercept):
    """Other rows have their gradients and coefficients; the parts of steps are those of all."""
    front, rows = some_rows(loss, task, weight=weight, fit_intercept=fit_intercept)
    K, y, s = front.target.problem.K, front.y, front.weights
    others = np.setdiff1d(np.arange(N), rows)
    part = shrink._part(front, rows)
    part.step(full=True)
    g = s[others] * loss.gradient(y[others], front.u[others])
    np.testing.assert_allclose(-g / (2.0 * front.ridge), front.base.a[others], atol=1e-12)

    def whole(point):
        a = front.base.a.copy()
        a[rows] = point.a
        return a, K @ a + point.b

    def objective(point):
        a, u = whole(point)
        fit = (s[rows] * loss.value(y[rows], u[rows])).sum(axis=0) + (g * u[others]).sum(axis=0)
        return fit + front.ridge * (a * (u - point.b)).sum(axis=0)

    for _ in range(5):
        before = Point(part.a, part.b, part.u)
        part.step()
        np.testing.assert_allclose(whole(part)[1][rows], part.u, atol=1e-9)
        end = part.base

        def slope(t, before=before, end=end, h=1e-7):
            ahead, behind = (end.beyond(before, t + d - 1.0) for d in (h, -h))
            return (objective(ahead) - objective(behind)) / (2.0 * h)

        way = ((end.u - before.u) ** 2).sum(axis=0)
        t = ((part.u - before.u) * (end.u - before.u)).sum(axis=0) / np.maximum(way, 1e-30)
        first, there = slope(0.0), np.array([slope(one)[c] for c, one in enumerate(t)])
        falls = objective(before) - objective(Point(part.a, part.b, part.u))
        tiny = 1e-6 * (1.0 + np.abs(first))
        enough = (t > 0.999) & (falls >= -0.29 * first - tiny)
        assert (first <= tiny).all()
        assert ((np.abs(there) <= 0.11 * np.abs(first) + tiny) | enough).all()


@pytest.mark.parametrize(("loss", "task"), FLAT)
@pytest.mark.parametrize("shift", [0.01, 2.0])
def test_intercepts_of_some_rows_slide_to_where_all_gradients_add_up_to_nothing(loss, task, shift):
    front, rows = some_rows(loss, task)
    part = shrink._part(front, rows)
    part.b = part.b + shift
    part.u = part.u + shift
    part._look(slice(None))
    part.slide(np.arange(3))
    inside = (part.weights * loss.gradient(part.y, part.u)).sum(axis=0)
    others = np.setdiff1d(np.arange(N), rows)
    outside = -2.0 * front.ridge * front.base.a[others].sum(axis=0)
    np.testing.assert_allclose(inside + outside, 0.0, atol=1e-9)


def test_rows_near_a_kink():
    problem = Problem(np.eye(5), np.ones((5, 1)), np.ones(5), SmoothedHinge(0.1))
    u = np.array([0.95, 0.8, 0.5, 1.4, 0.5])[:, None]
    zero = np.zeros(5)
    target = Target.of(problem, 1.0, 0, zero, 0.0, u[:, 0])
    factor = Apart.of(target, Norms.of(problem.K), np.ones(1))
    train = np.array([True, True, True, True, False])[:, None]
    point = Point(zero[:, None], np.zeros(1), u)
    pieces = problem.loss.piece(target.y[:, None], u)
    front = Front.at(target, factor, train, point, point.copy(), pieces)
    # in the corner; within reach of it; neither; on another piece before; not trained on
    former = np.array([0.95, 0.8, 0.5, 0.95, 0.95])[:, None]
    assert shrink.near(front, former, np.full((5, 1), 0.2)).tolist() == [0, 1, 3]
    assert shrink.near(front, u, np.full((5, 1), 0.01)).tolist() == [0]
