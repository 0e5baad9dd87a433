"""No certificate is false: every claim of every method on hostile problems, against the truth."""

from __future__ import annotations

import numpy as np
import pytest

from adversarial.audit import EXACT, audit_case, audit_seeds, report, spread, symmetric, truths
from adversarial.generator import hostile, named_cases
from adversarial.shrink import shrink
from onefit import KernelRegressor, heldout_predict

NAMED = named_cases()
#: problems on which a bound was once too small: sums of coefficients that are not zero, rows on a
#: kink, intercepts of many digits, uneven weights, numbers that overflow, interpolated weights
ONCE_FALSE = [
    1202,
    1508,
    1899,
    2278,
    2947,
    4380,
    5109,
    5640,
    20023,
    20215,
    20310,
    21023,
    21178,
    22197,
    200673,
]


def _assert_sound(tallies):
    """Nothing false, nothing raw, and certificates not withheld: the share is a floor for few
    problems, that of thousands is above 95 % (docs/exactness.md).
    """
    told = report(tallies)
    print(told)
    every = tallies.values()
    assert sum(tally.false for tally in every) == 0, told
    assert sum(tally.raw_errors for tally in every) == 0, told
    good = sum(tally.good for tally in every)
    assert sum(tally.good_certified for tally in every) >= 0.8 * good, told


@pytest.mark.parametrize("chunk", range(2))
def test_no_false_certificate(chunk):
    _assert_sound(audit_seeds(range(25 * chunk, 25 * (chunk + 1))))


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(50))
def test_no_false_certificate_of_many(chunk):
    _assert_sound(audit_seeds(range(1000 + 100 * chunk, 1000 + 100 * (chunk + 1))))


@pytest.mark.parametrize("seed", ONCE_FALSE)
def test_problem_that_once_was_wrong(seed):
    tallies = audit_seeds([seed]).values()
    assert not [told for tally in tallies for told in (*tally.failures, *tally.raw)]


@pytest.mark.parametrize("name", NAMED)
def test_named_case(name):
    _assert_sound(audit_case(NAMED[name]))


@pytest.mark.parametrize("name", ["asymmetric", "asymmetric transposed"])
@pytest.mark.parametrize("method", ["refit", "block", "eigen", "exact"])
def test_asymmetric_kernel_through_the_estimator(name, method):
    case = NAMED[name]
    machine = KernelRegressor(kernel="precomputed", loss="squared", lam=case.lam)
    y = case.problem.Y[:, 0]
    held = heldout_predict(machine, case.problem.K.matrix, y, cv=case.folds, method=method)
    scale = spread(y, case.problem.s)
    other = heldout_predict(
        machine, case.problem.K.matrix.T.copy(), y, cv=case.folds, method=method
    )
    np.testing.assert_array_equal(held.values, other.values)
    for k, truth in enumerate(truths(symmetric(case))):
        gap = np.abs(held.by_fold[k] - truth.values).max()
        assert not held.exact[k] or gap <= EXACT * scale + truth.error
        assert not np.isfinite(held.error[k]) or gap <= held.error[k] + truth.error


def test_shrinking_keeps_the_failure():
    case = hostile(7)

    def fails(one):
        return one.problem.n >= 3 and np.abs(one.problem.K.matrix).max() > 0

    small = shrink(case, fails, show=False)
    assert small.problem.n == 3
    assert len(small.folds) == 1
    assert not small.problem.fit_intercept
