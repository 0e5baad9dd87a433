"""Stacks against honest refits, and weights against forward selection written out."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    ParameterGrid,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import (
    AutoKernelRegressor,
    KernelClassifier,
    KernelRegressor,
    KernelSearchCV,
    predict_interval,
)
from onefit.features import Nystrom
from onefit.losses import Huber
from onefit.stack_weights import stack_weights
from onefit.stacking import stack

GRID = {"kernel": ["rbf", "laplacian"], "gamma": [0.05, 0.3], "lam": [1e-4, 1e-3, 1e-2]}
#: the kernel of each candidate
KERNELS = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]
CV = KFold(4, shuffle=True, random_state=0)


@pytest.fixture(scope="module")
def data():
    return make_friedman1(90, n_features=5, noise=3.0, random_state=0)


def plain_search(grid=GRID, cv=CV, **options):
    return KernelSearchCV(KernelRegressor(fit_intercept=False, **options), grid, cv=cv)


def stacked(search, X, y, sample_weight=None, groups=None, **options):
    params = {"sample_weight": sample_weight, "groups": groups}
    search.fit(X, y, **{name: one for name, one in params.items() if one is not None})
    return stack(search, X, y, sample_weight=sample_weight, **options)


def refits(X, y, train, test):
    """Predictions of every candidate by scikit-learn, columns in the order of the candidates."""
    columns = []
    for gamma, kernel, lam in product(GRID["gamma"], GRID["kernel"], GRID["lam"]):
        model = KernelRidge(kernel=kernel, gamma=gamma, alpha=lam * train.size)
        columns.append(model.fit(X[train], y[train]).predict(X[test]))
    return np.column_stack(columns)


def forward_selection(F, y, s, steps=25):
    """Caruana et al., every average formed and compared."""
    chosen, best = [], (np.inf, None)
    for _ in range(steps):
        errors = [s @ (F[:, [*chosen, j]].mean(axis=1) - y) ** 2 for j in range(F.shape[1])]
        chosen.append(int(np.argmin(errors)))
        if min(errors) < best[0]:
            best = min(errors), np.bincount(chosen, minlength=F.shape[1]) / len(chosen)
    return best[1]


def entrants(errors, kernels, most=2):
    """The best two candidates of every kernel, the best first."""
    found = []
    for c in np.argsort(errors, kind="stable"):
        if sum(kernels[e] == kernels[c] for e in found) < most:
            found.append(c)
    return found


def weights_of(F, y, s=None, bags=15, least=0.02, kernels=KERNELS):
    s = np.ones(y.size) if s is None else s
    random, found = np.random.default_rng(0), np.zeros(F.shape[1])
    some = entrants(s @ (F - y[:, None]) ** 2, kernels)
    for _ in range(bags):
        counts = random.multinomial(y.size, np.full(y.size, 1 / y.size))
        found[some] += forward_selection(F[:, some], y, s * counts) / bags
    found[found < least] = 0.0
    return found / found.sum()


def heldout_of(X, y, cv=CV):
    F = np.empty((y.size, 12))
    for train, test in cv.split(X):
        F[test] = refits(X, y, train, test)
    return F


def test_candidates_are_in_the_order_of_the_refits():
    params = [
        dict(zip(sorted(GRID), p, strict=True)) for p in product(*map(GRID.get, sorted(GRID)))
    ]
    assert list(ParameterGrid(GRID)) == params


def test_weights_and_heldout_predictions_are_those_of_refits(data):
    X, y = data
    model = stacked(plain_search(), X, y)
    F = heldout_of(X, y)
    weights = weights_of(F, y)
    assert np.count_nonzero(weights) > 2
    assert model.stack_.weights[0] == pytest.approx(weights, abs=1e-12)
    assert model.stack_.heldout_predictions == pytest.approx(F @ weights, abs=1e-8)
    best = np.sqrt(((F - y[:, None]) ** 2).mean(axis=0).min())
    assert model.stack_.best_error == pytest.approx(best)


def test_crossfit_learns_weights_from_the_other_folds(data):
    X, y = data
    F, found = heldout_of(X, y), np.empty_like(y)
    for train, test in CV.split(X):
        train = np.sort(train)
        found[test] = F[test] @ weights_of(F[train], y[train])
    model = stacked(plain_search(), X, y)
    assert model.stack_.crossfit_predictions == pytest.approx(found, abs=1e-8)
    assert model.stack_.crossfit_error == pytest.approx(np.sqrt(np.mean((found - y) ** 2)))
    assert np.abs(model.stack_.crossfit_predictions - model.stack_.heldout_predictions).max() > 1e-3


@pytest.mark.parametrize("cv", [KFold(4), KFold(3, shuffle=True, random_state=1)])
def test_nested_error_is_that_of_refits_without_two_folds(data, cv):
    X, y = data
    X, y = X[:61], y[:61]  # folds of different sizes
    folds, found = [test for _, test in cv.split(X)], np.empty_like(y)
    for k, fold in enumerate(folds):
        rest = np.setdiff1d(np.arange(y.size), fold)
        inner = np.full((y.size, 12), np.nan)
        for other in folds[:k] + folds[k + 1 :]:
            inner[other] = refits(X, y, np.setdiff1d(rest, other), other)
        found[fold] = refits(X, y, rest, fold) @ weights_of(inner[rest], y[rest])
    model = stacked(plain_search(cv=cv), X, y, nested=True)
    assert model.stack_.nested_predictions == pytest.approx(found, abs=1e-7)
    assert model.stack_.nested_error == pytest.approx(np.sqrt(np.mean((found - y) ** 2)))


def test_nested_of_other_losses(data):
    X, y = data
    grid = [{"lam": [1e-3, 1e-2], "gamma": [0.3]}, {"loss": [Huber(0.5)]}]
    search = KernelSearchCV(KernelRegressor(gamma=0.1), grid, cv=KFold(3))
    model = stacked(search, X, y, nested=True)
    folds, found = [test for _, test in KFold(3).split(X)], np.empty_like(y)
    models = [KernelRegressor(gamma=0.1).set_params(**p) for p in model.cv_results_["params"]]

    def predictions(train, test):
        return np.column_stack([m.fit(X[train], y[train]).predict(X[test]) for m in models])

    for k, fold in enumerate(folds):
        rest = np.setdiff1d(np.arange(y.size), fold)
        inner = np.full((y.size, 3), np.nan)
        for other in folds[:k] + folds[k + 1 :]:
            inner[other] = predictions(np.setdiff1d(rest, other), other)
        found[fold] = predictions(rest, fold) @ weights_of(inner[rest], y[rest], kernels=[0, 0, 1])
    assert model.stack_.nested_predictions == pytest.approx(found, abs=1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_predictions_are_the_weighted_sum_of_the_members(data, fit_intercept):
    X, y = data
    y = y + np.where(np.arange(y.size) % 9, 0.0, 20.0)
    huber = {"kernel": ["laplacian"], "gamma": [0.05, 0.3], "loss": ["huber"]}
    base = KernelRegressor(fit_intercept=fit_intercept)
    model = stacked(KernelSearchCV(base, [GRID, huber], cv=CV), X, y)
    params = model.cv_results_["params"]
    used = [(w, p) for w, p in zip(model.stack_.weights[0], params, strict=True) if w]
    assert {"huber", None} == {p.get("loss") for _, p in used}
    X_new = make_friedman1(20, n_features=5, random_state=1)[0]
    wanted = sum(
        w * KernelRegressor(fit_intercept=fit_intercept, **p).fit(X, y).predict(X_new)
        for w, p in used
    )
    assert model.predict(X_new) == pytest.approx(wanted, abs=1e-6)
    kernels = {(p["kernel"], p["gamma"]) for _, p in used}
    assert len(model.best_estimator_.members_) == len(kernels) < len(used)


def test_sample_weights_in_fits_and_weights(data):
    X, y = data
    s = np.random.default_rng(0).uniform(0.2, 3.0, size=y.size)
    model = stacked(plain_search(scaling="total"), X, y, sample_weight=s)
    F = np.empty((y.size, 12))
    for train, test in CV.split(X):
        for c, p in enumerate(model.cv_results_["params"]):
            ridge = KernelRidge(kernel=p["kernel"], gamma=p["gamma"], alpha=p["lam"])
            F[test, c] = ridge.fit(X[train], y[train], sample_weight=s[train]).predict(X[test])
    weights = weights_of(F, y, s)
    assert model.stack_.weights[0] == pytest.approx(weights, abs=1e-12)
    assert model.stack_.heldout_predictions == pytest.approx(F @ weights, abs=1e-7)
    found = np.sqrt(np.average((model.stack_.crossfit_predictions - y) ** 2, weights=s))
    assert model.stack_.crossfit_error == pytest.approx(found)


def test_a_stack_of_weighted_rows_is_fitted_and_judged_with_them(data):
    X, y = data
    s = np.random.default_rng(0).uniform(0.2, 3.0, size=y.size)
    s[:5] = 0.0
    model = stacked(plain_search(), X, y, sample_weight=s)
    X_new = make_friedman1(20, n_features=5, random_state=1)[0]
    wanted = sum(
        w * KernelRegressor(fit_intercept=False, **p).fit(X, y, s).predict(X_new)
        for w, p in zip(model.stack_.weights[0], model.cv_results_["params"], strict=True)
        if w
    )
    assert model.predict(X_new) == pytest.approx(wanted, abs=1e-9)
    held = model.stack_.crossfit_predictions
    assert model.headline_.r2 == pytest.approx(r2_score(y, held, sample_weight=s))


def test_bounds_are_the_weighted_sums_of_those_of_the_members(data):
    X, y = data
    grid = {"gamma": [0.3], "lam": [1e-4, 1e-2]}
    search = KernelSearchCV(KernelRegressor(loss="huber"), grid, cv=CV).fit(X, y)
    model = stack(search, X, y)
    weights, params = model.stack_.weights[0], search.cv_results_["params"]
    assert 0.1 < weights[0] < 0.9
    errors = [search.heldout(i).error for i in range(2)]
    np.testing.assert_allclose(model.heldout_.error, weights @ errors)
    fits = [KernelRegressor(loss="huber", **p).fit(X, y).error_ for p in params]
    (member,) = model.best_estimator_.members_
    assert member.error_ == pytest.approx(weights @ fits, rel=0.1)


def test_huber_weights_leave_out_rows_of_weight_zero():
    random = np.random.default_rng(0)
    F, s = random.normal(size=(60, 6)), np.ones(60)
    F[:25] *= 50.0
    s[:25] = 0.0
    best = np.abs(F[25:, np.abs(F[25:]).sum(axis=0).argmin()])
    rows = np.minimum(1.0, 2 * 1.4826 * np.median(best) / best)
    assert rows.min() < 0.8
    padded = np.r_[np.zeros(25), rows]
    wanted = weights_of(F, np.zeros(60), padded, kernels=range(6))
    assert stack_weights(F, s, "huber") == pytest.approx(wanted, abs=1e-12)


def test_huber_weights_of_rows(data):
    X, y = data
    y = y.copy()
    y[::9] += 60.0
    model = stacked(plain_search(), X, y, loss="huber")
    F = heldout_of(X, y)
    best = np.abs(F - y[:, None]).mean(axis=0).argmin()
    sizes = np.abs(F[:, best] - y)
    rows = np.minimum(1.0, 2 * 1.4826 * np.median(sizes) / sizes)
    assert rows.min() < 0.5
    some = entrants(np.abs(F - y[:, None]).mean(axis=0), KERNELS)
    wanted = np.zeros(12)
    wanted[some] = weights_of(F[:, some], y, rows, kernels=range(len(some)))
    assert model.stack_.weights[0] == pytest.approx(wanted, abs=1e-12)
    assert np.abs(stacked(plain_search(), X, y).stack_.weights[0] - wanted).max() > 0.05


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_only_the_best_two_of_each_kernel_by_the_weighted_error_get_weight(loss):
    random = np.random.default_rng(0)
    y, s = np.zeros(60), np.where(np.arange(60) < 30, 0.05, 1.0)
    F = random.normal(size=(60, 1)) + 0.3 * random.normal(size=(60, 100))
    F[:, 80:] = -1.2 * F[:, :20]  # complementary, but with larger errors in heavy rows
    F[:30, :80] *= 3.0
    kernels = np.arange(100) % 7
    some = entrants(s @ np.abs(F) ** (1 if loss == "huber" else 2), kernels)
    rows = np.ones(60)
    if loss == "huber":
        best = np.abs(F[:, some[0]])
        rows = np.minimum(1.0, 2 * 1.4826 * np.median(best) / best)
    wanted = np.zeros(100)
    wanted[some] = weights_of(F[:, some], y, s * rows, kernels=range(len(some)))
    assert stack_weights(F, s, loss, kernels=kernels) == pytest.approx(wanted, abs=1e-12)
    assert np.abs(weights_of(F, y, s * rows, kernels=range(100)) - wanted).sum() > 0.1


def test_candidates_that_are_not_finite_have_no_weight():
    F = np.random.default_rng(0).normal(size=(50, 3))
    F[3, 1] = np.nan
    assert stack_weights(F, np.ones(50))[1] == 0.0
    with pytest.raises(FloatingPointError, match="no candidate"):
        stack_weights(F[:, [1]], np.ones(50))


def test_of_a_fitted_search(data):
    X, y = data
    search = plain_search().fit(X, y)
    best = search.best_estimator_
    one, other = stack(search, X, y), stacked(plain_search(), X, y)
    assert search.best_estimator_ is best
    assert not hasattr(search, "stack_")
    assert np.array_equal(one.stack_.weights[0], other.stack_.weights[0])
    assert np.array_equal(one.predict(X), other.predict(X))


def test_precomputed_and_groups(data):
    X, y = data
    K, groups = laplacian_kernel(X, gamma=0.3), np.arange(y.size) // 3
    grid = {"lam": [1e-4, 1e-3, 1e-2, 1e-1]}
    given = KernelSearchCV(KernelRegressor(kernel="precomputed"), grid, cv=GroupKFold(5))
    named = KernelSearchCV(KernelRegressor(kernel="laplacian", gamma=0.3), grid, cv=GroupKFold(5))
    one, other = stacked(given, K, y, groups=groups), stacked(named, X, y, groups=groups)
    assert one.stack_.weights[0] == pytest.approx(other.stack_.weights[0])
    assert one.predict(K) == pytest.approx(other.predict(X))
    # the standard error of the score is that of groups, left out one by one
    held, count = one.stack_.crossfit_predictions, groups[-1] + 1
    left = [groups != g for g in range(count)]
    scores = np.array([r2_score(y[rows], held[rows]) for rows in left])
    expected = np.sqrt((count - 1) * scores.var())
    assert one.headline_.standard_error == pytest.approx(expected)


def test_in_cross_validation_of_scikit_learn(data):
    auto = AutoKernelRegressor(stack=True, kernels="rbf", prepare="passthrough")
    scores = cross_val_score(make_pipeline(StandardScaler(), auto), *data, cv=3)
    assert scores.min() > 0.0


def test_candidates_without_exact_values_have_no_weight(data):
    X, y = data
    grid = GRID | {"loss": [Huber(0.5)]}
    search = KernelSearchCV(KernelRegressor(), grid, cv=CV, method="limit").fit(X, y)
    exact = search.cv_results_["exact"]
    if exact.any():
        assert not stack(search, X, y).stack_.weights[0][~exact].any()
    else:
        with pytest.raises(ValueError, match="no candidate of the search has exact held-out"):
            stack(search, X, y)


@pytest.mark.parametrize(
    ("search", "error", "message"),
    [
        (KernelSearchCV(KernelRegressor(), {"loss": ["quantile"]}), ValueError, "not quantiles"),
        (KernelSearchCV(KernelRegressor(), {}, refit=False), ValueError, "refit=True"),
        (
            KernelSearchCV(KernelRegressor(approximation=Nystrom(9)), {}),
            ValueError,
            "approximation",
        ),
        (KernelSearchCV(KernelRegressor(), {}, cv=TimeSeriesSplit(3)), ValueError, "row once"),
    ],
)
def test_refusals(data, search, error, message):
    with pytest.raises(error, match=message):
        stacked(search, *data)


def test_refuses_other_targets_and_too_few_folds(data):
    X, y = data
    search = plain_search().fit(X, y)
    with pytest.raises(TypeError, match="needs a fitted KernelSearchCV, got KernelRegressor"):
        stack(KernelRegressor().fit(X, y), X, y)
    with pytest.raises(ValueError, match="differs from the targets"):
        stack(search, X, y + 1.0)
    with pytest.raises(ValueError, match="one target"):
        stacked(plain_search(), X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="at least 3 folds"):
        stacked(plain_search(cv=KFold(2)), X, y, nested=True)
    with pytest.raises(ValueError, match="loss"):
        stack(search, X, y, loss="absolute")
    with pytest.raises(ValueError, match="other splits"):
        stack(search, X, y, further=[plain_search(cv=KFold(4)).fit(X, y)])
    with pytest.raises(TypeError, match=r"made from a fitted search, by onefit\.stacking"):
        stack(search, X, y).best_estimator_.fit(X, y)


class ScaledBy(TransformerMixin, BaseEstimator):
    """Multiplies the columns by the first of many factors, which a repr abbreviates."""

    def __init__(self, factors=None):
        self.factors = factors

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X * self.factors[100 : 100 + X.shape[1]]


def many_factors(some):
    found = np.zeros(3000)
    found[100:105] = some
    return found


@pytest.mark.parametrize("whole", [True, False], ids=["steps", "parameters"])
def test_steps_that_differ_where_a_repr_does_not_are_fitted_by_themselves(data, whole):
    X, y = data
    values = [many_factors(some) for some in np.random.default_rng(1).uniform(size=(3, 5))]
    pipeline = Pipeline([("rows", ScaledBy(values[0])), ("model", KernelRegressor())])
    steps = {"rows": [ScaledBy(one) for one in values]} if whole else {"rows__factors": values}
    grid = steps | {"model__lam": [1e-3, 1e-2]}
    first = plain_search({"gamma": [50.0], "lam": [1.0]}).fit(X, y)
    further = KernelSearchCV(pipeline, grid, cv=CV).fit(X, y)
    model = stack(first, X, y, further=[further])
    weights, params = model.stack_.weights[1], further.cv_results_["params"]
    assert len({id(params[c].get("rows")) for c in np.flatnonzero(weights)}) > 1 or not whole
    fits = [clone(pipeline).set_params(**one).fit(X, y).predict(X) for one in params]
    plain = clone(first.estimator).set_params(gamma=50.0, lam=1.0).fit(X, y).predict(X)
    expected = weights @ fits + model.stack_.weights[0][0] * plain
    assert model.predict(X) == pytest.approx(expected, abs=1e-8)


def test_last_steps_that_the_grid_replaces(data):
    X, y = data
    pipeline = Pipeline([("rows", StandardScaler()), ("model", KernelRegressor())])
    models = [KernelRegressor(kernel="laplacian"), KernelRegressor(kernel="matern32", gamma=0.3)]
    further = KernelSearchCV(pipeline, {"model": models, "model__lam": [1e-3, 1e-2]}, cv=CV)
    further.fit(X, y)
    first = plain_search({"gamma": [50.0], "lam": [1.0]}).fit(X, y)
    model = stack(first, X, y, further=[further])
    params, weights = further.cv_results_["params"], model.stack_.weights[1]
    assert weights.sum() == pytest.approx(1.0)
    fits = [clone(pipeline).set_params(**one).fit(X, y).predict(X) for one in params]
    assert model.predict(X) == pytest.approx(weights @ fits, abs=1e-8)


def test_weights_of_the_search_are_those_of_the_stack(data):
    X, y = data
    s = np.random.default_rng(0).integers(1, 4, y.size).astype(float)
    search = plain_search().fit(X, y, sample_weight=s)
    given, default = stack(search, X, y, sample_weight=s), stack(search, X, y)
    np.testing.assert_array_equal(given.predict(X), default.predict(X))
    assert given.best_score_ == default.best_score_
    with pytest.raises(ValueError, match="sample_weight differs"):
        stack(search, X, y, sample_weight=s + 1.0)
    with pytest.raises(ValueError, match="sample_weight differs"):
        stack(search, X, y, further=[plain_search().fit(X, y)])
    with pytest.raises(ValueError, match="X differs"):
        stack(search, X + 1.0, y)


def test_intervals_are_for_the_splits_of_the_search_alone(data):
    X, y = data
    groups = np.arange(y.size) % 9
    model = stacked(plain_search(), X, y)
    for cv in (5, TimeSeriesSplit(4)):
        with pytest.raises(ValueError, match="other splits"):
            predict_interval(model, X, y, X[:3], cv=cv)
    with pytest.raises(ValueError, match="trains on rows of a group"):
        predict_interval(model.best_estimator_, X, y, X[:3], alpha=0.3, groups=groups)
    grouped = stacked(plain_search(cv=GroupKFold(3)), X, y, groups=groups)
    found = predict_interval(grouped, X, y, X[:3], alpha=0.3)
    again = predict_interval(
        grouped.best_estimator_, X, y, X[:3], alpha=0.3, groups=groups, cv=grouped.folds_
    )
    assert found.unit == again.unit == "groups"
    np.testing.assert_array_equal(found.upper, again.upper)


@pytest.mark.parametrize("classes", [2, 3])
def test_errors_of_log_odds_are_log_losses(classes):
    """Squared errors of log-odds against labels say nothing: the smallest is that of flat ones."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    y = np.digitize(X[:, 0] + 0.3 * random.normal(size=60), np.linspace(-0.5, 0.5, classes - 1))
    weight = random.integers(1, 4, size=60).astype(float)
    grid = {"gamma": [0.3, 1.0], "lam": [1e-3, 1e-2, 1.0]}
    search = KernelSearchCV(
        KernelClassifier("log"), grid, cv=KFold(4, shuffle=True, random_state=0)
    )
    found = stack(search.fit(X, y, sample_weight=weight), X, y, nested=True).stack_
    signs = np.where(
        y[:, None] == np.unique(y)[-1:] if classes == 2 else y[:, None] == np.unique(y), 1, -1
    )

    def error(values):
        losses = np.logaddexp(0.0, -signs * np.reshape(values, (60, -1))).mean(axis=1)
        return np.average(losses, weights=weight)

    assert found.crossfit_error == pytest.approx(error(found.crossfit_predictions))
    assert found.nested_error == pytest.approx(error(found.nested_predictions))
    every = [error(search.heldout(i).predictions) for i in range(6)]
    assert found.best_error == pytest.approx(min(every))
