"""Exact held-out predictions of every loss, and the one thing they must never do: lie."""

from __future__ import annotations

import numpy as np
import pytest
from adversarial.reference import reference
from heldout._twins import (
    WEIGHTS,
    Expectile,
    adversaries,
    adversary,
    dense_minimiser,
    gaussian,
    make_problem,
    pairs_left_out,
    predict,
    random_models,
    small_target,
    splits,
)
from hypothesis import given, settings
from registries import LOSS_IDS, LOSSES, SCALINGS

from onefit import torn
from onefit.certificate import EXACT
from onefit.folds import Folds
from onefit.heldout import Exact, Limit, Refit, front, path, repair
from onefit.heldout.downdate import Downdate, Factors
from onefit.heldout.inverses import Dense, Factored
from onefit.heldout.stretch import Stretch
from onefit.losses import (
    EpsilonQuadratic,
    Huber,
    Log,
    Logistic,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from onefit.problem import Problem
from onefit.solvers import solve

N = 26
SPLITS = splits(N)
USERS = [*LOSSES, (Expectile(0.8), "regression")]
USER_IDS = [*LOSS_IDS, "regression-Expectile(0.8)"]


def assert_equals_refit(problem, folds, lam, method=None):
    held = predict(method or Exact(), problem, folds, lam)
    expected = predict(Refit(), problem, folds, lam)
    assert expected.exact.all()
    scale = 1.0 + np.abs(expected.values).max()
    gap = np.abs(held.values - expected.values).max()
    assert gap <= 1e-7 * scale, gap / scale
    assert held.exact.all()
    assert (held.steps >= 1).all()
    return held


@pytest.mark.parametrize(("loss", "task"), USERS, ids=USER_IDS)
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_every_loss(loss, task, fit_intercept, scaling):
    for weight in WEIGHTS:
        problem = make_problem(
            loss, task, N, weight=weight, fit_intercept=fit_intercept, scaling=scaling
        )
        for lam in (1e-1, 1e-3):
            assert_equals_refit(problem, SPLITS["kfold"], lam)
    assert_equals_refit(problem, SPLITS["loo"], 1e-2)


@pytest.mark.parametrize(
    ("loss", "task"),
    [(Huber(0.3), "regression"), (SmoothedHinge(0.1), "classification"), (Log(), "classification")],
)
@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("weight", WEIGHTS)
def test_every_split(loss, task, name, weight):
    # the second target of the first of the splits in time has one class only, hence no minimum
    problem = make_problem(loss, task, N, weight=weight, q=1 if name == "time" else 2)
    assert_equals_refit(problem, SPLITS[name], 1e-2)


@pytest.mark.parametrize("loss", [EpsilonQuadratic(0.2), Logistic()])
def test_pairs_left_out(loss):
    assert_equals_refit(make_problem(loss, "regression", 9), pairs_left_out(9), 1e-2)


@pytest.mark.parametrize(("loss", "task"), USERS, ids=USER_IDS)
def test_a_path_of_lambdas_starts_each_from_the_last(loss, task):
    problem = make_problem(loss, task, N)
    lams = np.logspace(-4, 1, 6)
    prepared = Exact().prepare(problem, SPLITS["kfold"], lams)
    for lam in lams[::-1]:
        held = prepared.predict(lam)
        expected = predict(Refit(), problem, SPLITS["kfold"], lam).values
        scale = 1.0 + np.abs(expected).max()
        assert np.abs(held.values - expected).max() <= 1e-7 * scale
        assert held.exact.all()
    # in any other order too, and a second time
    for lam in (lams[2], lams[5], lams[0], lams[2]):
        expected = predict(Refit(), problem, SPLITS["kfold"], lam).values
        found = prepared.predict(lam).values
        assert np.abs(found - expected).max() <= 1e-7 * (1.0 + np.abs(expected).max())


def test_folds_that_hold_all_points_of_a_class():
    rows = np.arange(20)
    y = np.where(rows < 5, 1.0, -1.0)[:, None]
    K = gaussian(np.random.default_rng(0).normal(size=(20, 2)))
    folds = Folds.from_pairs(20, [(rows[5:], rows[:5]), (rows[:15], rows[15:])])
    for loss in (Squared(), SmoothedHinge(0.1), SquaredHinge(), Log()):
        for lam in (1.0, 1e-3):
            assert_equals_refit(Problem(K, y, np.ones(20), loss, False), folds, lam)
    # with an intercept, one class is a problem with a solution for these
    for loss in (Squared(), SquaredHinge(), SmoothedHinge(0.1)):
        assert_equals_refit(Problem(K, y, np.ones(20), loss, True), folds, 1e-2)


def test_a_large_lambda_leaves_only_the_slope():
    # unbalanced: the majority's slope decides the intercept; balanced: it is flat, its middle taken
    K = gaussian(np.random.default_rng(0).normal(size=(20, 2)))
    for positive in (10, 3):
        y = np.where(np.arange(20) % 20 < positive, 1.0, -1.0)[:, None]
        folds = Folds.draw(3, K, y[:, 0] > 0, classifier=True)
        for lam in (1e2, 1e6):
            problem = Problem(K, y, np.ones(20), SmoothedHinge(0.1), True)
            assert_equals_refit(problem, folds, lam)


def assert_no_lie(case, method=None, stages=0):
    """No fold is called exact, and no bound given, that the solution itself contradicts.

    Returns how many folds have a solution that extended precision finds, and how many of these were
    called exact. With stages, lam comes at the end of a path.
    """
    problem, folds, lam = case
    lams = lam * 2.0 ** np.arange(stages + 1)
    prepared = (method or Exact()).prepare(problem, folds, lams)
    held = [prepared.predict(one) for one in lams[::-1]][-1]
    assert np.isfinite(held.values).all()
    witnesses = called = 0
    for k, (train, test) in enumerate(folds):
        for j in range(problem.Y.shape[1]):
            truth = reference(problem, lam, train, test, j)
            if not truth.decided:
                continue
            witnesses += 1
            called += bool(held.exact[k])
            gap = np.abs(held.by_fold[k][:, j] - truth.values).max()
            assert gap <= held.error[k] + truth.error, (k, gap, held.error[k])
            if held.exact[k]:
                assert gap <= EXACT * problem.scale[j] + truth.error, (k, gap, held.error[k])
    return witnesses, called


@settings(max_examples=60)
@given(adversaries(powers=(-10.0, 6.0)))
def test_exact_is_never_said_of_what_is_not(case):
    assert_no_lie(case)


@settings(max_examples=60)
@given(adversaries(powers=(-12.0, -5.0)))
def test_exact_is_never_said_of_what_is_not_with_tiny_lambda(case):
    assert_no_lie(case)


@settings(max_examples=60)
@given(adversaries(powers=(-12.0, 2.0)))
def test_nor_at_the_end_of_a_path(case):
    assert_no_lie(case, stages=4)


@given(adversaries(powers=(-12.0, 6.0)))
def test_nor_by_the_limit(case):
    assert_no_lie(case, Limit())


@given(adversaries(powers=(-10.0, 2.0), losses=[(SmoothedHinge(0.01), "classification")]))
def test_nor_for_a_sharp_hinge(case):
    assert_no_lie(case)


@pytest.mark.slow
@settings(max_examples=1500)
@given(adversaries(powers=(-12.0, 6.0)))
def test_exact_is_never_said_of_what_is_not_in_many_problems(case):
    assert_no_lie(case)
    assert_no_lie(case, stages=4)
    assert_no_lie(case, Limit())


@pytest.mark.parametrize("seed", [39, 50, 155, 252, 371, 426, 480, 509, 633, 1651, 1652])
def test_problems_that_once_were_lied_about(seed):
    """Duplicate rows and lam near 1e-7, where a downdated inverse has few digits left; lam near

    1e-10, where predictions summed up over many steps drift from their coefficients.
    """
    assert assert_no_lie(adversary(seed))[0] > 0
    assert_no_lie(adversary(seed), stages=4)
    assert_no_lie(adversary(seed), Limit())


@pytest.mark.parametrize("seed", [2684, 5416])
def test_kernels_that_rounding_made_indefinite(seed):
    """An eigenvalue of -1e-16 times the largest, and a Lambda no larger: a refit serves them."""
    assert_no_lie(adversary(seed))
    assert_no_lie(adversary(seed), Limit())


def test_the_adversary_is_not_toothless():
    """Most of its folds have a witness, and nearly all of those are solved to the end."""
    cases = [adversary(seed) for seed in range(1000, 1030)]
    counts = np.array([assert_no_lie(case) for case in cases])
    assert counts[:, 0].sum() > 0.6 * sum(len(folds) for _, folds, _ in cases)
    assert counts[:, 1].sum() > 0.9 * counts[:, 0].sum()


def test_points_exactly_on_a_kink():
    # u = 0 for rows without a neighbour: |r| = b, 1 - t = delta and so on hold to the last bit
    K = np.eye(8)
    K[:4, :4] += 1.0
    rows = np.arange(8)
    folds = Folds.from_pairs(
        8, [(np.delete(rows, [i, (i + 3) % 8]), [i, (i + 3) % 8]) for i in rows]
    )
    y = np.array([2.0, 1.0, -1.0, 0.0, 1.0, -1.0, 2.0, -2.0])[:, None]
    for loss in (Huber(1.0), Huber(2.0), EpsilonQuadratic(1.0), EpsilonQuadratic(0.0)):
        for fit_intercept in (True, False):
            for lam in (1.0, 0.5, 1e-3):
                problem = Problem(K, y, np.ones(8), loss, fit_intercept, "total")
                assert assert_no_lie((problem, folds, lam))[0] > 0
    labels = np.sign(y + 0.5)
    for loss in (SquaredHinge(), SmoothedHinge(0.5), SmoothedHinge(1.0)):
        for fit_intercept in (True, False):
            for lam in (1.0, 0.5, 1e-3):
                problem = Problem(K, labels, np.ones(8), loss, fit_intercept, "total")
                assert_no_lie((problem, folds, lam))


@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothedHinge(0.1)])
def test_a_solution_far_along_the_path_costs_no_digits(loss):
    """A step is measured from another lambda's solution only where the two are near."""
    problem, folds = make_problem(loss, "classification", 60), splits(60)["kfold"]
    lams = np.array([1e-2, 1e-10])
    prepared = Exact().prepare(problem, folds, lams)
    prepared.predict(1e-2)
    along, alone = prepared.predict(1e-10), predict(Exact(), problem, folds, 1e-10)
    np.testing.assert_allclose(along.values, alone.values, rtol=1e-9, atol=1e-9)
    assert (along.error <= 100.0 * alone.error + 1e-9).all()


