"""When iterating in float32 is taken to pay."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from onefit.losses import SmoothedHinge
from onefit.problem import Problem
from onefit.systems import Float32Kernel

N = 900


def narrow(gamma: float) -> Float32Kernel:
    random = np.random.default_rng(0)
    X, Y = random.normal(size=(N, 4)), np.sign(random.normal(size=(N, 1)))
    problem = Problem(rbf_kernel(X, gamma=gamma), Y, np.ones(N), SmoothedHinge(0.1), True)
    return Float32Kernel(problem)


def curvature(rows: int) -> np.ndarray:
    return np.where(np.arange(N) < rows, 10.0, 0.0)


def test_iterating_pays_for_a_narrow_kernel_and_not_for_a_wide_one():
    assert narrow(100.0).pays(curvature(N), 1.0, 1)
    assert not narrow(0.01).pays(curvature(N), 1e-3, 1)
    assert not narrow(100.0).pays(curvature(200), 1.0, 1), "a small factor costs nothing"


def test_a_trial_that_was_cut_short_does_not_speak_for_more_rows():
    """With 310 rows of 900 a factor costs as much as one step: a trial learns nothing from it."""
    one = narrow(0.01)
    assert not one.pays(curvature(310), 1.0, 1)
    assert not one.pays(curvature(N), 1e-2, 1)


@pytest.mark.parametrize("gamma", [3.0, 30.0, 100.0])
def test_lambdas_in_a_row_are_answered_as_one_by_one(gamma):
    """What is known of the last lambda saves trials, and changes no answer."""
    one = narrow(gamma)
    for ridge in 2.0 ** -np.arange(12.0):
        assert one.pays(curvature(N), ridge, 1) == narrow(gamma).pays(curvature(N), ridge, 1), ridge
