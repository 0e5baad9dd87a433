"""Splits as sums of parts."""

from __future__ import annotations

import numpy as np
import pytest
from heldout._twins import splits

from onefit.features.parts import partitions

N = 60


@pytest.mark.parametrize("name", splits(N))
@pytest.mark.parametrize("most", [3, 1000])
def test_every_split_removes_whole_parts(name, most):
    folds = splits(N)[name]
    groups = partitions(folds, most)
    assert [split for one in groups for split in one.splits] == list(range(len(folds)))
    for one in groups:
        for split, parts in zip(one.splits, one.removed, strict=True):
            rows = np.flatnonzero(np.isin(one.label, parts))
            np.testing.assert_array_equal(rows, np.sort(folds.removed[split]))


@pytest.mark.parametrize(
    ("name", "groups"), [("kfold", 1), ("time", 1), ("unequal", 1), ("repeated", 2), ("shuffle", 3)]
)
def test_passes_are_few(name, groups):
    assert len(partitions(splits(N)[name], 1000)) == groups
