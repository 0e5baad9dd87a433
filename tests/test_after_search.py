"""What follows a search, over forms of rows and kernels, each against honest refits."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold, TimeSeriesSplit
from sklearn.model_selection import learning_curve as refitted

from onefit import KernelClassifier, KernelRegressor, predict_interval
from onefit.kernels import (
    Gaussian,
    Linear,
    Matern32,
    Normalized,
    OnColumns,
    PerFeature,
    Polynomial,
    WeightedSum,
)
from onefit.learning import expanding_window, heldout_windows, learning_curve
from onefit.value import removal_values, shapley_values

RNG = np.random.default_rng(0)
n = 40
X = RNG.normal(size=(n, 3))
U = np.sin(2 * X[:, 0]) + X[:, 1] + 2.0 + 0.3 * RNG.normal(size=n)
LABELS = np.array(["a", "b", "c"])[np.digitize(U, [1.5, 2.5])]


def gaussian(A, B):
    return np.exp(-0.3 * np.square(A[:, None] - B[None]).sum(axis=-1))


KERNELS = {
    "laplacian": {"kernel": "laplacian", "gamma": 0.3},
    "linear": {"kernel": "linear"},
    "polynomial": {"kernel": Polynomial(0.3, 1.0, 2)},
    "matern": {"kernel": Matern32(0.5)},
    "sum": {"kernel": WeightedSum([Gaussian(0.5), Linear()], [1.0, 0.3])},
    "normalized": {"kernel": Normalized(Polynomial(0.3, 1.0, 2))},
    "per feature": {"kernel": PerFeature(Gaussian, [0.5, 0.2, 0.1])},
    "on columns": {"kernel": OnColumns(Gaussian(0.5), [0, 1])},
    "callable": {"kernel": gaussian},
    "precomputed": {"kernel": "precomputed"},
    "sparse": {"gamma": 0.5},
}
TARGETS = {
    "one": (KernelRegressor, U),
    "two": (KernelRegressor, np.column_stack([U, X[:, 1] ** 2])),
    "labels": (KernelClassifier, LABELS),
}


@pytest.fixture(params=KERNELS)
def rows(request):
    """The rows, and what selects some of them, against training rows."""
    if request.param == "precomputed":
        K = gaussian(X, X)
        return request.param, K, lambda new, train: K[np.ix_(new, train)]
    A = sparse.csr_array(X) if request.param == "sparse" else X
    return request.param, A, lambda new, train: A[new]


@pytest.fixture(params=TARGETS)
def targets(request):
    return TARGETS[request.param]


def values_and_targets(model, take, y, train, test):
    """Decision values and their targets by a refit."""
    fitted = clone(model).fit(take(train, train), y[train])
    if hasattr(fitted, "classes_"):
        signs = np.where(y[test][:, None] == fitted.classes_, 1.0, -1.0)
        return fitted.decision_function(take(test, train)), signs
    return fitted.predict(take(test, train)), y[test]


def squared_error(model, take, y, train, test):
    u, truth = values_and_targets(model, take, y, train, test)
    return -np.square(truth - u).mean()


@pytest.mark.parametrize("scaling", ["mean", "total"])
def test_curves_windows_and_values_equal_refits(rows, targets, scaling):
    name, A, take = rows
    kind, y = targets
    model = kind("squared", lam=0.05, scaling=scaling, **KERNELS[name])
    options = {"cv": KFold(3), "train_sizes": [20, 26], "scoring": None}
    _, _, scores = refitted(model, A, y, shuffle=True, random_state=0, **options)
    curve = learning_curve(model, A, y, random_state=0, **options)
    np.testing.assert_allclose(curve.test_scores, scores, atol=1e-8)

    cv = TimeSeriesSplit(2)
    for found, (train, test) in zip(
        heldout_windows(model, A, y, cv).by_fold, cv.split(X), strict=True
    ):
        np.testing.assert_allclose(
            found, values_and_targets(model, take, y, train, test)[0], atol=1e-8
        )
    if scaling == "total":
        residuals = expanding_window(model, A, y).residuals
        u, truth = values_and_targets(model, take, y, np.arange(30), np.array([30]))
        np.testing.assert_allclose(residuals[29], (truth - u)[0], atol=1e-8)

    splits = list(KFold(4).split(X))
    removal = removal_values(model, A, y, cv=splits)
    whole = np.mean([squared_error(model, take, y, *split) for split in splits])
    left = [tuple(np.setdiff1d(part, [5]) for part in split) for split in splits]
    without = np.mean([squared_error(model, take, y, *split) for split in left])
    np.testing.assert_allclose(removal.values[5], whole - without, atol=1e-8)

    train, test = splits[0]
    shapley = shapley_values(
        model, A, y, cv=[(train, test)], n_permutations=1, min_rows=train.size - 1, random_state=0
    )
    order = train[np.random.RandomState(0).permutation(train.size)]
    lam = model.lam * (train.size if scaling == "mean" else 1)
    fixed = clone(model).set_params(scaling="total", lam=lam)
    before, after = (squared_error(fixed, take, y, part, test) for part in (order[:-1], order))
    np.testing.assert_allclose(shapley.values[order[-1]], after - before, atol=1e-8)


def test_updates_equal_retraining(rows, targets):
    name, A, _ = rows
    kind, y = targets
    model = kind("squared", lam=0.05, **KERNELS[name])
    if name == "precomputed":
        with pytest.raises(ValueError, match="kernel='precomputed' does not hold"):
            model.fit(A, y).remove_rows([0])
        return
    model.fit(A[:30], y[:30]).add_rows(A[30:], y[30:]).remove_rows([0, 7])
    kept = np.setdiff1d(np.arange(n), [0, 7])
    retrained = clone(model).fit(A[kept], y[kept])
    decide = "decision_function" if kind is KernelClassifier else "predict"
    found, expected = (getattr(one, decide)(A) for one in (model, retrained))
    np.testing.assert_allclose(found, expected, atol=1e-7)
    assert model.error_ <= 1e-6


@pytest.mark.parametrize("name", ["one", "two"])
def test_intervals_equal_refits(rows, name):
    form, A, take = rows
    y = TARGETS[name][1]
    model, cv, alpha = KernelRegressor(lam=0.05, **KERNELS[form]), KFold(4), 0.2
    every, new = np.arange(n), np.array([3, 30])
    found = predict_interval(model, A, y, take(new, every), alpha=alpha, cv=cv)
    lower, upper = [], []
    for train, test in cv.split(X):
        fitted = clone(model).fit(take(train, train), y[train])
        residual = np.abs(y[test] - fitted.predict(take(test, train)))
        centre = fitted.predict(take(new, train))
        lower.extend(centre - one for one in residual)
        upper.extend(centre + one for one in residual)
    rank = int(np.ceil((1 - alpha) * (n + 1))) - 1
    np.testing.assert_allclose(found.upper, np.sort(upper, axis=0)[rank], atol=1e-8)
    np.testing.assert_allclose(found.lower, -np.sort(-np.array(lower), axis=0)[rank], atol=1e-8)
