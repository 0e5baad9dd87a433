"""All that X, y, weights, kernels and losses may be, each against its plain equivalent."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from registries import CLASSIFIERS, KERNELS, REGRESSORS, sample
from scipy.optimize import minimize
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score

from onefit import KernelClassifier, KernelRegressor
from onefit.kernels import Gaussian, Linear, Polynomial, Precomputed, WeightedSum

MODELS = [(KernelRegressor, "regression", parameters) for parameters in REGRESSORS] + [
    (KernelClassifier, "classification", parameters) for parameters in CLASSIFIERS
]
NAMES = [f"{task}-{parameters['loss']}" for _, task, parameters in MODELS]
each_model = pytest.mark.parametrize(("make", "task", "parameters"), MODELS, ids=NAMES)


def some_of(name, values, times=2):
    """Every model with a few of the values each, in turn, so that all of them occur."""
    cases, ids = [], []
    for place in range(len(MODELS) * times):
        which, value = place // times, values[place % len(values)]
        cases.append((*MODELS[which], value))
        ids.append(f"{NAMES[which]}-{value if isinstance(value, str) else place % len(values)}")
    return pytest.mark.parametrize(("make", "task", "parameters", name), cases, ids=ids)


def outputs(model, X):
    return model.predict(X) if isinstance(model, KernelRegressor) else model.decision_function(X)


@each_model
def test_single_precision_follows_double(make, task, parameters):
    X, y = sample(task, n=40)
    double = make(**parameters, lam=0.01).fit(X, y)
    single = make(**parameters, lam=0.01).fit(X.astype(np.float32), y)
    assert double.dual_coef_.dtype == np.float64
    assert single.dual_coef_.dtype == outputs(single, X.astype(np.float32)).dtype == np.float32
    assert outputs(single, X) == pytest.approx(outputs(double, X), abs=2e-3)


@each_model
def test_numpy_scalars_as_parameters_keep_single_precision(make, task, parameters):
    X, y = sample(task, n=20)
    scalars = {k: np.float64(v) if isinstance(v, float) else v for k, v in parameters.items()}
    model = make(**scalars, lam=np.float64(0.01)).fit(X.astype(np.float32), y)
    assert model.dual_coef_.dtype == np.float32


@some_of("kernel", ["rbf", "laplacian", "linear", "poly", "matern32"])
def test_sparse_equals_dense(make, task, parameters, kernel):
    X, y = sample(task, n=25, d=6)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense = make(**parameters, kernel=kernel, lam=0.05).fit(X, y)
    for form in (sp.csr_matrix, sp.csc_array):
        sparse = make(**parameters, kernel=kernel, lam=0.05).fit(form(X), y)
        assert outputs(sparse, form(X)) == pytest.approx(outputs(dense, X), abs=1e-7)
        assert outputs(sparse, X) == pytest.approx(outputs(dense, X), abs=1e-7)


@some_of("kernel", KERNELS, times=3)
def test_kernel_objects_callables_and_matrices_agree(make, task, parameters, kernel):
    X, y = sample(task, n=25)
    new, _ = sample(task, n=7, seed=3)
    model = make(**parameters, kernel=kernel, lam=0.05).fit(X, y)
    called = make(**parameters, kernel=lambda A, B: kernel(A, B), lam=0.05).fit(X, y)
    assert outputs(called, new) == pytest.approx(outputs(model, new), abs=1e-7)
    for name in ("precomputed", Precomputed()):
        given = make(**parameters, kernel=name, lam=0.05).fit(kernel(X), y)
        assert outputs(given, kernel(new, X)) == pytest.approx(outputs(model, new), abs=1e-7)
        assert given.__sklearn_tags__().input_tags.pairwise
        assert not given.__sklearn_tags__().input_tags.sparse


def test_a_weighted_sum_is_the_sum_of_matrices():
    X, y = sample("regression")
    both = WeightedSum([Gaussian(0.5), Linear()], [0.7, 0.3])
    model = KernelRegressor(kernel=both).fit(X, y)
    K = 0.7 * rbf_kernel(X, gamma=0.5) + 0.3 * X @ X.T
    assert model.predict(X) == pytest.approx(
        KernelRegressor(kernel="precomputed").fit(K, y).predict(K), abs=1e-9
    )


@each_model
def test_precomputed_is_split_on_both_sides_by_cross_validation(make, task, parameters):
    X, y = sample(task, n=30)
    direct = cross_val_score(make(**parameters, gamma=0.5, lam=0.01), X, y, cv=3)
    K = rbf_kernel(X, gamma=0.5)
    given = cross_val_score(make(**parameters, kernel="precomputed", lam=0.01), K, y, cv=3)
    assert given == pytest.approx(direct, abs=1e-8)


@pytest.mark.parametrize("scaling", ["mean", "total"])
@some_of("kernel", ["rbf", "laplacian", "matern52", "poly"], times=1)
def test_weight_is_repetition_and_zero_is_removal(make, task, parameters, scaling, kernel):
    X, y = sample(task, n=24)
    counts = np.random.default_rng(5).integers(0, 4, 24)
    counts[:6] = 1
    options = {**parameters, "kernel": kernel, "lam": 0.05, "scaling": scaling}
    weighted = make(**options).fit(X, y, counts.astype(float))
    repeated = make(**options).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert outputs(weighted, X) == pytest.approx(outputs(repeated, X), abs=1e-8)
    assert not weighted.dual_coef_[counts == 0].any()


@each_model
def test_uniform_weights_matter_under_total_scaling_only(make, task, parameters):
    X, y = sample(task)
    for scaling, lam in (("mean", 0.05), ("total", 0.05 / 7.0)):
        plain = make(**parameters, lam=lam, scaling=scaling).fit(X, y)
        lam = lam if scaling == "mean" else 7.0 * lam
        heavy = make(**parameters, lam=lam, scaling=scaling).fit(X, y, np.full(30, 7.0))
        assert outputs(heavy, X) == pytest.approx(outputs(plain, X), abs=1e-9)


@pytest.mark.parametrize("parameters", REGRESSORS, ids=lambda p: str(p["loss"]))
def test_several_targets_are_one_at_a_time(parameters):
    X, y = sample("regression")
    Y = np.column_stack([y, 2.0 - y**2, X[:, 0]])
    model = KernelRegressor(**parameters).fit(X, Y)
    assert model.predict(X).shape == (30, 3)
    assert model.dual_coef_.shape == (30, 3)
    assert model.intercept_.shape == (3,)
    for j in range(3):
        alone = KernelRegressor(**parameters).fit(X, Y[:, j])
        assert alone.predict(X).shape == (30,)
        assert isinstance(alone.intercept_, float)
        assert model.predict(X)[:, j] == pytest.approx(alone.predict(X), abs=1e-9)
    column = KernelRegressor(**parameters).fit(X, Y[:, :1])
    assert column.predict(X).shape == (30, 1)


@pytest.mark.parametrize("parameters", CLASSIFIERS, ids=lambda p: str(p["loss"]))
@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["b", "a"], dtype=object),
        np.array([False, True]),
        np.array([7, -3]),
        np.array([0.0, 1.0]),
    ],
    ids=str,
)
def test_labels_of_any_type(parameters, labels):
    X, y = sample("classification")
    plain = KernelClassifier(**parameters).fit(X, y)
    named = KernelClassifier(**parameters).fit(X, labels[(y > 0).astype(int)])
    assert named.classes_.tolist() == sorted(labels.tolist())
    assert named.predict(X).dtype == named.classes_.dtype
    sign = 1.0 if named.classes_[1] == labels[1] else -1.0
    assert named.decision_function(X) == pytest.approx(sign * plain.decision_function(X), abs=1e-7)
    assert np.array_equal(named.predict(X) == labels[1], plain.predict(X) == 1)
    assert named.score(X, labels[(y > 0).astype(int)]) > 0.7


@pytest.mark.parametrize("parameters", CLASSIFIERS, ids=lambda p: str(p["loss"]))
def test_many_classes_are_one_against_the_rest(parameters):
    X, y = sample("classification", n=45, classes=3)
    names = np.array(["low", "middle", "top"])
    model = KernelClassifier(**parameters).fit(X, names[y])
    values = model.decision_function(X)
    assert values.shape == (45, 3)
    for j, name in enumerate(model.classes_):
        one = KernelClassifier(**parameters).fit(X, np.where(names[y] == name, 1, 0))
        assert values[:, j] == pytest.approx(one.decision_function(X), abs=1e-8)
    assert np.array_equal(model.predict(X), model.classes_[values.argmax(axis=1)])


def test_probabilities_come_with_the_log_loss_alone():
    X, y = sample("classification")
    for parameters in CLASSIFIERS[:-1]:
        model = KernelClassifier(**parameters).fit(X, y)
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError) as caught:
            model.predict_proba(X)
        assert (
            "gives no probabilities; use CalibratedKernelClassifier, calibrate of a search"
            in f"{caught.value} {caught.value.__cause__}"
        )
    model = KernelClassifier("log").fit(X, y)
    p = model.predict_proba(X)
    assert p.sum(axis=1) == pytest.approx(1.0)
    assert p[:, 1] == pytest.approx(1.0 / (1.0 + np.exp(-model.decision_function(X))))


def test_probabilities_of_many_classes():
    X, y = sample("classification", n=45, classes=3)
    model = KernelClassifier("log").fit(X, y)
    p, u = model.predict_proba(X), model.decision_function(X)
    single = 1.0 / (1.0 + np.exp(-u))
    assert p == pytest.approx(single / single.sum(axis=1, keepdims=True))
    assert np.array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])


def test_probabilities_far_from_every_class_are_no_nan():
    """All one-against-rest probabilities underflow to zero there."""
    X, y = sample("classification", n=45, classes=3)
    model = KernelClassifier("log", Polynomial(degree=2), lam=1e-6).fit(X, y)
    p = model.predict_proba(1e4 * X)
    assert p.sum(axis=1) == pytest.approx(1.0)
    model.dual_coef_ = np.zeros_like(model.dual_coef_)
    model.intercept_ = np.array([-2000.0, -1000.0, -1500.0])
    assert np.array_equal(model.predict_proba(X), np.tile([0.0, 1.0, 0.0], (45, 1)))


@dataclass(frozen=True)
class QuantileHuber:
    """A user's loss: q r for r > 0, (q - 1) r for r < 0, its corner rounded over a width w."""

    q: float = 0.8
    w: float = 0.05
    name = "quantile_huber"
    task = "regression"
    piecewise_quadratic = True

    def value(self, y, u):
        r, low, high = y - u, (self.q - 1.0) * self.w, self.q * self.w
        middle = np.clip(r, low, high)
        return middle**2 / (2.0 * self.w) + middle / self.w * (r - middle)

    def gradient(self, y, u):
        return -np.clip((y - u) / self.w, self.q - 1.0, self.q)

    def curvature(self, y, u):
        inside = np.abs(2.0 * self.piece(y, u)) < 1
        return np.where(inside, 1.0 / self.w, 0.0)

    def piece(self, y, u):
        r = (y - u) / self.w
        return np.where(r > self.q, 1, np.where(r < self.q - 1.0, -1, 0)).astype(np.int8)


