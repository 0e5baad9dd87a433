"""Folds by hash: the same everywhere, balanced, and a scikit-learn splitter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.svm import SVR

from onefit import KernelRegressor, KernelSearchCV
from onefit.rows import HashKFold
from onefit.rows.hash_folds import check_splitter
from onefit.rows.hashing import hash_keys, spread


def test_words_are_those_of_splitmix64() -> None:
    # the first outputs of the reference implementation with these seeds
    states = np.array([0, 1234567], dtype=np.uint64)
    assert spread(states).tolist() == [0xE220A8397B1DCDAF, 6457827717110365317]


def test_hashes_do_not_change_between_versions() -> None:
    assert hash_keys([0, 1, -1]).tolist() == [
        12035550249420947055,
        627405149472732430,
        3303439293501059696,
    ]
    assert hash_keys(["a", "Straße"]).tolist() == [14300560184641484674, 3320461796301467596]
    assert hash_keys([0.5], seed=3).tolist() == [14526758816979152081]


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1))
def test_equal_values_of_other_types_have_equal_hashes(keys: list[int]) -> None:
    expected = hash_keys(np.array(keys, dtype=np.int64))
    for same in (
        np.array(keys, dtype=np.int32),
        np.array(keys, dtype=np.float64),
        np.array(keys, dtype=object),
        pd.Series(keys),
        pd.Series(keys, dtype="category"),
    ):
        np.testing.assert_array_equal(hash_keys(same), expected)


@given(st.lists(st.integers(0, 2**63 - 1), min_size=1))
def test_whole_doubles_hash_as_the_integers_they_are(numbers: list[int]) -> None:
    whole = np.array(numbers, dtype=np.float64)
    large = whole + 2.0**63 - 2.0**11  # as large as doubles below 2^64 are
    for values, kind in ((whole[whole < 2.0**63], np.int64), (large, np.uint64)):
        np.testing.assert_array_equal(hash_keys(values), hash_keys(values.astype(kind)))
    np.testing.assert_array_equal(hash_keys(-large / 2), hash_keys((-large / 2).astype(np.int64)))


@given(st.lists(st.text(), min_size=1))
def test_texts_hash_alike_in_all_libraries(keys: list[str]) -> None:
    expected = hash_keys(np.array(keys, dtype=object))
    np.testing.assert_array_equal(hash_keys(pd.Series(keys, dtype="str")), expected)
    np.testing.assert_array_equal(hash_keys([key.encode() for key in keys]), expected)


def test_times_hash_alike_in_all_units() -> None:
    days = np.array(["1999-12-31", "2026-01-01"], dtype="M8[D]")
    for unit in ("s", "us", "ns"):
        np.testing.assert_array_equal(hash_keys(days), hash_keys(days.astype(f"M8[{unit}]")))


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ([1.0, np.nan], "row 1"),
        (["a", None], "row 1"),
        (np.array(["NaT"], dtype="M8[D]"), "row 0"),
        (np.array(["9999-01-01"], dtype="M8[D]"), "out of range"),
        ([2**70], "not a number, text or time"),
        (np.array([[1], [2, 3]], dtype=object), "not a number, text or time"),
        (np.zeros((2, 2)), "one column"),
    ],
)
def test_keys_that_are_none_are_refused(keys: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        hash_keys(keys)


@pytest.mark.parametrize("random_state", [0, 1, 12345])
def test_folds_are_balanced(random_state: int) -> None:
    n, k = 100_000, 7
    counts = np.bincount(HashKFold(k, random_state=random_state).fold_of(np.arange(n)))
    assert counts.size == k
    assert np.abs(counts - n / k).max() < 5 * np.sqrt(n / k)


def test_other_seeds_give_independent_folds() -> None:
    rows = np.arange(50_000)
    one, other = (HashKFold(5, random_state=seed).fold_of(rows) for seed in (0, 1))
    table = np.histogram2d(one, other, bins=5)[0]
    assert np.abs(table - 2000).max() < 5 * np.sqrt(2000)


@given(st.permutations(range(30)))
def test_a_fold_follows_its_key(order: list[int]) -> None:
    keys = np.arange(30) // 3
    fold = HashKFold(4).fold_of(keys)
    np.testing.assert_array_equal(HashKFold(4).fold_of(keys[order]), fold[order])


def test_splits_hold_out_groups_as_a_whole() -> None:
    groups = np.repeat(np.arange(40), 5)
    seen = np.zeros(200, dtype=int)
    for train, test in HashKFold(4).split(np.zeros((200, 1)), groups=groups):
        assert not set(groups[train]) & set(groups[test])
        seen[test] += 1
    assert (seen == 1).all()


def test_searches_take_it_as_cv() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), rng.normal(size=90)
    groups = np.arange(90) // 2
    cv = HashKFold(4, random_state=2)
    grid = {"lam": [1e-2, 1e-1]}
    ours = KernelSearchCV(KernelRegressor(gamma=1.0), grid, cv=cv).fit(X, y, groups=groups)
    theirs = GridSearchCV(KernelRegressor(gamma=1.0), grid, cv=cv).fit(X, y, groups=groups)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], rtol=1e-8
    )
    assert cross_val_score(SVR(), X, y, cv=cv).size == 4


def test_too_few_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="has no row"):
        list(HashKFold(5).split(np.zeros((100, 1)), groups=np.repeat(["a", "b"], 50)))


@pytest.mark.parametrize("options", [{"n_splits": 1}, {"n_splits": 2.5}, {"random_state": None}])
def test_parameters_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        HashKFold(**options)


def test_other_splitters_are_refused_for_streamed_rows() -> None:
    assert check_splitter(4).n_splits == 4
    with pytest.raises(ValueError, match=r"KFold.*HashKFold"):
        check_splitter(KFold(5))
