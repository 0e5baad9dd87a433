"""The line search against a bracketing root finder and a dense scan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from registries import LOSS_IDS, LOSSES
from scipy.optimize import brentq

from onefit.columns import line_search as module
from onefit.columns.line_search import line_search
from onefit.losses import Huber, Log, SmoothedHinge, Squared

each_loss = pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)


def slope(loss, y, u, du, s, linear, quadratic, t):
    return float((s * loss.gradient(y, u + t * du) * du).sum() + linear + t * quadratic)


def height(loss, y, u, du, s, linear, quadratic, t):
    return float((s * loss.value(y, u + t * du)).sum() + t * linear + 0.5 * t**2 * quadratic)


def rays(task, seed, columns, scale):
    random = np.random.default_rng(seed)
    n = 7
    Y = random.normal(size=(n, columns))
    if task == "classification":
        Y = np.where(Y > 0, 1.0, -1.0)
    U, dU = random.normal(size=(n, columns)), scale * random.normal(size=(n, columns))
    s = random.uniform(0.0, 2.0, (n, columns)) * (random.random((n, columns)) < 0.8)
    quadratic = scale**2 * random.uniform(0.1, 1.0, columns)
    return Y, U, dU, s, scale * random.normal(size=columns), quadratic


@each_loss
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), power=st.floats(-3, 4))
def test_finds_the_root_of_every_column(loss, task, seed, power):
    Y, U, dU, s, linear, quadratic = rays(task, seed, 5, 10.0**power)
    found = line_search(loss, Y, U, dU, s, linear, quadratic)
    for j, t in enumerate(found):
        ray = (loss, Y[:, j], U[:, j], dU[:, j], s[:, j], linear[j], quadratic[j])
        start = slope(*ray, 0.0)
        if start >= 0.0:
            assert t == 0.0
            continue
        assert abs(slope(*ray, t)) <= 1e-9 * abs(start)
        far = 1.0
        while slope(*ray, far) < 0.0:
            far *= 2.0
        root = brentq(lambda at, ray=ray: slope(*ray, at), 0.0, far, xtol=1e-300, rtol=1e-14)
        assert t == pytest.approx(root, rel=1e-8)


@each_loss
def test_no_point_of_a_dense_scan_is_lower(loss, task):
    Y, U, dU, s, linear, quadratic = rays(task, 3, 4, 1.0)
    found = line_search(loss, Y, U, dU, s, linear, quadratic)
    assert found.max() > 0.0
    for j, t in enumerate(found):
        ray = (loss, Y[:, j], U[:, j], dU[:, j], s[:, j], linear[j], quadratic[j])
        lowest = min(height(*ray, at) for at in np.linspace(0.0, 3.0 * t + 1.0, 2000))
        assert height(*ray, t) <= lowest + 1e-12 * abs(lowest)


@each_loss
@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), power=st.floats(-3, 8))
def test_a_loose_search_never_goes_up(loss, task, seed, power):
    """A slope may be small beside that at the start, and yet have come up a long way."""
    Y, U, dU, s, linear, quadratic = rays(task, seed, 5, 10.0**power)
    quadratic *= 10.0**-power
    found = line_search(loss, Y, U, dU, s, linear, quadratic, tolerance=0.01)
    exact = line_search(loss, Y, U, dU, s, linear, quadratic)
    for j, t in enumerate(found):
        ray = (loss, Y[:, j], U[:, j], dU[:, j], s[:, j], linear[j], quadratic[j])
        start, before = slope(*ray, 0.0), height(*ray, 0.0)
        assert height(*ray, t) <= before + 1e-9 * abs(before)
        if start < 0.0:
            assert t > 0.0
            # little of the slope is left, or of the way
            assert -slope(*ray, t) <= 0.011 * abs(start) or t >= 0.99 * exact[j]


def test_columns_may_have_losses_of_their_own():
    Y, U, dU, s, linear, quadratic = rays("regression", 1, 6, 1.0)
    thresholds = np.array([0.05, 0.1, 0.3, 1.0, 2.0, 5.0])
    together = line_search(Huber(thresholds), Y, U, dU, s, linear, quadratic)
    for j, threshold in enumerate(thresholds):
        one = [part[:, [j]] for part in (Y, U, dU, s)]
        alone = line_search(Huber(threshold), *one, linear[[j]], quadratic[[j]])
        assert alone[0] == together[j]


def test_columns_do_not_disturb_each_other():
    Y, U, dU, s, linear, quadratic = rays("regression", 1, 6, 1.0)
    together = line_search(Huber(0.3), Y, U, dU, s, linear, quadratic)
    for j in range(6):
        one = [part[:, [j]] for part in (Y, U, dU, s)]
        alone = line_search(Huber(0.3), *one, linear[[j]], quadratic[[j]])
        assert alone[0] == together[j]


def test_one_weight_column_serves_all():
    Y, U, dU, s, linear, quadratic = rays("regression", 1, 6, 1.0)
    s = s[:, :1]
    wide = np.broadcast_to(s, Y.shape)
    assert np.array_equal(
        line_search(Huber(0.3), Y, U, dU, s, linear, quadratic),
        line_search(Huber(0.3), Y, U, dU, wide, linear, quadratic),
    )


@pytest.mark.parametrize("root", [1e-25, 1e-15, 1e-8, 0.3, 1.0, 1.7, 30.0, 1e5])
@pytest.mark.parametrize("loss", [Squared(), Log(), SmoothedHinge(0.01)], ids=repr)
def test_roots_of_any_size(loss, root):
    """A zero of phi' at t = root, be it far below or above the first trial."""
    y = np.array([[1.0], [-1.0]])
    u = np.array([[-0.7], [-0.7]])
    du = np.full((2, 1), 0.7 / root)
    t = line_search(loss, y, u, du, np.ones((2, 1)), np.zeros(1), np.full(1, 1e-30))
    at = u + t * du
    scale = np.abs(loss.gradient(y, u)).sum()
    assert abs(loss.gradient(y, at).sum()) <= 1e-9 * scale
    if not isinstance(loss, SmoothedHinge):  # which is flat between the two classes
        assert t[0] == pytest.approx(root, rel=1e-9)


def test_a_ray_that_never_rises_ends():
    zero = np.zeros(1)
    y, u, du = np.ones((1, 1)), np.zeros((1, 1)), np.ones((1, 1))
    t = line_search(Log(), y, u, du, np.ones((1, 1)), zero, zero)
    assert np.isfinite(t).all()
    assert t[0] > 30.0


def test_a_vanishing_curvature_is_no_step():
    # a smooth loss far out in its tails: Newton's step overflows, and the bracket is doubled
    t = module._propose(
        np.array([4096.0]), np.array([-29.0]), np.array([4e-308]), np.array([4096.0]),
        np.array([np.inf]),
    )  # fmt: skip
    assert t == 8192.0