@pytest.mark.parametrize("q", [0.2, 0.5, 0.8])
def test_a_users_own_loss(q):
    X, y = sample("regression", n=40)
    loss = QuantileHuber(q)
    model = KernelRegressor(loss, gamma=0.5, lam=0.01).fit(X, y)
    K, a = rbf_kernel(X, gamma=0.5), model.dual_coef_
    u = K @ a + model.intercept_
    assert 2.0 * 0.01 * 40 * a == pytest.approx(-loss.gradient(y, u), abs=1e-9)
    assert abs(a.sum()) < 1e-9
    assert abs((y < u).mean() - q) < 0.1

    def height(point):
        f = K @ point[:-1]
        return loss.value(y, f + point[-1]).mean() + 0.01 * point[:-1] @ f

    ours = height(np.append(a, model.intercept_))
    lower = minimize(
        height, np.append(a, model.intercept_), method="Powell", options={"maxiter": 3}
    )
    assert lower.fun >= ours - 1e-10
    assert clone(model).loss == loss


def test_a_users_own_loss_without_a_majorant_cannot_reweight():
    X, y = sample("regression")
    with pytest.raises(TypeError, match="method 'reweight' needs 'reweight' of the loss"):
        KernelRegressor(QuantileHuber(), solver="reweight").fit(X, y)


