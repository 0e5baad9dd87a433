"""Adding and removing rows, against retraining."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from onefit import KernelClassifier, KernelRegressor
from onefit.losses import LOSSES, EpsilonInsensitive, EpsilonQuadratic, Expectile, Huber, Quantile

random = np.random.default_rng(0)
n = 60
X = random.uniform(-2, 2, size=(n, 3))
y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * random.normal(size=n)
s = random.choice([0.5, 1.0, 2.0], size=n)
labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.4, 0.7]))]
X_new = random.uniform(-2, 2, size=(20, 3))
REGRESSION = {
    "huber": Huber(0.3),
    "epsilon_insensitive": EpsilonInsensitive(epsilon=0.1, delta=0.05),
    "epsilon_quadratic": EpsilonQuadratic(0.1),
    "quantile": Quantile(0.8, delta=0.05),
    "expectile": Expectile(0.8),
}
SETTINGS = [{}, {"scaling": "total", "lam": 0.1}, {"fit_intercept": False}]


def names_for(task):
    return [name for name, cls in LOSSES.items() if cls.task in (task, "any")]


def regressors():
    for loss in names_for("regression"):
        yield KernelRegressor(REGRESSION.get(loss, loss), gamma=0.5, lam=1e-2)


def classifiers():
    for loss in names_for("classification"):
        yield KernelClassifier(loss, gamma=0.5, lam=1e-2)


def check(model, retrained):
    """The predictions and fitted attributes of retraining."""
    decide = "decision_function" if hasattr(model, "classes_") else "predict"
    found, expected = (getattr(one, decide)(X_new) for one in (model, retrained))
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(y).max())
    assert model.error_ <= 1e-6 * max(1.0, np.abs(y).max())
    assert model.X_fit_.shape == retrained.X_fit_.shape
    assert model.dual_coef_.shape == retrained.dual_coef_.shape
    assert np.shape(model.intercept_) == np.shape(retrained.intercept_)


def test_every_loss_is_tested():
    assert {model.spec().loss.name for model in regressors()} >= {"squared", "huber", "quantile"}
    assert len(list(classifiers())) >= 2


@pytest.mark.parametrize("weights", [np.ones(n), s], ids=["plain", "weighted"])
@pytest.mark.parametrize("setting", SETTINGS, ids=repr)
@pytest.mark.parametrize("model", list(regressors()), ids=lambda model: model.spec().loss.name)
def test_regression_equals_retraining(model, setting, weights):
    model = clone(model).set_params(**setting).fit(X[:50], y[:50], sample_weight=weights[:50])
    model.add_rows(X[50:55], y[50:55], sample_weight=weights[50:55])
    check(model, clone(model).fit(X[:55], y[:55], sample_weight=weights[:55]))
    model.add_rows(X[55:], y[55:], sample_weight=weights[55:])
    model.remove_rows([0, 3, -1])
    rows = np.setdiff1d(np.arange(n), [0, 3, n - 1])
    check(model, clone(model).fit(X[rows], y[rows], sample_weight=weights[rows]))


@pytest.mark.parametrize("setting", [{}, {"multi_class": "ovo"}, {"class_weight": {"b": 3.0}}])
@pytest.mark.parametrize("model", list(classifiers()), ids=lambda model: model.spec().loss.name)
def test_classification_equals_retraining(model, setting):
    model = clone(model).set_params(**setting).fit(X[:50], labels[:50], sample_weight=s[:50])
    model.add_rows(X[50:], labels[50:], sample_weight=s[50:]).remove_rows([1, 2])
    rows = np.setdiff1d(np.arange(n), [1, 2])
    retrained = clone(model).fit(X[rows], labels[rows], sample_weight=s[rows])
    check(model, retrained)
    assert (model.predict(X_new) == retrained.predict(X_new)).all()
    assert model.n_support_.shape == retrained.n_support_.shape


def test_two_classes_and_several_targets_and_levels():
    two = np.where(y > 0, "high", "low")
    model = KernelClassifier("log", gamma=0.5).fit(X[:50], two[:50])
    check(model.add_rows(X[50:], two[50:]), clone(model).fit(X, two))
    Y = np.column_stack([y, X[:, 2]])
    model = KernelRegressor(gamma=0.5).fit(X[:50], Y[:50])
    check(model.add_rows(X[50:], Y[50:]), clone(model).fit(X, Y))
    model = KernelRegressor(Quantile([0.2, 0.8], delta=0.05), gamma=0.5).fit(X[:50], y[:50])
    check(model.add_rows(X[50:], y[50:]), clone(model).fit(X, y))


@pytest.mark.parametrize("model", [KernelRegressor(gamma=0.5), KernelRegressor("huber", gamma=0.5)])
def test_many_updates_stay_exact(model):
    """Rows go in and out until none of the first ones is left."""
    model = clone(model).set_params(lam=1e-3)
    if model.loss == "huber":
        model.set_params(loss__threshold=0.3)
    model.fit(X[:20], y[:20])
    for i in range(20, n):
        model.add_rows(X[[i]], y[[i]])
        if i % 2:
            model.remove_rows([0, 1])
    check(model, clone(model).fit(X[40:], y[40:]))


def test_a_small_ridge_and_equal_rows_are_certified():
    model = KernelRegressor(gamma=0.01, lam=1e-9).fit(X[:50], y[:50])
    model.add_rows(np.vstack([X[50:], X[:5]]), np.append(y[50:], y[:5]))
    again = clone(model).fit(np.vstack([X, X[:5]]), np.append(y, y[:5]))
    np.testing.assert_allclose(model.predict(X_new), again.predict(X_new), atol=1e-4)
    assert model.error_ <= 1e-6


def test_rows_of_weight_zero_and_float32_and_sparse():
    weights = np.where(np.arange(n) % 7 == 0, 0.0, 1.0)
    model = KernelRegressor(gamma=0.5).fit(X[:50], y[:50], sample_weight=weights[:50])
    model.add_rows(X[50:], y[50:], sample_weight=weights[50:])
    check(model, clone(model).fit(X, y, sample_weight=weights))
    single, targets = X.astype(np.float32), y.astype(np.float32)
    model = KernelRegressor(gamma=0.5, lam=1e-2).fit(single[:50], targets[:50])
    model.add_rows(single[50:], targets[50:])
    again = clone(model).fit(single, targets)
    assert model.dual_coef_.dtype == np.float32
    np.testing.assert_allclose(model.predict(single), again.predict(single), atol=1e-4)
    rows = sparse.csr_array(X)
    model = KernelRegressor(gamma=0.5).fit(rows[:50], y[:50]).add_rows(rows[50:], y[50:])
    check(model.remove_rows([2]), clone(model).fit(np.delete(X, 2, 0), np.delete(y, 2)))


def test_settings_from_the_data_stay_as_they_were():
    model = KernelRegressor("huber").fit(X[:30], y[:30])
    gamma, threshold = model.kernel_.gamma, model.threshold_
    model.add_rows(10 * X[30:], 10 * y[30:])
    assert (model.kernel_.gamma, model.threshold_) == (gamma, threshold)
    again = KernelRegressor(Huber(threshold), gamma=gamma)
    again.fit(np.vstack([X[:30], 10 * X[30:]]), np.append(y[:30], 10 * y[30:]))
    np.testing.assert_allclose(model.predict(X_new), again.predict(X_new), atol=1e-5)
    balanced = KernelClassifier("log", class_weight="balanced").fit(X[:30], labels[:30])
    weight = balanced.class_weight_
    assert (balanced.add_rows(X[30:], labels[30:]).class_weight_ == weight).all()


def test_a_new_fit_forgets_the_updates_and_pickles_hold_no_matrix():
    model = KernelRegressor(gamma=0.5).fit(X[:50], y[:50]).add_rows(X[50:], y[50:])
    assert len(pickle.dumps(model)) < 8 * n * n
    copied = pickle.loads(pickle.dumps(model)).remove_rows([0])
    check(copied, clone(model).fit(X[1:], y[1:]))
    model.fit(X[:20], y[:20]).add_rows(X[20:30], y[20:30])
    check(model, clone(model).fit(X[:30], y[:30]))


def fitted(**params):
    return KernelRegressor(**params).fit(X, y)


@pytest.mark.parametrize(
    ("update", "match"),
    [
        (lambda: fitted().remove_rows([n]), f"between -{n} and {n - 1}"),
        (lambda: fitted().remove_rows([0.5]), "row numbers"),
        (lambda: fitted().remove_rows(np.arange(n - 1)), "two rows"),
        (lambda: fitted().add_rows(X[:, :2], y), "features"),
        (lambda: fitted().add_rows(X, y[:5]), "inconsistent"),
        (lambda: fitted().add_rows(X[:1], y[:1], sample_weight=[1.0, 2.0]), "shape .1,."),
        (lambda: fitted().add_rows(X[:1], y[:1], sample_weight=[-1.0]), "negative"),
        (lambda: fitted().add_rows(X, np.column_stack([y, y])), "same number of columns"),
        (lambda: fitted(approximation="nystrom").add_rows(X, y), "approximation"),
        (
            lambda: KernelClassifier().fit(X, labels).add_rows(X[:1], ["d"]),
            "label 'd', which the model does not know",
        ),
        (
            lambda: KernelClassifier().fit(X, labels).remove_rows(np.flatnonzero(labels == "c")),
            "no row of class 'c'",
        ),
    ],
)
def test_refused(update, match):
    with pytest.raises(ValueError, match=match):
        update()
