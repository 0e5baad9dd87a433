"""Which columns matter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from onefit import KernelGradientSearchCV, KernelRegressor, KernelSearchCV, select
from onefit.relevance import relevance
from onefit.search import Interval

RANDOM = np.random.default_rng(0)
#: columns of different widths, the second and the third of use
X = RANDOM.normal(size=(90, 4)) * np.array([1.0, 2.0, 0.5, 1.0])
Y = np.sin(X[:, 1]) + np.cos(4.0 * X[:, 2]) + 0.1 * RANDOM.normal(size=90)
GRID = {"gamma": Interval(1e-4, 1e2, per_feature=True), "lam": Interval(1e-6, 1.0, points=5)}


@pytest.fixture(scope="module")
def search():
    return KernelGradientSearchCV(KernelRegressor(), GRID).fit(X, Y)


@pytest.fixture(scope="module")
def found(search):
    return relevance(search, X, Y, cv=3)


def test_shares(search, found):
    expected = search.best_params_["gamma"] * X.var(axis=0)
    np.testing.assert_allclose(found.values, expected / expected.sum())
    assert found.folds.shape == (3, 4)
    np.testing.assert_allclose(found.folds.sum(axis=1), 1.0)
    assert set(found.order[:2]) == {1, 2}
    assert (found.low <= found.high).all()


def test_parts_are_searches_on_fewer_rows(found):
    """The first part leaves out the first third of the rows."""
    honest = KernelGradientSearchCV(KernelRegressor(), GRID).fit(X[30:], Y[30:])
    shares = honest.best_params_["gamma"] * X.var(axis=0)
    np.testing.assert_allclose(found.folds[0], shares / shares.sum())


def test_words_and_picture(found):
    assert str(found).splitlines()[0].startswith(str(found.order[0]))
    assert found.plot().get_xlabel().startswith("relevance")


def test_the_unit_is_a_length_for_other_kernels():
    grid = GRID | {"kernel": ["laplacian"]}
    search = KernelGradientSearchCV(KernelRegressor(), grid).fit(X, Y)
    expected = search.best_params_["gamma"] * X.std(axis=0)
    some = relevance(search, X, Y, cv=2)
    np.testing.assert_allclose(some.values, expected / expected.sum())


def test_weights_groups_and_sparse_rows():
    """Those that are given replace those of the search, which has none here."""
    groups, weight = np.arange(90) // 10, np.linspace(0.2, 2.0, 90)
    plain = KernelGradientSearchCV(KernelRegressor(), GRID, cv=GroupKFold(3))
    search = clone(plain).fit(X, Y, groups=np.arange(90) % 9)
    found = relevance(search, csr_array(X), Y, cv=2, groups=groups, sample_weight=weight)
    parts = [train for train, _ in GroupKFold(2).split(X, groups=groups)]
    for shares, rows in zip(found.folds, parts, strict=True):
        given = {"groups": groups[rows], "sample_weight": weight[rows]}
        gamma = clone(plain).fit(X[rows], Y[rows], **given).best_params_["gamma"]
        expected = gamma * X.var(axis=0)
        np.testing.assert_allclose(shares, expected / expected.sum(), rtol=1e-3)


def test_rows_may_be_lists_and_other_rows_are_refused():
    search = KernelGradientSearchCV(KernelRegressor(), GRID, cv=3).fit(X, Y)
    found, expected = (relevance(search, Z, Y, cv=2) for Z in (X.tolist(), X))
    np.testing.assert_array_equal(found.folds, expected.folds)
    assert found.names == ["0", "1", "2", "3"]
    with pytest.raises(ValueError, match="X has 2 columns, but the search chose a gamma for 4"):
        relevance(search, X[:, :2], Y)


def test_one_gamma_by_name_is_refused():
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-2]}).fit(X, Y)
    with pytest.raises(ValueError, match="needs a search for one gamma per column"):
        relevance(search, X, Y)


def test_select(tmp_path):
    Z = pd.DataFrame(X / X.std(axis=0), columns=["a", "b", "c", "d"])
    given = {"kernels": "rbf", "cv": 3, "random_state": 0}
    search = select(Z, Y, **given)
    found = search.relevance()
    plain = select(Z, Y, **given)
    assert search.best_params_ == plain.best_params_
    assert not hasattr(plain.search_, "relevance_")
    names = [found.names[f] for f in found.order]
    assert set(names[:2]) == {"b", "c"}
    page = search.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Relevance of the columns" in page


def test_select_says_where_relevance_is_not_known():
    """A linear target needs hardly any gamma, of no column more than of another."""
    random = np.random.default_rng(0)
    rows = random.normal(size=(60, 3))
    target = rows[:, 0] + 0.1 * random.normal(size=60)
    search = select(rows, target, stack=False, kernels="linear")
    with pytest.warns(UserWarning, match="every column has the same gamma"):
        assert np.ptp(search.relevance().values) == 0.0


def test_select_in_order_of_time_has_parts_in_order_of_time():
    """No training part holds the last rows, whose target is of another column."""
    rows = np.random.default_rng(1).normal(size=(120, 2))
    target = np.sin(2.0 * rows[:, 0])
    target[100:] = 9.0 * np.sin(2.0 * rows[100:, 1])
    given = {"kernels": "rbf", "loss": "squared", "cv": TimeSeriesSplit(3)}
    assert np.median(select(rows, target, **given).relevance().folds[:, 0]) > 0.9


def test_select_for_classes():
    search = select(X / X.std(axis=0), Y > 0.0, random_state=0)
    assert search.relevance().values.shape == (4,)
