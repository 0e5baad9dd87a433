"""Banks of kernels, kernels on some columns, kernels that are tables."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_predict

from onefit import KernelRegressor, KernelSearchCV, heldout_predict
from onefit.kernels import Bank, Gaussian, Laplace, Linear, Lookup, OnColumns, WeightedSum

RANDOM = np.random.default_rng(3)
X = RANDOM.normal(size=(30, 4))
Y = X[:, 0] - X[:, 2] ** 2


def test_on_columns():
    kernel = OnColumns(Gaussian(0.7), [2, 0])
    np.testing.assert_array_equal(kernel(X), Gaussian(0.7)(X[:, [2, 0]]))
    np.testing.assert_array_equal(kernel(X[:5], X), Gaussian(0.7)(X[:5, [2, 0]], X[:, [2, 0]]))
    np.testing.assert_array_equal(kernel.diag(X), np.ones(30))
    left, right = RANDOM.normal(size=(2, 30, 3))
    part = Gaussian(0.7).pullback(X[:, [2, 0]], left, right)
    assert kernel.pullback(X, left, right) == part
    assert kernel.definite
    assert not OnColumns(Lookup(np.eye(3)), [0]).definite


@pytest.mark.parametrize("columns", [[], [-1], [0, 0]])
def test_columns_that_cannot_be(columns):
    with pytest.raises(ValueError, match="numbers of columns from 0 on"):
        OnColumns(Gaussian(1.0), columns)


def test_a_column_that_is_not_there():
    with pytest.raises(ValueError, match="looks at column 4, but X has 4 columns"):
        OnColumns(Gaussian(1.0), [4])(X)


def test_a_table_is_the_kernel_it_was_made_of():
    rows, machine = np.arange(30)[:, None], KernelRegressor(gamma=0.3, lam=1e-2)
    table = clone(machine).set_params(kernel=Lookup(Gaussian(0.3)(X)))
    one, other = machine.fit(X[:20], Y[:20]), table.fit(rows[:20], Y[:20])
    np.testing.assert_allclose(other.predict(rows[20:]), one.predict(X[20:]), atol=1e-10)
    cv = KFold(5)
    held = heldout_predict(clone(table), rows, Y, cv=cv).predictions
    np.testing.assert_allclose(held, cross_val_predict(clone(machine), X, Y, cv=cv), atol=1e-8)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (np.array([[0.5]]), "one column of whole numbers"),
        (np.zeros((2, 2)), r"got shape \(2, 2\)"),
        (np.array([[3]]), "row number 3, but the table has 3 rows"),
        (np.array([[-1]]), "row number -1"),
    ],
)
def test_what_is_no_row_number(rows, words):
    with pytest.raises(ValueError, match=words):
        Lookup(np.eye(3))(rows)


def test_a_table_must_be_a_kernel():
    with pytest.raises(ValueError, match="indefinite"):
        Lookup(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_makers():
    assert Bank.of_bandwidths([0.1, 1.0], Laplace, p=2) == Bank([Laplace(0.1), Laplace(1.0)], 2)
    bank = Bank.of_groups([[0, 1], [2]], [0.5, 1.0])
    assert bank.kernels == tuple(
        OnColumns(Gaussian(g), group) for group in ([0, 1], [2]) for g in (0.5, 1.0)
    )


@pytest.mark.parametrize("p", [1.0, 2.0, 4.0])
def test_coarse_kernels_have_unit_length_and_mean_diagonal(p):
    bank = Bank([Linear(), Gaussian(1.0), OnColumns(Linear(), [1])], p).settled(X)
    kernels = bank.coarse()
    assert len(kernels) == 4
    for kernel in kernels:
        mu = bank.weights_of(kernel)
        assert np.linalg.norm(mu, p) == pytest.approx(1.0)
        assert np.mean(kernel.diag(X)) == pytest.approx(mu.sum())
    assert [k.weights[m] > 0 for m, k in enumerate(kernels[1:])] == [True] * 3


def test_many_kernels_begin_alike():
    assert len(Bank.of_bandwidths(np.geomspace(0.1, 1.0, 17)).settled(X).coarse()) == 1


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Bank([]), ValueError, "no kernel"),
        (lambda: Bank(["rbf"]), TypeError, r"kernels\[0\] must be a Kernel object"),
        (lambda: Bank([np.eye(3)]), TypeError, r"becomes one as Lookup\(K\)"),
        (lambda: Bank([Linear()], p=0.5), ValueError, "p must be at least 1"),
        (lambda: Bank([Linear()], p=-1), ValueError, "p"),
        (lambda: Bank([Linear()]).settled(np.zeros((3, 2))), ValueError, "mean diagonal of 0"),
    ],
)
def test_banks_that_cannot_be(make, error, words):
    with pytest.raises(error, match=words):
        make()


def test_a_bank_needs_a_search_by_gradient():
    with pytest.raises(ValueError, match="a Bank for 'kernel', which needs a KernelGradient"):
        KernelSearchCV(KernelRegressor(), {"kernel": Bank([Linear()])}).fit(X, Y)


def test_a_sum_of_tables_and_kernels():
    rows = np.arange(30)[:, None]
    both = WeightedSum([Lookup(Linear()(X)), Lookup(Gaussian(1.0)(X))], [0.5, 2.0])
    np.testing.assert_allclose(both(rows), 0.5 * Linear()(X) + 2.0 * Gaussian(1.0)(X))