@pytest.mark.parametrize("loss", [SquaredHinge(), SmoothedHinge(0.1)])
def test_predictions_are_computed_anew_before_rounding_has_grown(monkeypatch, loss):
    """Along a fine path they are carried from lambda to lambda, but not for long."""
    anew = []
    honest = front.Front.recompute

    def watched(self, precise=False):
        anew.append(self.drift.max())
        honest(self, precise)

    monkeypatch.setattr(front.Front, "recompute", watched)
    problem, folds = make_problem(loss, "classification", 60), splits(60)["kfold"]
    lams = np.logspace(-1, -5, 41)
    prepared = Exact().prepare(problem, folds, lams)
    anew.clear()
    for lam in lams:
        along, alone = prepared.predict(lam), predict(Refit(), problem, folds, lam)
        np.testing.assert_allclose(along.values, alone.values, rtol=1e-9, atol=1e-9)
    assert 1 <= len(anew) <= 60
    assert max(anew) <= 1e-9


# the parts


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize(
    ("loss", "task"),
    [
        (Huber(0.3), "regression"),
        (EpsilonQuadratic(0.3), "regression"),
        (Expectile(0.8), "regression"),
        (SquaredHinge(), "classification"),
        (SmoothedHinge(0.1), "classification"),
    ],
)
def test_steps_are_as_long_as_the_objective_falls(loss, task, weight, fit_intercept):
    """In full where that brings enough; else to where, along the way, the objective is lowest."""
    target = small_target(loss, task, N, 1e-4, fit_intercept=fit_intercept, weight=weight)
    K, y, s = target.problem.K, target.y[:, None], target.problem.s[:, None]
    factor = Downdate(target, 1e-2)
    train = np.repeat(s > 0, 4, axis=1)
    train[:5, 1] = train[5:25, 2] = False
    problems = front.Front.start(target, Factors([factor], np.zeros(4, np.intp)), train, None)
    random = np.random.default_rng(0)
    problems.a = random.normal(scale=0.3, size=train.shape) * train
    problems.u = K @ problems.a + problems.b
    problems.pieces = loss.piece(y, problems.u)

    def objective(point, step, t):
        a, b, u = (old + t * new for old, new in zip(point, step, strict=True))
        fit = (s * train * loss.value(y, u)).sum(axis=0)
        return fit + factor.ridge * (a * (u - b)).sum(axis=0)

    def slope(point, step, t):
        h = 1e-6 * np.maximum(t, 1.0)
        return (objective(point, step, t + h) - objective(point, step, t - h)) / (2.0 * h)

    shortened = 0
    for _ in range(6):
        before = problems.a, problems.b, problems.u
        some = ((loss.curvature(y, problems.u) > 0) & train).any(axis=0)
        problems.step()
        assert (problems.pieces == loss.piece(y, problems.u)).all()
        end = problems.base
        step = end.a - before[0], end.b - before[1], end.u - before[2]
        length = np.maximum((step[2] ** 2).sum(axis=0), 1e-30)
        t = ((problems.u - before[2]) * step[2]).sum(axis=0) / length
        first, there = slope(before, step, 0.0 * t), slope(before, step, t)
        falls = objective(before, step, 0.0) - objective(before, step, t)
        full = (problems.u == end.u).all(axis=0)
        tiny = 1e-6 * (1.0 + np.abs(first))
        found = np.abs(there) <= 0.11 * np.abs(first) + tiny
        enough = full & (falls >= -0.29 * first - tiny)
        assert (found | enough | ~some).all()
        shortened += int((some & ~full).sum())
    assert shortened or not isinstance(loss, (Huber, SmoothedHinge))


