"""What follows a search, over forms of rows and kernels, each against honest refits."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit
from sklearn.model_selection import learning_curve as refitted

from onefit import (
    AutoKernelRegressor,
    KernelClassifier,
    KernelGradientSearchCV,
    KernelRegressor,
    KernelSearchCV,
    heldout_predict,
    predict_interval,
)
from onefit.diagnostics import asymptotic_variance, cv_loo_stability, influence
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
from onefit.relevance import relevance
from onefit.search import Interval
from onefit.stacking import stack
from onefit.uncertainty import novelty
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


def test_curves_windows_and_values_equal_refits(rows, targets):
    name, A, take = rows
    kind, y = targets
    turn = list(KERNELS).index(name) + [one[1] is y for one in TARGETS.values()].index(True)
    scaling = ("mean", "total")[turn % 2]
    model = kind("squared", lam=0.05, scaling=scaling, **KERNELS[name])
    options = {"cv": KFold(3), "train_sizes": [20, 26], "scoring": None}
    _, _, scores = refitted(model, A, y, shuffle=True, random_state=0, **options)
    curve = learning_curve(model, A, y, random_state=0, **options)
    np.testing.assert_allclose(curve.test_scores, scores, atol=1e-8)

    cv = TimeSeriesSplit(2)
    for found, (train, test) in zip(
        heldout_windows(model, A, y, cv=cv).by_fold, cv.split(X), strict=True
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
        with pytest.raises(ValueError, match="needs the rows themselves, got kernel='precomputed'"):
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


#: functions of a search and its rows
OF_SEARCHES = {
    "asymptotic_variance": asymptotic_variance,
    "cv_loo_stability": cv_loo_stability,
    "expanding_window": expanding_window,
    "heldout_windows": heldout_windows,
    "influence": influence,
    "learning_curve": learning_curve,
    "predict_interval": lambda search, A, y: predict_interval(search, A, y, A),
    "removal_values": removal_values,
    "shapley_values": shapley_values,
}
LAMS = {"kernel": ["rbf", "laplacian"], "lam": [1e-3, 1e-2, 1e-1]}
WEIGHTS = RNG.integers(1, 5, size=n).astype(float)


@pytest.fixture(scope="module")
def automatic():
    return AutoKernelRegressor(kernels=["rbf"], stack=False).fit(100.0 * X, U)


@pytest.mark.parametrize("name", [*OF_SEARCHES, "novelty"])
def test_an_estimator_that_prepares_rows_is_refused(automatic, name):
    """Its model is one of prepared rows, and would be given others."""
    call = OF_SEARCHES.get(name, lambda search, A, y: novelty(search, A))
    with pytest.raises(TypeError, match=f"{name} takes prepared rows, and AutoKernelRegressor"):
        call(automatic, 100.0 * X, U)


def test_its_search_takes_prepared_rows(automatic):
    Z = automatic.pipeline_["prepare"].transform(100.0 * X)
    found = removal_values(automatic.search_, Z, U)
    held = automatic.heldout_
    errors = [np.square(U[rows] - held.predictions[rows]).mean() for rows in held.folds.test]
    assert found.score == pytest.approx(-np.mean(errors))


@pytest.mark.parametrize("name", OF_SEARCHES)
def test_rows_that_are_not_those_of_the_search_are_refused(name):
    search = KernelSearchCV(KernelRegressor(), LAMS).fit(X, U)
    with pytest.raises(ValueError, match=f"fitted to 40 rows, but {name} got 30"):
        OF_SEARCHES[name](search, X[:30], U[:30])
    with pytest.raises(ValueError, match="y differs from the targets"):
        OF_SEARCHES[name](search, X, U + 1.0)


@pytest.mark.parametrize("of", [influence, asymptotic_variance, cv_loo_stability])
@pytest.mark.parametrize("kind", ["one", "labels"])
def test_diagnostics_use_the_weights_of_a_search(of, kind):
    model, y = TARGETS[kind]
    for searched in (KernelSearchCV, GridSearchCV):
        search = searched(model("squared"), {"lam": [1e-2, 1.0]}).fit(X, y, sample_weight=WEIGHTS)
        found, expected = of(search, X, y), of(search, X, y, sample_weight=WEIGHTS)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert np.abs(found - of(search.best_estimator_, X, y)).max() > 1e-3 * np.abs(found).max()


def test_stacks_use_the_weights_of_a_search():
    search = KernelSearchCV(KernelRegressor(), LAMS).fit(X, U, sample_weight=WEIGHTS)
    found, expected = stack(search, X, U), stack(search, X, U, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    plain = KernelSearchCV(KernelRegressor(), LAMS).fit(X, U)
    assert np.abs(found.predict(X) - stack(plain, X, U).predict(X)).max() > 1e-3


def test_relevance_uses_weights_and_groups_of_a_search():
    grid = {"gamma": Interval(1e-2, 1.0, per_feature=True), "lam": [1e-2]}
    search = KernelGradientSearchCV(KernelRegressor(), grid, cv=GroupKFold(3))
    given = {"sample_weight": WEIGHTS, "groups": np.arange(n) // 4}
    search.fit(X, U, **given)
    found, expected = relevance(search, X, U, cv=3), relevance(search, X, U, cv=3, **given)
    np.testing.assert_array_equal(found.folds, expected.folds)
    for rows, shares in zip(
        GroupKFold(3).split(X, groups=given["groups"]), found.folds, strict=True
    ):
        part = {name: one[rows[0]] for name, one in given.items()}
        own = clone(search).fit(X[rows[0]], U[rows[0]], **part).best_params_["gamma"] * X.var(
            axis=0
        )
        np.testing.assert_allclose(shares, own / own.sum(), rtol=1e-6)


@pytest.mark.parametrize("name", ["learning_curve", "removal_values", "shapley_values"])
def test_a_stack_is_not_taken_for_its_best_candidate(name):
    stacked = stack(KernelSearchCV(KernelRegressor(), LAMS).fit(X, U), X, U)
    with pytest.raises(TypeError, match=f"{name} is for one model, and a StackedRegressor"):
        OF_SEARCHES[name](stacked, X, U)
    for rows in ((X, U), ()):
        with pytest.raises(TypeError, match="heldout_predict is for one model"):
            heldout_predict(stacked.best_estimator_, *rows)