@each_model
def test_solvers_agree(make, task, parameters):
    X, y = sample(task)
    expected = outputs(make(**parameters, lam=0.05).fit(X, y), X)
    for solver in ("newton", "reweight"):
        other = make(**parameters, lam=0.05, solver=solver).fit(X, y)
        assert outputs(other, X) == pytest.approx(expected, abs=1e-6)
        assert other.n_iter_ >= 1


@each_model
def test_clone_pickle_and_set_params(make, task, parameters):
    X, y = sample(task)
    for kernel in ("rbf", WeightedSum([Gaussian(0.5), Linear()], [1.0, 2.0])):
        model = make(**parameters, kernel=kernel).fit(X, y)
        twin = clone(model)
        assert not hasattr(twin, "dual_coef_")
        assert str(twin.get_params()) == str(model.get_params())
        assert outputs(twin.fit(X, y), X) == pytest.approx(outputs(model, X), rel=1e-12, abs=1e-12)
        loaded = pickle.loads(pickle.dumps(model))
        assert outputs(loaded, X) == pytest.approx(outputs(model, X), rel=1e-12, abs=1e-12)
    changed = make(**parameters).fit(X, y).set_params(lam=5.0, kernel="laplacian").fit(X, y)
    fresh = make(**parameters, lam=5.0, kernel="laplacian").fit(X, y)
    assert outputs(changed, X) == pytest.approx(outputs(fresh, X), rel=1e-12, abs=1e-12)


