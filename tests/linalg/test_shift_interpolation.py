"""Weights 1/(e + c) at many c from those at a few."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from onefit.linalg.shift_interpolation import interpolate_shifts, shift_groups


def worst(groups, values, ridges):
    """The largest relative error of a weight, which a group must not say is smaller; groups must
    cover all eigenvalues once.
    """
    weights = 1.0 / (values[:, None] + ridges)
    found = np.full_like(weights, np.nan)
    for one in groups:
        assert np.isnan(found[one.group]).all()
        found[one.group] = weights[one.group][:, one.chosen] @ one.combine
        missed = np.abs(found[one.group] / weights[one.group] - 1.0).max(axis=0)
        assert (missed <= one.error + 4.0 * np.finfo(float).eps).all()
    return float(np.abs(found / weights - 1.0).max())


@given(
    logs=st.lists(st.floats(-18, 4), min_size=1, max_size=60),
    zeros=st.integers(0, 20),
    lams=st.lists(st.floats(-14, 4), min_size=1, max_size=40),
)
def test_every_weight_is_met(logs, zeros, lams):
    values = np.sort(np.append(np.zeros(zeros), 10.0 ** np.array(logs)))
    ridges = 10.0 ** np.array(lams)
    assert worst(shift_groups(values, ridges), values, ridges) < 1e-10


def test_weights_of_single_precision_eigenvalues_are_met_as_well():
    values = np.geomspace(1e-6, 10.0, 500).astype(np.float32)
    ridges = np.logspace(-4, 2, 20)
    assert worst(shift_groups(values, ridges), values.astype(np.float64), ridges) < 1e-10


def test_shifts_are_interpolated_where_that_saves_work():
    ridges = np.logspace(-6, 2, 20)
    values = np.geomspace(1e-9, 10.0, 2000)
    groups = interpolate_shifts(values, ridges)
    assert worst(groups, values, ridges) < 1e-10
    sums = sum(one.chosen.size * (one.group.stop - one.group.start) for one in groups)
    assert sums < 0.7 * ridges.size * values.size
    assert interpolate_shifts(values, ridges[:2]) is None
    assert interpolate_shifts(values[::100], ridges) is None


def test_eigenvalues_that_vanish_need_one_sum():
    (one,) = shift_groups(np.zeros(30), np.logspace(-6, 2, 20))
    assert one.chosen.size == 1
