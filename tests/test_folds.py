"""Folds: drawn from whatever scikit-learn accepts, checked, and described."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

from onefit.folds import Folds

N = 12
X = np.zeros((N, 2))
Y = np.arange(N) % 3
GROUPS = np.arange(N) // 3

#: splitter, partition?
SPLITTERS = [
    (KFold(4), True),
    (KFold(5, shuffle=True, random_state=0), True),
    (StratifiedKFold(3), True),
    (GroupKFold(3), True),
    (LeaveOneOut(), True),
    (PredefinedSplit(np.arange(N) % 4), True),
    (PredefinedSplit(np.where(np.arange(N) < 3, -1, 0)), False),
    (RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), False),
    (ShuffleSplit(4, test_size=0.25, train_size=0.5, random_state=0), False),
    (TimeSeriesSplit(3), False),
    (LeavePOut(2), False),
]


@pytest.mark.parametrize(("splitter", "partition"), SPLITTERS, ids=lambda value: repr(value)[:30])
def test_draws_what_the_splitter_draws(splitter, partition):
    groups = GROUPS if isinstance(splitter, GroupKFold) else None
    folds = Folds.draw(splitter, X, Y, groups)
    expected = list(splitter.split(X, Y, groups))
    assert folds.n == N
    assert len(folds) == len(expected) == len(folds.train) == len(folds.test)
    for (train, test), (a, b), removed in zip(folds, expected, folds.removed, strict=True):
        assert np.array_equal(train, a)
        assert np.array_equal(test, b)
        assert np.array_equal(removed, np.setdiff1d(np.arange(N), a))
    assert folds.is_partition == partition
    assert folds.disjoint == [True] * len(expected)


@pytest.mark.parametrize("cv", [2, 3, np.int64(4), 5])
def test_an_int_is_stratified_for_classifiers_only(cv):
    plain = Folds.draw(cv, X, Y)
    stratified = Folds.draw(cv, X, Y, classifier=True) if cv <= 4 else None
    for folds, splitter in [(plain, KFold(cv)), (stratified, StratifiedKFold(int(cv)))]:
        if folds is not None:
            for (_, test), (_, expected) in zip(folds, splitter.split(X, Y), strict=True):
                assert np.array_equal(test, expected)


def test_no_cv_means_five_folds():
    assert len(Folds.draw(None, X)) == 5


def test_random_splitters_are_drawn_once():
    folds = Folds.draw(KFold(3, shuffle=True), X)
    assert Folds.draw(folds, X) is folds
    first, second = ([test.tolist() for _, test in folds] for _ in range(2))
    assert first == second


def test_lists_and_lengths_serve_as_X():
    assert len(Folds.draw(3, [[0.0]] * 9)) == 3


def test_iterables_of_indices_and_masks():
    mask = np.arange(N) < 4
    pairs = [(~mask, mask), (np.arange(4), [4, 5]), ([0, 1], [-1, -2])]
    for cv in (pairs, iter(pairs)):
        folds = Folds.draw(cv, X)
        assert np.array_equal(folds.train[0], np.arange(4, N))
        assert np.array_equal(folds.test[0], np.arange(4))
        assert folds.test[2].tolist() == [N - 1, N - 2]
        assert all(rows.dtype == np.intp for rows in (*folds.train, *folds.test))
        assert not folds.is_partition


def test_a_row_both_trained_on_and_tested_is_seen():
    folds = Folds.from_pairs(4, [([0, 1], [1, 2]), ([0, 1], [2, 3])])
    assert folds.disjoint == [False, True]
    assert [rows.tolist() for rows in folds.removed] == [[2, 3], [2, 3]]


def test_every_row_once_is_a_partition():
    def folds(*test):
        return Folds.from_pairs(4, [([0], rows) for rows in test])

    assert folds([1, 2], [3, 0]).is_partition
    assert not folds([1, 2], [3]).is_partition
    assert not folds([1, 2], [2, 0]).is_partition
    assert not folds([0, 1], [2, 3], [0]).is_partition


def test_without_takes_rows_out_of_training_alone():
    folds = Folds.draw(3, X)
    fewer = folds.without(np.array([0, 5]))
    for (train, test), (old, kept) in zip(fewer, folds, strict=True):
        assert np.array_equal(test, kept)
        assert set(train) == set(old) - {0, 5}
    assert folds.without(np.array([], dtype=int)) is folds


def test_more_folds_than_rows():
    with pytest.raises(ValueError, match=r"cv=13 asks for more folds than there are rows \(12\)"):
        Folds.draw(13, X)
    assert len(Folds.draw(12, X)) == 12


@pytest.mark.parametrize("cv", [1, 0, -3])
def test_fewer_than_two_folds(cv):
    with pytest.raises(ValueError, match="n_splits"):
        Folds.draw(cv, X)


@pytest.mark.parametrize("cv", ["five", 2.5])
def test_not_a_cv_at_all(cv):
    with pytest.raises(ValueError, match="cv"):
        Folds.draw(cv, X)


def test_no_split():
    with pytest.raises(ValueError, match="cv gave no split at all; pass an int >= 2"):
        Folds.draw([], X)


@pytest.mark.parametrize(
    ("train", "test", "message"),
    [
        ([], [0], "training set of split 0 is empty; use fewer folds"),
        ([0], [], "test set of split 0 is empty"),
        ([0], np.zeros(N, bool), "test set of split 0 is empty"),
        ([0, 12], [1], "training set of split 0 names row 12, but there are 12 rows"),
        ([0], [1, 99], "test set of split 0 names row 99"),
        ([0, 0], [1], "training set of split 0 names a row twice"),
        ([0], [-1, 11], "test set of split 0 names a row twice"),
    ],
)
def test_bad_sets_are_named(train, test, message):
    with pytest.raises(ValueError, match=message):
        Folds.draw([(train, test)], X)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.ones(5, bool), "mask"),
        ([0.5, 1.7], "integer"),
        (np.array([[0], [1]]), "one-dimensional"),
    ],
)
def test_sets_that_are_no_rows(rows, message):
    with pytest.raises(ValueError, match=message):
        Folds.draw([(rows, [7])], X)


def test_the_row_out_of_range_is_the_one_named():
    with pytest.raises(ValueError, match="names row -13"):
        Folds.draw([([0], [3, -13])], X)


def test_folds_of_another_sample():
    with pytest.raises(ValueError, match="12 rows"):
        Folds.draw(Folds.draw(3, X[:9]), X)