@each_model
def test_prediction_in_blocks_changes_nothing(make, task, parameters):
    X, y = sample(task, n=60)
    new, _ = sample(task, n=50, seed=8)
    model = make(**parameters).fit(X, y)
    whole = outputs(model, new)
    with config_context(working_memory=0.01):
        assert outputs(model, new) == pytest.approx(whole, rel=1e-12, abs=1e-12)


def test_feature_names():
    X, y = sample("regression", d=3)
    frame = pd.DataFrame(X, columns=["one", "two", "three"])
    model = KernelRegressor().fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["one", "two", "three"]
    assert model.n_features_in_ == 3
    plain = KernelRegressor().fit(X, y)
    assert model.predict(frame) == pytest.approx(plain.predict(X), rel=1e-12, abs=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["two", "one", "three"]])


@each_model
def test_the_input_is_left_alone(make, task, parameters):
    X, y = sample(task)
    K, s = rbf_kernel(X), np.linspace(0.5, 1.5, 30)
    kept = [part.copy() for part in (X, K, y, s)]
    make(**parameters).fit(X, y, s)
    make(**parameters, kernel="precomputed").fit(K, y, s)
    for part, copy in zip((X, K, y, s), kept, strict=True):
        assert np.array_equal(part, copy)


@pytest.mark.parametrize("lam", [1e-12, 1e-9, 1e-3, 1e6])
@some_of("kernel", ["rbf", "linear", "laplacian"], times=1)
def test_any_lam_on_duplicate_rows(make, task, parameters, kernel, lam):
    """The training predictions are those of the problem, or a warning says that digits are lost."""
    X, y = sample(task, n=15)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = make(**parameters, kernel=kernel, lam=lam).fit(X, y)
        u = outputs(model, X)
    assert np.isfinite(u).all()
    assert not caught or lam < 1e-6
    if not caught:
        g = model._make_loss().gradient(y, u.ravel())
        gap = 2.0 * lam * 30 * model.dual_coef_.ravel() + g
        assert np.abs(gap).max() <= 1e-2 * max(np.abs(g).max(), 1e-3)


def test_two_rows_with_weight_are_enough():
    X, y = sample("regression", n=20)
    weight = np.zeros(20)
    weight[[3, 7]] = 1.0
    model = KernelRegressor(gamma=0.5, lam=0.1)
    expected = clone(model).fit(X[[3, 7]], y[[3, 7]]).predict(X)
    found = model.fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    weight[7] = 0.0
    with pytest.raises(ValueError, match="positive"):
        model.fit(X, y, sample_weight=weight)
