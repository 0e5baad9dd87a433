"""Distances to the training rows, by hand, and how often ordinary rows are called far."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.model_selection import GroupKFold, KFold, LeaveOneOut

from onefit import KernelClassifier, KernelRegressor, KernelSearchCV
from onefit.features import Nystrom
from onefit.kernels import Gaussian, Linear, OnColumns, PerFeature, Polynomial
from onefit.uncertainty import novelty

random = np.random.default_rng(0)
X = random.normal(size=(60, 3))
y = X[:, 0] + 0.1 * random.normal(size=60)
X_new = np.vstack([X[:3] + 0.01, 1000.0 * X[:1], X[5:6]])


def pairs(A, B, norm=2):
    return np.linalg.norm(A[:, None] - B[None], ord=norm, axis=2)


@pytest.mark.parametrize(
    ("kernel", "apart"),
    [
        ("rbf", pairs),
        ("laplacian", lambda A, B: pairs(A, B, 1)),
        ("linear", pairs),
        (PerFeature(Gaussian, (4.0, 0.0, 1.0)), lambda A, B: pairs(A * [2, 0, 1], B * [2, 0, 1])),
        (OnColumns(Linear(), (0, 2)), lambda A, B: pairs(A[:, [0, 2]], B[:, [0, 2]])),
    ],
    ids=["gaussian", "laplace", "linear", "per feature", "on columns"],
)
def test_by_hand(kernel, apart):
    found = novelty(KernelRegressor(kernel=kernel).fit(X, y), X_new)
    np.testing.assert_allclose(found.distance, apart(X_new, X).min(axis=1), atol=1e-6)
    own = apart(X, X) + 1e9 * np.eye(60)
    assert found.reach == pytest.approx(own.min(axis=1).max())
    assert found.far.tolist() == [False, False, False, True, False]
    assert found.ratio[3] > 100
    assert found.ratio[4] == 0.0


def test_other_kernels_by_their_images():
    kernel = Polynomial(1.0, degree=2)
    found = novelty(KernelRegressor(kernel=kernel).fit(X, y), X_new)
    K = kernel(np.vstack([X_new, X]))
    d = np.diag(K)
    images = np.sqrt(np.maximum(d[:5, None] + d[None, 5:] - 2 * K[:5, 5:], 0.0))
    np.testing.assert_allclose(found.distance, images.min(axis=1), atol=1e-6)
    assert found.far.tolist() == [False, False, False, True, False]


def test_a_narrow_kernel_sees_how_far_far_is():
    """Kernel values are zero everywhere, distances are not."""
    found = novelty(KernelRegressor(gamma=1e4).fit(X, y), X_new)
    assert found.far.tolist() == [False, False, False, True, False]


def test_sparse_rows_classes_and_landmarks():
    for machine in (
        KernelClassifier(gamma=0.3),
        KernelClassifier(approximation=Nystrom(40), gamma=0.3),
    ):
        found = novelty(machine.fit(csr_matrix(X), y > 0), csr_matrix(X_new))
        assert found.far.tolist() == [False, False, False, True, False]


def test_new_groups_are_compared_as_groups():
    """Rows of a group are close to each other; new groups are not far for that."""
    centre = 10.0 * random.normal(size=(30, 2))
    names = np.repeat(np.arange(20), 4)
    Z = centre[names] + 0.01 * random.normal(size=(80, 2))
    search = KernelSearchCV(KernelRegressor(), {"lam": [1e-2]}, cv=GroupKFold(5))
    search.fit(Z, Z[:, 0], groups=names)
    found = novelty(search, centre[20:])
    assert found.far.mean() < 0.5
    assert found.units == 20
    assert found.expected == pytest.approx(10 / 21)
    assert novelty(search.best_estimator_, centre[20:]).far.all()


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_splits_that_ignore_groups_leave_rows_as_units():
    groups = np.arange(60) // 6
    search = KernelSearchCV(KernelRegressor(), {"lam": [1.0]}, cv=KFold(4, shuffle=True))
    assert novelty(search.fit(X, y, groups=groups), X_new).units == 60
    search.set_params(cv=GroupKFold(4))
    assert novelty(search.fit(X, y, groups=groups), X_new).units == 10


def test_rows_left_out_around_a_row_are_not_its_neighbours():
    """Leave-one-out with a gap on both sides, as for time series: no row is 3 or less away."""
    Z = np.arange(30.0)[:, None]
    splits = [(np.flatnonzero(np.abs(Z[:, 0] - i) > 3), np.array([i])) for i in range(30)]
    search = KernelSearchCV(KernelRegressor(gamma=0.1), {"lam": [1.0]}, cv=splits)
    search.set_params(scoring="neg_mean_squared_error").fit(Z, np.sin(Z[:, 0]))
    assert novelty(search, Z).reach == pytest.approx(4.0)
    plain = search.set_params(cv=LeaveOneOut()).fit(Z, np.sin(Z[:, 0]))
    assert novelty(plain, Z).reach == pytest.approx(1.0)


def test_equal_rows_do_not_make_all_others_far():
    twice = np.vstack([X, X])
    found = novelty(KernelRegressor().fit(twice, np.tile(y, 2)), X_new)
    assert found.reach == pytest.approx(novelty(KernelRegressor().fit(X, y), X_new).reach)


def test_ordinary_rows_are_far_as_often_as_promised():
    count, expected = 0, 0.0
    for seed in range(60):
        draw = np.random.default_rng(seed)
        Z, target = draw.standard_t(5, size=(40, 2)), draw.normal(size=40)
        search = KernelSearchCV(KernelRegressor(), {"lam": [1.0]}, cv=KFold(4)).fit(Z, target)
        for one in (search, search.best_estimator_):
            found = novelty(one, draw.standard_t(5, size=(50, 2)))
            count, expected = count + found.far.sum(), expected + found.expected
    assert expected == pytest.approx(60 * 2 * 50 / 41)
    assert 0.3 * expected < count < expected + 3 * np.sqrt(2 * expected)


@pytest.mark.parametrize(
    ("machine", "rows", "message"),
    [
        (KernelRegressor(kernel="precomputed"), np.eye(60), "needs the rows themselves"),
        (KernelRegressor(approximation="fourier"), X, "holds no training row"),
    ],
)
def test_rows_that_are_not_there(machine, rows, message):
    with pytest.raises(ValueError, match=message):
        novelty(machine.fit(rows, y), rows[:2])


def test_as_many_landmarks_as_rows_are_not_taken_for_the_rows():
    """Landmarks have an order of their own, which the splits of the rows do not know."""
    random = np.random.default_rng(0)
    groups = np.arange(60) // 6
    X = random.normal(size=(60, 2)) + 3.0 * random.normal(size=(10, 2))[groups]
    model = KernelRegressor(gamma=1.0, approximation=Nystrom(60))
    search = KernelSearchCV(model, {"lam": [1e-2]}, cv=GroupKFold(5))
    found = novelty(search.fit(X, X[:, 0], groups=groups), X)
    apart = np.square(X[:, None] - X[None]).sum(axis=-1)
    np.fill_diagonal(apart, np.inf)
    nearest = search.best_estimator_.kernel_.separation(X, X)[np.arange(60), apart.argmin(axis=1)]
    assert found.reach == pytest.approx(nearest.max())
    assert found.units == 60
