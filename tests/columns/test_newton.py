"""Newton's method for many columns: every step, and where the columns end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from heldout._twins import WEIGHTS, Expectile, adversary, make_problem, newton_step
from registries import LOSS_IDS, LOSSES, SYSTEMS

from onefit.columns import newton
from onefit.columns.fit import fit
from onefit.columns.newton import Batch, minimise
from onefit.heldout.path import curvature
from onefit.losses import (
    EpsilonQuadratic,
    Huber,
    Log,
    Logistic,
    SmoothedHinge,
    Squared,
    SquaredHinge,
)
from onefit.problem import Problem, Solution
from onefit.systems import Cholesky

N = 26
LAM = 1e-2
PIECEWISE = [
    (Huber(0.3), "regression"),
    (EpsilonQuadratic(0.3), "regression"),
    (Expectile(0.8), "regression"),
    (SquaredHinge(), "classification"),
    (SmoothedHinge(0.1), "classification"),
]
each_loss = pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
each_piecewise = pytest.mark.parametrize(("loss", "task"), PIECEWISE)
each_system = pytest.mark.parametrize("make", SYSTEMS.values(), ids=SYSTEMS)


def masks(n=N):
    """All rows, and three times some of them."""
    train = np.ones((n, 4), dtype=bool)
    train[:5, 1] = train[5:12, 2] = train[::3, 3] = False
    return train


def columns_of(problem, train, lam=LAM):
    ridge = [problem.ridge(lam, np.flatnonzero(one)) for one in train.T]
    return problem.columns(0, train, np.array(ridge))


def batch_of(loss, task, make=SYSTEMS["cholesky"], lam=LAM, at=None, **options):
    """Four columns at the full solution, or at another point."""
    problem = make_problem(loss, task, N, **options)
    full = fit(problem, lam)
    columns = columns_of(problem, masks(), lam)
    system = make(problem, curvature(problem, 0, full.u[:, 0]), columns.ridge)
    at = full.take(np.zeros(4, dtype=np.intp)) if at is None else at(problem)
    return problem, Batch.start(columns, system, at)


def somewhere(problem):
    """Points at random, on the rows that each column is trained on."""
    random, train = np.random.default_rng(0), masks() & (problem.s > 0)[:, None]
    a, b = random.normal(scale=0.3, size=train.shape) * train, random.normal(size=4)
    b *= problem.fit_intercept
    return Solution(a, b, problem.K.matrix @ a + b, np.zeros(4))


def zero(problem):
    return Solution.zero(problem.n, 4, problem.K.dtype)


def fitted(problem, train, lam=LAM):
    """Predictions on all rows by fits to some of them."""
    found = []
    for one in train.T:
        rows = np.flatnonzero(one & (problem.s > 0))
        part = fit(problem.take(rows), lam)
        found.append(problem.K.matrix[:, rows] @ part.a[:, 0] + part.b[0])
    return np.array(found).T


# where columns end


@each_system
@each_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_end_where_fits_do(make, loss, task, fit_intercept):
    problem, batch = batch_of(loss, task, make, weight="random", fit_intercept=fit_intercept)
    minimise(batch)
    # with the curvature of another point a column may be stopped, which it reports
    done = batch.settled
    assert done.all() or batch.kept
    assert done.any()
    expected = fitted(problem, masks())
    scale = 1.0 + np.abs(expected).max()
    np.testing.assert_allclose(batch.at.u[:, done], expected[:, done], rtol=0, atol=1e-7 * scale)
    np.testing.assert_allclose(
        problem.K.matrix @ batch.at.a + batch.at.b, batch.at.u, atol=1e-8 * scale
    )
    assert not (batch.at.a * ~batch.columns.train)[:, done].any()
    np.testing.assert_array_equal(batch.pieces, loss.piece(problem.Y, batch.at.u))


@each_piecewise
@pytest.mark.parametrize("weight", WEIGHTS)
def test_columns_end_at_the_same_point_from_anywhere(loss, task, weight):
    _, near = batch_of(loss, task, weight=weight)
    minimise(near)
    for start in (somewhere, zero):
        _, batch = batch_of(loss, task, weight=weight, at=start)
        minimise(batch)
        assert batch.settled.all()
        np.testing.assert_allclose(batch.at.u, near.at.u, atol=1e-8)


def test_the_squared_loss_takes_one_step():
    _, batch = batch_of(Squared(), "regression", at=somewhere)
    minimise(batch)
    np.testing.assert_array_equal(batch.steps, np.ones(4))
    assert batch.settled.all()


def test_settled_columns_are_left_alone():
    _, batch = batch_of(Huber(0.3), "regression", at=somewhere)
    minimise(batch)
    steps, u = batch.steps.copy(), batch.at.u.copy()
    minimise(batch)
    np.testing.assert_array_equal(batch.steps, steps)
    np.testing.assert_array_equal(batch.at.u, u)
    # beside columns that are not settled: one starts elsewhere, the others at their ends
    _, far = batch_of(Huber(0.3), "regression", at=somewhere)
    mixed = np.arange(4) == 2
    parts = {x: np.where(mixed, getattr(far.at, x), getattr(batch.at, x)) for x in "abu"}
    again = Batch.start(batch.columns, batch.system, replace(batch.at, **parts))
    minimise(again)
    assert again.settled.all()
    assert (again.steps[~mixed] <= 1).all()
    assert again.steps[2] > 1
    np.testing.assert_allclose(again.at.u, u, atol=1e-9)


def test_the_start_is_not_written_to():
    _, batch = batch_of(SmoothedHinge(0.1), "classification", at=somewhere)
    start = batch.at
    kept = start.copy()
    minimise(batch)
    batch.shift_intercepts(np.array([1]))
    batch.recompute()
    for name in ("a", "b", "u", "drift"):
        np.testing.assert_array_equal(getattr(start, name), getattr(kept, name))


def test_a_model_of_another_point_than_the_start_does_no_harm():
    """A solution at another lambda, scaled by the ratio, spares work and changes nothing."""
    for loss, task in PIECEWISE:
        problem, batch = batch_of(loss, task)
        other = fit(problem, 2.0 * LAM).take(np.zeros(4, dtype=np.intp))
        scaled = other.scaled(np.full(4, 2.0))
        moved = Batch.start(batch.columns, batch.system, scaled, other.u)
        minimise(batch)
        minimise(moved)
        np.testing.assert_allclose(moved.at.u, batch.at.u, atol=1e-9)


def test_too_few_steps_leave_columns_unsettled():
    _, batch = batch_of(Logistic(), "regression", at=zero, lam=1e-4)
    minimise(batch, 2)
    np.testing.assert_array_equal(batch.steps, np.full(4, 2))
    assert not batch.settled.any()
    assert np.isfinite(batch.at.u).all()


def test_columns_that_converge_too_slowly_are_given_up():
    """A smooth loss with the curvature of a solution far away."""
    _, batch = batch_of(Log(), "classification", SYSTEMS["update"], lam=1e-7)
    minimise(batch)
    assert not batch.settled.all()
    assert batch.steps.max() < newton.MAX_NEWTON_STEPS
    _, near = batch_of(Log(), "classification", SYSTEMS["update"], lam=1.0)
    minimise(near)
    assert near.settled.all()


def test_single_precision_stays_single():
    _, batch = batch_of(Huber(0.3), "regression", dtype=np.float32)
    minimise(batch)
    assert batch.settled.all()
    assert batch.at.a.dtype == batch.at.u.dtype == np.float32
    double = make_problem(Huber(0.3), "regression", N)
    np.testing.assert_allclose(batch.at.u, fitted(double, masks()), atol=1e-3)


# a step


def after_full_steps(batch):
    """A batch whose columns have taken the limit of full steps and continue by line search."""
    batch.steps = np.full_like(batch.steps, newton.MAX_FULL_STEPS)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", WEIGHTS)
@each_piecewise
def test_steps_are_as_long_as_the_objective_falls(loss, task, weight, fit_intercept):
    """In full where that brings enough; else to where, along the way, the objective is lowest."""
    problem, batch = batch_of(
        loss, task, lam=1e-4, at=somewhere, fit_intercept=fit_intercept, weight=weight
    )
    after_full_steps(batch)
    columns, y = batch.columns, problem.Y

    def along(point, step, t):
        parts = {name: getattr(point, name) + t * getattr(step, name) for name in "abu"}
        return columns.objective(replace(point, **parts))

    def slope(point, step, t):
        h = 1e-6 * np.maximum(t, 1.0)
        return (along(point, step, t + h) - along(point, step, t - h)) / (2.0 * h)

    shortened = 0
    for _ in range(6):
        before = batch.at
        some = ((loss.curvature(y, before.u) > 0) & columns.train).any(axis=0)
        whole = batch.take(slice(None))
        whole.step(full=True)
        end = whole.at
        batch.step()
        assert (batch.pieces == loss.piece(y, batch.at.u)).all()
        step = replace(end, **{x: getattr(end, x) - getattr(before, x) for x in "abu"})
        length = np.maximum((step.u**2).sum(axis=0), 1e-30)
        t = ((batch.at.u - before.u) * step.u).sum(axis=0) / length
        first, there = slope(before, step, 0.0 * t), slope(before, step, t)
        falls = columns.objective(before) - along(before, step, t)
        full = (batch.at.u == end.u).all(axis=0)
        tiny = 1e-6 * (1.0 + np.abs(first))
        found = np.abs(there) <= 0.11 * np.abs(first) + tiny
        enough = full & (falls >= -0.29 * first - tiny)
        assert (found | enough | ~some).all()
        shortened += int((some & ~full).sum())
    assert shortened or not isinstance(loss, (Huber, SmoothedHinge))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weight", WEIGHTS)
@each_piecewise
def test_no_point_goes_further_than_to_the_next_piece(loss, task, weight, fit_intercept):
    """Its model is that of the piece; predictions stay those of the coefficients."""
    problem, batch = batch_of(
        loss, task, lam=1e-4, at=somewhere, fit_intercept=fit_intercept, weight=weight
    )
    batch.ceiling = np.full_like(batch.ceiling, np.inf)
    train, y, crossed = batch.columns.train, problem.Y, 0
    for _ in range(6):
        before = batch.pieces.astype(int)
        curved = (loss.curvature(y, batch._spot()) > 0) & train
        batch.step()
        # intercepts that nothing determines slide
        some = train & (curved.any(axis=0) | (not fit_intercept))
        assert (np.abs(batch.pieces - before)[some] <= 1).all()
        held = ~np.isnan(batch.held)
        assert not (held & ~train).any()
        spot = np.where(held, batch.held, batch.at.u)
        np.testing.assert_array_equal(batch.pieces, loss.piece(y, spot))
        np.testing.assert_allclose(
            batch.at.u, problem.K.matrix @ batch.at.a + batch.at.b, atol=1e-7
        )
        crossed += int(held.sum())
    assert crossed or not isinstance(loss, SmoothedHinge)


@each_loss
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_full_step_ends_at_the_minimum_of_the_model(loss, task, fit_intercept):
    problem, batch = batch_of(loss, task, fit_intercept=fit_intercept, weight="random")
    before = batch.at.u
    batch.step(full=True)
    for c, train in enumerate(masks().T):
        curved = loss.curvature(problem.Y[train, 0], before[train, c]).any()
        if curved or not fit_intercept:
            expected = newton_step(problem, LAM, np.flatnonzero(train), before[:, c])
            np.testing.assert_allclose(batch.at.u[:, c], expected, atol=1e-8)
    assert batch.steps.tolist() == [1, 1, 1, 1]


@each_loss
def test_a_step_lowers_the_objective(loss, task):
    _, batch = batch_of(loss, task, at=somewhere, weight="zeros")
    after_full_steps(batch)
    before = batch.columns.objective(batch.at)
    for _ in range(4):
        batch.step()
        after = batch.columns.objective(batch.at)
        assert (after <= before + 1e-9 * np.abs(before)).all()
        before = after


def adverse_batch(seed):
    problem, folds, lam = adversary(seed)
    train = folds.train[0][problem.s[folds.train[0]] > 0]
    columns = problem.targets(train, problem.ridge(lam, train))
    start = Solution.zero(problem.n, 1, np.float64)
    return Batch.start(columns, Cholesky(problem, columns.ridge), start)


@pytest.mark.parametrize("seed", [79, 119, 120, 130, 133, 134, 161, 191, 217, 239, 282, 304])
def test_steps_from_piece_to_piece_do_not_climb_away(seed):
    """At tiny Lambda some would, to a million times where they began, and not come home."""
    batch = adverse_batch(seed)
    columns = batch.columns
    ceiling = newton.MAX_OBJECTIVE_RATIO * columns.objective(batch.at)
    for _ in range(newton.MAX_NEWTON_STEPS):
        batch.step()
        assert (columns.objective(batch.at) <= ceiling * (1.0 + 1e-9)).all()
        if batch.settled.all():
            return
    pytest.fail("did not converge")


@pytest.mark.parametrize("seed", [633, 2684, 91, 39, 5, 7, 11])
def test_a_searched_step_never_raises_the_objective(seed):
    """Even where it is a straight line that ends in a wall, at a tiny Lambda."""
    batch = adverse_batch(seed)
    after_full_steps(batch)
    columns = batch.columns
    before = columns.objective(batch.at)
    for _ in range(12):
        batch.step()
        if batch.settled.all():
            break
        after = columns.objective(batch.at)
        rounding = 1e-8 * (np.abs(before) + columns.scale)
        assert (after <= before + rounding).all()
        before = after


def test_drift_bounds_what_rounding_does_to_predictions():
    """Over many steps, and again after the predictions were computed from the coefficients."""
    problem, batch = batch_of(SquaredHinge(), "classification", lam=1e-9, at=somewhere)
    for _ in range(8):
        batch.step()
    roots = problem.norms.roots[:, None]

    def gap():
        a, b = batch.at.a.astype(np.longdouble), batch.at.b.astype(np.longdouble)
        return np.abs(problem.K.matrix.astype(np.longdouble) @ a + b - batch.at.u)

    carried = batch.at.drift.copy()
    assert (gap() <= roots * carried).all()
    batch.recompute()
    assert (gap() <= roots * batch.at.drift).all()
    assert (batch.at.drift < carried).all()


# intercepts


@pytest.mark.parametrize("loss", [Huber(0.3), SmoothedHinge(0.1), Log()])
def test_intercepts_slide_to_where_the_gradients_add_up_to_nothing(loss):
    task = "regression" if isinstance(loss, Huber) else "classification"
    problem, batch = batch_of(loss, task)
    before = batch.at
    moved = batch.shift_intercepts(np.array([1, 2]))
    assert moved.all()
    g = batch.columns.weights * loss.gradient(problem.Y, batch.at.u)
    np.testing.assert_allclose(g.sum(axis=0)[1:3], 0.0, atol=1e-9)
    np.testing.assert_array_equal(batch.at.b[[0, 3]], before.b[[0, 3]])
    assert (batch.at.b[1:3] != before.b[1:3]).all()
    np.testing.assert_allclose(batch.at.u, problem.K.matrix @ batch.at.a + batch.at.b, atol=1e-9)
    assert (batch.pieces == loss.piece(problem.Y, batch.at.u)).all()
    assert not batch.shift_intercepts(np.array([1, 2])).any()


def flat_problem(loss, gap=10.0):
    """Two groups far apart and almost no f: every b between them is a minimiser."""
    labels = np.repeat([0.0, gap], 5) if isinstance(loss, Huber) else np.repeat([-1.0, 1.0], 5)
    return Problem(np.eye(10), labels[:, None], np.ones(10), loss, True, "total")


def flat_batch(loss, b):
    problem = flat_problem(loss)
    columns = problem.columns(0, np.ones((10, 2), dtype=bool), np.full(2, 1e6))
    system, zero = Cholesky(problem, columns.ridge), np.zeros((10, 2))
    return Batch.start(columns, system, Solution(zero, np.array(b), zero + b, np.zeros(2)))


@pytest.mark.parametrize(("loss", "middle"), [(Huber(1.0), 5.0), (SmoothedHinge(0.1), 0.0)])
def test_a_flat_stretch_is_seen_and_its_middle_taken(loss, middle):
    batch = flat_batch(loss, [middle, middle + 0.4])
    assert batch.flat().all()
    batch.recentre(np.array([1]))
    np.testing.assert_allclose(batch.at.b, middle, atol=1e-5)
    g = loss.gradient(batch.columns.y, batch.at.u)
    np.testing.assert_allclose(batch.at.a[:, 1], -g[:, 1] / 2e6, rtol=1e-12)
    np.testing.assert_allclose(batch.at.u, batch.at.a + batch.at.b, atol=1e-12)


def test_curvature_or_no_intercept_is_not_flat():
    problem, batch = batch_of(Huber(0.3), "regression")
    assert not batch.flat().any()
    problem = replace(flat_problem(Huber(1.0)), fit_intercept=False)
    columns = problem.columns(0, np.ones((10, 1), dtype=bool), np.ones(1))
    free = Batch.start(columns, Cholesky(problem, columns.ridge), Solution.zero(10, 1, float))
    assert not free.flat().any()


# some of the columns


def test_some_columns_go_their_way_and_are_put_back():
    _, batch = batch_of(Huber(0.3), "regression", at=somewhere, weight="random")
    whole = batch.take(np.arange(4))
    minimise(whole)
    kept = batch.at.u.copy()
    part = batch.take(np.array([3, 1]))
    minimise(part)
    batch.put(np.array([3, 1]), part)
    np.testing.assert_array_equal(batch.at.u[:, [0, 2]], kept[:, [0, 2]])
    np.testing.assert_allclose(batch.at.u[:, [1, 3]], whole.at.u[:, [1, 3]], atol=1e-10)
    for name in ("steps", "settled", "stuck", "pieces"):
        found, expected = getattr(batch, name), getattr(whole, name)
        np.testing.assert_array_equal(found[..., [1, 3]], expected[..., [1, 3]])
    assert batch.steps[0] == batch.steps[2] == 0
    batch.put(np.array([0]), part, np.array([1]))
    np.testing.assert_array_equal(batch.at.u[:, 0], part.at.u[:, 1])


def test_every_target_may_have_a_threshold_of_its_own():
    three = make_problem(Squared(), "regression", N, q=3, weight="random")
    thresholds = np.array([0.1, 0.5, 3.0])
    both = fit(three.with_loss(Huber(thresholds)), LAM)
    for j, threshold in enumerate(thresholds):
        alone = fit(replace(three, Y=three.Y[:, [j]], loss=Huber(threshold)), LAM)
        np.testing.assert_allclose(both.u[:, [j]], alone.u, atol=1e-9)
