"""Splits sorted by what can be done for them."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import make_problem, splits

from onefit.folds import Folds
from onefit.heldout.splits import Splits
from onefit.losses import Squared

N = 24
SPLITS = splits(N)


def sort(name="kfold", **options):
    folds = SPLITS[name] if isinstance(name, str) else name
    return Splits.sort(make_problem(Squared(), "regression", N, **options), folds)


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("weight", ["none", "zeros"])
def test_every_split_is_done_once(name, weight):
    found = sort(name, weight=weight)
    both = np.concatenate([found.by_formula, found.by_refit])
    assert sorted(both.tolist()) == list(range(len(SPLITS[name])))
    s = found.problem.s
    for k in range(len(SPLITS[name])):
        train = SPLITS[name].train[k]
        kept = train[s[train] > 0]
        np.testing.assert_array_equal(np.sort(found.positive.train[k]), np.sort(kept))
        tested = np.isin(SPLITS[name].test[k], kept).any()
        formula = not tested and 2 * (N - kept.size) <= N
        assert (k in found.by_formula) == formula


def test_a_split_that_removes_more_than_it_keeps_is_refitted():
    rows = np.arange(N)
    folds = Folds.from_pairs(N, [(rows[k:], rows[:k]) for k in (1, N // 2, N // 2 + 1)])
    found = sort(folds)
    assert found.by_formula.tolist() == [0, 1]
    assert found.by_refit.tolist() == [2]


def test_a_split_that_tests_what_it_trains_on_is_refitted():
    assert sort("trained rows").by_formula.size == 0


def test_rows_of_weight_zero_are_removed_by_every_split():
    found = sort(weight="zeros")
    none = np.flatnonzero(found.problem.s == 0)
    assert none.size
    for k, rows in zip(found.by_formula, found.removed, strict=True):
        assert np.isin(none, rows).all()
        assert np.isin(SPLITS["kfold"].test[k], rows).all()


@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_splits_with_one_ridge_are_a_group(scaling):
    found = sort("unequal", scaling=scaling)
    for i, k in enumerate(found.by_formula):
        train = SPLITS["unequal"].train[k]
        assert found.weight[i] == (train.size if scaling == "mean" else 1.0)
    members = np.concatenate([some for _, some in found.groups])
    assert sorted(members.tolist()) == list(range(found.by_formula.size))
    for weight, some in found.groups:
        assert (found.weight[some] == weight).all()
    assert len(found.groups) == (found.by_formula.size if scaling == "mean" else 1)


def test_masks_of_training_rows():
    found = sort("unequal", weight="zeros")
    members = np.array([2, 0])
    mask = found.train(members)
    for column, i in enumerate(members):
        expected = np.isin(np.arange(N), found.positive.train[found.by_formula[i]])
        np.testing.assert_array_equal(mask[:, column], expected)


def test_one_row_each_is_leave_one_out_without_weights_of_zero():
    assert sort("loo").one_row_each
    assert not sort("loo", weight="zeros").one_row_each
    assert not sort("kfold").one_row_each
