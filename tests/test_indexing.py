"""Some rows of everything that estimators take."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from onefit._indexing import n_rows, select_params, select_rows, split_rows

X = np.arange(12.0).reshape(6, 2)
ROWS = np.array([4, 0])
KINDS = {
    "array": X,
    "list": X.tolist(),
    "frame": pd.DataFrame(X, index=list("abcdef")),
    "csr": csr_array(X),
    "coo": coo_array(X),
}


@pytest.mark.parametrize("name", list(KINDS))
def test_rows_are_counted_and_selected(name):
    kind = KINDS[name]
    assert n_rows(kind) == 6
    found = select_rows(kind, ROWS)
    assert n_rows(found) == 2
    np.testing.assert_array_equal(found.toarray() if issparse(found) else found, X[ROWS])
    if name == "frame":
        assert list(found.index) == ["e", "a"]


def test_nothing_of_nothing_and_no_rows_of_a_number():
    assert select_rows(None, ROWS) is None
    with pytest.raises(TypeError, match="single value"):
        n_rows(np.float64(3.0))


def test_precomputed_kernels_are_cut_on_both_sides():
    K, train = X @ X.T, np.array([1, 2, 3])
    y = pd.Series(range(6))
    found, target = split_rows(SVC(kernel="precomputed"), K, y, ROWS, train)
    np.testing.assert_array_equal(found, K[np.ix_(ROWS, train)])
    assert list(target) == [4, 0]
    found, target = split_rows(SVC(kernel="precomputed"), K, None, train)
    np.testing.assert_array_equal(found, K[np.ix_(train, train)])
    assert target is None
    np.testing.assert_array_equal(split_rows(Ridge(), X, y, ROWS, train)[0], X[ROWS])
    with pytest.raises(ValueError, match="square"):
        split_rows(SVC(kernel="precomputed"), X, y, ROWS)


def test_parameters_with_a_value_per_row_are_cut():
    given = {"w": list(range(6)), "one": 3.0, "word": "sixsix", "other": [1, 2], "none": None}
    found = select_params(X, given | {"zero": np.array(2.0)}, ROWS)
    assert found["w"] == [4, 0]
    assert {name: found[name] for name in ("one", "word", "other", "none")} == {
        name: given[name] for name in ("one", "word", "other", "none")
    }
    assert found["zero"] == 2.0
