"""Every loss against its definition: value, derivatives, pieces, majorant."""

from __future__ import annotations

from itertools import pairwise

import naive.losses
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from registries import LOSS_IDS, LOSSES, kinks, target_and_point

from onefit.losses import Logistic, SmoothedHinge

each_loss = pytest.mark.parametrize(("loss", "task"), LOSSES, ids=LOSS_IDS)
smooth = [(loss, task) for loss, task in LOSSES if not loss.piecewise_quadratic]
each_smooth = pytest.mark.parametrize(
    ("loss", "task"), smooth, ids=[repr(loss) for loss, _ in smooth]
)
numbers = st.floats(-30, 30, allow_subnormal=False)


def pair(loss, task, at, y):
    return np.array(target_and_point(loss, task, at, y))


def distance_to_kink(loss, at):
    return min((abs(at - kink) for kink in kinks(loss)), default=np.inf)


def central(function, u, step):
    """Fourth-order central difference."""
    far, near = (
        function(u + 2 * step) - function(u - 2 * step),
        function(u + step) - function(u - step),
    )
    return (8.0 * near - far) / (12.0 * step)


@each_loss
@given(at=numbers, y=numbers)
def test_value_is_the_definition(loss, task, at, y):
    y, u = pair(loss, task, at, y)
    assert loss.value(y, u) == pytest.approx(naive.losses.value(loss, y, u), rel=1e-12, abs=1e-12)


@each_loss
@given(at=numbers, y=numbers)
def test_derivatives_are_those_of_the_value(loss, task, at, y):
    y, u = pair(loss, task, at, y)
    step = min(1e-3, 0.4 * distance_to_kink(loss, at))
    assume(step > 1e-5)
    gradient = central(lambda v: loss.value(y, v), u, step)
    curvature = central(lambda v: loss.gradient(y, v), u, step)
    noise = 1e-14 * (1.0 + abs(u) + abs(y)) ** 2 / step
    assert loss.gradient(y, u) == pytest.approx(gradient, rel=1e-9, abs=noise)
    assert loss.curvature(y, u) == pytest.approx(curvature, rel=1e-9, abs=noise / loss_width(loss))


def loss_width(loss):
    """The unit of u in which the loss bends."""
    return min(1.0, getattr(loss, "delta", 1.0))


@each_smooth
@given(at=numbers, y=numbers)
def test_third_derivative_of_the_smooth_losses(loss, task, at, y):
    y, u = pair(loss, task, at, y)
    third = central(lambda v: loss.curvature(y, v), u, 1e-3)
    assert loss.third(y, u) == pytest.approx(third, rel=1e-8, abs=1e-11)


@each_loss
def test_value_and_gradient_are_continuous_at_kinks(loss, task):
    for kink in kinks(loss):
        for y in (1.0, -1.0):
            below, at, above = (pair(loss, task, kink + h, y) for h in (-1e-9, 0.0, 1e-9))
            slope = abs(loss.gradient(*at)) + 1.0
            bend = 2.0 / loss_width(loss)
            for side in (below, above):
                assert loss.value(*side) == pytest.approx(loss.value(*at), abs=2e-9 * slope)
                assert loss.gradient(*side) == pytest.approx(loss.gradient(*at), abs=2e-9 * bend)


@each_loss
@given(at=numbers, other=numbers, part=st.floats(0, 1), y=numbers)
def test_convex(loss, task, at, other, part, y):
    y, u = pair(loss, task, at, y)
    v = y * other if loss.task == "classification" else y - other
    middle = loss.value(y, part * u + (1 - part) * v)
    chord = part * loss.value(y, u) + (1 - part) * loss.value(y, v)
    assert middle <= chord + 1e-12 * (1.0 + chord)
    assert loss.curvature(y, u) >= 0.0
    assert loss.value(y, u) >= 0.0