@pytest.mark.parametrize("loss", [Huber(0.3), SmoothedHinge(0.1), Log()])
def test_intercepts_slide_to_where_the_gradients_add_up_to_nothing(loss):
    task = "regression" if isinstance(loss, Huber) else "classification"
    target = small_target(loss, task, N)
    y = target.y[:, None]
    train = np.ones((N, 3), dtype=bool)
    train[:6, 1] = train[6:12, 2] = False
    factor = Downdate(target, 0.2)
    problems = front.Front.start(target, Factors([factor], np.zeros(3, np.intp)), train, None)
    before = problems.b.copy()
    problems.slide(np.array([1, 2]))
    total = (problems.weights * loss.gradient(y, problems.u)).sum(axis=0)
    np.testing.assert_allclose(total[1:], 0.0, atol=1e-9)
    assert problems.b[0] == before[0]
    assert (problems.b[1:] != before[1:]).all()
    np.testing.assert_allclose(problems.u, target.problem.K @ problems.a + problems.b, atol=1e-9)
    assert (problems.pieces == loss.piece(y, problems.u)).all()


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("change", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("way", ["dense", "factored", "whole stretch", "torn stretch"])
def test_small_changes_of_the_factor_against_dense_systems(
    monkeypatch, update, fit_intercept, weight, change, way
):
    if way == "torn stretch":
        monkeypatch.setattr(torn, "SMALLEST", 5)
    monkeypatch.setattr(
        Downdate, "_worth_updating",
        lambda self, changes: {c.column for c in changes} if update else set(),
    )  # fmt: skip
    random = np.random.default_rng(0)
    for loss in (Huber(0.3), EpsilonQuadratic(0.3), Expectile(0.8)):
        target = small_target(loss, "regression", N, fit_intercept=fit_intercept, weight=weight)
        stretch = Stretch(target) if "stretch" in way else None
        hold = Factored if way == "factored" else Dense
        factor = Downdate(target, 0.2, stretch, hold)
        # twice: rows that entered before are known the second time
        for _ in range(2):
            model = random_models(target, random, 6, change)
            a, b, determined = factor.solve(model)
            assert determined.all()
            for c in range(6):
                expected, intercept = dense_minimiser(target, 0.2, model, c)
                np.testing.assert_allclose(a[:, c], expected, rtol=1e-8, atol=1e-8)
                np.testing.assert_allclose(b[c], intercept, rtol=1e-8, atol=1e-8)
        assert ("inverse" in factor.__dict__) == update


def test_a_model_without_curvature_says_nothing_of_the_intercept():
    for fit_intercept in (True, False):
        target = small_target(Huber(0.3), "regression", N, fit_intercept=fit_intercept)
        factor = Downdate(target, 0.2)
        model = random_models(target, np.random.default_rng(0), 3, 0.1)
        model.d[:, 1] = 0.0
        _, _, determined = factor.solve(model)
        assert determined.tolist() == [True, not fit_intercept, True]


def test_updates_are_taken_where_they_cost_less(monkeypatch):
    taken = []
    honest = Downdate._worth_updating

    def watched(self, changes):
        columns = honest(self, changes)
        taken.append((len(columns), len(changes)))
        return columns

    monkeypatch.setattr(Downdate, "_worth_updating", watched)
    # leave-one-out of a loss with curvature nearly everywhere: small changes of a large factor
    problem = make_problem(EpsilonQuadratic(0.05), "regression", 60)
    assert_equals_refit(problem, splits(60)["loo"], 1e-2)
    assert taken[0] == (60, 60)
    # two folds of half the rows: a factor of their own is cheaper
    taken.clear()
    halves = Folds.draw(2, problem.K)
    assert_equals_refit(problem, halves, 1e-2)
    assert taken[0][0] == 0


@pytest.mark.parametrize("update", [True, False])
@pytest.mark.parametrize(("loss", "task"), USERS, ids=USER_IDS)
def test_both_ways_of_a_step_give_the_refit(monkeypatch, update, loss, task):
    monkeypatch.setattr(
        Downdate, "_worth_updating",
        lambda self, changes: {c.column for c in changes} if update else set(),
    )  # fmt: skip
    for fit_intercept in (True, False):
        problem = make_problem(loss, task, N, weight="random", fit_intercept=fit_intercept)
        assert_equals_refit(problem, SPLITS["kfold"], 1e-2)


@pytest.mark.parametrize("width", [1, 3])
def test_folds_in_parts(monkeypatch, width):
    problem = make_problem(Huber(0.3), "regression", N, q=2, weight="zeros")
    whole = {m.name: predict(m, problem, SPLITS["loo"], 1e-3) for m in (Exact(), Limit())}
    monkeypatch.setattr(path, "WIDTH", width)
    for method in (Exact(), Limit()):
        held = predict(method, problem, SPLITS["loo"], 1e-3)
        np.testing.assert_allclose(held.values, whole[method.name].values, rtol=1e-7, atol=1e-9)
        np.testing.assert_array_equal(held.moved, whole[method.name].moved)
        np.testing.assert_array_equal(held.exact, whole[method.name].exact)


def test_the_line_search_is_used_and_needed(monkeypatch):
    searches = []
    honest = front.line_search

    def watched(*args, **kwargs):
        t = honest(*args, **kwargs)
        searches.append(t)
        return t

    monkeypatch.setattr(front, "line_search", watched)
    problem = make_problem(
        SmoothedHinge(0.01), "classification", 40, kernel=lambda X: gaussian(X, 3.0)
    )
    held = assert_equals_refit(problem, splits(40)["kfold"], 1e-4)
    assert any(((t > 0) & (t < 1)).any() for t in searches)
    assert held.steps.max() > 2
    assert held.moved.max() > 0


def test_a_fold_that_does_not_settle_is_refitted(monkeypatch):
    refits = []
    honest = front.Front.refit

    def watched(self, column):
        refits.append(column)
        honest(self, column)

    monkeypatch.setattr(front.Front, "refit", watched)
    monkeypatch.setattr(repair, "MAX_STEPS", 1)
    for loss, task in ((Huber(0.3), "regression"), (Log(), "classification")):
        refits.clear()
        assert_equals_refit(make_problem(loss, task, N), SPLITS["kfold"], 1e-3)
        assert refits


def test_smooth_losses_far_from_home_are_refitted(monkeypatch):
    refits = []
    honest = front.Front.refit
    monkeypatch.setattr(
        front.Front, "refit", lambda self, c: (refits.append(c), honest(self, c))[1]
    )
    problem = make_problem(Log(), "classification", 40, kernel=lambda X: gaussian(X, 0.05))
    assert_equals_refit(problem, splits(40)["kfold"], 1e-6)
    assert refits
    refits.clear()
    assert_equals_refit(problem, splits(40)["loo"], 1.0)
    assert not refits


def test_moved_counts_the_training_points_on_another_piece():
    for loss, task in ((Huber(0.3), "regression"), (SmoothedHinge(0.2), "classification")):
        problem = make_problem(loss, task, N, weight="zeros")
        held = predict(Exact(), problem, SPLITS["kfold"], 1e-3)
        kept = np.flatnonzero(problem.s)
        full = solve(problem.take(kept), 1e-3)
        u = problem.K[:, kept] @ full.coef[:, 0] + full.intercept[0]
        y = problem.Y[:, 0]
        for k, train in enumerate(SPLITS["kfold"].train):
            train = np.intersect1d(train, kept)
            solution = solve(problem.take(train), 1e-3)
            changed = loss.piece(y[train], solution.decision[:, 0]) != loss.piece(
                y[train], u[train]
            )
            assert held.moved[k] == changed.sum()
        assert held.moved.max() > 0


def test_steps_of_folds_that_need_none_beyond_the_limit():
    problem = make_problem(Huber(0.3), "regression", N)
    first = predict(Limit(), problem, SPLITS["loo"], 1e-2)
    held = predict(Exact(), problem, SPLITS["loo"], 1e-2)
    np.testing.assert_array_equal(held.steps == 1, first.exact)
    np.testing.assert_allclose(held.values[first.exact], first.values[first.exact], rtol=1e-12)


def test_weights_of_zero_are_rows_that_are_not_there():
    problem = make_problem(Huber(0.3), "regression", N, weight="zeros")
    kept = np.flatnonzero(problem.s)
    other = problem.Y.copy()
    other[problem.s == 0] += 100.0
    changed = Problem(problem.K, other, problem.s, problem.loss)
    ours = predict(Exact(), problem, SPLITS["kfold"], 1e-2).values
    np.testing.assert_allclose(
        predict(Exact(), changed, SPLITS["kfold"], 1e-2).values, ours, rtol=1e-10
    )
    assert kept.size < N
