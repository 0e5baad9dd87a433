"""The 2016 paper's Table 1, and what it says beyond."""

from __future__ import annotations

import pytest

from onefit.criteria import granularity

TABLE_1 = {0.2: (4, 2), 0.1: (5, 3), 0.05: (6, 4), 0.01: (16, 14)}


@pytest.mark.parametrize("accuracy", TABLE_1)
def test_table_1(accuracy):
    assert granularity(accuracy, lam=1.0) == TABLE_1[accuracy]


@pytest.mark.parametrize("accuracy", [0.02, 0.1, 0.4, 3.0])
@pytest.mark.parametrize("lam", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("kappa", [0.5, 1.0, 4.0])
def test_smallest_that_meets_the_bound(accuracy, lam, kappa):
    folds, order = granularity(accuracy, lam, delta=0.01, kappa=kappa)
    assert folds - 1 == order + 1
    assert kappa / (lam * (order + 1) * (folds - 1)) <= (accuracy - 0.005) * (1 + 1e-9)
    smaller = order
    assert smaller < 2 or kappa / (lam * smaller**2) > accuracy - 0.005


def test_whole_roots_stay_whole():
    # 1 / (lam (accuracy - delta/2)) = 400, but 400.0000000000003 in floating point
    assert granularity(0.055, lam=0.5, delta=0.1) == (21, 19)


@pytest.mark.parametrize(("accuracy", "delta"), [(0.005, 0.01), (0.004, 0.01), (0.1, 0.5)])
def test_accuracy_that_rounding_has_spent(accuracy, delta):
    with pytest.raises(ValueError, match=rf"larger accuracy, or delta below {2 * accuracy:g}"):
        granularity(accuracy, 1.0, delta)


@pytest.mark.parametrize("bad", [{"lam": 0.0}, {"accuracy": -1}, {"kappa": "1"}, {"delta": 0}])
def test_bad_numbers(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))} must be a positive"):
        granularity(**{"accuracy": 0.1, "lam": 1.0} | bad)
