"""The 2016 paper's Table 1, and what it says beyond."""

from __future__ import annotations

import warnings

import pytest

from onefit.criteria import bifcv_discrepancy, granularity, granularity_for

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


LAMS = [2.0, 0.03, 0.3]


@pytest.mark.parametrize("n", [8, 40, 1000])
@pytest.mark.parametrize("accuracy", [0.3, 0.05])
@pytest.mark.parametrize("kappa", [1.0, 3.0])
def test_the_smallest_lam_decides_and_rows_are_the_end(n, accuracy, kappa):
    """Against equation 6 at every lam by itself."""
    each = [granularity(accuracy, lam, kappa=kappa)[0] for lam in LAMS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if max(each) > n else "error")
        found = granularity_for(accuracy, LAMS, n, kappa=kappa)
    assert found.folds == min(max(each), n)
    assert found.order == found.folds - 2
    assert found.lam == 0.03
    assert found.capped == (max(each) > n)
    # the accuracy reported is Theorem 2's of the worst lam, and the wanted one unless capped
    t, r = found.folds, found.order
    worst = max(0.005 + kappa / (lam * (r + 1) * (t - 1)) for lam in LAMS)
    assert found.accuracy == pytest.approx(worst)
    assert found.capped == (found.accuracy > accuracy)


def test_the_end_is_not_silent():
    with pytest.warns(UserWarning, match=r"asks for 328 folds, and there are 50 rows: leave-one"):
        found = granularity_for(0.1, [1e-4, 1.0], 50, delta=0.012)
    assert (found.folds, found.order, found.capped) == (50, 48, True)
    assert found.accuracy == pytest.approx(0.006 + 1 / (1e-4 * 49**2))


def test_one_lam_is_the_paper_again():
    for accuracy, (folds, order) in TABLE_1.items():
        found = granularity_for(accuracy, 1.0, 100)
        assert (found.folds, found.order, found.capped) == (folds, order, False)
        assert found.accuracy == bifcv_discrepancy(folds, order, 1.0) <= accuracy


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"lams": []}, "lams is empty"),
        ({"lams": [0.1, -1.0]}, r"lams\[1\] must be a positive"),
        ({"lams": [0.1, float("nan")]}, r"lams\[1\] must be a positive"),
        ({"n": 2}, "n must be a whole number of at least 3, got 2"),
        ({"n": 10.0}, "n must be a whole number"),
        ({"accuracy": 0.004}, "larger accuracy, or delta below"),
    ],
)
def test_bad_ranges(bad, words):
    with pytest.raises(ValueError, match=words):
        granularity_for(**{"accuracy": 0.1, "lams": LAMS, "n": 50} | bad)