@each_loss
def test_pieces_change_exactly_at_the_kinks(loss, task):
    """One label from kink to kink, another beyond it; one curvature on a quadratic piece."""
    if not loss.piecewise_quadratic:
        y, u = np.ones(9), np.linspace(-40, 40, 9)
        assert not loss.piece(y, u).any()
        return
    ends = [-20.0, *kinks(loss), 20.0]
    labels, curvatures = [], []
    for low, high in pairwise(ends):
        near = 1e-6 * (high - low)
        at = np.linspace(low + near, high - near, 101)
        y, u = np.transpose([pair(loss, task, point, 1.0) for point in at])
        piece, curvature = loss.piece(y, u), loss.curvature(y, u)
        assert piece.dtype == np.int8
        assert np.unique(piece).size == 1
        assert np.unique(curvature).size == 1
        labels.append(piece[0])
        curvatures.append(curvature[0])
    assert len(set(labels)) == len(labels)
    if kinks(loss) != [0.0]:
        assert all(left != right for left, right in pairwise(curvatures))


@each_loss
def test_on_a_kink_the_curvature_is_that_of_the_label(loss, task):
    for kink in kinks(loss):
        at = pair(loss, task, kink, 1.0)
        sides = [pair(loss, task, kink + h, 1.0) for h in (-1e-6, 1e-6)]
        same = [side for side in sides if loss.piece(*side) == loss.piece(*at)]
        if same:
            assert loss.curvature(*at) == loss.curvature(*same[0])
        else:
            assert loss == type(loss)(0.0)  # the tube without width: a piece of one point
            assert loss.curvature(*at) == 0.0


@each_loss
@example(at=0.0, other=5.0, y=1.0)
@example(at=1e-5, other=-1e-5, y=1.0)
@given(at=numbers, other=numbers, y=numbers)
def test_reweighting_majorises(loss, task, at, other, y):
    y, u = pair(loss, task, at, y)
    v = y * other if loss.task == "classification" else y - other
    weight, z = loss.reweight(y, u)
    assert weight > 0.0
    bound = loss.value(y, u) + weight * ((z - v) ** 2 - (z - u) ** 2)
    size = loss.value(y, u) + weight * ((z - v) ** 2 + (z - u) ** 2)
    assert loss.value(y, v) <= bound + 1e-13 * (1.0 + size)
    gradient = loss.gradient(y, u)
    rounding = 1e-14 * weight * (abs(z) + abs(u))
    assert 2.0 * weight * (u - z) == pytest.approx(gradient, rel=1e-12, abs=rounding)


@each_loss
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_keep_shape_and_precision(loss, task, dtype):
    random = np.random.default_rng(0)
    u = (3.0 * random.normal(size=(7, 3))).astype(dtype)
    y = np.where(random.random((7, 3)) < 0.5, -1, 1).astype(dtype)
    names = ["value", "gradient", "curvature", "piece"] + (
        ["third"] if hasattr(loss, "third") else []
    )
    for name in names:
        result = getattr(loss, name)(y, u)
        assert result.shape == (7, 3)
        assert result.dtype == (np.int8 if name == "piece" else dtype)
        one = getattr(loss, name)(y[2, 1], u[2, 1])
        assert one == pytest.approx(result[2, 1], rel=1e-6)
    weight, z = loss.reweight(y, u)
    assert weight.dtype == z.dtype == dtype


@each_loss
@pytest.mark.parametrize("size", [1e3, 1e8, 1e30])
def test_no_overflow_far_out(loss, task, size):
    y = np.ones(4) if loss.task == "classification" else np.array([0.0, 1.0, size, -size])
    u = np.array([size, -size, size, -size])
    with np.errstate(all="raise", under="ignore"):
        for name in ("value", "gradient", "curvature"):
            assert np.isfinite(getattr(loss, name)(y, u)).all()
        assert np.isfinite(loss.reweight(y, u)).all()


def test_logistic_value_keeps_its_digits_near_zero():
    r = np.array([1e-3, 1e-6, 1e-9])
    assert Logistic().value(r, np.zeros(3)) == pytest.approx(r**2 / 4, rel=1e-6)


@pytest.mark.parametrize("delta", [1.0, 0.1, 1e-3])
@given(t=st.floats(-5, 5))
def test_the_smoothed_hinge_lies_a_quarter_of_delta_above_the_hinge(delta, t):
    gap = SmoothedHinge(delta).value(1.0, t) - naive.losses.hinge(1.0, t)
    assert -1e-15 <= gap <= delta / 4 + 1e-15
