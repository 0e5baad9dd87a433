"""Losses, kernels and approximations as parameters: by name, as objects, and from inside."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from registries import sample
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onefit import (
    KernelClassifier,
    KernelGradientSearchCV,
    KernelRegressor,
    KernelSearchCV,
    default_grid,
)
from onefit.features import Fourier, Nystrom
from onefit.kernels import KERNELS, Gaussian, Matern32, Normalized, Polynomial
from onefit.losses import LOSSES, EpsilonInsensitive, Huber, Quantile, SmoothedHinge, Squared
from onefit.relevance import relevance
from onefit.search import Interval

X, y = sample("regression", n=40, d=3)
CV = KFold(4, shuffle=True, random_state=0)
VALUES = [
    Huber(0.5),
    Quantile([0.1, 0.9], delta=0.2),
    Polynomial(degree=2),
    Normalized(Polynomial(1.0)),
    Nystrom(20, "pivoted"),
    Fourier(20),
]


def test_the_parameters_are_few():
    names = "loss kernel gamma lam fit_intercept scaling approximation solver random_state"
    assert list(KernelRegressor().get_params(deep=False)) == sorted(names.split())
    more = {*names.split(), "class_weight", "multi_class"}
    assert set(KernelClassifier().get_params(deep=False)) == more


@pytest.mark.parametrize("loss", LOSSES)
def test_a_name_is_the_loss_with_its_defaults(loss):
    kind = KernelClassifier if LOSSES[loss].task == "classification" else KernelRegressor
    target = np.sign(y) if kind is KernelClassifier else y
    decide = "decision_function" if kind is KernelClassifier else "predict"
    models = (kind(one, lam=0.01).fit(X, target) for one in (loss, LOSSES[loss]()))
    found, expected = (getattr(model, decide)(X) for model in models)
    np.testing.assert_array_equal(found, expected)
    nested = kind(loss).get_params()
    assert nested == kind(LOSSES[loss]()).get_params() | {"loss": loss}


@pytest.mark.parametrize("kernel", [name for name in KERNELS if name != "precomputed"])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.3])
def test_a_name_is_the_kernel_with_the_estimators_gamma(kernel, gamma):
    gammas = {} if kernel == "linear" else {"gamma": gamma}
    named = KernelRegressor(kernel=kernel, **gammas).fit(X, y)
    given = KernelRegressor(kernel=KERNELS[kernel](), **gammas).fit(X, y)
    assert named.kernel_ == given.kernel_
    np.testing.assert_array_equal(named.predict(X), given.predict(X))


def test_parameters_are_set_inside():
    model = KernelRegressor("huber", "poly", approximation="nystrom")
    found = model.set_params(
        loss__threshold=0.5, kernel__degree=2, kernel__coef0=0.5, approximation__n_components=9
    )
    assert found is model
    assert model.loss == Huber(0.5)
    assert model.kernel == Polynomial(coef0=0.5, degree=2)
    assert model.approximation == Nystrom(9)
    assert model.get_params()["approximation__n_components"] == 9
    # the object first, whatever the order
    model.set_params(loss__level=0.9, loss="quantile")
    assert model.loss == Quantile(0.9)
    assert clone(model).get_params() == model.get_params()
    model.set_params(kernel=Normalized(Polynomial(1.0)), kernel__kernel__degree=4)
    assert model.kernel == Normalized(Polynomial(1.0, degree=4))
    assert model.get_params()["kernel__kernel__degree"] == 4


def test_objects_never_change():
    loss, kernel, features = Huber(0.5), Polynomial(degree=2), Nystrom(9)
    model = KernelRegressor(loss, kernel, approximation=features)
    other = clone(model).set_params(
        loss__threshold=2.0, kernel__degree=5, approximation__n_components=3
    )
    assert (loss, kernel, features) == (Huber(0.5), Polynomial(degree=2), Nystrom(9))
    assert model.loss is loss
    assert other.loss == Huber(2.0)
    assert model.set_params(loss__threshold=3.0).loss == Huber(3.0)
    assert loss == Huber(0.5)
    grid = {"loss": [loss], "loss__threshold": [0.1, 1.0], "lam": [1e-2]}
    search = KernelSearchCV(KernelRegressor(), grid, cv=CV).fit(X, y)
    assert loss == Huber(0.5)
    assert search.best_estimator_.loss == Huber(search.best_params_["loss__threshold"])


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_they_are_values(value):
    for twin in (copy.deepcopy(value), pickle.loads(pickle.dumps(value)), clone(value, safe=False)):
        assert twin == value
        assert hash(twin) == hash(value)
        assert repr(twin) == repr(value)
    assert type(value).__name__ in repr(KernelRegressor(loss=value))


@pytest.mark.parametrize(
    ("model", "params", "message"),
    [
        (
            KernelRegressor(),
            {"loss__level": 0.5},
            "'loss__level' .* loss='squared', which has none",
        ),
        (
            KernelRegressor(Huber(1.0)),
            {"loss__level": 0.5},
            r"'loss__level' is not a parameter of loss=Huber\(threshold=1.0\), which has only",
        ),
        (
            KernelRegressor("quantile"),
            {"loss__levle": 0.5},
            r"'loss__levle' .*did you mean 'loss__level'\? It has 'loss__level', 'loss__delta'",
        ),
        (KernelRegressor(kernel=np.inner), {"kernel__degree": 2}, "kernel=<.*, which has none"),
        (KernelRegressor(), {"approximation__n_components": 2}, "of approximation=None, which has"),
        (KernelRegressor("hubber"), {"loss__threshold": 2}, "of loss='hubber', which has none"),
        (KernelRegressor("huber"), {"loss__threshold": -1}, "threshold must be a positive"),
        (KernelRegressor(), {"lam__threshold": -1}, "'lam__threshold' is not a parameter of"),
    ],
)
def test_what_is_not_there_is_refused(model, params, message):
    with pytest.raises(ValueError, match=message):
        model.set_params(**params)
    if "lam" in next(iter(params)):
        return
    with pytest.raises(ValueError, match=message):
        KernelSearchCV(model, {name: [value] for name, value in params.items()}).fit(X, y)


@pytest.mark.parametrize("inside", [True, False], ids=["nested", "objects"])
@pytest.mark.parametrize(
    ("name", "parameter", "kind", "values"),
    [
        ("loss", "threshold", Huber, ["mad", 0.05, 1.0]),
        ("loss", "delta", EpsilonInsensitive, ["mad", 0.3]),
        ("kernel", "degree", Polynomial, [1, 2, 3]),
        ("approximation", "n_components", Fourier, [10, 30]),
    ],
)
def test_searches_are_grid_searches(name, parameter, kind, values, inside):
    """Widths "mad" come from the targets of each training part, in both searches."""
    lams = {"lam": [1e-3, 1e-1]}
    nested = {f"{name}__{parameter}": values} | lams
    objects = {name: [kind(**{parameter: value}) for value in values]} | lams
    model = KernelRegressor(gamma=0.3).set_params(**{name: kind()})
    grid = nested if inside else objects
    ours = KernelSearchCV(model, grid, cv=CV, scoring="neg_mean_absolute_error").fit(X, y)
    theirs = GridSearchCV(model, grid, cv=CV, scoring="neg_mean_absolute_error").fit(X, y)
    expected = theirs.cv_results_["mean_test_score"]
    assert ours.cv_results_["mean_test_score"] == pytest.approx(expected, abs=1e-6)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert len(np.unique(expected.round(9))) == len(expected)
    assert ours.best_params_ == theirs.best_params_


def test_pipelines_reach_inside():
    pipe = make_pipeline(StandardScaler(), KernelRegressor("huber", gamma=0.3))
    grid = {"kernelregressor__loss__threshold": [0.05, 1.0], "kernelregressor__lam": [1e-3, 1e-1]}
    options = {"cv": CV, "scoring": "neg_mean_absolute_error"}
    ours = KernelSearchCV(pipe, grid, **options).fit(X, y)
    theirs = GridSearchCV(pipe, grid, **options).fit(X, y)
    expected = theirs.cv_results_["mean_test_score"]
    assert ours.cv_results_["mean_test_score"] == pytest.approx(expected, abs=1e-6)
    bad = {"kernelregressor__loss__level": [0.5]}
    with pytest.raises(ValueError, match="'loss__level' is not a parameter of loss='huber'"):
        KernelSearchCV(pipe, bad, **options).fit(X, y)


def test_the_default_grid_of_polynomials():
    grid = default_grid(X, kernel="poly")
    search = KernelSearchCV(KernelRegressor(), grid, cv=CV).fit(X, y)
    degrees = {params["kernel__degree"] for params in search.cv_results_["params"]}
    assert degrees == {1, 2, 3}
    assert search.best_estimator_.kernel_.degree == search.best_params_["kernel__degree"]


@dataclass(frozen=True)
class Scaled(Squared):
    """A loss of a user, with a parameter."""

    factor: float = 1.0
    quadratic = False

    @property
    def max_curvature(self):
        return 2.0 * self.factor

    def value(self, y, u):
        return self.factor * super().value(y, u)

    def gradient(self, y, u):
        return self.factor * super().gradient(y, u)

    def curvature(self, y, u):
        return self.factor * super().curvature(y, u)


class Adjustable(Scaled, BaseEstimator):
    """One with the methods of scikit-learn."""

    def __init__(self, factor=1.0):
        object.__setattr__(self, "factor", factor)

    def get_params(self, deep=True):
        return {"factor": self.factor}

    def set_params(self, **params):
        for name, value in params.items():
            object.__setattr__(self, name, value)
        return self


@pytest.mark.parametrize("kind", [Scaled, Adjustable])
def test_losses_of_users_have_parameters_too(kind):
    own = kind(1.0)
    model = KernelRegressor(own, gamma=0.3, lam=0.1)
    halved = clone(model).set_params(loss__factor=0.5).fit(X, y)
    np.testing.assert_allclose(
        halved.predict(X), KernelRegressor(gamma=0.3, lam=0.2).fit(X, y).predict(X), atol=1e-7
    )
    assert own.factor == 1.0


def test_the_width_of_the_hinge():
    model = KernelClassifier("smoothed_hinge").set_params(loss__delta=0.3)
    assert model.loss == replace(SmoothedHinge(), delta=0.3) == SmoothedHinge(0.3)
    assert (
        KernelClassifier(kernel=Gaussian()).spec().words()["kernel"]
        == (KernelClassifier().spec().words()["kernel"])
    )


def test_searches_by_gradient_know_a_kernel_by_name_or_itself():
    ranges = {"gamma": Interval(0.01, 1.0, per_feature=True), "lam": Interval(1e-3, 1e-1)}
    searches = [
        KernelGradientSearchCV(KernelRegressor(kernel=kernel), ranges, cv=3).fit(X, y)
        for kernel in ("rbf", Gaussian(), "matern32", Matern32())
    ]
    for named, given in (searches[:2], searches[2:]):
        np.testing.assert_array_equal(named.best_params_["gamma"], given.best_params_["gamma"])
    for found, units in zip(searches, (2, 2, 1, 1), strict=True):
        share = found.best_params_["gamma"] * X.std(axis=0) ** units
        np.testing.assert_allclose(relevance(found, X, y, cv=3).values, share / share.sum())
    with pytest.raises(ValueError, match="takes a single gamma; per_feature=True is for"):
        KernelGradientSearchCV(KernelRegressor(kernel=Polynomial()), ranges, cv=3).fit(X, y)
