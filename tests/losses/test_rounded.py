"""The rounded losses beside those they stand for, widths from targets, and losses of columns."""

from __future__ import annotations

import naive.losses
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onefit.losses import (
    EpsilonInsensitive,
    Expectile,
    Huber,
    InPairs,
    Log,
    Quantile,
    SmoothedHinge,
    Squared,
)
from onefit.losses.rounded import DELTA_IN_SPREADS

numbers = st.floats(-5, 5)
widths = st.floats(1e-3, 2.0)


@given(r=numbers, epsilon=st.floats(0, 1), delta=widths)
def test_the_rounded_tube_lies_half_of_delta_below_at_most(r, epsilon, delta):
    rounded = EpsilonInsensitive(epsilon, delta).value(np.float64(r), np.float64(0.0))
    gap = naive.losses.tube(r, 0.0, epsilon) - rounded
    assert -1e-14 <= gap <= delta / 2 + 1e-14


@given(r=numbers, level=st.floats(0.01, 0.99), delta=widths)
def test_the_rounded_quantile_lies_half_of_delta_below_at_most(r, level, delta):
    rounded = Quantile(level, delta).value(np.float64(r), np.float64(0.0))
    gap = naive.losses.pinball(r, 0.0, level) - rounded
    assert -1e-14 <= gap <= delta * max(level, 1 - level) ** 2 / 2 + 1e-14


@given(r=numbers)
def test_relatives(r):
    """A tube without width is Huber's loss, an expectile in the middle the squared loss."""
    y, u = np.float64(r), np.float64(0.0)
    tube, huber = EpsilonInsensitive(0.0, 0.25), Huber(0.25)
    assert tube.value(y, u) == pytest.approx(huber.value(y, u) / 0.5, abs=1e-14)
    assert Expectile(0.5).value(y, u) == pytest.approx(Squared().value(y, u), abs=1e-14)
    median = Quantile(0.5, 1.0)
    assert median.value(y, u) == pytest.approx(Huber(0.5).value(y, u) / 2.0, abs=1e-14)


def test_the_width_is_a_part_of_the_standard_deviation_of_normal_targets():
    y, s = np.random.default_rng(0).normal(size=(4000, 2)) * [1.0, 30.0], np.ones((4000, 1))
    for loss in (EpsilonInsensitive(0.1), Quantile(0.3)):
        assert loss.relative
        assert loss.max_curvature == np.inf
        found = loss.resolve(y, s)
        assert found.delta == pytest.approx((DELTA_IN_SPREADS, 30.0 * DELTA_IN_SPREADS), rel=0.1)
        assert not found.relative
        assert found.max_curvature == 1.0 / min(found.delta)
    one = Quantile(0.3).resolve(y[:, :1], s)
    assert isinstance(one.delta, float)


def test_thresholds_of_several_targets_are_compared_and_checked():
    y, s = np.random.default_rng(0).normal(size=(40, 2)), np.ones((40, 1))
    found = Huber().resolve(y, s)
    assert found == Huber().resolve(y, s) == Huber(np.array(found.threshold))
    assert found != Huber().resolve(2.0 * y, s)
    assert hash(found) == hash(found.take([0, 1]))
    with pytest.raises(ValueError, match=r"threshold must be a positive finite number, got -1.0"):
        Huber([1.0, -1.0])


def test_columns_have_their_own_levels():
    y, u = np.random.default_rng(0).normal(size=(2, 9, 3))
    for several, alone in [
        (Quantile((0.1, 0.5, 0.9), (0.1, 0.2, 0.3)), lambda level, delta: Quantile(level, delta)),
        (Expectile((0.1, 0.5, 0.9)), lambda level, delta: Expectile(level)),
    ]:
        for j, (level, delta) in enumerate(zip((0.1, 0.5, 0.9), (0.1, 0.2, 0.3), strict=True)):
            for name in ("value", "gradient", "curvature", "piece"):
                expected = getattr(alone(level, delta), name)(y[:, j], u[:, j])
                found = getattr(several, name)(y, u)[:, j]
                np.testing.assert_array_equal(found, expected)
            assert several.take([j]) == alone(level, delta)
        assert several.take([2, 0]).level == (0.9, 0.1)
        assert several.take([j]).take([0, 0, 0]) == several.take([j])


def test_several_levels_keep_single_precision():
    y, u = np.random.default_rng(0).normal(size=(2, 9, 2)).astype(np.float32)
    for loss in (Quantile((0.1, 0.9), (0.1, 0.2)), Expectile((0.1, 0.9))):
        assert loss.value(y, u).dtype == loss.gradient(y, u).dtype == np.float32
        assert loss.curvature(y, u).dtype == np.float32
        assert all(x.dtype == np.float32 for x in loss.reweight(y, u))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, np.nan, "0.5", None, True, [], [0.5, 1.5]])
@pytest.mark.parametrize("cls", [Quantile, Expectile])
def test_levels_lie_between_0_and_1(cls, level):
    with pytest.raises(ValueError, match=r"level must be a number between 0 and 1.*got"):
        cls(level)


@pytest.mark.parametrize("delta", [0.0, -1.0, np.nan, "auto", None])
@pytest.mark.parametrize("cls", [Quantile, EpsilonInsensitive])
def test_widths_are_positive(cls, delta):
    with pytest.raises(ValueError, match=r"delta must be a positive finite number.*'mad'"):
        cls(0.5, delta)


@pytest.mark.parametrize("loss", [Squared(), SmoothedHinge(0.3), Log()], ids=repr)
def test_in_pairs_rows_without_a_label_do_not_count(loss):
    pairs = InPairs(loss)
    y = np.tile([-1.0, 0.0, 1.0], 5)[:, None]
    u = np.random.default_rng(0).normal(size=(15, 2))
    names = ["value", "gradient", "curvature", "piece"] + ["third"] * hasattr(loss, "third")
    for name in names:
        found, plain = getattr(pairs, name)(y, u), getattr(loss, name)(y, u)
        np.testing.assert_array_equal(found[::3], plain[::3])
        assert not found[1::3].any()
        assert found.dtype == plain.dtype
    assert hasattr(pairs, "third") == hasattr(loss, "third")
    weight, z = pairs.reweight(y, u)
    assert not weight[1::3].any()
    assert np.isfinite(z).all()
    assert pairs.take([0]) is pairs
